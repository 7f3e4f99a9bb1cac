/*
 * A thread's processor time at the edges of its calls: where it made no call for 200 us, and where a call held it that long. Between two readings the command
 * tells computing from waiting. Source: CLOCK_THREAD_CPUTIME_ID, a system call of about 270 ns, so it is read nowhere else.
 */
#ifndef CS_TRACE_THREAD_CLOCK_H
#define CS_TRACE_THREAD_CLOCK_H

#include "shim/object/thread.h"

enum cs_thread_clock_at { CS_CLOCK_AT_BEGIN, CS_CLOCK_AT_END, CS_CLOCK_PLACES };

/* Ticks of 200 us; the most there is where the clock is not read. */
CS_HIDDEN extern _Atomic cs_u64 cs_edge_ticks;

void cs_thread_clock_begin(void); /* behind cs_clock_init */

/* Reads the clock and puts it in the ring before the record of the call that is about to be made or has been made. Ticks behind the reading. The thread's own;
 * it is inside. */
CS_COLD cs_u64 cs_thread_clock_read(struct cs_thread *thread, enum cs_thread_clock_at at);

/* The begin of a call at `now`. */
CS_HOT cs_u64 cs_thread_clock_edge(struct cs_thread *thread, cs_u64 now)
{
    return CS_LIKELY(now - thread->call_ended < cs_load(&cs_edge_ticks)) ? now : cs_thread_clock_read(thread, CS_CLOCK_AT_BEGIN);
}

#endif
