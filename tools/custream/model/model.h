/*
 * A run of a program as its trace files tell it, and what follows from that. Nothing of a file's
 * format is behind this header, and nothing of how it is shown.
 *
 * struct model owns all of it: free it with model_free(). It is made in this order, each step from
 * those before, and then only read:
 *
 *   run_load()    each file's rows become rows of struct run's tables (load.c; trace/row.h reads
 * the files) run_settle()  the tables in order, works tied to calls (settle.c) holds         of
 * each piece of work, from when it could have run and what held it until then (order.c): the only
 * model of stream order idles         of each device, when nothing ran and why (idle.c) overlap
 * work that was late while another stream was at work (overlap.c)
 *
 * Others ask a settled run by views.h, and unfinished.h for what had not ended. Rows name each
 * other by index, NONE where there is nothing. Times are nanoseconds since the trace's base. Names
 * are numbers of texts (trace/texts.h). Who has no memory ends the process.
 */
#ifndef CS_MODEL_MODEL_H
#define CS_MODEL_MODEL_H

#include "shim/calls/calls.h"
#include "tools/custream/command.h"
#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/row.h"

#define NONE UINT32_MAX

/* A key of two numbers, and these again. */
static inline uint64_t key_of(uint32_t high, uint32_t low) { return (uint64_t)high << 32 | low; }
static inline uint32_t key_high(uint64_t key) { return (uint32_t)(key >> 32); }
static inline uint32_t key_low(uint64_t key) { return (uint32_t)key; }

/* Rows by what they belong to: which rows each group has, in the order of the rows. */
struct groups {
    uint32_t *begins; /* of group g: members[begins[g] .. begins[g + 1]) */
    uint32_t *members;
};

/* `group` tells the group of row i, from 0 to below group_count; UINT32_MAX: of none. */
struct groups groups_make(size_t group_count, size_t row_count,
    uint32_t (*group)(const void *of, size_t i), const void *of);
void groups_free(struct groups *groups);

/* A call of the driver's (in other tools' traces, of the runtime's) on a host thread. In order of
 * `begin`. */
struct call {
    int64_t begin, end;
    uint32_t thread, stream; /* stream: that the call names, NONE: none */
    /* The GPU work that it enqueued: run->works_of[work], and how many. While loaded, `work` is its
     * correlation. */
    uint32_t work, works;
    text name;
    enum cs_call call : 24; /* CS_CALL_NONE: the call table does not have it */
    bool captured : 1;      /* it went into a graph */
    bool awaited : 1;       /* GPU work was to come of it: it has a correlation */
    bool ended : 1;         /* and has come, also in a sample */
    bool elsewhere : 1;     /* its event is also recorded by graphs, launches or other processes */
    bool external : 1;      /* of an event: the trace does not tell what it records or waits for */
    uint32_t what;          /* an event's number, a LAUNCH's kernel name, a MEMOP's address; 0 */
    uint32_t shape;         /* of a launch: run->shapes, where its own row says it; NONE */
    text result;            /* the error's name; 0: it succeeded */
};

enum work_kind { WORK_KERNEL, WORK_COPY, WORK_SET, WORK_GRAPH, WORK_RANGE, WORK_KINDS };
extern const char *const work_kind_name[WORK_KINDS]; /* "kernels" */

/* A piece of work on a GPU. In order of `begin`, then `end`. */
struct work {
    int64_t begin, end;
    uint32_t stream, call; /* call: NONE: not known; while it is loaded, its correlation */
    text name;
    uint32_t shape;     /* of a kernel: run->shapes; NONE */
    uint32_t graph;     /* CUPTI's number of the graph; 0: none */
    uint32_t node : 24; /* of a graph whose nodes are shown, from 1, in no order; 0: no node */
    enum work_kind kind : 4;
    enum cs_way way : 4; /* of a copy */
    uint64_t bytes;      /* of a copy or set */
};

/* The host function that a call enqueued, as it ran on the driver's thread. In order of `enqueued`.
 */
struct callback {
    int64_t begin, end, enqueued; /* enqueued: when its call was made, or some ns before */
    uint32_t stream, thread;
};

