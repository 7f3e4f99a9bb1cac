/*
 * One run of a program as `custream report` knows it: what its trace files say, in rows of tables.
 *
 * load.c fills it from the files (trace/row.h gives it their rows), run_settle() sorts it and ties works to calls, and from then on it is only read. Rows name each
 * other by index, NONE where there is nothing. Times are nanoseconds since the trace's base. Names are numbers of texts (texts.h).
 */
#ifndef CS_MODEL_RUN_H
#define CS_MODEL_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/calls/calls.h"
#include "tools/custream/model/groups.h"
#include "tools/custream/trace/row.h"

#define NONE UINT32_MAX

/* A call of the driver's (in other tools' traces, of the runtime's) on a host thread. In order of `begin`. */
struct call {
    int64_t begin, end;
    uint32_t thread, stream; /* stream: that the call names, NONE: none */
    uint32_t work, works;    /* the GPU work that it enqueued: run->works_of[work], and how many; while it is loaded, `work` is its correlation, 0: none */
    text name;
    enum cs_call call : 24;  /* the row of the call table (kind, what it does besides); CS_CALL_NONE: a call that it does not have */
    bool captured : 1;       /* it went into a graph; in earlier traces told where only a sample of the work has times */
    bool awaited : 1;        /* GPU work was to come of it: it has a correlation */
    bool ended : 1;          /* and has come, also in a sample */
    bool elsewhere : 1;      /* its event is also recorded by graphs, launches or other processes; while it is loaded, of calls that say so */
    bool external : 1;       /* of an event: the trace does not tell what it records or waits for. `elsewhere`, or it went into a graph */
    uint32_t what;           /* by kind: an event's number (EVENT, WAIT, and SYNC or QUERY of an event), a kernel's name (LAUNCH), an address (MEMOP); else 0 */
    uint32_t shape;          /* of a launch: run->shapes, where the call's own row says it; NONE */
    text result;             /* the error's name; 0: it succeeded */
};

enum work_kind { WORK_KERNEL, WORK_COPY, WORK_SET, WORK_GRAPH, WORK_RANGE, WORK_KINDS };
extern const char *const work_kind_name[WORK_KINDS]; /* "kernels", "copies", "memsets", "graphs", "ranges" */

/* A piece of work on a GPU. In order of `begin`, then `end`. */
struct work {
    int64_t begin, end;
    uint32_t stream, call;  /* call: NONE where it is not known; while it is loaded, its correlation, 0: none */
    text name;
    uint32_t shape;         /* of a kernel: run->shapes; NONE */
    uint32_t graph;         /* CUPTI's number of the graph; 0: none */
    uint32_t node : 24;     /* of a graph whose nodes are shown, from 1: run order is not known by it; 0: no node */
    enum work_kind kind : 4;
    enum cs_way way : 4;    /* of a copy */
    uint64_t bytes;         /* of a copy or set */
};

/* How a kernel was launched: what decides how much of the device it fills. */
struct shape {
    uint32_t grid[3], block[3], registers, shared_memory; /* registers per thread; bytes per block */
};

/* The host function that a call enqueued, as it ran on the driver's thread. In order of `enqueued`. */
struct callback {
    int64_t begin, end, enqueued; /* enqueued: when its call was made, or some ns before */
    uint32_t stream, thread;
};

enum stream_origin { ORIGIN_CREATED, ORIGIN_LEGACY, ORIGIN_PER_THREAD };
struct stream {
    uint32_t lane, device; /* lane: the number that the trace gives it; the file's key, with the device */
    uint32_t context;      /* of its work; 0: not known */
    text name;             /* as the timeline shows it */
    enum stream_origin origin;
    bool non_blocking;     /* does not wait for the legacy default stream, nor it for this */
    bool destroyed, known; /* known: its life stands in the trace */
    bool by_policy;        /* custream gave it something else than the program asked for */
    int priority, requested;
    text created_by, library; /* the call; the library or program that made it */
    uint32_t thread;       /* that made it: the system's number */
    int64_t begin, end;
    uint32_t works;        /* pieces of work on it */
};

/* What limits how much runs on a device at once; 0: not known. Of one multiprocessor where `sm_` stands before it. */
struct device {
    uint32_t ordinal;
    text name;
    uint32_t sms, sm_threads, sm_blocks, sm_registers, sm_shared_memory, copy_engines;
};

struct thread {
    uint32_t tid;
    text name;
    bool callbacks;        /* the driver's own thread for host functions */
};

/* A range that the program named (NVTX): on a thread, or of the process (thread NONE). In order of `begin`, the longer first. */
struct range {
    int64_t begin, end;
    uint32_t thread;
    text name, domain;
    text id : 30;          /* of the process's: the file's name for it; 0 */
    bool continued : 1;    /* a piece: it began in an earlier part */
    bool continues : 1;    /* a piece: it goes on in the next part */
};

