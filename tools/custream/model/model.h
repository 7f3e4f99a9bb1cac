/*
 * A run of a program as its trace files tell it, and what follows from that. This header tells
 * neither a file's format nor how a run is shown.
 *
 * struct model owns all of it: free it with model_free(). The steps that make it, in their order:
 *
 * - run_load() turns each file's rows into rows of struct run's tables (load.c; trace/row.h reads
 * the files).
 * - run_settle() puts the tables in order and ties works to calls (settle.c).
 * - order_make() tells when each piece of work could have begun, what held it until then, and what
 * the host waited for (order.c).
 * - usage_make() tells for how long each device and stream had work (usage.c).
 * - idles_make() tells when nothing ran on each device, and why (idle.c).
 *
 * A model that is made is only read. views.h answers questions about a settled run; unfinished.h
 * tells what had not ended. Rows name each other by index; NONE: no row. Times are nanoseconds
 * since the trace's base. Names are numbers of texts (trace/texts.h). A lack of memory ends the
 * process.
 */
#ifndef CS_MODEL_MODEL_H
#define CS_MODEL_MODEL_H

#include "shim/calls/calls.h"
#include "tools/custream/command.h"
#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/row.h"

#define NONE UINT32_MAX

/* Make one key of two numbers, and take it apart again. */
static inline uint64_t key_of(uint32_t high, uint32_t low) { return (uint64_t)high << 32 | low; }
static inline uint32_t key_high(uint64_t key) { return (uint32_t)(key >> 32); }
static inline uint32_t key_low(uint64_t key) { return (uint32_t)key; }

/* Rows sorted into groups; a group keeps the order of its rows. */
struct groups {
    uint32_t *begins; /* group g has the rows members[begins[g] .. begins[g + 1]) */
    uint32_t *members;
};

/* Sorts rows into groups. The uint32_t at `offset` in a row is the number of its group, below
 * group_count; NONE: the row is in no group. */
struct groups groups_make(
    size_t group_count, const void *rows, size_t row_count, size_t size, size_t offset);
#define GROUPS(group_count, rows, row_count, member) \
    groups_make(group_count, rows, row_count, sizeof *(rows), \
        offsetof(__typeof__(*(rows)), member))
void groups_free(struct groups *groups);

/* A call of the driver, or in other tools' traces also of the runtime. Rows are in order of
 * `begin`. */
struct call {
    int64_t begin, end;
    uint32_t thread, stream; /* stream: the stream that the call names; NONE */
    /* work: the place in run->works_of of the call's first GPU work; works: how many pieces. While
     * the run is loaded, `work` is the call's correlation. */
    uint32_t work, works;
    text name;
    enum cs_call call : 24; /* CS_CALL_NONE: the call is not in the call table */
    bool captured : 1;      /* the call was captured into a graph */
    bool awaited : 1;       /* the call has a correlation: it was to make GPU work */
    bool ended : 1;         /* the trace has GPU work of the call, maybe only in `sampled` */
    bool elsewhere : 1;     /* a graph, a launch or another process records the call's event, too */
    bool external : 1; /* the call has an event, but what it records or waits for is not known */
    uint32_t what;     /* an event's number, a LAUNCH's kernel name, a MEMOP's address; 0 */
    uint32_t record;   /* the call that last recorded the event; NONE: none, or it is external */
    uint32_t shape;    /* a launch's shape in run->shapes, if the launch's own row tells it; NONE */
    text result;       /* the error's name; 0: the call succeeded */
};

enum work_kind { WORK_KERNEL, WORK_COPY, WORK_SET, WORK_GRAPH, WORK_RANGE, WORK_KINDS };
extern const char *const work_kind_name[WORK_KINDS]; /* "kernels" */

/* A piece of work on a GPU. Rows are in order of `begin`, then `end`. */
struct work {
    int64_t begin, end;
    uint32_t stream, call; /* call: the work's call, NONE if not known; while the run is loaded, the
                              correlation */
    text name;
    uint32_t shape;     /* a kernel's index in run->shapes; NONE */
    uint32_t graph;     /* CUPTI's number of the graph; 0: none */
    uint32_t node : 24; /* number of the graph's node, from 1, in no order; 0: no node is known */
    enum work_kind kind : 4;
    enum cs_way way : 4; /* a copy's direction */
    uint64_t bytes;      /* bytes of a copy or memset */
};

/* A host function that a call enqueued. Rows are in order of `enqueued`. */
struct callback {
    int64_t begin, end, enqueued; /* enqueued: when its call was made, or some ns earlier */
    uint32_t stream, thread;
};

