/* CS_KEEP_ERRNO at the head of a function: errno leaves it as it came, whatever is called in between. For the shim's slow paths: a wrapped call
 * must leave errno as the driver left it, and the fast path touches it never. */
#ifndef CS_BASE_KEEP_H
#define CS_BASE_KEEP_H

#include <errno.h>
#include <pthread.h>

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

#endif
