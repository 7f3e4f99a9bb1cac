/*
 * The simulated GPU's own header: objects, the scheduler, and how a driver call is defined.
 *
 * One lock, `fake_lock`, guards everything below that is not said to be per thread. Public calls
 * take it in their body (FAKE_LOCKED); functions named fake_* expect it held unless their comment
 * says otherwise. Time is CLOCK_MONOTONIC in nanoseconds.
 */
#ifndef FAKECUDA_FAKE_H
#define FAKECUDA_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/calls/cuda_api.h"
#include "tests/fakecuda/driver/trace.h"

#define EXPORT          __attribute__((visibility("default")))
#define UNLIKELY(x)     __builtin_expect(!!(x), 0)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define TLS             __thread __attribute__((tls_model("initial-exec")))

/* ---- Entering a call (enter.c) ---- */

/* One exported symbol: its name and how often it was called, kept only where CUSTREAM_FAKE_COUNTS
 * or _FAIL asks. */
struct fake_call {
    const char *name;
    struct fake_call *next;
    unsigned long count;
    uint32_t note;      /* a tracer's */
    bool listed, early; /* early: may be called before cuInit */
};
extern int fake_ready;        /* 1 once initialised with nothing to inject, count, trace or journal;
                                 anything else takes the slow path of fake_enter */
extern bool fake_direct;      /* CUSTREAM_FAKE_DIRECT: launches do nothing at all */
extern uint64_t fake_copy_ns; /* CUSTREAM_FAKE_COPY_NS: how long a copy or a set takes */
extern uint64_t fake_slice_ns; /* CUSTREAM_FAKE_SLICE_NS: recordings of events take place in the
                                  first 2 ms of each such while */
extern unsigned
    fake_queues; /* CUSTREAM_FAKE_QUEUES: hardware queues of a device; 0: as many as streams */
extern unsigned fake_depth; /* CUSTREAM_FAKE_DEPTH: so many operations of a stream may be
                               unfinished, and a call that adds one more waits */
extern bool fake_full;      /* CUSTREAM_FAKE_FULL: kernels that take all threads of a device run one
                               after the other */
extern bool
    fake_errno; /* CUSTREAM_FAKE_ERRNO: each call changes errno in a way of its own (left.h) */
extern bool fake_copy_engines; /* CUSTREAM_FAKE_COPY_ENGINES: copies in one direction run one after
                                  the other */
CUresult fake_enter(struct fake_call *call, struct fake_trace_call *traced,
    const void *caller); /* any thread, lock not held */
CUresult fake_leave(struct fake_trace_call *traced,
    CUresult result); /* returns the result; after each fake_enter */
void fake_ready_update(void);
void fake_break_down(CUresult error); /* an asynchronous error: all later calls answer it */
bool fake_forked(void); /* in the child of a process that had initialised the driver: the lock must
                           not be touched */
int fake_fallback(const char *name); /* a call that is not simulated */
int fake_driver_version(void);
long fake_setting(const char *name, long otherwise); /* an integer from the environment */