enum stream_origin { ORIGIN_CREATED, ORIGIN_LEGACY, ORIGIN_PER_THREAD };
struct stream {
    uint32_t lane, device; /* lane: the stream's number on its device in the trace */
    uint32_t context;      /* the CUDA context of the stream's work; 0: not known */
    text name;             /* the stream's name in the timeline */
    enum stream_origin origin;
    bool non_blocking; /* the stream and the legacy default stream do not wait for each other */
    bool destroyed;
    bool lived, known; /* lived: the trace has an event of the stream's life; known: it has the
                          stream's begin */
    bool by_policy;    /* custream changed what the program asked for */
    bool priority_said;
    int priority, requested;
    /* the call that created the stream, and the library or program that made this call */
    text created_by, library;
    text origin_said, flags; /* the words of the file */
    /* the system's number of the thread that made the stream; 0: not in the file */
    uint32_t thread;
    int64_t begin, end;
    uint32_t works; /* how many pieces of work ran on the stream */
    /* In a context, the legacy default stream (an even side) and the blocking streams (an odd one)
     * wait for each other: what is on `side` for what is on `side ^ 1`. NONE: the stream is
     * non-blocking, or its context is not known. */
    uint32_t side;
};

/* A GPU, and what limits how much runs at once; 0: not known. `sm_`: on one multiprocessor. */
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

/* A reading of a thread's processor time: at the begin or the end of one of its calls. */
struct clock {
    int64_t at, cpu;
    uint32_t thread;
};

/* Own code that takes longer is a pause of the thread, and not a launch's own work. */
enum { OWN_CODE_NS = 200000 };

/* Time of OWN_CODE_NS or longer in which a thread made no call. Also the first call of each thread
 * has a row. */
struct pause {
    uint32_t call;     /* the call behind it */
    uint32_t waker;    /* the other thread's call at whose end the thread went on; NONE */
    int64_t ns;        /* how long; 0: before the thread's first call */
    int64_t low, high; /* for so long the thread was on a processor; only if `measured` */
    bool measured;     /* the thread's processor time was read at the end of the pause */
    bool missing;      /* calls are missing in it: they were lost, or not to be recorded */
};

/* Time in which no thread made a call: each waited, or some computed and the others waited. */
struct silence {
    int64_t begin, end;
    bool computing;    /* a thread computed */
    int64_t before[2]; /* ns of all earlier ones, by `computing` */
};

/* A range that the program named (NVTX). Rows are in order of `begin`, the longer first. */
struct range {
    int64_t begin, end;
    uint32_t thread;
    text name, domain;
    text id : 30;       /* a process range's name in the file; 0: a thread's range */
    bool continued : 1; /* this is a piece: the range began in an earlier part */
    bool continues : 1; /* this is a piece: the range goes on in the next part */
    text note;          /* a process range's note where it begins */
    uint32_t process;   /* a process range's pid */
};

/* A time in which events are missing: how many, and why. */
struct loss {
    int64_t begin, end;
    uint64_t calls, works;
    text cause;
    bool no_times; /* no GPU work of that time is in the trace */
    bool closed;   /* the time lies outside of a window: nothing was to be recorded */
};

/* Spans of time, in order, that do not touch. */
struct periods {
    struct period {
        int64_t begin, end;
    } *rows;
    size_t count;
};

/* Numbers and texts of header and trailer; for several parts, of the newest part. */
struct facts {
    struct fact {
        text value; /* 0: the fact is a number */
        double number;
    } *rows;
    size_t count, capacity;
    struct numbers index; /* index in `rows` by the text of the path, as "totals.gpu.lost" */
};

/* The numbers of calls and pieces of GPU work that were not recorded. */
struct lost {
    double calls, works;
};

/* A file's account of itself as one of several parts. */
struct part {
    uint32_t number; /* 0: the file is not one of several */
    double without_times, launches_without_kernel, without_call;
    double untimed_in_all;   /* without_times + launches_without_kernel of all parts up to this one,
                                less work that came later; NAN: not in the file */
    struct lost lost;        /* losses in the part's own rows */
    struct lost lost_in_all; /* losses up to this part's end; NAN: not in the file */
    bool continues;          /* another part follows */
    bool recovered;          /* the totals do not count what came after the last flush */
};

/* The ranges of each thread, as a stack: which one encloses which. The process's ranges stand
 * behind those of the threads, as if run->thread_count were a thread. Ranges need not nest: a
 * range's parent may end before the range does. */
struct thread_ranges {
    struct groups by_thread;
    uint32_t *parent; /* by place in by_thread.members: the place of the enclosing range; NONE */
    int64_t *latest;  /* likewise: the latest end of the range, its parent, and so on */
};

