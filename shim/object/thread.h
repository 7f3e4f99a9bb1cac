/*
 * What the shim keeps for each application thread: its ring of records and its view of the current context.
 *
 * A thread's state is made at its first recorded call, found through one initial-exec TLS pointer, and only ever written by its own thread but for
 * the fields that say otherwise. When the thread ends, the writer drains the ring to the end and the state is used again for a later thread.
 */
#ifndef CS_OBJECT_THREAD_H
#define CS_OBJECT_THREAD_H

#include "shim/base/rings.h"
#include "shim/calls/cuda_api.h"
#include "shim/object/pool.h"

struct cs_change;

enum { CS_THREADS = 1 << 16 }; /* that may be alive at once; others are not recorded */

struct cs_thread {
    struct cs_ring ring;

    _Alignas(CS_CACHE_LINE) _Atomic cs_u32 inside; /* in a driver call of ours: calls made by the driver itself or by a tool in it are not the application's; in which: CS_IN_CALL */
    _Atomic cs_u32 tid;                    /* of the kernel; 0 while a thread takes this state over. The writer searches for it */
    cs_u32 key;                            /* the low half of pthread_self(), as profilers give it */
    cs_u32 index;                          /* of this state among all, from 1 to CS_THREADS; threads that follow each other share it */
    cs_u64 call_ended;                     /* ticks; of its last recorded call, 0 none yet: what comes much later is an edge (trace/thread_clock.h) */
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
    const void *_Atomic waited;            /* inside a call that synchronises or enqueues, its stream or event; stands on when the call is over */
    const void *_Atomic function;          /* the host function that it runs for the driver; NULL none */
    _Atomic cs_ref function_stream;        /* its stream; stands on when the function is over */
    int unmarked;                          /* of its next calls that put work on a GPU, so many are not marked (gpu/mark.h); a handler's may take it below 0 */
    cs_u32 sample_place, sample_turns;     /* which of N calls was marked last; how many have been */

    unsigned char spare[CS_SLOT] __attribute__((aligned(CS_SLOT))); /* takes the record of a call that found the ring full */

    /* Calls that found the ring full since the last record that got in. The writer reads them at the end of the process. */
    _Atomic cs_u64 lost;
    _Atomic cs_u64 lost_begin, lost_end; /* ticks of the first and last of them */

    struct cs_thread *next;                                                     /* in the list of all; constant once linked */
    _Atomic cs_u32 state;                                                       /* enum cs_thread_state */
    _Atomic cs_u64 comm[2]; /* its name as it started, and again as it ended: by then /proc has it no more; cs_thread_comm() */
    cs_u64 ended;       /* ticks; 0 while it lives */
    _Atomic cs_u32 given;   /* at its end, the name that the program gave it (object/given.h); 0 none */
    cs_u64 first;       /* the ring's head when the thread began to use it */
    int pid;            /* of the process that it is in */
    _Atomic cs_u64 free_since; /* monotonic ns */
};
_Static_assert(sizeof(struct cs_thread) <= CS_RINGS_PAGE, "it has a page in the file of rings");

/* What `inside` holds: 0 in no call; CS_INSIDE_OURS in something of the recorder's own; else in this call of the driver's. The writer reads it, so that a call which
 * never returns, and makes no record, can be told (trace/inside.h). One store either way: which call it is costs nothing. */
#define CS_INSIDE_OURS          1
#define CS_IN_CALL(call)        ((cs_u32)(call) << 1 | CS_INSIDE_OURS)
#define CS_CALL_IN(inside)      ((inside) >> 1)

enum cs_thread_state { CS_THREAD_FREE, CS_THREAD_LIVE, CS_THREAD_DONE };

CS_HIDDEN extern CS_TLS struct cs_thread *cs_self;
extern struct cs_thread *_Atomic cs_threads; /* the list, newest first; entries are never taken out */

void cs_threads_init(void); /* before the first of them starts; one thread at a time */

/* Makes cs_self for this thread; NULL when there is no memory. Keeps errno. */
struct cs_thread *cs_thread_start(void);

/* Bytes of ring each thread gets, a power of two; before the first cs_thread_start. */
void cs_thread_set_ring_size(size_t bytes);
size_t cs_thread_ring_size(void);

/* The writer's: a thread that is done and drained may be used again. */
void cs_thread_recycle(struct cs_thread *thread);

/* The writer's, once a round: what busy threads' rings had in the file of rings goes back when no thread has wanted it for a second. */
void cs_threads_rest(void);

/* What the thread that a fork has left has in place of its state, until a call of its own starts afresh. It seems to be inside, so each call takes the long way;
 * only one that a signal handler interrupted to fork goes on with it: between a wrapper's look at its thread and its use of it. It has no ring. */
CS_HIDDEN extern struct cs_thread cs_orphan;

enum { CS_THREAD_COMM = 16 };
void cs_thread_comm(const struct cs_thread *thread, char name[static CS_THREAD_COMM]);

/* The thread's own state, NULL: it has none. Wrappers look at cs_self, and at inside. */
static inline struct cs_thread *cs_thread_own(void) { return cs_self == &cs_orphan ? NULL : cs_self; }

/* Where the file of rings has what tells of a thread. */
struct cs_rings_layout cs_threads_layout(void);

/* In the child of a fork: forget all threads but leave the caller able to start afresh. */
void cs_threads_forget(void);

#endif
