/*
 * The closing line: what the trace holds and lacks, and how to open it, on stderr as the process ends.
 *
 * It is printed under `custream run`, and otherwise where stderr is a terminal. CUSTREAM_QUIET drops it.
 */
#ifndef CS_TRACE_CLOSING_H
#define CS_TRACE_CLOSING_H

/* The writer thread's: the file has ended. */
void cs_closing_prepare(void);

/* Once, on a thread that has the program's descriptors, after that. Safe in a signal handler. */
void cs_closing_say(void);

void cs_closing_after_fork_in_child(void);

#endif
