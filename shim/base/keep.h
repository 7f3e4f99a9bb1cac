/* CS_KEEP_ERRNO at the head of a function: errno leaves it as it came, whatever is called in between. For the shim's slow paths: a wrapped call
 * must leave errno as the driver left it, and the fast path touches it never. */
#ifndef CS_BASE_KEEP_H
#define CS_BASE_KEEP_H

#include <errno.h>
#include <pthread.h>

#include "shim/base/compiler.h"

static inline void cs_errno_restore(const int *saved) { errno = *saved; }
#define CS_KEEP_ERRNO int saved_errno_ __attribute__((cleanup(cs_errno_restore), unused)) = errno

/* CS_KEEP_UNCANCELLED likewise: a thread that is to be cancelled is not within it, where it may be about to give something back. What we call has
 * cancellation points, and a call of the driver's is none. */
static inline int cs_cancel_forbid(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}
static inline void cs_cancel_restore(const int *before) { pthread_setcancelstate(*before, NULL); }
#define CS_KEEP_UNCANCELLED int cancel_before_ __attribute__((cleanup(cs_cancel_restore), unused)) = cs_cancel_forbid()

/* CS_KEEP_FLOATS likewise: within it the processor calculates as in a new process, and leaves no trace of it. The program may have asked for another rounding,
 * or for SIGFPE where a result is not exact, and may look at what its own calculations have left. A new thread inherits all of that: those of ours put it off.
 * Not by fenv.h, whose functions stand in libm. Nothing of ours calculates with the old x87 registers, but the C library asks them how to round. */
struct cs_floats {
#if defined(__x86_64__)
    cs_u32 sse;
    cs_u16 x87;
#else
    cs_u64 control, status;
#endif
};
#if defined(__x86_64__)
static inline void cs_floats_restore(const struct cs_floats *saved) { __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(saved->sse), "m"(saved->x87)); }
static inline struct cs_floats cs_floats_default(void)
{
    struct cs_floats before;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(before.sse), "=m"(before.x87));
    cs_floats_restore(&(struct cs_floats){.sse = 0x1f80, .x87 = 0x37f});
    return before;
}
#elif defined(__aarch64__)
static inline void cs_floats_restore(const struct cs_floats *saved) { __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(saved->control), "r"(saved->status)); }
static inline struct cs_floats cs_floats_default(void)
{
    struct cs_floats before;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(before.control), "=r"(before.status));
    cs_floats_restore(&(struct cs_floats){0, 0});
    return before;
}
#else
#error "custream: floating-point control missing for this processor"
#endif
#define CS_KEEP_FLOATS struct cs_floats floats_before_ __attribute__((cleanup(cs_floats_restore), unused)) = cs_floats_default()

#endif