enum stream_origin { ORIGIN_CREATED, ORIGIN_LEGACY, ORIGIN_PER_THREAD };
struct stream {
    uint32_t lane, device; /* lane: the number that the trace gives it on its device */
    uint32_t context;      /* of its work; 0: not known */
    text name;             /* as the timeline shows it */
    enum stream_origin origin;
    bool non_blocking; /* does not wait for the legacy default stream, nor it for this */
    bool destroyed;
    bool lived, known; /* something of its life stands in the trace; how it began does */
    bool by_policy;    /* custream gave it something else than the program asked for */
    bool priority_said;
    int priority, requested;
    text created_by, library; /* the call; the library or program that made it */
    text origin_said, flags;  /* as the file spells it */
    uint32_t thread;          /* that made it: the system's number; 0: the file does not say */
    int64_t begin, end;
    uint32_t works; /* pieces of work on it */
};

/* What limits how much runs on a device at once; 0: not known. Of one multiprocessor where `sm_`
 * stands before it. */
struct device {
    uint32_t ordinal;
    text name;
    uint32_t sms, sm_threads, sm_blocks, sm_registers, sm_shared_memory, copy_engines;
};

struct thread {
    uint32_t tid;
    text name;
    bool callbacks; /* the driver's own thread for host functions */
};

/* A range that the program named (NVTX): on a thread, or of the process (thread NONE). In order of
 * `begin`, the longer first. */
struct range {
    int64_t begin, end;
    uint32_t thread;
    text name, domain;
    text id : 30;       /* of the process's: the file's name for it; 0 */
    bool continued : 1; /* a piece: it began in an earlier part */
    bool continues : 1; /* a piece: it goes on in the next part */
};

/* What is missing: from when to when, how much, why. */
struct loss {
    int64_t begin, end;
    uint64_t calls, works;
    text cause;
    bool no_times; /* no GPU work that ran then is in the trace */
    bool closed;   /* outside of a window: nothing was to be recorded */
};

/* Numbers and texts of the file's header and trailer. Of several parts, the newest one's. */
struct facts {
    struct fact {
        text value; /* 0: it is a number */
        double number;
    } *rows;
    size_t count, capacity;
    struct numbers index; /* rows by their path, as a text: "totals.gpu.lost" */
};

/* How much was not recorded. */
struct lost {
    double calls, works;
};

/* What a file says of itself as one of several parts. */
struct part {
    uint32_t number; /* 0: it is not one of several */
    double without_times, launches_without_kernel, without_call;
    double untimed_in_all;   /* both, up to this part, without what came later; NAN: not said */
    struct lost lost;        /* in its rows */
    struct lost lost_in_all; /* of this part and all before it; NAN: it does not say */
    bool continues;          /* another part follows */
    bool recovered;          /* what came behind its last flush is not counted */
};

struct run {
    struct call *calls;
    size_t call_count, call_capacity;
    struct work *works;
    size_t work_count, work_capacity;
    struct work *sampled;
    size_t sampled_count; /* works of a trace that times only some: then `works` is empty */
    struct shape *shapes;
    size_t shape_count, shape_capacity;
    struct callback *callbacks;
    size_t callback_count, callback_capacity;
    struct stream *streams;
    size_t stream_count, stream_capacity;
    struct device *devices;
    size_t device_count, device_capacity;
    struct thread *threads;
    size_t thread_count, thread_capacity;
    struct range *ranges;
    size_t range_count, range_capacity;
    struct loss *losses;
    size_t loss_count, loss_capacity;
    struct facts facts;
    struct part *parts;
    size_t part_count, part_capacity; /* one for each file; once settled, in order */
    uint32_t *works_of;               /* works by call: [call->work .. + call->works) */
    struct groups thread_calls;       /* calls by thread */
    struct texts texts;
    int64_t base;           /* wall clock of time 0, in ns since 1970 */
    int64_t begin, end;     /* of the first and last thing in it */
    uint64_t rows;          /* read, of traceEvents */
    bool ours;              /* custream wrote it */
    struct trace_left left; /* rows of other tools' files that were left out */
    bool cut;               /* a file ends inside an event: the process was killed while it wrote */
    int64_t last_bytes;     /* to read of a longer plain file, and its header; 0: all */
    bool end_only;          /* that was so */
    text program;           /* the process's name */
    uint32_t pid;
    struct loading *loading; /* load.c's, until run_settle() */
};

