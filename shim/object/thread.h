/*
 * What the shim keeps for each application thread: its ring of records and its view of the current context.
 *
 * A thread's state is made at its first recorded call, found through one initial-exec TLS pointer, and only ever written by its own thread but for
 * the fields that say otherwise. When the thread ends, the writer drains the ring to the end and the state is used again for a later thread.
 */
#ifndef CS_OBJECT_THREAD_H
#define CS_OBJECT_THREAD_H

#include "shim/base/ring.h"
#include "shim/calls/cuda_api.h"
#include "shim/object/pool.h"

struct cs_change;

enum { CS_THREADS = 1 << 16 }; /* that may be alive at once; others are not recorded */

struct cs_thread {
    struct cs_ring ring;

    _Alignas(CS_CACHE_LINE) cs_u32 inside; /* in a driver call of ours: calls made by the driver itself or by a tool in it are not the application's */
    cs_u32 tid;                            /* of the kernel */
    cs_u32 key;                            /* the low half of pthread_self(), as profilers give it */
    cs_u32 index;                          /* of this state among all, from 1 to CS_THREADS; threads that follow each other share it */
    cs_u32 own_count;                      /* per-thread default streams the thread has had, one a context */
    cs_u64 own_keys[8];                    /* under which the last of them stand in the map of streams */
    cs_u32 context_known;                  /* 0: ask the driver at the next need */
    cs_ref context;                        /* the current context; 0 none */
    cs_ref default_stream[2];              /* of the current context: legacy, per-thread; 0 not looked up yet */
    cs_u32 context_epoch;                  /* cs_context_epoch when they were looked up */
    cs_u16 default_mode, default_rule;     /* what a policy decided of them (policy/default_stream.c); 0 not yet */
    const struct cs_change *default_set;   /* of that rule; policies are never given back */
    cs_u32 ordinal;                        /* among the threads that used a default stream, from 1 (policy/jitter.c); 0 not yet */
    cs_u32 default_operations;             /* its own on default streams that might have been delayed so far */
    cs_u32 unmarked;                       /* of its next calls that put work on a GPU, so many are not marked (gpu/mark.h) */
    cs_u32 sample_place, sample_turns;     /* which of N calls was marked last; how many have been */

    unsigned char spare[CS_SLOT] __attribute__((aligned(CS_SLOT))); /* takes the record of a call that found the ring full */

    /* Calls that found the ring full since the last record that got in. The writer reads them at the end of the process. */
    _Atomic cs_u64 lost;
    _Atomic cs_u64 lost_begin, lost_end; /* ticks of the first and last of them */

    struct cs_thread *next;                                                     /* in the list of all; constant once linked */
    _Atomic cs_u32 state;                                                       /* enum cs_thread_state */
    char comm[16];      /* its name as it started, and again as it ended: by then /proc has it no more */
    cs_u64 ended;       /* ticks; 0 while it lives */
    cs_u32 given;       /* at its end, the name that the program gave it (object/given.h); 0 none */
    cs_u64 first;       /* the ring's head when the thread began to use it */
};

enum cs_thread_state { CS_THREAD_FREE, CS_THREAD_LIVE, CS_THREAD_DONE };

CS_HIDDEN extern CS_TLS struct cs_thread *cs_self;
extern struct cs_thread *_Atomic cs_threads; /* the list, newest first; entries are never taken out */

/* Makes cs_self for this thread; NULL when there is no memory. Keeps errno. */
struct cs_thread *cs_thread_start(void);

/* Bytes of ring each thread gets, a power of two; before the first cs_thread_start. */
void cs_thread_set_ring_size(size_t bytes);

/* The writer's: a thread that is done and drained may be used again. */
void cs_thread_recycle(struct cs_thread *thread);

/* In the child of a fork: forget all threads but leave the caller able to start afresh. */
void cs_threads_forget(void);

#endif
