/*
 * dlsym and dlvsym, as the shim exports them.
 *
 * RTLD_DEFAULT and RTLD_NEXT are resolved from the return address, so the real function must see the caller's. These stubs ask cs_route, which may
 * decide the answer (a driver symbol, looked up on the caller's handle); for everything else they jump to the C library's function with
 * registers and stack as they came in. A C function could only hope that the compiler makes it a tail call.
 */
#if defined(__x86_64__)

/* name, number of arguments kept: rdi, rsi, rdx */
.macro STUB name, real, versioned
    .globl  \name
    .type   \name, @function
\name:
    .cfi_startproc
    endbr64
    push    %rdi
    .cfi_adjust_cfa_offset 8
    push    %rsi
    .cfi_adjust_cfa_offset 8
    push    %rdx
    .cfi_adjust_cfa_offset 8
    .if \versioned == 0
    xor     %edx, %edx              /* no version */
    .endif
    mov     24(%rsp), %rcx          /* the caller's return address */
    call    cs_route
    mov     %rdx, %rcx              /* decided? */
    pop     %rdx
    .cfi_adjust_cfa_offset -8
    pop     %rsi
    .cfi_adjust_cfa_offset -8
    pop     %rdi
    .cfi_adjust_cfa_offset -8
    test    %rcx, %rcx
    jz      1f
    ret
1:  jmp     *\real(%rip)
    .cfi_endproc
    .size   \name, . - \name
.endm

#elif defined(__aarch64__)

.macro STUB name, real, versioned
    .globl  \name
    .type   \name, %function
\name:
    .cfi_startproc
    hint    #34                     /* bti c */
    stp     x29, x30, [sp, #-48]!
    .cfi_def_cfa_offset 48
    .cfi_offset 29, -48
    .cfi_offset 30, -40
    mov     x29, sp
    stp     x0, x1, [sp, #16]
    str     x2, [sp, #32]
    .if \versioned == 0
    mov     x2, xzr                 /* no version */
    .endif
    mov     x3, x30                 /* the caller's return address */
    bl      cs_route
    cbnz    x1, 1f                  /* decided? */
    ldp     x0, x1, [sp, #16]
    ldr     x2, [sp, #32]
    ldp     x29, x30, [sp], #48
    .cfi_restore 29
    .cfi_restore 30
    .cfi_def_cfa_offset 0
    adrp    x16, \real
    ldr     x16, [x16, #:lo12:\real]
    br      x16
1:  .cfi_def_cfa_offset 48
    .cfi_offset 29, -48
    .cfi_offset 30, -40
    ldp     x29, x30, [sp], #48
    .cfi_restore 29
    .cfi_restore 30
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size   \name, . - \name
.endm

#else
#error "custream: dlsym stub missing for this processor"
#endif

    .text
    .hidden cs_route
    .hidden cs_real_dlsym
    .hidden cs_real_dlvsym
    STUB    dlsym, cs_real_dlsym, 0
    STUB    dlvsym, cs_real_dlvsym, 1

    .section .note.GNU-stack, "", %progbits