void run_init(struct run *run);

/* A file's rows into the run; false: error says why in one line, without the file's name.
 * `progress` (NULL: nobody) is called now and then with the bytes read of the file as it lies on
 * the disk. */
bool run_load(struct run *run, const char *path, void (*progress)(void *of, uint64_t bytes),
    void *of, char error[256]);

/* For who reads a file by itself, and takes its rows into a run besides (trace_sink). The texts are
 * the run's. */
void run_take_row(void *run, const struct trace_row *row);
void run_take_fact(void *run, const struct trace_fact *fact);

/* What the parts of one run have in common. */
struct identity {
    uint32_t pid;
    int64_t base;
};
/* Of which run a file is, from its beginning if it stands there. False: error says why, as
 * run_load() does. */
bool run_identify(const char *path, struct identity *identity, char error[256]);

/* After the last file: everything in its order, works tied to calls. Nothing is added afterwards.
 */
void run_settle(struct run *run);
void run_free(struct run *run);

/* NULL: the files do not say. */
const struct fact *run_fact(const struct run *run, const char *path);
double run_number(const struct run *run, const char *path, double otherwise);
uint32_t run_count(const struct run *run, const char *path,
    uint32_t otherwise); /* what is no count of 32 bits is 0 */
const char *run_source(
    const struct run *run); /* of its GPU times: "cupti"; NULL: the files do not say */
/* How long it is, of a file that custream record or dump cut out of a longer trace; else 0. */
double run_cut_seconds(const struct run *run);
bool run_has_times(const struct run *run); /* of all GPU work that there was */
uint32_t run_sample(const struct run
        *run); /* of how many calls that put work on a GPU one is timed; 0: of all, or of none */

static inline enum cs_kind call_kind(const struct call *call)
{
    return cs_call_info[call->call].kind;
}
static inline bool call_how(const struct call *call, enum cs_how how)
{
    return cs_call_info[call->call].how & how;
}
static inline const char *text_in(const struct run *run, text name)
{
    return text_of(&run->texts, name);
}
static inline uint32_t work_device(const struct run *run, const struct work *work)
{
    return run->streams[work->stream].device;
}

/* --- order --- */

/*
 * What each piece of GPU work had to wait for, from the order in which the host enqueued it: exact,
 * since a stream's order, events and the legacy default stream are rules of CUDA's ("Stream
 * Synchronization Behavior", CUDA Runtime API; cuStreamWaitEvent, CUDA Driver API).
 */
/* Why a device was idle, or work late. cause_info has a row for each. */
enum cause {
    CAUSE_HOST,   /* the host had not enqueued it */
    CAUSE_LAUNCH, /* it was enqueued, and nothing else held it: the launch's own way to the GPU */
    CAUSE_EVENT,  /* a wait for an event's record */
    CAUSE_LEGACY, /* the legacy default stream, and nothing else */
    CAUSE_ORDER,  /* work before it on its own stream */
    CAUSE_HOST_FUNCTION,  /* a host function before it on its stream */
    CAUSE_MEMORY_VALUE,   /* cuStreamWaitValue: a value in memory */
    CAUSE_GRAPH_EDGE,     /* an edge inside its graph */
    CAUSE_COPY_ENGINE,    /* ready; another copy in the same direction ran */
    CAUSE_DEVICE_FULL,    /* ready; the kernels that ran filled the device */
    CAUSE_HARDWARE_QUEUE, /* ready; more streams had work than there are hardware queues */
    CAUSE_UNKNOWN,
    CAUSES
};
struct cause_info {
    const char *key, *title; /* "host", "the host had not enqueued it" */
};
extern const struct cause_info cause_info[CAUSES];

/* Queues between the host and a GPU: CUDA_DEVICE_MAX_CONNECTIONS where nobody sets it. Of more
 * streams, some share a queue, and work waits behind another stream's. */
enum { HARDWARE_QUEUES = 8 };

/* After its last obstacle is gone, work begins within this: launches take 3 to 10 us, a wait
 * between streams 2 to 5 (docs/report.md). */