struct run {
    struct call *calls;
    size_t call_count, call_capacity;
    struct work *works;
    size_t work_count, work_capacity;
    struct work *sampled;
    size_t sampled_count; /* the works of a trace that times only a sample: `works` is empty then */
    struct shape *shapes;
    size_t shape_count, shape_capacity;
    struct callback *callbacks;
    size_t callback_count, callback_capacity;
    struct stream *streams;
    size_t stream_count, stream_capacity;
    size_t side_count; /* of streams: two for each context */
    struct device *devices;
    size_t device_count, device_capacity;
    struct thread *threads;
    size_t thread_count, thread_capacity;
    struct range *ranges;
    size_t range_count, range_capacity;
    struct loss *losses;
    size_t loss_count, loss_capacity;
    struct periods no_calls;  /* when calls were lost, or not to be recorded */
    struct silence *silences; /* in order of time */
    size_t silence_count, silence_capacity;
    struct clock *clocks; /* in order of thread, then time */
    size_t clock_count, clock_capacity;
    struct pause *pauses; /* in order of call */
    size_t pause_count, pause_capacity;
    struct facts facts;
    struct part *parts;
    size_t part_count, part_capacity; /* one part for each file; in order once the run is settled */
    uint32_t *works_of; /* works by call: works_of[call->work .. call->work + call->works) */
    struct groups thread_calls; /* calls by thread */
    struct thread_ranges thread_ranges;
    struct texts texts;
    int64_t base;           /* wall clock of time 0, in ns since 1970 */
    int64_t begin, end;     /* begin of the first thing in the run, end of the last */
    uint64_t rows;          /* how many rows of traceEvents were read */
    bool ours;              /* custream wrote the files */
    struct trace_left left; /* rows of other tools' files that were left out */
    bool cut;               /* a file ends inside an event: the process was killed while writing */
    int64_t last_bytes; /* how many bytes to read at the end of a plain file, besides its header; 0:
                           the whole file */
    bool end_only;      /* a file was longer than last_bytes, so only its end was read */
    text program;       /* the process's name */
    uint32_t pid;
    struct loading *loading; /* load.c's state until run_settle() frees it */
};

void run_init(struct run *run);

/* Adds a file's rows to the run; false: `error` says why in one line, without the file's name.
 * `progress` (NULL: none) is called now and then with how many bytes of the file on the disk have
 * been read. */
bool run_load(struct run *run, const char *path, void (*progress)(void *of, uint64_t bytes),
    void *of, char error[256]);

/* Add one row or fact, for a caller that reads the file itself. The texts must be the run's. */
void run_take_row(void *run, const struct trace_row *row);
void run_take_fact(void *run, const struct trace_fact *fact);

/* Returns the open process range that begins or ends with this row; NONE. Before run_settle(). */
uint32_t run_open_range(const struct run *run, const struct trace_row *row);

/* The facts that all parts of one run have in common. */
struct identity {
    uint32_t pid;
    int64_t base;
};
/* Reads a file's identity. False: `error` says why, as in run_load(). */
bool run_identify(const char *path, struct identity *identity, char error[256]);

/* Puts all tables in order and ties works to calls. Nothing may be added afterwards. */
void run_settle(struct run *run);
void run_free(struct run *run);

/* Returns a fact by its path; NULL: the files do not have it. */
const struct fact *run_fact(const struct run *run, const char *path);
double run_number(const struct run *run, const char *path, double otherwise);
/* Returns a fact as a count; 0 for a number that is no count of 32 bits. */
uint32_t run_count(const struct run *run, const char *path, uint32_t otherwise);
/* Returns the source of the GPU times: "cupti"; NULL: not in the files. */
const char *run_source(const struct run *run);
/* Returns the length of a file that was cut out of a longer trace; 0: it was not cut. */
double run_cut_seconds(const struct run *run);
/* Whether GPU work was timed, and not only a sample of the work. */
bool run_has_times(const struct run *run);
/* Returns N if one in N calls that enqueue GPU work is timed; 0: all are, or none. */
uint32_t run_sample(const struct run *run);

/* Returns the row of the call table for a name; for an unknown name the first row, which is of no
 * call. */
const struct cs_call_info *call_named(const char *name);
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

/* The obstacles of a piece of GPU work follow from the order in which the host enqueued all work.
 * This is exact: a stream's order, events and the legacy default stream are rules of CUDA ("Stream
 * Synchronization Behavior", CUDA Runtime API; cuStreamWaitEvent, CUDA Driver API). */
