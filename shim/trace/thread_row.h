/*
 * What the writer keeps of each thread of the program, in a row of its own: a thread's state (object/thread.h) knows nothing of the trace. The writer
 * thread's alone.
 *
 * A row is found by the state's index and is as new for each thread that uses the state: who takes the state back empties the row.
 */
#ifndef CS_TRACE_THREAD_ROW_H
#define CS_TRACE_THREAD_ROW_H

#include "shim/trace/thread_clock.h"

enum { CS_FILLED = 64 };

struct cs_thread_row {
    cs_u64 last_end_ns;          /* where the thread's lane is filled up to */
    cs_u64 place;                /* of the record that is being read, in its ring */
    cs_u64 filled_ns[CS_FILLED]; /* where the lane was filled up to before each of the last records, by place (trace/runtime.c) */
    cs_u64 loss_begin_ns, loss_end_ns;   /* since the last callback's slice, where the first gap begins and the last one ends; 0 none */
    cs_u64 part_since_ns, part_first_ns; /* where it was filled up to when the present part of the trace began; where its first call there may begin */
    cs_u64 cpu_ns[CS_CLOCK_PLACES]; /* its processor time at the begin and the end of the call that comes next; 0 not read */
    cs_u32 device;               /* of its last call on a stream */
    bool populated;              /* the ring's pages have been made */
    bool announced, is_driver;   /* is_driver: ran nothing but callbacks so far: a thread of the driver's */
    char name[16];               /* as last announced, */
    cs_u32 given_shown;          /* and the given one */
    struct cs_inside_seen {      /* what the last looks saw the thread inside of (trace/inside.h) */
        cs_u64 what, at;         /* the call, or the function; how many records the thread had made by then */
        cs_u64 since;            /* ticks of the first of these looks; 0: it was in nothing */
        bool twice;              /* by a later look too */
    } call, function;
    struct cs_open_ranges *open; /* what trace/annotation.c keeps of it; stays with the row */
};

extern struct cs_thread_row *cs_thread_rows;
static inline struct cs_thread_row *cs_thread_row(const struct cs_thread *thread)
{
    return &cs_thread_rows[thread->index <= CS_THREADS ? thread->index : 0]; /* those beyond have no ring, and nothing that is told apart */
}

void cs_thread_rows_begin(void); /* a new process's trace */
void cs_thread_row_empty(const struct cs_thread *thread);

#endif