/* What is missing: from when to when, how much, why. */
struct loss {
    int64_t begin, end;
    uint64_t calls, works;
    text cause;
    bool no_times;         /* no GPU work that ran then is in the trace */
    bool closed;           /* outside of a window: nothing was to be recorded */
};

/* A number or text of the file's header or trailer by its path: "totals.gpu.lost". Of several parts, the newest one's. */
struct fact {
    text path, value; /* value 0: it is a number */
    double number;
};

/* How much was not recorded. */
struct lost {
    double calls, works;
};

/* What a file says of itself as one of several parts. */
struct part {
    uint32_t number;        /* 0: it is not one of several */
    double without_times, launches_without_kernel, without_call;
    double untimed_in_all;  /* both together, of this part and all before it: less than their sum where work came in a later part; NAN: it does not say */
    struct lost lost;       /* in its rows */
    struct lost lost_in_all; /* of this part and all before it; NAN: it does not say */
    bool continues;         /* another part follows */
    bool recovered;         /* what came behind its last flush is not counted */
};

struct run {
    struct call *calls;         size_t call_count, call_capacity;
    struct work *works;         size_t work_count, work_capacity;
    struct work *sampled;       size_t sampled_count; /* works of a trace that times only some: then `works` is empty, since who reads that takes it for all */
    struct shape *shapes;       size_t shape_count, shape_capacity;
    struct callback *callbacks; size_t callback_count, callback_capacity;
    struct stream *streams;     size_t stream_count, stream_capacity;
    struct device *devices;     size_t device_count, device_capacity;
    struct thread *threads;     size_t thread_count, thread_capacity;
    struct range *ranges;       size_t range_count, range_capacity;
    struct loss *losses;        size_t loss_count, loss_capacity;
    struct fact *facts;         size_t fact_count, fact_capacity;
    struct part *parts;         size_t part_count, part_capacity; /* one for each file; once settled, in order of their numbers */
    uint32_t *works_of;         /* works by call: run->works_of[call->work .. + call->works) are indices of works */
    struct groups thread_calls; /* calls by thread */
    struct texts texts;
    int64_t base;               /* wall clock of time 0, in ns since 1970 */
    int64_t begin, end;         /* of the first and last thing in it */
    uint64_t rows;              /* read, of traceEvents */
    bool ours;                  /* custream wrote it */
    struct trace_left left;     /* rows of other tools' files that were left out */
    bool cut;                   /* a file ends inside an event: the process was killed while it wrote */
    bool end_only;              /* of a file only its header and its end were read, says who loaded it */
    text program;               /* the process's name */
    uint32_t pid;
    struct loading *loading;    /* load.c's, until run_settle() */
};

void run_init(struct run *run);

/* A file's rows into the run; false: error says why in one line, without the file's name. `progress` (NULL: nobody) is called now and then with the bytes read of
 * the file as it lies on the disk. */
bool run_load(struct run *run, const char *path, void (*progress)(void *of, uint64_t bytes), void *of, char error[256]);

/* What the parts of one run have in common. */
struct identity {
    uint32_t pid;
    int64_t base;
};
/* Of which run a file is, from its beginning if it stands there. False: error says why, as run_load() does. */
bool run_identify(const char *path, struct identity *identity, char error[256]);

/* After the last file: everything in its order, works tied to calls. Nothing is added afterwards. */
void run_settle(struct run *run);
void run_free(struct run *run);

/* NULL: the files do not say. */
const struct fact *run_fact(const struct run *run, const char *path);
double run_number(const struct run *run, const char *path, double otherwise);
uint32_t run_count(const struct run *run, const char *path, uint32_t otherwise); /* what is no count of 32 bits is 0 */
const char *run_source(const struct run *run); /* of its GPU times: "cupti"; NULL: the files do not say */
double run_cut_seconds(const struct run *run); /* how long it is, of a file that custream record or dump cut out of a longer trace; else 0 */
bool run_has_times(const struct run *run);     /* false: GPU work was not to be recorded, or only a sample, so that nothing is known of all of it */
uint32_t run_sample(const struct run *run);    /* of how many calls that put work on a GPU one is timed; 0: of all, or of none */

static inline enum cs_kind call_kind(const struct call *call) { return cs_call_info[call->call].kind; }
static inline bool call_how(const struct call *call, enum cs_how how) { return cs_call_info[call->call].how & how; }
static inline const char *text_in(const struct run *run, text name) { return text_of(&run->texts, name); }
static inline uint32_t work_device(const struct run *run, const struct work *work) { return run->streams[work->stream].device; }

#endif
