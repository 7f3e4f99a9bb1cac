/* custream check, inside. An event is judged alone as it comes (event.c); what takes several is
 * kept in short form, 24 bytes a slice and 40 an end of a flow or span, and judged after the last.
 * Rules have the numbers of docs/command.md, 0 is the layout. Of packets, a line is an event's
 * number. */
#ifndef CS_TOOLS_CHECK_H
#define CS_TOOLS_CHECK_H

#include "tools/custream/command.h"

struct cJSON;
struct yyjson_val;
struct json;

/* A lower pid is a device's ordinal (Kineto's and HTA's convention); merged.h has other ones. */
enum { GPU_PIDS = 64 };

struct slice {
    int64_t ts, end; /* nanoseconds */
    uint64_t line;
};

struct lane {
    struct lane *next; /* in order of appearance */
    uint32_t pid, tid;
    bool named, with_stream; /* its name says of which stream it is: lanes.h */
    uint64_t first_event;    /* line; 0: only metadata so far */
    struct slice *slices;    /* in order of lines until lanes_sort() */
    size_t count, capacity;
};

struct flow_end {
    int64_t ts;
    uint64_t id, line;
    const struct lane *lane;
    char phase; /* s, t or f */
    bool bound; /* the slice itself, by its bind_id: one begins the arrow, and any number end it */
};

/* Of an async span. */
struct async_end {
    int64_t ts;
    uint64_t span, line; /* span: a hash of category, name, id and pid */
    char phase;          /* b or e */
    bool life;           /* marks of a stream's life */
};

/* --- what the rows add up to: 16 bytes a piece of work, 40 a call that may have made work --- */

enum { WORK_KINDS = 6 }; /* kernels, copies, memsets, graphs, ranges, the profiler's overhead */

/* A piece of GPU work. */
struct work {
    uint64_t correlation; /* never 0: without one it is only counted */
    uint64_t lane;        /* args.stream, and the pid above bit 32 */
};

/* A driver call with a correlation: it put work on a GPU, or was to. */
struct call {
    uint64_t correlation;
    int64_t ts, end;
    uint32_t tid, stream; /* stream 0: the call names none */
    uint16_t device;
    bool launches; /* a kernel */
    bool works;    /* has work in the file, set at the end */
    bool at_home;  /* and some on its own stream's lane */
};

/* A cs_window slice. */
struct gap {
    int64_t ts, end;
    uint64_t line;
};

struct sums {
    uint64_t recorded, driver_calls, kinds[WORK_KINDS], without_call;
    uint64_t lost_calls, lost_work; /* of the cs_loss slices */
    uint64_t arrows;                /* the ends at work */
    uint64_t correlation_max;
    bool captures;     /* a stream was captured */
    bool no_lane;      /* there were more streams than lanes, so that some had none for a while */
    int64_t host_from; /* where the first slice of a call begins */
    struct work *works;
    struct call *calls;
    struct gap *gaps;
    size_t work_count, work_capacity, call_count, call_capacity, gap_count, gap_capacity;
};

/* --- the trace --- */

struct check {
    const char *path;
    struct breach {
        uint64_t line; /* 0: none */
        int rule;
        char what[300];
    } breach; /* the one on the lowest line so far */
    struct lane *lanes, **lanes_end, *lane_last;
    void *lane_tree; /* tsearch(3) */
    struct flow_end *flows;
    size_t flow_count, flow_capacity;
    struct async_end *asyncs;
    size_t async_count, async_capacity;
    struct sums sums; /* what the trailer has to agree with */
    uint64_t events, slices;
    uint64_t hazards; /* cs_audit rows that tell of one */
    bool merged;      /* by custream merge: the header says so */
    bool windowed;    /* and only of a window: what begins an arrow may be missing */
    double part;      /* the header's; 0: it has none */
    unsigned format;  /* likewise */
    bool is_cut_out;  /* of a longer trace, by custream record or dump: the header says so */
    double cut_seconds;
    bool cut;            /* it died, or the file was full: what was open stays so */
    struct cJSON *whole; /* the trace without its events: members of the header and the trailer */
    size_t trailer_bytes;
    bool packets;     /* the file is in Perfetto's own format */
    bool recoverable; /* its text ends as a kill leaves it */
    const char *torn; /* where the file ends if that is not its end: "it ends inside an event" */
    char state[1024], losses[1024]; /* the summary's begin, or why it is useless; its end */
};

