/*
 * Which calls of the driver, and which host functions, threads are inside of: a call that has not returned has made no record. The writer looks at each thread's
 * state now and then, and the trailer tells what a thread has been inside of for two looks or more. So a trace says it of a process that hangs, and of one that was
 * killed, and threads pay nothing for it. The writer thread's alone.
 */
#ifndef CS_TRACE_INSIDE_H
#define CS_TRACE_INSIDE_H

#include "shim/base/compiler.h"

/* Once a round, before anything of the GPU's is collected. */
void cs_inside_look(void);

/* Members for the trailer's totals: as of when they and the GPU's records are, who is inside of what, and how the kernels were launched that are awaited. `end`: of the room. */
char *cs_inside_put(char *at, const char *end);

#endif
