/* What is asked of a settled run, and answered from its tables. Nothing is kept. */
#ifndef CS_MODEL_VIEWS_H
#define CS_MODEL_VIEWS_H

#include "tools/custream/model/model.h"

/* Whether every part is there, from the first to the newest one. Also of a run in one file. */
bool parts_all(const struct run *run);

/* What was lost in the parts that are there, and in all up to the newest of them. The parts do not
 * say what was lost in a later one. */
struct lost parts_lost(const struct run *run);
struct lost parts_lost_in_all(const struct run *run);
bool parts_continue(const struct run *run);

/* GPU work that has no times. */
struct untimed {
    double without_times, launches; /* the sums of the parts, with work that came in a later part */
    double all;                     /* both, without that work, of all parts up to the newest one */
    bool said;                      /* `all` is from what the parts say of all parts */
    bool at_most;                   /* and some of it may have come since */
};
struct untimed parts_untimed(const struct run *run);

/* How much of its device a kernel fills, by its launch: blocks over those that the device holds at
 * once. NAN: not known, or no kernel. */
double kernel_fills(const struct run *run, const struct work *work);

/* The host's waits for the GPU, seen from the calls that came after them. */
struct host_wait {
    uint32_t call;   /* the last one before it on the same thread that waited for the GPU; NONE */
    uint32_t stream; /* that it waited for; NONE: for several, or not known */
};

/* One by call of the run. The caller frees it. */
struct host_wait *host_waits_make(const struct run *run);

/* Whether the call waits for the GPU: a synchronisation, or a copy that may wait for itself. */
bool call_waits(const struct call *call);

/* The ranges of each thread as the stack that they were. */
struct thread_ranges {
    struct groups by_thread;
    uint32_t *parent; /* by place among the members: the place of the range around it; NONE */
};

void thread_ranges_make(struct thread_ranges *ranges, const struct run *run);
/* The innermost range of the thread at that moment, NONE if there is none. *until becomes less if
 * another answer holds earlier than that. */
uint32_t thread_range_at(const struct thread_ranges *ranges, const struct run *run, uint32_t thread,
    int64_t at, int64_t *until);
void thread_ranges_free(struct thread_ranges *ranges);

/* The times in which a device was idle, whole: all pieces of idles->rows from the end of some work
 * to the begin of the next. */
struct gap {
    int64_t begin, end;
    int64_t host, launch;  /* how much of it has CAUSE_HOST, and CAUSE_LAUNCH */
    uint32_t device, next; /* next: the work at its end */
    uint32_t thread;       /* that enqueued it; NONE */
    size_t first, last;    /* its pieces: rows [first, last) */
};

/* The gap that begins at row *at, which moves behind it; false: there is no more. */
bool gap_next(const struct idles *idles, const struct run *run, size_t *at, struct gap *gap);

/* How long a run lasted before each device's first work, and which calls the host was in meanwhile.
 */
struct before {
    double ns; /* from the first thing in the trace; NAN: earlier work may be missing */
    text call; /* the one that took the most of it, on all threads together; 0: none was made */
    double times, call_ns;
    double no_call_ns; /* in which no thread was in a call; NAN: calls are missing there */
};

struct before before_first_work(const struct run *run, const struct span *device);

/* By stream: the number of its context, in which the legacy default stream and blocking streams
 * wait for each other; NONE: it is non-blocking, or not known. The caller's to free. */
uint32_t *legacy_domains(const struct run *run, size_t *count);

/* Whether the program had more than one context in its time: which one was current at a call is not
 * in the trace. */
bool run_has_contexts(const struct run *run);

/* How many streams of each device were at work at once, and how long each was so alone. */
enum { AT_WORK = 4 };

struct concurrency {
    struct device_load {
        int64_t at_work[AT_WORK]; /* ns with 0, 1, 2, and 3 or more streams at work */
        double stream_time;       /* the sum of its streams' busy times, in ns */
    } *devices;                   /* by index */
    struct stream_load {
        int64_t busy, alone; /* ns; alone: no other stream of its device was at work */
    } *streams;              /* by index */
};

void concurrency_make(struct concurrency *concurrency, const struct run *run);
void concurrency_free(struct concurrency *concurrency);

#endif
