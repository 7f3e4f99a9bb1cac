/*
 * The private door between the simulated driver and whoever records what it does: the simulated
 * CUPTI (tests/fakecuda/cupti/).
 *
 * The driver exports one function, custream_fakecuda_trace. A tracer hands its callbacks in and
 * gets the driver's answers to questions about ids. While no tracer is attached a call pays for it
 * with the load of `fake_ready`, which it makes anyway, and a launch with one load more.
 */
#ifndef FAKECUDA_TRACE_H
#define FAKECUDA_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/calls/cuda_api.h"

/* Ids as CUPTI counts them: a context's null stream is 7 in each, all other streams count from 13
 * as they are made. */
enum { FAKE_TRACE_NULL_STREAM = 7, FAKE_TRACE_FIRST_STREAM = 13 };

/* What a call synchronised with, queried or recorded; ids of 0 mean that there is none. */
struct fake_trace_sync {
    enum {
        FAKE_SYNC_NONE,
        FAKE_SYNC_EVENT,
        FAKE_SYNC_WAIT,
        FAKE_SYNC_STREAM,
        FAKE_SYNC_CONTEXT,
        FAKE_EVENT_RECORD
    } kind;
    bool query;
    uint32_t device, context, stream, event;
    uint64_t recording; /* of the event: unique in the process */
};

/* A call of the driver, or of the runtime, in progress. It lies on the calling thread's stack;
 * nested calls (from callbacks) point to the one around them. */
struct fake_trace_call {
    const char *name; /* the symbol that was called */
    bool runtime;     /* it is the runtime's */
    int errno_found;  /* at entry */
    uint32_t *note;   /* the tracer's own, one a symbol, 0 at first; read and written with relaxed
                         atomics */
    const struct fake_tracer *tracer; /* who was told of the entry, or NULL */
    struct fake_trace_call *outer;
    struct fake_trace_sync sync; /* filled in by the body */
    /* The tracer's own, zero at entry: */
    uint64_t start, data;
    uint32_t correlation, cbid;
    bool recorded, called_back;
};

enum fake_trace_memory {
    FAKE_MEMORY_PAGEABLE,
    FAKE_MEMORY_PINNED,
    FAKE_MEMORY_DEVICE,
    FAKE_MEMORY_MANAGED,
    FAKE_MEMORY_ARRAY
};

/* A piece of GPU work. Of a graph's node, what concerns the stream is that of the launch, and not
 * repeated. */
struct fake_trace_work {
    enum { FAKE_TRACE_KERNEL, FAKE_TRACE_COPY, FAKE_TRACE_SET, FAKE_TRACE_GRAPH } kind;
    uint32_t device, context, stream;
    uint32_t graph;   /* of a launch: the executable graph */
    uint64_t made;    /* of a launch: when that was instantiated */
    uint64_t node;    /* 0 outside of graphs */
    uint64_t issued;  /* like all times here CLOCK_MONOTONIC in nanoseconds */
    const char *name; /* of a kernel; valid during the call */
    unsigned grid[3], block[3], shared;
    uint64_t bytes; /* of copies and sets; of a graph what its copies move */
    unsigned value;
    bool asynchronous;
    struct fake_trace_place {
        enum fake_trace_memory memory;
        uint32_t device, context;
    } to, from; /* a set has only `to` */
};

/* What a tracer is told. work_* come with the driver's lock held, from any thread: they must not
 * call into the driver or its clients. */
struct fake_tracer {
    void (*api_enter)(struct fake_trace_call *call);
    void (*api_exit)(struct fake_trace_call *call, CUresult result);
    /* call: the one that enqueues it, NULL if it was entered before the tracer came. launch: for a
     * node, the token of its graph's launch. Returns a token for work_done, or NULL if that is not
     * wanted. */
    void *(*work_new)(
        struct fake_trace_call *call, void *launch, const struct fake_trace_work *work);
    void (*work_done)(void *token, uint64_t start, uint64_t end); /* exactly once a token */
};

/* What the driver answers. Any thread, without the driver's lock. */
struct fake_traced {
    uint64_t (*now)(void);
    void (*advance)(void); /* finishes what is due */
    CUcontext (*current)(void);
    CUresult (*context_id)(
        CUcontext context, uint32_t *id, uint32_t *device); /* NULL: the current one */
    CUresult (*stream_id)(CUcontext context, CUstream stream, bool per_thread, uint32_t *id);
    CUresult (*graph_id)(CUgraph graph, uint32_t *id);
    CUresult (*exec_id)(CUgraphExec exec, uint32_t *id);
    CUresult (*node_id)(CUgraphNode node, uint64_t *id);
    bool (*any_context)(void);
    void (*break_down)(CUresult error); /* all calls answer that from here on, as after an
                                           asynchronous error; with the driver's lock held */
};

/* Attaches a tracer, or with NULL detaches it; tokens that it has given are still reported to it.
 * One tracer at a time, never unloaded. NULL in the child of a process that had initialised the
 * driver. */
const struct fake_traced *custream_fakecuda_trace(const struct fake_tracer *tracer);

/* The simulated runtime tells of its own calls: on entry, with `name` set, and when it returns.
 * Nested in their order, on the calling thread. */
void custream_fakecuda_runtime_enter(struct fake_trace_call *call);
void custream_fakecuda_runtime_leave(struct fake_trace_call *call, int result);

#endif
