/* Calls and a sink for the tests of shim/match, whose tables the tests read and write themselves.
 */
#ifndef CS_TESTS_UNIT_MATCH_H
#define CS_TESTS_UNIT_MATCH_H

#include "shim/base/memory.h"
#include "shim/gpu/mark.h"
#include "shim/match/state.h"
#include "tests/unit/check.h"

static inline enum cs_outside inside(cs_u64 ticks) { return (void)ticks, CS_INSIDE; }
static inline cs_u64 ever_since(void) { return 0; }
static inline void missed(int by) { (void)by; }
static inline void depth(const struct cs_match_lane *lane, cs_u64 ns) { (void)lane, (void)ns; }

static bool begin_told(const struct cs_match_sink *sink)
{
    if (!cs_tables_make(CS_TABLES_TRACE, "a test") || !cs_streams_init()) return false;
    cs_match_begin(sink);
    return true;
}

/* Begins with a sink that keeps nothing. */
static inline bool begin_plain(void)
{
    static const struct cs_match_sink sink = {.outside = inside,
        .open_since = ever_since,
        .without_times = missed,
        .missed = missed,
        .depth = depth};
    return begin_told(&sink);
}

static inline struct cs_op *called(cs_u32 tid, cs_u32 key, cs_u64 begin, cs_u64 end)
{
    struct cs_thread thread = {.tid = tid, .key = key};
    struct cs_record record = {.begin = begin, .end = end};
    return cs_op_new(&thread, &record, begin);
}

/* Asks which call a profiler's number means. */
static inline enum cs_op_found profiler_told(
    cs_u32 thread, cs_u32 correlation, cs_u64 start, cs_u64 end)
{
    return cs_op_called(&(struct cs_gpu_call){start, end, thread, correlation});
}

/* A lane as that of a stream object with the reference index `n`, which the test keeps. */
static inline struct cs_match_lane *lane_of(struct cs_stream *stream, cs_u32 n)
{
    *stream = (struct cs_stream){.device = 0, .lane = 12 + n};
    cs_store(&stream->object.ref, 1u << CS_REF_INDEX_BITS | n);
    struct cs_match_lane *lane = cs_match_lane_of(stream);
    REQUIRE(lane && cs_match_lane_made(stream) == lane);
    return lane;
}

static inline void enqueue(struct cs_match_lane *lane, struct cs_op *op)
{
    op->lane = lane->number;
    cs_queue_add(lane, op);
}

#endif
