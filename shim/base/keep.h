/* CS_KEEP_ERRNO at the head of a function: errno leaves it as it came, whatever is called in between. For the shim's slow paths: a wrapped call
 * must leave errno as the driver left it, and the fast path touches it never. */
#ifndef CS_BASE_KEEP_H
#define CS_BASE_KEEP_H

#include <errno.h>

static inline void cs_errno_restore(const int *saved) { errno = *saved; }
#define CS_KEEP_ERRNO int saved_errno_ __attribute__((cleanup(cs_errno_restore), unused)) = errno

#endif
