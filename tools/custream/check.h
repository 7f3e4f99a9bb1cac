/*
 * custream check, inside: what is remembered of a trace while its lines go by.
 *
 * Each event is judged alone as its line is read (check_event.c). What takes several lines to judge is kept in short form, 24 bytes a slice and
 * 40 a flow's end or an async span's, and judged after the last line: slices that do not nest (check_lane.c), flows (check_flow.c), async spans
 * (check_async.c), the trailer's totals (check_sums.c, check_totals.c). A trace of 1 GiB needs some 400 MiB.
 *
 * Rule numbers are those of the trace format; 0 stands for its layout.
 */
#ifndef CS_TOOLS_CHECK_H
#define CS_TOOLS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/check_totals.h"

/* A pid below this is a device's ordinal (Kineto's and HTA's convention). A merged trace has several of each: see merged.h. */
enum { GPU_PIDS = 64 };

struct slice {
    int64_t ts, end; /* nanoseconds; end is SLICE_OPEN between its B and its E */
    uint64_t line;
};
#define SLICE_OPEN INT64_MIN

struct lane {
    struct lane *next; /* in order of appearance */
    uint32_t pid, tid;
    bool named, with_stream; /* its name says of which stream it is: lanes.h */
    uint64_t first_event; /* line; 0: only metadata so far */
    struct slice *slices; /* in order of lines until lanes_sort() */
    size_t count, capacity;
    size_t *open; /* indices of slices between B and E, innermost last */
    size_t open_count, open_capacity;
};

struct flow_end {
    int64_t ts;
    uint64_t id, line;
    const struct lane *lane;
    char phase; /* s, t or f */
    bool bound;  /* the slice itself, by its bind_id: one begins the arrow, and any number end it */
    bool inside; /* may lie inside its slice, not at its start: of cs_dep, which says when something was released */
};

/* Of an async span. */
struct async_end {
    int64_t ts;
    uint64_t span, line; /* span: a hash of category, name, id and pid */
    char phase;          /* b or e */
    bool life;           /* marks of a stream's life */
};

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
    bool merged;    /* by custream merge: the header says so */
    bool windowed;  /* and only of a window: what begins an arrow may be missing */
    double part;    /* the header's; 0: it has none */
    bool is_cut_out; /* of a longer trace, by custream record or dump: the header says so */
    double cut_seconds;
    bool cut;       /* the trailer says that the process died or the file was full: what was open then stays open */
    struct cJSON *header; /* up to its traceEvents, which are an empty list here */
    bool packets;         /* the file is in Perfetto's own format */
    const char *torn;     /* where the file ends if that is not its end: "it ends inside an event" */
    char state[1024], losses[1024]; /* the summary's first words, and its last ones; or why the file cannot be read */
};

void check_init(struct check *check, const char *path);
void check_free(struct check *check);

/* Reads the rows, so that check->sums has what they add up to; judges nothing that takes more than one of them. For `custream recover`. */
struct reader;
enum count_end {
    COUNT_WHOLE,
    COUNT_TORN,
    COUNT_BROKEN,  /* check->breach says where */
    COUNT_USELESS, /* check->state says why */
};
enum count_end check_count(struct check *check, struct reader *reader);

/* Remembers the breach if no lower line has one. Returns false, so that a judge can end with it. */
bool check_breach(struct check *check, uint64_t line, int rule, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Names from the file end up in what is printed: one file, one line. */
void text_print(char *text);

/* One event, its JSON text without the comma behind it. False if it breaks a rule. */
bool check_event(struct check *check, uint64_t line, const char *json);

/* Whether the pid is a GPU's, and whose. */
bool is_gpu_pid(const struct check *check, uint32_t pid);
uint32_t gpu_ordinal(const struct check *check, uint32_t pid);

struct lane *lane_of(struct check *check, uint32_t pid, uint32_t tid);
void lane_add(struct lane *lane, struct slice slice);
void lane_open(struct lane *lane, struct slice slice);
/* The slice that an E ends; NULL if none is open. It is out of the stack of open ones then. */
struct slice *lane_close(struct lane *lane);
void lanes_free(struct check *check);

/* By ts, the longer first, then by line: the order in which the later judges want slices. Nothing can be opened or closed afterwards. */
void lanes_sort(struct check *check);
/* Rule 4. `complete`: the last event was read, so what is open now stays open. */
void lanes_judge(struct check *check, bool complete);
/* The slice that starts at ts on the lane and has the lowest line; NULL if none starts there. After lanes_sort(). */
const struct slice *lane_slice_at(const struct lane *lane, int64_t ts);
/* Some slice that ts lies in, NULL if there is none. After lanes_sort(). */
const struct slice *lane_slice_around(const struct lane *lane, int64_t ts);

void async_add(struct check *check, struct async_end end);
/* `ended`: what has begun must have ended. To be called once all lines were read. */
void asyncs_judge(struct check *check, bool ended);

/* Rules 8 and 10: the args of a cs_audit row; what the trailer says of the audit, once all rows were read. */
struct cJSON;
bool audit_row_judge(struct check *check, uint64_t line, const struct cJSON *args);
bool audit_judge(struct check *check, uint64_t line, const struct cJSON *trailer);

void flow_add(struct check *check, struct flow_end end);
/* Rule 6. After lanes_sort(). */
void flows_judge(struct check *check, bool complete);
/* Flows with both a start and an end. After flows_judge(). */
uint64_t flows_complete(const struct check *check);

#endif
