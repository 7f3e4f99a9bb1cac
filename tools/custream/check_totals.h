/*
 * custream check, the trailer's totals: what the rows add up to while they go by, and whether the trailer says the same.
 *
 * Kept for it: 16 bytes a piece of work, 40 a call that made work or may have, 24 a stretch in which nothing was recorded.
 */
#ifndef CS_TOOLS_CHECK_TOTALS_H
#define CS_TOOLS_CHECK_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;
struct check;

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
    bool tells_work;                /* one has a gpu_work: the file is not from before there was that */
    char cut_cause[128];            /* of the slice that stands for what came after the file's end */
    uint64_t arrows;                /* ac2g, the ends at work */
    uint64_t correlation_max;
    bool captures;     /* a stream was captured */
    bool no_lane;      /* there were more streams than lanes, so that some had none for a while */
    int64_t host_from; /* where the first slice of a call begins */
    struct work *works;
    struct call *calls;
    struct gap *gaps;
    size_t work_count, work_capacity, call_count, call_capacity, gap_count, gap_capacity;
};

/* One row that is good by itself. `end`: ts but for slices. */
struct row {
    uint64_t line;
    const char *name, *category;
    char phase;
    uint32_t pid, tid;
    int64_t ts, end;
    const struct cJSON *object, *args;
};

void sums_init(struct sums *sums);
void sums_free(struct sums *sums);
/* False if what a cs_loss row stands for cannot be told. */
bool sums_row(struct check *check, const struct row *row);

/* Rules 10 and 12. `trailer` was parsed from `length` bytes. */
bool totals_judge(struct check *check, uint64_t line, const struct cJSON *trailer, size_t length);
/* What the trailer of a torn file would say, as far as the rows tell. `before`: totals of the part before it, or NULL. */
struct cJSON *totals_make(struct check *check, uint64_t cut_bytes, const struct cJSON *before, const struct cJSON *last);
/* "ok", or why the file does not have all of it: into check->state. */
void totals_state(struct check *check, const struct cJSON *trailer);

#endif
