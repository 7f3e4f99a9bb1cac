/* Reads a trace file as a stream of rows, and the numbers and texts around the rows as facts. A row
 * keeps only the keys in TRACE_KEYS. */
#ifndef CS_TRACE_ROW_H
#define CS_TRACE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/texts.h"

/* TOP: members of the event; ARG: members of its args and id2. TIME: microseconds with decimals,
 * kept as ns. */
#define TRACE_KEYS(TOP, ARG) \
    TOP(PH, "ph", WORD) TOP(CAT, "cat", WORD) TOP(NAME, "name", WORD) TOP(PID, "pid", NUMBER) \
    TOP(TID, "tid", NUMBER) TOP(TS, "ts", TIME) \
    TOP(DUR, "dur", TIME) \
    ARG(LOCAL, "local", WORD) ARG(META_NAME, "name", WORD) ARG(LABELS, "labels", WORD) \
    ARG(CS_STREAM, "cs.stream", NUMBER) ARG(CS_DEVICE, "cs.device", NUMBER) \
    ARG(STREAM, "stream", NUMBER) ARG(DEVICE, "device", NUMBER) ARG(CONTEXT, "context", NUMBER) \
    ARG(CORRELATION, "correlation", NUMBER) \
    ARG(KERNEL, "kernel", WORD) ARG(GRID, "grid", LIST) ARG(BLOCK, "block", LIST) \
    ARG(REGISTERS, "registers per thread", NUMBER) \
    ARG(SHARED_MEMORY, "shared memory", NUMBER) ARG(BYTES, "bytes", NUMBER) \
    ARG(EVENT, "event", NUMBER) ARG(GRAPH, "graph", NUMBER) \
    ARG(GRAPH_NODE, "graph node", NUMBER) ARG(RESULT, "cs.result", WORD) \
    ARG(FLAGS, "flags", WORD) ARG(ORIGIN, "origin", WORD) \
    ARG(PRIORITY, "priority", NUMBER) ARG(REQUESTED, "requested priority", NUMBER) \
    ARG(CREATED_BY, "created by", WORD) \
    ARG(LIBRARY, "library", WORD) ARG(THREAD, "thread", NUMBER) \
    ARG(DESTROYED, "destroyed", NUMBER) ARG(COUNT, "count", NUMBER) \
    ARG(GPU_WORK, "gpu_work", NUMBER) ARG(CAUSE, "cause", WORD) ARG(DOMAIN, "domain", WORD) \
    ARG(DELAY, "delay_us", TIME) ARG(NOTE, "cs.note", WORD) ARG(CUT, "cs.cut", WORD) \
    ARG(BY_POLICY, "changed by policy", NUMBER) \
    ARG(CAPTURED, "cs.captured", NUMBER) ARG(ADDRESS, "address", WORD) \
    ARG(BLOCKED, "blocked_us", TIME) ARG(CPU, "cpu_us", TIME) ARG(CPU_END, "cpu_end_us", TIME) ARG(WAITED, "waited_us", TIME) \
    ARG(WAITED_FOR, "waited for", WORD) ARG(WAITED_STREAM, "waited for stream", NUMBER) \
    ARG(RECORDED_ON, "recorded on", NUMBER) \
    ARG(ELSEWHERE, "recorded elsewhere", NUMBER) \
    ARG(WAIT_IDS, "event_wait_ids", LIST)

#define TRACE_KEY_ENUMERATOR(key, name, kind) KEY_##key,
enum trace_key { TRACE_KEYS(TRACE_KEY_ENUMERATOR, TRACE_KEY_ENUMERATOR) TRACE_KEY_COUNT };

/* A kernel's launch, which decides how much of the device the kernel fills. */
struct shape {
    uint32_t grid[3], block[3];
    int32_t registers;      /* per thread; -1: unknown */
    uint32_t shared_memory; /* bytes per block */
};

/* Returns the place in `last` of the number of a kernel's last shape on its GPU. The number is
 * UINT32_MAX if the kernel has had no shape yet. A kernel of ours whose row tells no shape has that
 * last shape. */
static inline uint32_t *last_shape(struct numbers *last, uint64_t gpu, uint64_t kernel)
{
    return numbers_at(last, gpu << 32 ^ kernel, UINT32_MAX);
}

enum { TRACE_IDS_MOST = 64 };
#define TRACE_NO_GPU UINT32_MAX

struct trace_row {
    uint64_t has;  /* one bit for each key */
    uint32_t gpu;  /* ordinal of the GPU on whose lane the row stands, whatever its pid; or
                      TRACE_NO_GPU */
    bool bad_time; /* the row's ts or dur is no time, or out of range */
    int64_t number[TRACE_KEY_COUNT]; /* values of kind NUMBER (whole; true is 1) and TIME */
    text word[TRACE_KEY_COUNT];      /* values of kind WORD; a number is kept as its digits */
    struct shape said;               /* the lists of GRID and BLOCK */
    const struct shape *shape; /* the shape of a kernel or its launch, maybe taken from an earlier
                                  row; NULL: none */
    /* the number of `shape` among the file's shapes, from 0 in the order of appearance */
    uint32_t shape_number;
    int64_t ids[TRACE_IDS_MOST]; /* the first values of WAIT_IDS */
    unsigned id_count;
};
static inline bool row_has(const struct trace_row *row, enum trace_key key)
{
    return row->has >> key & 1;
}
static inline int64_t row_number(const struct trace_row *row, enum trace_key key, int64_t otherwise)
{
    return row_has(row, key) ? row->number[key] : otherwise;
}
static inline text row_word(const struct trace_row *row, enum trace_key key)
{
    return row_has(row, key) ? row->word[key] : 0;
}

/* Returns the stream of the GPU lane on which the row stands. If no argument names the stream, it
 * is the lane's tid, as in other tools' traces. */
uint32_t row_stream(const struct trace_row *row);

/* A number or a text outside of the events. */
struct trace_fact {
    /* such as "totals.gpu.lost"; list elements have numbers: "deviceProperties.0.id" */
    const char *path;
    text value; /* 0: the fact is a number */
    double number;
    int64_t whole; /* the same number, exact if it is whole */
};

/* The numbers of rows that were left out. */
struct trace_left {
    uint64_t times;  /* rows whose time is missing, no number, or out of range */
    uint64_t others; /* another tool's rows without a phase */
};

/* Functions that take what is read, and limits for the reading. */
struct trace_sink {
    void *of;
    void (*row)(void *of, const struct trace_row *row);
    void (*fact)(void *of, const struct trace_fact *fact);
    /* called now and then with the bytes read so far; may be NULL */
    void (*progress)(void *of, uint64_t bytes);
    struct trace_left *left; /* counted up; may be NULL */
    int64_t last; /* read only the header and this many last bytes of a plain file; 0: read all */
    bool *partly; /* set if `last` left something out; may be NULL */
    bool (*enough)(void *of); /* true: reading stops, and the file counts as whole; may be NULL */
};

enum trace_end { TRACE_WHOLE, TRACE_CUT /* it ends in its events or trailer */, TRACE_UNREADABLE };

/* Reads the file into the sink. TRACE_UNREADABLE: `error` says why, in one line. */
enum trace_end trace_read(
    const char *path, struct texts *texts, const struct trace_sink *sink, char error[256]);

#endif
