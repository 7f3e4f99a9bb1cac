/*
 * Threads that the program may need: ours count under its limits (`ulimit -u`, and pids.max of its control groups).
 */
#ifndef CS_BASE_SCARCE_H
#define CS_BASE_SCARCE_H

#include <stdbool.h>

/* Less than four times as many as ours are left: those are the program's, which would be refused threads that it has had without us. Reads files of the kernel's;
 * only where the limit of a user is near does it go through all processes. */
bool cs_threads_are_scarce(void);

#endif
