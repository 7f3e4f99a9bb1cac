/*
 * Whether the program has shut itself in: a seccomp filter of its own may kill the process for a system call that only we make.
 *
 * What was there when we began to look may be a container's, and lets us do what we did so far.
 */
#ifndef CS_BASE_FILTERS_H
#define CS_BASE_FILTERS_H

#include "shim/base/compiler.h"

/* One thread of ours, which has descriptors of its own (base/apart.h): begins to look, and keeps a file open for it. */
void cs_filters_begin(void);

/* That thread: whether it has more filters than when it began; false where that can't be read. Makes no system call but pread64. Source: /proc/thread-self/status. */
bool cs_filters_came(void);

#endif