/* before and after: statements around the body, for the journal; after sees result_. */
#define FAKE_CALL(symbol, arguments, is_early, before, after) \
    static struct fake_call call_ = {.name = #symbol, .early = is_early}; \
    if (UNLIKELY(__atomic_load_n(&fake_ready, __ATOMIC_RELAXED) != 1)) { \
        struct fake_trace_call traced_; \
        before; \
        CUresult result_ = fake_enter(&call_, &traced_, __builtin_return_address(0)); \
        if (!result_) result_ = arguments; \
        after; \
        return fake_leave(&traced_, result_); \
    } \
    return arguments

/* A driver call outside the call table: API(name, (parameters), (arguments)) { body }. API_EARLY
 * may run before cuInit. */
#define API_(name, parameters, arguments, is_early) \
    static CUresult body_##name parameters; \
    EXPORT CUresult CUDAAPI name parameters { FAKE_CALL(name, body_##name arguments, is_early, , \
    ); } \
    static CUresult body_##name parameters
#define API(name, parameters, arguments)       API_(name, parameters, arguments, false)
#define API_EARLY(name, parameters, arguments) API_(name, parameters, arguments, true)

/* A driver call of the table: IMPL(name)(parameters) { body }; where the row has a sibling there is
 * `bool per_thread` before its parameters, and the body serves both. The exported symbols, and weak
 * defaults for the rows without a body, are made from the table (export.c, default.c). */
#define IMPL(name) CUresult impl_##name

/* ---- Journal (journal.c) ---- */

struct fake_stream;
struct fake_journal_line;
extern bool fake_journaling; /* CUSTREAM_FAKE_JOURNAL; constant once calls are made */
struct fake_journal_line *fake_journal_begin(
    const char *symbol, const void *caller); /* lock not held, as for the next three */
void fake_journal_end(struct fake_journal_line *line, CUresult result); /* writes it */
void fake_journal_event(const char *label, CUevent event);
void fake_journal_kernel(const char *label, CUfunction function);
/* For bodies, with or without the lock: what the thread's call is about. Nothing where there is no
 * journal. */
__attribute__((format(printf, 1, 2))) void fake_journal_add(const char *format, ...);
void fake_journal_stream(const struct fake_stream *stream); /* only where fake_journaling */
void fake_journal_created(struct fake_stream *stream); /* numbers it, journal or not; lock held */

/* ---- Lock ---- */
extern pthread_mutex_t fake_lock;
static inline void fake_unlock(pthread_mutex_t **held) { pthread_mutex_unlock(*held); }
/* Takes the lock until the end of the scope. */
#define FAKE_LOCKED \
    __attribute__((cleanup(fake_unlock), unused)) pthread_mutex_t *held_ = &fake_lock; \
    pthread_mutex_lock(&fake_lock)
#define FAKE_TRY(expression) \
    do { \
        CUresult failed_ = (expression); \
        if (failed_) return failed_; \
    } while (0)

/* ---- Handles (handle.c) ---- */

/* Handles of one kind are addresses inside one reserved range, so that any value can be checked;
 * the last one given back is given out first, as the real driver does. */
struct fake_handles {
    char *base;
    uint32_t used, free;
};
void *fake_handle_new(struct fake_handles *handles, void *object);
void *fake_handle_get(const struct fake_handles *handles,
    const void *handle); /* NULL: not one of ours, or given back */
void fake_handle_free(struct fake_handles *handles, void *handle);

/* ---- Work: what a stream or a graph node does (work.c) ---- */

enum fake_work_type {
    WORK_EMPTY,
    WORK_KERNEL,
    WORK_COPY,
    WORK_SET,
    WORK_HOST,
    WORK_RECORD,
    WORK_WAIT,
    WORK_VALUES,
    WORK_FREE,
    WORK_ALLOC,
    WORK_GRAPH,
    WORK_CHILD
};

/* One recording of an event, or the end of an operation: shared by whoever waits for it. */
struct fake_record {
    int references;
    bool done;
    uint64_t time;
};

/* One end of a copy: bytes at base + z * slice + y * pitch + x. */
struct fake_place {
    char *base;
    size_t pitch, slice;
};

struct fake_values_op {
    bool wait;
    uint64_t address, value;
    unsigned flags, bytes;
};

struct fake_graph;
struct fake_exec;
struct fake_event;
struct fake_stream;

struct fake_work {
    enum fake_work_type type;
    void *owned;        /* freed with the work: staged bytes, parameters */
    size_t owned_bytes; /* its size, so that a graph can copy it */
    bool asynchronous;  /* copies and sets: how they were asked for, which only a tracer wants to
                           know */
    union {
        struct {
            uint64_t duration;
            CUDA_KERNEL_NODE_PARAMS params;
            void (*effect)(void **parameters);
            int priority;
            void *parameters[8]; /* where the effect reads them: into `values` */
            uint64_t values[8];
        } kernel;
        struct {
            struct fake_place to, from;
            size_t width, height, depth;
            bool to_array, from_array;
            CUDA_MEMCPY3D shape; /* as asked for, for cuGraphMemcpyNodeGetParams */
        } copy;
        struct {
            CUdeviceptr address;
            size_t pitch, width, height; /* width in elements */
            unsigned value, element;
        } set;
        struct {
            CUhostFn function;
            CUstreamCallback callback;
            CUstream hstream;
            void *data;
        } host;
        struct {
            CUevent handle;             /* in a graph: which event */
            struct fake_record *record; /* in a stream: which recording */
        } event;
        struct {
            unsigned count;
        } values; /* owned: that many fake_values_op */
        CUdeviceptr memory;
        struct {
            struct fake_exec *exec;
            struct fake_record *before, *done;
        } graph;
        struct fake_graph *child;
    };
};

/* A work being carried out. */
struct fake_running {
    enum { RUN_FRESH, RUN_STARTED, RUN_DONE } state;
    uint64_t start, end;
    unsigned index; /* WORK_VALUES: the next one */
    struct fake_graph_run *graph;
    void *trace;  /* the tracer's token, or NULL */
    void *launch; /* a graph's run, also inside: the token of its launch, and its stream */
    struct fake_stream *stream;
};

struct fake_op {
    struct fake_op *next;
    struct fake_stream *stream;
    struct fake_work work;
    struct fake_running running;
    struct fake_record *done; /* or NULL, when nobody waits */
    uint64_t sequence, issued;
    uint64_t begins; /* with a virtual clock, once nothing is in its way; 0: not known yet */
};

/* Carries `work` on as far as it can: true once done, at running->end. `ready`: when its
 * predecessors ended. */
bool fake_work_step(struct fake_work *work, struct fake_running *running, uint64_t ready);
void fake_work_drop(struct fake_work *work); /* frees what it owns */
void fake_work_copy(struct fake_work *to, const struct fake_work *from);
struct fake_record *fake_record_new(void);
struct fake_record *fake_record_hold(struct fake_record *record);
void fake_record_drop(struct fake_record *record); /* takes NULL */

/* ---- Contexts (context.c) ---- */

enum { FAKE_QUEUES = 32 }; /* the most that CUDA_DEVICE_MAX_CONNECTIONS can ask for */

struct fake_context {
    CUcontext handle;
    int device, references;
    bool primary, alive;
    unsigned flags, generation;
    unsigned long long id;
    uint64_t sequence; /* of operations, across its streams */
    struct fake_stream *legacy, *streams;
    unsigned busy_blocking;           /* blocking streams with operations pending */
    unsigned capturing_blocking;      /* blocking streams that are being captured */
    uint64_t queue_ends[FAKE_QUEUES]; /* by hardware queue: latest end of what went through it */
    uint64_t blocking_end;            /* latest end on any blocking stream */
    const struct fake_op
        *filling; /* the kernel that takes all of the device, and when the last one ended */
    uint64_t filled_until;
    struct fake_context *next;
};

enum { FAKE_STACK = 32, FAKE_MAX_DEVICES = 16 };
struct fake_thread {
    struct fake_context *stack[FAKE_STACK];
    int depth;
    CUstreamCaptureMode mode;
    struct fake_trace_call *traced; /* the call that it is in, if a tracer was told */
    struct fake_journal_line *line; /* the call that it is in, if there is a journal */
    unsigned number;                /* in the journal; 0: not seen yet */
    struct {
        struct fake_context *context;
        unsigned generation;
        struct fake_stream *stream;
    } own[FAKE_MAX_DEVICES];
};
/* The calling thread's. Only a pointer lies in static TLS, which is scarce where this library is
 * dlopened. */
extern TLS struct fake_thread *fake_thread_known;
struct fake_thread *fake_thread_new(void);
static inline struct fake_thread *fake_thread(void)
{
    return fake_thread_known ? fake_thread_known : fake_thread_new();
}
void fake_streams_drop(struct fake_thread *thread); /* a thread that ends */
extern struct fake_context *fake_contexts;
extern int fake_device_count;

CUresult fake_current(
    struct fake_context **context); /* the calling thread's context, or why there is none */
struct fake_context *fake_context_get(CUcontext handle);
CUresult fake_context_of(CUcontext handle, struct fake_context **context); /* 0: the current one */
void fake_context_wait(struct fake_context *context);

/* ---- Streams (stream.c) ---- */

struct fake_stream {
    struct fake_context *context;
    CUstream handle;
    unsigned flags;
    int priority;
    unsigned long long id;
    uint32_t trace_id; /* CUPTI's number, which is another */
    unsigned ordinal;  /* how many were created up to it; 0 for those that nobody created */
    bool legacy, per_thread, destroyed;
    struct fake_op *head, *tail;
    unsigned pending; /* operations from head to tail */
    uint64_t last_end;
    struct fake_stream *next;      /* in the context */
    struct fake_stream *next_busy; /* in the scheduler */
    struct fake_capture *capture;
    struct fake_node **last; /* capturing: what the next node depends on */
    size_t last_count;
    void *green;
    CUstreamAttrValue window;
    int sync_policy, sync_domain;
};

CUresult fake_stream_get(CUstream handle, bool per_thread, struct fake_stream **stream);
CUresult fake_stream_in(CUcontext context, CUstream handle, bool per_thread,
    struct fake_stream **stream); /* default streams: that context's */
CUresult fake_stream_new(
    struct fake_context *context, unsigned flags, int priority, struct fake_stream **stream);
struct fake_stream *fake_stream_alloc(struct fake_context *context);
void fake_stream_release(struct fake_stream *stream);
static inline bool fake_blocking(const struct fake_stream *s)
{
    return !s->legacy && !(s->flags & CU_STREAM_NON_BLOCKING);
}
unsigned long long fake_next_id(void);
void fake_priority_range(int *least, int *greatest);

/* ---- Scheduler (sched.c) ---- */

uint64_t fake_now(void);      /* the calling thread's */
uint64_t fake_real_now(void); /* whatever the clock is */
uint64_t fake_gpu_now(void);  /* what ends by then has ended */
/* Appends work to a stream and takes it over; runs it at once where nothing is in its way. wait:
 * returns only when it is done. Never captures. */
void fake_await_room(struct fake_stream *stream); /* in its queue; releases the lock meanwhile */
void fake_await_launchers(void); /* returns when nobody is in there: on an H200 they keep a lock
                                    that some other calls need */
void fake_enqueue(struct fake_stream *stream, struct fake_work *work, bool wait);
/* True where the stream is idle and nothing implicit stands in its way either. */
bool fake_idle(const struct fake_stream *stream);
bool fake_stream_done(const struct fake_stream *stream);
struct fake_record *fake_stream_tail(
    struct fake_stream *stream);            /* held; of its last operation, NULL if idle */
void fake_wait(struct fake_record *record); /* releases the lock meanwhile */
uint64_t fake_advance(void);       /* runs whatever can run; returns when something more does, or
                                      UINT64_MAX */
void fake_deadline(uint64_t time); /* called by steps: look again then */
void fake_host_submit(struct fake_work *work, struct fake_running *running);
void fake_host_call(
    CUhostFn function, void *data); /* on the same thread, after what was submitted before */

/* ---- The virtual clock (clock.c). Where time is real, nothing of this does anything ---- */

enum {
    FAKE_ISSUE_NS = 1500,  /* from the end of its call to the device */
    FAKE_BEHIND_NS = 1500, /* there, and behind other work, until the work begins */
};
extern bool fake_virtual; /* CUSTREAM_FAKE_CLOCK=virtual */
/* CUSTREAM_FAKE_CALL_NS, CUSTREAM_FAKE_LAUNCH_NS: a call that puts something on a stream, or waits;
 * one that launches a kernel or sets memory. */
extern uint64_t fake_call_ns, fake_launch_ns;
uint64_t fake_clock_now(void);
uint64_t fake_clock_gpu(void);
void fake_clock_spend(uint64_t ns); /* the calling thread does nothing else for so long */
void fake_clock_wait(struct fake_record *record);
void fake_clock_back(uint64_t ended); /* the calling thread has waited for what ended then */
void fake_clock_took(const uint64_t *began);
/* At least a call's time passes until the end of the scope. Stands behind FAKE_LOCKED. */
#define FAKE_TAKES_TIME \
    __attribute__((cleanup(fake_clock_took), unused)) const uint64_t began_ = \
        UNLIKELY(fake_virtual) ? fake_now() : 0
/* Of the thread for host functions: one is due; its turn begins; it ends, and there are more. */
void fake_clock_host_due(uint64_t time);
void fake_clock_host_begin(void);
void fake_clock_host_end(bool more);

/* ---- The one door for asynchronous work (capture.c) ---- */

/* Puts work on the stream, or into the graph where the stream is being captured. Takes the work
 * over. */
CUresult fake_submit(struct fake_stream *stream, struct fake_work *work, bool wait);
/* The errors that a stream's capture makes of a synchronising or querying call; breaks the capture.
 */
CUresult fake_capture_forbids(struct fake_stream *stream);
CUresult fake_capture_forbids_context(struct fake_context *context);
/* Calls that the capture modes forbid ("potentially unsafe"): allocation, event query, ... */
CUresult fake_unsafe(void);
void fake_capture_leave(struct fake_stream *stream); /* a stream that is going away */

/* ---- Events (event.c) ---- */

struct fake_event {
    struct fake_context *context;
    CUevent handle;
    unsigned flags, id,
        opened; /* opened: how many other handles it has, which stand for other processes' */
    uint64_t recording; /* number of the latest, across all events */
    struct fake_record *record;
    struct fake_capture *capture; /* last recorded in a capture, which holds it by id */
    unsigned long long capture_id;
    struct fake_node **last;
    size_t last_count;
};
struct fake_event *fake_event_get(CUevent handle);
void fake_event_record(
    struct fake_event *event, struct fake_record *record); /* takes the record over */
CUresult fake_event_put(
    struct fake_stream *stream, struct fake_event *event); /* records it on the stream */

/* ---- Memory (memory.c) ---- */

struct fake_memory {
    CUdeviceptr base;
    size_t bytes;
    CUmemorytype type; /* HOST, DEVICE or UNIFIED (managed) */
    struct fake_context *context;
    int device;
    void *pool;
    bool registered;
    unsigned flags;
    unsigned long long id;
};
struct fake_memory *fake_memory_find(uint64_t address); /* NULL: ordinary host memory */
CUresult fake_memory_new(size_t bytes, CUmemorytype type, unsigned flags, CUdeviceptr *address);
CUresult fake_memory_free(CUdeviceptr address);

struct fake_array {
    CUDA_ARRAY3D_DESCRIPTOR shape;
    size_t element, pitch, slice;
    char *bytes;
};
struct fake_array *fake_array_get(CUarray handle);

/* ---- Functions (module.c) ---- */

struct fake_function {
    CUfunction handle;
    char *name;
    uint64_t duration;
    void (*effect)(void **parameters); /* or NULL */
    unsigned parameters;               /* how many are read */
    unsigned char bytes[4];            /* of each of them */
    int microseconds_at;               /* which of them is the duration; -1: none */
    struct fake_module *module;
    struct fake_function *next;
};
struct fake_function *fake_function_get(CUfunction handle);

/* ---- Graphs (graph.c, graph_run.c) ---- */

struct fake_node {
    CUgraphNode handle;
    struct fake_graph *graph;
    CUgraphNodeType type;
    struct fake_work work;
    struct fake_node **before;
    size_t before_count;
    struct fake_node *next;
    uint64_t id;    /* the graph's in the upper half */
    unsigned index; /* position, while a copy or a run is being made */
    bool marked;
    bool disabled;
};
struct fake_graph {
    CUgraph handle;
    struct fake_node *first, *tail;
    size_t count;
    bool child; /* belongs to a node */
    unsigned id, last_node;
    struct fake_user **users; /* one entry a reference */
    size_t user_count;
};
struct fake_graph *fake_graph_new(bool child);
struct fake_graph *fake_graph_get(CUgraph handle);
struct fake_node *fake_node_get(CUgraphNode handle);
CUgraphNode fake_node_handle(
    struct fake_node *node); /* made when first asked for: copies of graphs have none */
CUgraph fake_graph_handle(struct fake_graph *graph);
struct fake_node *fake_node_add(struct fake_graph *graph, CUgraphNodeType type,
    struct fake_work *work, struct fake_node **before, size_t count);
struct fake_graph *fake_graph_clone(const struct fake_graph *graph, bool child);
void fake_graph_same_ids(struct fake_graph *graph,
    const struct fake_graph *as); /* of a copy that stands for the same nodes */
void fake_graph_destroy(struct fake_graph *graph);
struct fake_exec *fake_exec_get(CUgraphExec handle);
void fake_users_copy(
    struct fake_graph *to, const struct fake_graph *from); /* user objects: user_object.c */
void fake_users_drop(struct fake_graph *graph);
/* Used by work.c for WORK_GRAPH and WORK_CHILD. */
bool fake_graph_step(struct fake_graph *graph, struct fake_running *running, uint64_t ready);
struct fake_graph *fake_exec_graph(struct fake_exec *exec);
uint64_t fake_exec_made(const struct fake_exec *exec);
void fake_exec_hold(struct fake_exec *exec);
void fake_exec_drop(struct fake_exec *exec);

/* ---- Tracing (trace.c) ---- */

extern const struct fake_tracer *fake_tracer;
static inline bool fake_tracing(void)
{
    return UNLIKELY(__atomic_load_n(&fake_tracer, __ATOMIC_RELAXED));
}
void fake_trace_enter(struct fake_call *call, struct fake_trace_call *traced); /* lock not held */
/* What the call that the thread is in synchronises with; kind is one of struct fake_trace_sync. */
void fake_trace_stream(int kind, const struct fake_stream *stream, bool query);
void fake_trace_event(
    int kind, const struct fake_event *event, const struct fake_stream *stream, bool query);
void fake_trace_context(const struct fake_context *context);
/* Only while tracing, and for what carries a token. */
void fake_trace_op(struct fake_op *op);
void fake_trace_node(
    const struct fake_node *node, const struct fake_running *graph, struct fake_running *running);
void fake_trace_done(struct fake_running *running);

/* The prototype of each body, from the table, so that a body that differs from its row does not
 * compile. */
#define WITH_FLAG_(...)          (bool per_thread, __VA_ARGS__)
#define BODY_ONE_(name, parameters)  CUresult impl_##name parameters;
#define BODY_PTDS_(name, parameters) CUresult impl_##name WITH_FLAG_ parameters;
#define BODY_PTSZ_(name, parameters) CUresult impl_##name WITH_FLAG_ parameters;
#define CALL(name, sibling, kind, how, stream, effect, parameters, ...) \
    BODY_##sibling##_(name, parameters)
#include "shim/calls/calls.def"
#undef CALL

#endif
