/* The finished graph of a run, for replay.c and for the files that make the graph. */
#ifndef CS_MODEL_REPLAY_INSIDE_H
#define CS_MODEL_REPLAY_INSIDE_H

#include "tools/custream/model/due.h"
#include "tools/custream/model/replay.h"

enum node_kind { NODE_CALL, NODE_RETURN, NODE_WORK, NODE_HOST_FUNCTION, NODE_JOIN };

enum {
    SKEW_NS = 5000, /* as in order.c: what ended later than so long after a begin did not hold it */
    LAUNCH_NS = 3000, /* a launch's way to the GPU, if the trace does not show it */
    BEHIND_NS = 1500, /* from the end of work to the begin of the next work, likewise */
    WAIT_NS = 2000,   /* a call that waits takes so long if there is nothing to wait for */
    STAGED_NS = WAIT_NS + LAUNCH_NS, /* from a call's begin to work that begins before its return */
};

/* A time in 32 bits: nanoseconds up to two seconds, then microseconds. */
static inline uint32_t time_pack(int64_t ns)
{
    if (ns <= 0) return 0;
    if (ns < INT32_MAX) return (uint32_t)ns;
    return (ns / 1000 < INT32_MAX ? (uint32_t)(ns / 1000) : INT32_MAX) | UINT32_C(1) << 31;
}
static inline int64_t time_unpack(uint32_t time)
{
    return time >> 31 ? (int64_t)(time & INT32_MAX) * 1000 : time;
}

struct node {
    uint32_t subject; /* the index of the call, work or callback; JOIN: NONE */
    uint32_t ties;    /* the node's ties are replay->ties[ties .. the next node's ties) */
    union {
        struct {
            uint32_t takes; /* CALL: the call's time, without its wait */
            uint32_t gap;   /* CALL: the time of its thread's own code before the call */
        };
        struct {
            float fills;  /* WORK: the part of the device's multiprocessors that it takes; NAN: not
                             known */
            int32_t rest; /* WORK, HOST_FUNCTION: ns from when all ties let it begin to its begin */
        };
    };
    enum node_kind kind : 8;
    bool pageable : 1;   /* a copy of pageable memory, or its call or return */
    bool woken : 1;      /* CALL: its thread waited for another thread: of the node's two ties the
                            second is TIE_WAKE */
    bool in_row : 1;     /* CALL: it is in a row of launches that is worth a graph */
    unsigned waited : 7; /* CALL: percent of the gap in which its thread waited outside CUDA */
    bool missing : 1;    /* CALL: calls are missing in the gap, so nobody knows what it was */
    bool late : 1;       /* WORK: no tie and no full device explains when it began */
    bool last : 1; /* RETURN: its thread puts no more work on a GPU, so the wait has to stay */
};

struct tie {
    uint32_t from;
    int32_t delay; /* ns behind the other node's end (ENQUEUE: begin); may be negative */
    uint32_t next; /* the next tie from the same node; NONE */
    uint32_t to : 28;
    enum tie_kind kind : 4;
};

struct replay {
    const struct run *run;
    const struct model *of;
    struct node *nodes;
    size_t node_count, node_capacity;
    struct tie *ties;
    size_t tie_count, tie_capacity;
    bool *counts;      /* by thread: the run's length includes its calls and their work */
    uint32_t *node_of; /* by work: its node; NONE */
    uint32_t *first;   /* by node: the first tie from it; NONE */
    uint32_t call_begin,
        call_end; /* the calls that are played: run->calls[call_begin .. call_end) */
    double scale; /* the steady part's length divided by that of these calls; 1: all calls */
    int64_t begin, end, unexplained;
    int64_t unchanged[2]; /* by `unknown_fits`: the unchanged run's length; 0: not played yet */
    double pinned_rate;   /* bytes a ns of copies from and to pinned memory in this run */
    /* the state while the run is played */
    int64_t *ready; /* by node: when its ties so far let it begin; later, its begin */
    uint32_t *by;   /* by node: the tie that held it longest; NONE. NULL: no path is asked for */
    uint32_t last;  /* the node that ended last */
    uint32_t *left;
    struct dues dues; /* nodes that can begin, and behind their numbers, devices with new room */
};

#endif
