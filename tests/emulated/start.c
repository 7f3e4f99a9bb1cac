/*
 * A program of the tests for aarch64, started on this machine: becomes QEMU, which runs PROGRAM.
 * Whoever starts it, a case, a shell or another such program, needs to know nothing of QEMU, and
 * the kernel needs no binfmt_misc. Compiled once for each program.
 *
 * The loader's variables are for PROGRAM's loader, not for that of QEMU, which would complain about
 * each library of another machine. For the same reason there is no C library here, whose loader
 * would read them too: the file names itself as its loader. `custream run` sees a program with a
 * loader, as PROGRAM is one.
 */
#include <stddef.h>
#include <sys/syscall.h>

static long call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall"
        : "=a"(result)
        : "a"(number), "D"(a), "S"(b), "d"(c)
        : "rcx", "r11", "memory");
    return result;
}

__attribute__((noreturn, used)) static void start(char **stack)
{
    const long argc = (long)stack[0];
    char **argv = stack + 1, **environment = argv + argc + 1;
    size_t variables = 0, words = 0, kept = 0;
    while (environment[variables]) variables++;

    const char *word[argc + 2 * variables + 6];
    char *keep[variables + 1];
    word[words++] = QEMU;
    word[words++] = "-L";
    word[words++] = ROOT;
    word[words++] = "-0";
    word[words++] = argc ? argv[0] : "";
    for (char **e = environment; *e; e++) {
        if ((*e)[0] != 'L' || (*e)[1] != 'D' || (*e)[2] != '_') {
            keep[kept++] = *e;
            continue;
        }
        word[words++] = "-E";
        word[words++] = *e;
    }
    keep[kept] = NULL;
    word[words++] = PROGRAM;
    for (long i = 1; i < argc; i++) word[words++] = argv[i];
    word[words] = NULL;
    call(SYS_execve, (long)QEMU, (long)word, (long)keep);
    for (;;) call(SYS_exit_group, 126, 0, 0);
}

__asm__(".globl _start\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall start\n");