void check_init(struct check *check, const char *path);
void check_free(struct check *check);

/* Reads and judges the events of an opened trace; check->sums has what they add up to. */
enum check_end {
    CHECK_WHOLE,
    CHECK_TORN,    /* it ends behind its last whole event; check->torn says where */
    CHECK_BROKEN,  /* check->breach says where */
    CHECK_USELESS, /* check->state says why */
};
enum check_end check_read(struct check *check, struct json *json);

/* Remembers the breach if no lower line has one. Returns false, so that a judge can end with it. */
bool check_breach(struct check *check, uint64_t line, int rule, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Names from the file end up in what is printed: one file, one line. */
void text_print(char *text);

/* An event while it is judged. */
struct event {
    struct check *check;
    uint64_t line;
    struct yyjson_val *object, *args;
    const char *name, *category; /* "": none */
    char phase;
    uint32_t pid, tid;
    int64_t ts, end; /* end: ts but for a slice with a duration */
    struct lane *lane;
};

/* One event, its numbers as raw texts. False if it breaks a rule. */
bool check_event(struct check *check, uint64_t line, struct yyjson_val *event);
/* A natural number up to `max`. */
bool natural_in(struct yyjson_val *value, double max, uint64_t *number);

/* Whether the pid is a GPU's, and whose. */
bool is_gpu_pid(const struct check *check, uint32_t pid);
uint32_t gpu_ordinal(const struct check *check, uint32_t pid);

struct lane *lane_of(struct check *check, uint32_t pid, uint32_t tid);
void lane_add(struct lane *lane, struct slice slice);
void lanes_free(struct check *check);

/* By ts, the longer first, then by line: the order in which the later judges want slices. */
void lanes_sort(struct check *check);
/* Rule 4. */
void lanes_judge(struct check *check);
/* The slice on the lowest line that starts at ts; NULL: there is none. After lanes_sort(). */
const struct slice *lane_slice_at(const struct lane *lane, int64_t ts);
/* Some slice that ts lies in, NULL if there is none. After lanes_sort(). */
const struct slice *lane_slice_around(const struct lane *lane, int64_t ts);

void async_add(struct check *check, struct async_end end);
/* `ended`: what has begun must have ended. To be called once all lines were read. */
void asyncs_judge(struct check *check, bool ended);

/* Rules 8 and 10: the args of a cs_audit row; what the trailer says, once all rows were read. */
bool audit_row_judge(struct check *check, uint64_t line, struct yyjson_val *args);
bool audit_judge(struct check *check, uint64_t line, const struct cJSON *trailer);

void flow_add(struct check *check, struct flow_end end);
/* Rule 6. After lanes_sort(). */
void flows_judge(struct check *check, bool complete);
/* Flows with both a start and an end. After flows_judge(). */
uint64_t flows_complete(const struct check *check);

void sums_free(struct sums *sums);
/* False if what a cs_loss row stands for cannot be told. */
bool sums_row(const struct event *event);

/* Rules 10 and 12, of check->whole. */
bool totals_judge(struct check *check, uint64_t line);
/* A torn file's trailer, as far as rows tell. `before`: totals of the part before it, or NULL. */
struct cJSON *totals_make(
    struct check *check, uint64_t cut_bytes, const struct cJSON *before, const struct cJSON *last);
/* "ok", or why the file does not have all of it: into check->state. */
void totals_state(struct check *check);

#endif
