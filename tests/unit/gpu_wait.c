/* Waits of the host and of streams (trace/gpu_wait.c): their rows, and what is asked about them.
 * The file itself, as where there is a GPU. */
#include "shim/gpu/backend.h"
#include "shim/trace/gpu_shown.h"

static bool gpu_is_on = true;
#define cs_gpu_is_on() gpu_is_on

void asked_for(struct cs_match_wait wait, const struct cs_match_lane *lane, cs_u32 device,
    cs_u64 ticks); /* not static: also where nobody calls it */
#define cs_match_wait(wait_, lane_, device_, ticks_) asked_for(wait_, lane_, device_, ticks_)
#include "shim/trace/gpu_wait.c"
#undef cs_match_wait
#undef cs_gpu_is_on

#include "shim/match/state.h"
#include "tests/unit/trace_file.h"

static struct asked {
    struct cs_match_wait wait;
    const struct cs_match_lane *lane;
    cs_u32 device;
    cs_u64 ticks;
} asked;
static int asked_count;
void asked_for(
    struct cs_match_wait wait, const struct cs_match_lane *lane, cs_u32 device, cs_u64 ticks)
{
    asked = (struct asked){wait, lane, device, ticks};
    asked_count++;
}

static struct cs_thread *thread;
static struct cs_stream *one, *two;
static cs_u64 start; /* ticks */

static struct cs_stream *new_stream(cs_u32 lane)
{
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    stream->lane = lane, stream->device = 2;
    return stream;
}

static void begin(void)
{
    REQUIRE(cs_contexts_init() && cs_streams_init());
    trace_file_begin();
    thread = cs_thread_start();
    REQUIRE(thread);
    one = new_stream(13), two = new_stream(14);
    start = cs_ticks();
}

/* Of so many ticks from the start on; `recorded`: the event's record, on a stream, NULL for none.
 */
static void waits(cs_u16 call, struct cs_stream *stream, const cs_u64 *cause, int result)
{
    const struct cs_record r = {
        .begin = start + 5000, .end = start + 9000, .call = call, .result = (int16_t)result};
    asked_count = 0;
    cs_gpu_trace_sync(thread, &r, stream, cause, cs_clock_ns(r.begin), cs_clock_ns(r.end));
}

static const char *last_row(int count)
{
    const char *rows[16];
    REQUIRE(trace_file_events("\"cuda_sync\"", "", rows, 16) == count);
    CHECK_IS(ns_of(rows[count - 1], "ts"), cs_clock_ns(start + 5000));
    CHECK_IS(end_of(rows[count - 1]), cs_clock_ns(start + 9000));
    return rows[count - 1];
}

static void check_row(
    const char *row, const char *name, cs_u32 pid, cs_u32 tid, const char *arguments)
{
    char text[256];
    snprintf(text, sizeof text, "\"name\":\"%s\",\"pid\":%u,\"tid\":%u,", name, pid, tid);
    if (!strstr(row, text)) CHECK_TEXT(row, text);
    snprintf(text, sizeof text, "\"args\":{%s}", arguments);
    if (!strstr(row, text)) CHECK_TEXT(row, text);
}

static void check_asked(const struct cs_match_lane *lane, cs_u32 device, cs_u64 ticks)
{
    CHECK_IS(asked_count, 1);
    CHECK(asked.wait.begin_ns == cs_clock_ns(start + 5000) &&
          asked.wait.end_ns == cs_clock_ns(start + 9000));
    CHECK(asked.wait.tid == thread->tid && asked.wait.file == cs_lanes_file() &&
          asked.lane == lane && asked.device == device && asked.ticks == ticks);
}

TEST(the_host_waits_for_a_stream)
{
    begin();
    waits(CS_CALL_cuStreamSynchronize, one, NULL, CUDA_SUCCESS);
    check_row(last_row(1), "Stream Sync", 2, cs_lane_tid(13, CS_LANE_SYNC, 0),
        "\"device\":2,\"cs.stream\":13");
    check_asked(cs_match_lane_of(one), 2, start + 5000);
    gpu_is_on = false; /* no work can come that released it */
    waits(CS_CALL_cuStreamSynchronize, one, NULL, CUDA_SUCCESS);
    CHECK_IS(asked_count, 0);
    last_row(2);
}