/* The cause of an idle device or of late work. cause_info has a row for each. */
enum cause {
    CAUSE_HOST,           /* the host had not enqueued the work */
    CAUSE_LAUNCH,         /* nothing held the enqueued work: the launch's own way to the GPU */
    CAUSE_EVENT,          /* a wait for an event's record */
    CAUSE_LEGACY,         /* the order that the legacy default stream makes */
    CAUSE_ORDER,          /* earlier work on the same stream */
    CAUSE_HOST_FUNCTION,  /* an earlier host function on the same stream */
    CAUSE_MEMORY_VALUE,   /* cuStreamWaitValue: a value in memory */
    CAUSE_GRAPH_EDGE,     /* an edge of the work's graph */
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

/* Returns how many queues there were between the host and each GPU: CUDA_DEVICE_MAX_CONNECTIONS, or
 * 8, its default, if the trace does not say. If there are more streams, some share a queue, and
 * work waits behind the work of another stream. */
uint32_t run_queues(const struct run *run);

/* The longest time that work may take to begin once nothing holds it (docs/report.md). Launches
 * take up to 10 us, waits between streams up to 5. */
enum { LATENCY_NS = 100 * 1000 };

/* When a piece of work could have begun at the earliest, and what held it until then. */
struct hold {
    /* when the work's call began; if the call is not known, when the work began */
    int64_t enqueued;
    /* when all that the work waited for on the GPU had ended; INT64_MIN: it waited for nothing */
    int64_t ready;
    int64_t without_legacy; /* `ready` as if the legacy default stream ordered nothing */
    uint32_t blocker;       /* the work that ended at `ready`; NONE */
    uint32_t record;        /* for CAUSE_EVENT: the call that recorded the event; NONE */
    enum cause cause;       /* UNKNOWN: nothing held the work */
};

/* A call of the host that waits, and the last thing on the GPU that it waited for and that ended
 * during the call. Both NONE: nothing that the trace shows. */
struct wait {
    uint32_t call;
    uint32_t work;
    uint32_t function; /* a host function, as an index in run->callbacks */
};
struct waits {
    struct wait *rows; /* in order of call */
    size_t count, capacity;
};

/* Makes a hold for each piece of work, by index, and a row for each call that waits for the GPU
 * (call_waits()). The caller frees both. */
void order_make(const struct run *run, struct hold **holds, struct waits *waits);

/* --- how busy devices and streams were --- */

/* The counts of streams at work that are told apart: 0, 1, 2, and 3 or more. */
enum { AT_WORK = 4 };

struct usage {
    struct device_usage {         /* by index */
        int64_t begin, end;       /* of the first and the last work; equal: there is none */
        int64_t at_work[AT_WORK]; /* ns in between with 0, 1, 2, and 3 or more streams at work */
        double stream_time;       /* the busy times of the device's streams, summed, in ns */
    } *devices;
    struct stream_usage {    /* by index */
        int64_t busy, alone; /* ns; alone: no other stream of its device was at work */
    } *streams;
};

void usage_make(struct usage *usage, const struct run *run);

/* --- idle time --- */

/* The activities, during a piece of idle time, of the thread that enqueued the next work. */
enum host_doing {
    DOING_NOTHING_KNOWN,
    DOING_OWN_CODE,
    DOING_OUTSIDE, /* waited for something outside CUDA */
    DOING_THREAD,  /* waited for another thread */
    DOING_BLOCKED,
    DOING_CALL,
    DOINGS
};
extern const char *const doing_word[DOINGS]; /* "own code" */

struct idle {
    int64_t begin, end;
    uint32_t next;       /* the work that came next */
    uint32_t device : 8; /* index in run->devices */
    enum cause cause : 8;
    enum host_doing doing : 8; /* for CAUSE_HOST: what the thread of the next work's call did */
    uint32_t call;  /* BLOCKED: the call that waits; CALL: another call; other doings: NONE */
    uint32_t range; /* the thread's innermost range at that time; NONE */
};
static inline uint32_t idle_thread(const struct run *run, const struct idle *idle)
{
    return run->calls[run->works[idle->next].call].thread;
} /* for CAUSE_HOST only */

/* The idle time of each device between its first and last work, in pieces with one cause each. */
struct idles {
    struct idle *rows; /* in order of device, then time */
    size_t count, capacity;
};

void idles_make(struct idles *idles, const struct run *run, const struct hold *holds);

/* --- the steady part --- */

/* The part of a run in which it repeats its work, without what comes before and behind. Of the
 * kernels and graphs that ran ten times, the one that took most time is chosen. The steady part is
 * its longest series without a pause (longer than 50 ms). If none is chosen, the steady part is
 * from the first call that makes work to the end of all work. */
struct steady {
    int64_t begin, end;
    text kernel; /* the chosen kernel or graph; 0: none */
};
struct steady steady_part(const struct run *run);

/* --- the whole model --- */

struct model {
    struct run run;
    struct hold *holds; /* by work */
    struct waits waits;
    struct usage usage;
    struct idles idles;
    struct steady steady;
};

void model_init(struct model *model);
/* Empties the model for another run, and keeps the texts. */
void model_begin_again(struct model *model);
/* Makes all of the model after the last run_load(). */
void model_settle(struct model *model);
void model_free(struct model *model);

#endif