enum { LATENCY_NS = 100 * 1000 };

/* Of one piece of work: when it could have begun at the earliest, and who held it until then. */
struct hold {
    int64_t enqueued; /* when its call began; the work's own begin where the call is not known */
    int64_t ready; /* when all that it had to wait for on the GPU had ended; INT64_MIN: nothing */
    int64_t without_legacy; /* the same if the legacy default stream ordered nothing */
    uint32_t blocker;       /* the work that ended at `ready`; NONE */
    uint32_t via; /* the call that made it wait: cuStreamWaitEvent, cuLaunchHostFunc, ...; NONE */
    uint32_t record;  /* by CAUSE_EVENT: the call that recorded the event; NONE */
    enum cause cause; /* UNKNOWN: nothing held it */
};

/* One a work, by index. */
struct hold *order_make(const struct run *run);

/* --- idle time --- */

/* Where each device was idle, piece by piece: every nanosecond between its first and its last work
 * in which none ran has one cause. */
/* What the thread that enqueued the next work did meanwhile. */
enum host_doing { DOING_NOTHING_KNOWN, DOING_OWN_CODE, DOING_BLOCKED, DOING_CALL, DOINGS };
extern const char *const doing_word[DOINGS]; /* "own code" */

struct idle {
    int64_t begin, end;
    uint32_t next;       /* the work that came next */
    uint32_t device : 8; /* index in run->devices */
    enum cause cause : 8;
    enum host_doing doing : 8; /* by CAUSE_HOST: the thread of the next work's call */
    uint32_t call;  /* BLOCKED: in which call; CALL: likewise, one that does not wait; NONE */
    uint32_t range; /* the innermost range of that thread then; NONE */
};
static inline uint32_t idle_thread(const struct run *run, const struct idle *idle)
{
    return run->calls[run->works[idle->next].call].thread;
} /* by CAUSE_HOST */

struct idles {
    struct idle *rows; /* in order of device, then time */
    size_t count, capacity;
    struct span { /* from the first to the last work (begin == end: none); how long any ran */
        int64_t begin, end, busy;
    } *devices;
};

/* Two steps, to use less memory: how long each device was busy, then the rows. */
void idles_init(struct idles *idles, const struct run *run);
void idles_make(struct idles *idles, const struct run *run, const struct hold *holds);

/* --- overlap --- */

/*
 * Why streams did not overlap: for each piece of work that began later than it could have, which
 * stream was at work meanwhile, and what kept the two apart.
 *
 * All times are upper bounds: if the work had begun earlier, both would have shared the device, and
 * might have taken longer.
 */
/* A piece of work that waited while another stream was at work. */
struct late {
    uint32_t work;
    uint32_t behind;  /* the stream that was at work */
    uint32_t during;  /* the last work of that stream that had begun when the wait ended */
    enum cause cause; /* LEGACY, EVENT, COPY_ENGINE, DEVICE_FULL, HARDWARE_QUEUE, HOST, UNKNOWN */
    int64_t lost;     /* how much of the work could have run at the same time, ns */
};

/* Two streams, one after the other for one cause. */
struct pair {
    uint32_t first, second; /* streams: the one at work, and the one that waited */
    enum cause cause;
    uint32_t times;
    uint32_t late; /* of lates: that which lost the most */
    int64_t lost;
};

struct overlap {
    struct late *lates; /* in order of their work */
    size_t late_count, late_capacity;
    struct pair *pairs; /* that seldom overlapped and lost much, the most expensive first */
    size_t pair_count, pair_capacity;
};

/* Work may begin so long after its release without loss: launches take 2 to 10 us. */
enum { RELEASE_NS = 20000 };

void overlap_make(struct overlap *overlap, const struct run *run, const struct hold *holds,
    const struct idles *idles);

/* --- all of it --- */

struct model {
    struct run run;
    struct hold *holds; /* by work */
    struct idles idles;
    struct overlap overlap;
};

void model_init(struct model *model);
/* For another run, with the same texts. */
void model_begin_again(struct model *model);
/* After the last run_load(). `overlap`: that is asked for too. */
void model_settle(struct model *model, bool overlap);
void model_free(struct model *model);

#endif