TEST(the_host_waits_for_an_event)
{
    begin();
    const cs_u64 cause[2] = {start + 1000, (cs_u64)cs_load(&two->object.ref) << 32};
    waits(CS_CALL_cuEventSynchronize, NULL, cause, CUDA_SUCCESS);
    check_row(last_row(1), "Event Sync", 2, cs_lane_tid(14, CS_LANE_SYNC, 0),
        "\"device\":2,\"cs.stream\":14");
    check_asked(cs_match_lane_of(two), 2, start + 1000);
    waits(CS_CALL_cuEventSynchronize, NULL, (const cs_u64[]){0, 0},
        CUDA_SUCCESS); /* it was never recorded */
    CHECK_IS(asked_count, 0);
}

TEST(the_host_waits_for_a_whole_gpu)
{
    begin();
    cs_thread_row(thread)->device = 3;
    waits(CS_CALL_cuCtxSynchronize, NULL, NULL, CUDA_SUCCESS);
    check_row(last_row(1), "Context Sync", 3, cs_lane_tid(0, CS_LANE_SYNC, 0), "\"device\":3");
    check_asked(NULL, 3, start + 5000);
    cs_thread_row(thread)->device = CS_GPU_PIDS;
    waits(CS_CALL_cuCtxSynchronize, NULL, NULL, CUDA_SUCCESS); /* that has no row */
    CHECK_IS(asked_count, 0);
    last_row(1);
}

TEST(a_stream_waits_for_an_event)
{
    begin();
    const cs_u64 cause[2] = {start + 1000, (cs_u64)cs_load(&two->object.ref) << 32},
                 own[2] = {start + 1000, (cs_u64)cs_load(&one->object.ref) << 32};
    waits(CS_CALL_cuStreamWaitEvent, one, cause, CUDA_SUCCESS);
    check_row(last_row(1), "Stream Wait Event", 2, cs_lane_tid(13, CS_LANE_SYNC, 0),
        "\"device\":2,\"cs.stream\":13,\"recorded on\":14");
    CHECK_IS(asked_count, 0); /* the host does not wait */
    waits(CS_CALL_cuStreamWaitEvent, two, own, CUDA_SUCCESS);
    waits(CS_CALL_cuStreamWaitEvent, one, own, CUDA_SUCCESS);
    CHECK(!strstr(last_row(3), "recorded on"));
    waits(CS_CALL_cuStreamWaitEvent, NULL, cause, CUDA_SUCCESS); /* of no known stream */
    waits(CS_CALL_cuStreamSynchronize, one, NULL, CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(asked_count, 0);
    last_row(3);
}

/* The arrow ends at a slice of its own: from where the work ended, or for a nanosecond where that
 * was no earlier. */
TEST(a_wait_ends_with_a_wake_up)
{
    begin();
    const cs_u64 now = cs_clock_ns(start);
    struct cs_op op = {.work_end_ns = now + 100, .work_pid = 2, .work_tid = 13};
    const char *ends[4];
    cs_gpu_wake_write(5, &op, cs_host_lane(thread->tid), now + 300);
    op.work_end_ns = now + 400;
    cs_gpu_wake_write(6, &op, cs_host_lane(thread->tid), now + 400);
    REQUIRE(trace_file_events("\"wake-up\"", "", ends, 4) == 2);
    CHECK(ns_of(ends[0], "ts") == (long long)now + 100 && end_of(ends[0]) == (long long)now + 300);
    CHECK(ns_of(ends[1], "ts") == (long long)now + 399 && end_of(ends[1]) == (long long)now + 400);
    REQUIRE(trace_file_events("\"ph\":\"s\"", "\"pid\":2,\"tid\":13,", ends, 4) == 2);
    CHECK(ns_of(ends[0], "ts") == (long long)now + 99 &&
          ns_of(ends[1], "ts") == (long long)now + 399 && number_of(ends[0], "id") == 5);
    REQUIRE(trace_file_events("\"ph\":\"f\"", "", ends, 4) == 2);
    CHECK(ns_of(ends[0], "ts") == (long long)now + 100 &&
          ns_of(ends[1], "ts") == (long long)now + 399 && number_of(ends[1], "id") == 6);
}
