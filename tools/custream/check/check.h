/* custream check, inside. Each event is judged alone as it comes (event.c). For the rules on
 * several events a short form of the event is kept (24 bytes for a slice, 40 for an end of a flow,
 * 32 for an end of a span), and judged after the last event.
 *
 * Rules have the numbers of docs/command.md; 0 is the layout. In a file of packets, "line" is the
 * number of an event. */
#ifndef CS_TOOLS_CHECK_H
#define CS_TOOLS_CHECK_H

#include "tools/custream/command.h"
#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/row.h"

struct cJSON;
struct yyjson_val;
struct json;

struct slice {
    int64_t ts, end; /* nanoseconds */
    uint64_t line;
};

/* A thread's processor time, read between the end of the call before and the begin of the next. */
struct reading {
    int64_t at, cpu; /* nanoseconds; at: the begin or the end of the call */
    int64_t end;     /* when the call ended */
    uint64_t line;
};

struct lane {
    uint32_t pid, tid, gpu;  /* gpu: the GPU's ordinal, or TRACE_NO_GPU */
    bool named, with_stream; /* named: a thread_name row names the lane; with_stream: that row has
                                args.cs.stream (lanes.h) */
    uint64_t first_event; /* line of the lane's first event that is no metadata; 0: none so far */
    struct slice *slices; /* in order of lines until lanes_sort() */
    size_t count, capacity;
    struct reading *readings;
    size_t reading_count, reading_capacity;
};

struct flow_end {
    int64_t ts;
    uint64_t id, line;
    const struct lane *lane;
    char phase; /* s, t or f */
    bool bound; /* the end is a slice with a bind_id; one such slice begins an arrow, any number of
                   slices end it */
};

/* An end of an async span or of a stream's life. */
struct async_end {
    int64_t ts;
    uint64_t span, line; /* span: a hash of category, name, id and pid */
    char phase;          /* b or e */
    bool life;           /* the end is a mark of a stream's life */
};

/* --- what the rows add up to: 16 bytes a piece of work, 40 a call that may have made work --- */

enum { WORK_KINDS = 6 };
extern const struct work_kind {
    /* category: of the rows; total: the member of totals.gpu that counts the rows */
    const char *category, *total;
} work_kinds[WORK_KINDS];

/* A piece of GPU work. */
struct work {
    uint64_t correlation; /* never 0, as work without a correlation is only counted */
    uint64_t lane;        /* args.stream, and the pid above bit 32 */
};

/* A driver call with a correlation: it put work on a GPU, or tried to. */
struct call {
    uint64_t correlation;
    int64_t ts, end;
    uint32_t tid, stream; /* stream 0: the call names none */
    uint16_t device;
    bool launches; /* the call launches a kernel */
    bool works;    /* the call's work is in the file; set at the end */
    bool at_home;  /* some of the call's work is on the lane of the call's stream */
};

/* A cs_window slice: a time in which nothing was recorded. */
struct gap {
    int64_t ts, end;
    uint64_t line;
};

struct sums {
    uint64_t recorded, driver_calls, kinds[WORK_KINDS], without_call;
    uint64_t lost_calls, lost_work; /* what the cs_loss slices say, added up */
    uint64_t arrows;                /* slices at which an arrow ends, all of them GPU work */
    uint64_t correlation_max;
    bool captures;     /* a stream was captured */
    bool no_lane;      /* there were more streams than lanes: some streams had none for a while */
    int64_t host_from; /* when the first driver call begins */
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
    } breach;            /* the breach on the lowest line so far */
    struct lane **lanes; /* in order of appearance */
    size_t lane_count, lane_capacity;
    struct numbers lane_places; /* places in `lanes`, by pid and tid */
    struct flow_end *flows;
    size_t flow_count, flow_capacity;
    struct async_end *asyncs;
    size_t async_count, async_capacity;
    struct sums sums; /* what the rows add up to; the trailer has to agree */
    uint64_t events, slices;
    uint64_t hazards; /* how many cs_audit rows have the verdict "hazard" */
    bool merged;      /* the header says that custream merge made the file */
    bool windowed;    /* the file has only a window of its traces: an arrow may have no begin */
    double part;      /* the header's part; 0: it has none */
    unsigned format;  /* the header's schemaVersion; 0: it has none */
    bool is_cut_out;  /* the header says that the file was cut out of a longer trace */
    double cut_seconds;
    bool cut;            /* the process died, or the file was full: open spans have no end */
    struct cJSON *whole; /* the trace without its events: members of the header and the trailer */
    size_t trailer_bytes;
    bool packets;     /* the file is in Perfetto's own format */
    bool recoverable; /* the file ends as a kill leaves it: custream recover repairs it */
    const char *torn; /* where a torn file ends, in words: "it ends inside an event" */
    char state[1024], losses[1024]; /* state: how the summary begins, or why the file is useless;
                                       losses: how the summary ends */
};

void check_init(struct check *check, const char *path);
void check_free(struct check *check);

/* Reads and judges the events of an opened trace; check->sums has what they add up to. */
enum check_end {
    CHECK_WHOLE,
    CHECK_TORN,    /* the file ends too early; check->torn says where */
    CHECK_BROKEN,  /* check->breach says where */
    CHECK_USELESS, /* check->state says why */
};
enum check_end check_read(struct check *check, struct json *json);

/* Remembers the breach, unless one on a lower line is known. Returns false, so that a function that
 * judges can return the result of this call. */
bool check_breach(struct check *check, uint64_t line, int rule, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* An event while it is judged. */
struct event {
    struct check *check;
    uint64_t line;
    struct yyjson_val *object, *args;
    const char *name, *category; /* "": none */
    char phase;
    uint32_t pid, tid;
    int64_t ts, end; /* end: equal to ts unless the event is a slice */
    struct lane *lane;
};

/* Judges one event, whose numbers are raw texts. False: the event breaks a rule. */
bool check_event(struct check *check, uint64_t line, struct yyjson_val *event);
/* Reads a natural number up to `max`. False: the value is no such number. */
bool natural_in(struct yyjson_val *value, double max, uint64_t *number);

struct lane *lane_of(struct check *check, uint32_t pid, uint32_t tid);

/* Sorts the slices of each lane by ts, the longer first, then by line, as functions below need. */
void lanes_sort(struct check *check);
/* Judges rules 4 and 13, after lanes_sort(): the slices of a lane nest; its clock runs. */
void lanes_judge(struct check *check);
/* Judges async spans and streams' lives, after the last line. `ended`: each span and each life must
 * have its end. */
void asyncs_judge(struct check *check, bool ended);

/* Judges rule 10, after the last row: the trailer's audit. */
bool audit_judge(struct check *check, uint64_t line, const struct cJSON *trailer);

/* Judges rule 6, after lanes_sort(). `complete`: each flow must have its s. */
void flows_judge(struct check *check, bool complete);

/* Adds a row to check->sums. False: a cs_loss row does not say how much was lost. */
bool sums_row(const struct event *event);

/* Judges rules 10 and 12: the totals in check->whole. */
bool totals_judge(struct check *check, uint64_t line);
/* Makes the totals of a torn file, as far as its rows tell. `before`: the totals of the part before
 * this one, or NULL; `last`: the totals that this part's last flush wrote, or NULL. */
struct cJSON *totals_make(
    struct check *check, uint64_t cut_bytes, const struct cJSON *before, const struct cJSON *last);
/* Sets check->state to "ok", or to why the file does not have everything. Sets check->losses
 * too. */
void totals_state(struct check *check);

#endif
