/*
 * Options whose text is a small language of its own: what it says, as data. False for what it can't read; `out` is whole or untouched. What is
 * allowed stands in options.def. No allocation, any thread.
 */
#ifndef CS_BASE_SETTINGS_H
#define CS_BASE_SETTINGS_H

#include "shim/base/compiler.h"

/* PRIORITY: what becomes of the priority that a stream was asked to have. CUDA's priorities go from 0 (least) down to a negative number (greatest). */
struct cs_priority {
    enum cs_priority_kind { CS_PRIORITY_KEEP, CS_PRIORITY_CLAMP, CS_PRIORITY_SET, CS_PRIORITY_SHIFT, CS_PRIORITY_MAP } kind;
    int value; /* CLAMP: the greatest; SET: it; SHIFT: what is added */
    struct {
        int from, to;
    } map[8];
    int mapped;
    bool strict; /* what is out of the range is refused, not mapped to the nearest */
};
bool cs_priority_read(const char *text, struct cs_priority *out);

/* STREAMS: how many real streams carry the work of those that were asked for, and whether each operation is waited for. */
struct cs_sharing {
    enum cs_sharing_kind { CS_SHARING_KEEP, CS_SHARING_POOL, CS_SHARING_SERIAL, CS_SHARING_SYNC } kind;
    int pool; /* streams of one context, priority and blocking kind */
};
bool cs_sharing_read(const char *text, struct cs_sharing *out);

/* JITTER: delays put in before operations, the same ones for the same seed. */
struct cs_jitter {
    bool on, host, stream; /* the calling thread waits; the stream does, in a host function of ours */
    cs_u32 us, percent;    /* at most so long, before so many of a hundred operations */
    cs_u64 seed;
    cs_u32 kinds; /* bit 1 << n: the n-th of cs_jitter_kinds */
};
extern const char *const cs_jitter_kinds[]; /* "launch", "copy", ...; ends with NULL */
bool cs_jitter_read(const char *text, struct cs_jitter *out);

/* WINDOW: when calls are recorded. */
struct cs_window {
    enum cs_window_kind { CS_WINDOW_ALL, CS_WINDOW_PROFILER, CS_WINDOW_CTL, CS_WINDOW_TIME, CS_WINDOW_EVERY } kind;
    cs_u64 delay_ns, duration_ns; /* TIME: from the first CUDA call on; duration 0: to the end */
    cs_u64 every_ns, for_ns;      /* EVERY: the first part of each span of time, from the first CUDA call on; 0 < for < every */
};
bool cs_window_read(const char *text, struct cs_window *out);

/* GPU: where GPU times come from. */
struct cs_gpu_times {
    enum cs_gpu_times_kind { CS_GPU_TIMES_AUTO, CS_GPU_TIMES_CUPTI, CS_GPU_TIMES_EVENTS, CS_GPU_TIMES_OFF } kind;
    cs_u32 sample; /* of how many calls one is timed; 1: all are */
};
bool cs_gpu_times_read(const char *text, struct cs_gpu_times *out);

/* What is in the file that TRIGGER names: which ranks are to record which seconds (process/trigger.c, docs/live.md). Lines `key=value`. */
enum { CS_TRIGGER_MOST = 64 << 10, CS_RANK_RANGES = 64 }; /* bytes of a file; ranges in it */
struct cs_trigger {
    cs_u64 start_ns, duration_ns; /* since 1970, by CLOCK_REALTIME */
    struct cs_rank_range {
        int from, to;
    } ranges[CS_RANK_RANGES];
    int range_count; /* 0: all processes, also those without a rank */
    const char *policy; /* JSON, in the text; NULL: none */
    size_t policy_length;
};
/* NULL, or what is allowed in that line (from 1; 0: of the file). */
const char *cs_trigger_read(const char *text, struct cs_trigger *out, int *line);
bool cs_trigger_names(const struct cs_trigger *trigger, int rank); /* -1: it has none */

#endif
