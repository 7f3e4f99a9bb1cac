/* What a GPU did, on rows of the file (trace/gpu_*.c): where slices that lie over each other stand,
 * and what a row is called. */
#include "shim/gpu/backend.h"
#include "shim/match/state.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "tests/unit/trace_file.h"

static cs_u64 now; /* ns */
static struct cs_match_lane *lane;

static void begin(void)
{
    trace_file_begin();
    now = cs_clock_ns(cs_ticks());
    static struct cs_match_lane of_stream = {.used = true, .number = 1, .serial = 1, .tid = 13};
    lane = &of_stream;
}

static const char *name_of_row(cs_u32 pid, cs_u32 tid)
{
    char at[64];
    snprintf(at, sizeof at, "\"pid\":%u,\"tid\":%u,", pid, tid);
    return trace_file_event("\"thread_name\"", at);
}

/* A copy from device 0 to 1, so many ns from now on. */
static void peer_copy(cs_u64 from, cs_u64 to)
{
    const struct cs_gpu_work work = {.kind = CS_GPU_COPY,
        .copy = {.bytes = 4096, .peer = true, .from_device = 0, .to_device = 1}};
    const struct cs_match_found found = {
        .work = &work, .lane = lane, .start_ns = now + from, .end_ns = now + to};
    cs_gpu_peer_write(&found);
}

TEST(peer_copies_at_once_have_a_row_each)
{
    begin();
    for (cs_u64 at = 0; at < 3000; at += 1000) {
        peer_copy(at, at + 900);
        peer_copy(at + 100, at + 800);
        peer_copy(at + 200, at + 700);
        peer_copy(at + 700, at + 800); /* where the third has ended */
    }
    for (cs_u32 level = 0; level < 3; level++) {
        char at[64], name[64] = "\"name\":\"peer copies\"";
        const cs_u32 tid = cs_lane_tid(CS_LANE_PEERS, CS_LANE_WORK, level);
        snprintf(at, sizeof at, "\"pid\":1,\"tid\":%u,", tid);
        CHECK_IS(trace_file_count("\"cs_peer\"", at), level == 2 ? 6 : 3);
        if (level) snprintf(name, sizeof name, "\"peer copies (overlap %u)\"", level);
        CHECK(strstr(name_of_row(1, tid), name));
    }
    CHECK_IS(trace_file_count("\"cs_peer\"", ""), 12);
    CHECK_IS(trace_file_count("\"thread_name\"", "peer copies"), 3);
}

/* A viewer makes a row for each number that metadata has: it has those of streams. */
TEST(a_gpus_name_and_place_stand_at_the_row_of_its_default_stream)
{
    begin();
    cs_lane_device(3);
    trace_file_event("\"process_name\"", "\"pid\":3,\"tid\":700,");
    trace_file_event("\"process_sort_index\"", "\"pid\":3,\"tid\":700,");
}

TEST(waits_for_a_whole_gpu_stand_at_no_streams_number)
{
    begin();
    for (cs_u32 level = 0; level < 3; level++) {
        cs_u64 start = now + level;
        CHECK_IS(cs_gpu_device_place(1, &start, now + 1000),
            cs_lane_tid(CS_LANE_ALL, CS_LANE_SYNC, level));
    }
}

static void overhead(cs_u64 start, cs_u64 end)
{
    const struct cs_gpu_work work = {
        .kind = CS_GPU_OVERHEAD, .start = start, .end = end, .overhead = {.what = 1 << 16}};
    struct cs_match_found found = {.work = &work};
    CHECK(!cs_gpu_work_write(&found));
}

TEST(overheads_at_once_have_a_row_each)
{
    begin();
    const cs_u64 at = cs_ticks();
    const char *rows[4];
    overhead(at, at); /* too short for the clock */
    overhead(at, at + 100000);
    overhead(at + 10000, at + 20000);
    REQUIRE(trace_file_events("\"cat\":\"overhead\"", "\"Buffer Flush\"", rows, 4) == 3);
    CHECK_IS(number_of(rows[1], "tid"), number_of(rows[0], "tid") + 1);
    CHECK_IS(number_of(rows[2], "tid"), number_of(rows[0], "tid"));
    CHECK_IS(trace_file_count("\"thread_name\"", "\"profiler overhead\""), 2);
    CHECK_IS(cs_totals.sum.gpu.count[CS_GPU_OVERHEAD], 3);
}

TEST(what_is_missing_at_once_follows_on_its_row)
{
    begin();
    const char *rows[4];
    cs_gpu_set_missing(CS_GPU_TIMES, "a test");
    usleep(1000);
    cs_gpu_lost_write(3, CS_LOSS_REFUSED);
    cs_gpu_set_missing(CS_GPU_TIMES, NULL);
    cs_gpu_missing_write(false);
    REQUIRE(trace_file_events("\"cs_loss\"", "", rows, 4) == 2);
    CHECK(strstr(rows[0], "\"lost\"") && strstr(rows[0], "\"cs.loss\":\"refused\"") &&
          strstr(rows[1], "\"no GPU times\"") && strstr(rows[1], "a test"));
    CHECK(ns_of(rows[1], "ts") >= end_of(rows[0]));
}

TEST(each_part_names_its_rows_once)
{
    begin();
    for (int part = 1; part <= 2; part++) {
        for (int i = 0; i < 3; i++) {
            cs_lane_device(0);
            cs_gpu_counter_tid(0);
            cs_gpu_lost_write(1, CS_LOSS_NO_BUFFER);
            peer_copy((cs_u64)(part * 10 + i) * 1000, (cs_u64)(part * 10 + i) * 1000 + 500);
            const cs_u64 from = cs_ticks(), from_ns = cs_clock_ns(from);
            overhead(from, from + 1000);
            cs_gpu_device_place(0, &(cs_u64){from_ns}, from_ns + 1);
            cs_gpu_lane_place(lane, false, &(cs_u64){from_ns}, from_ns + 1);
            cs_gpu_lane_place(lane, true, &(cs_u64){from_ns}, from_ns + 1);
            usleep(10);
        }
        CHECK_IS(trace_file_count("\"process_name\"", "\"GPU 0 "), part);
        CHECK_IS(trace_file_count("\"thread_name\"", "\"counters\""), part);
        CHECK_IS(trace_file_count("\"thread_name\"", "\"GPU times missing\""), part);
        CHECK_IS(trace_file_count("\"thread_name\"", "\"peer copies\""), part);
        CHECK_IS(trace_file_count("\"thread_name\"", "\"profiler overhead\""), part);
        CHECK_IS(trace_file_count("\"thread_name\"", "\"all streams (sync)\""), part);
        CHECK_IS(trace_file_count("\"thread_name\"", "\"stream 13 (the driver's own)\""), part);
        CHECK_IS(trace_file_count("\"thread_name\"", "\"stream 13 (sync)\""), part);
        cs_timeline_begin(CS_BEGIN_PART);
    }
}

/* The name of the row, and its place among the others, which is its stream's. */
static void check_row(cs_u32 pid, cs_u32 tid, const char *name, cs_u32 stream)
{
    char at[64], quoted[96];
    snprintf(at, sizeof at, "\"pid\":%u,\"tid\":%u,", pid, tid);
    snprintf(quoted, sizeof quoted, "\"name\":\"%s\",\"cs.stream\":%u}", name, stream);
    CHECK(strstr(name_of_row(pid, tid), quoted));
    CHECK_IS(number_of(trace_file_event("\"thread_sort_index\"", at), "sort_index"), tid);
}

TEST(rows_that_lie_over_each_other_have_names_of_their_own)
{
    begin();
    static struct cs_stream stream = {.lane = 14, .device = 2};
    cs_store(&stream.object.ref, 1u << CS_REF_INDEX_BITS);
    lane->device = 2, lane->number = 9;
    for (cs_u32 level = 0; level < 3; level++) {
        cs_u64 from = now;
        CHECK_IS(cs_gpu_lane_place(lane, false, &from, now + 1000),
            cs_lane_tid(13, CS_LANE_WORK, level));
        CHECK_IS(
            cs_gpu_lane_place(lane, true, &from, now + 1000), cs_lane_tid(13, CS_LANE_SYNC, level));
        CHECK_IS(cs_gpu_wait_tid(&stream, &from, now + 1000), cs_lane_tid(14, CS_LANE_SYNC, level));
        CHECK_IS(cs_gpu_device_place(3, &from, now + 1000), cs_lane_tid(0, CS_LANE_SYNC, level));
    }
    check_row(2, 1300, "stream 13 (the driver's own)", 13);
    check_row(2, cs_lane_tid(13, CS_LANE_WORK, 1), "stream 13 (overlap 1)", 13);
    check_row(2, cs_lane_tid(13, CS_LANE_WORK, 2), "stream 13 (overlap 2)", 13);
    check_row(2, cs_lane_tid(13, CS_LANE_SYNC, 0), "stream 13 (sync)", 13);
    check_row(2, cs_lane_tid(13, CS_LANE_SYNC, 2), "stream 13 (sync) (overlap 2)", 13);
    check_row(2, cs_lane_tid(14, CS_LANE_SYNC, 1), "stream 14 (sync) (overlap 1)", 14);
    check_row(3, cs_lane_tid(0, CS_LANE_SYNC, 0), "all streams (sync)", 0);
    check_row(3, cs_lane_tid(0, CS_LANE_SYNC, 2), "all streams (sync) (overlap 2)", 0);
    CHECK_IS(
        cs_gpu_device_place(CS_GPU_PIDS, &now, now + 1), 0); /* more GPUs than there are rows for */
}

/* More at once than a stream has rows: the last one begins where there is room, if there is any. */
TEST(work_beyond_the_rows_of_a_stream_is_shorter)
{
    begin();
    for (cs_u32 level = 0; level < CS_LANE_LEVELS; level++)
        cs_gpu_lane_place(lane, false, &(cs_u64){now}, now + 1000 + level);
    const cs_u32 last = cs_lane_tid(13, CS_LANE_WORK, CS_LANE_LEVELS - 1);
    const cs_u64 filled = now + 1000 + CS_LANE_LEVELS - 1;
    cs_u64 from = now;
    CHECK_IS(cs_gpu_lane_place(lane, false, &from, filled + 500), last);
    CHECK_IS(from, filled);
    from = now;
    CHECK_IS(cs_gpu_lane_place(lane, false, &from, filled + 500), last);
    CHECK_IS(from, filled + 499);
    from = filled + 500;
    CHECK_IS(cs_gpu_lane_place(lane, false, &from, filled + 600), 1300);
    CHECK_IS(from, filled + 500);
}

TEST(work_without_a_row_is_counted_as_lost)
{
    begin();
    const struct cs_gpu_work work = {.kind = CS_GPU_KERNEL};
    struct cs_match_found found = {.work = &work, .start_ns = now, .end_ns = now + 1000};
    for (int i = 0; i < 3; i++) CHECK(!cs_gpu_work_write(&found));
    cs_gpu_trace_emit();
    cs_gpu_trace_emit(); /* told once */
    const char *lost = trace_file_event("\"cs_loss\"", "more streams than the trace has lanes for");
    CHECK_IS(number_of(lost, "gpu_work"), 3);
    CHECK_IS(cs_totals.sum.gpu.lost, 3);
}

TEST(a_counter_ends_at_the_last_value_that_it_had)
{
    begin();
    static struct cs_stream stream = {.lane = 13};
    const char *values[4];
    cs_store(&stream.object.ref, 1u << CS_REF_INDEX_BITS);
    lane = cs_match_lane_of(&stream);
    REQUIRE(lane);
    cs_gpu_shown.loads = cs_gpu_shown.depths = true;
    for (cs_u32 i = 0; i < 2;
        i++) { /* two steps that are too near to each other for both to be written */
        lane->depth = 3 - 2 * i;
        cs_gpu_depth_write(lane, now + 100000 + i);
        cs_gpu_load_write(
            0, now + 100000 + i, &(struct cs_load){.works = 3 - 2 * i, .kernels = 3 - 2 * i});
    }
    cs_gpu_counters_end();
    REQUIRE(trace_file_events("\"stream 13 depth\"", "", values, 4) == 2);
    CHECK_IS(number_of(values[0], "n"), 3);
    CHECK_IS(number_of(values[1], "n"), 1);
    REQUIRE(trace_file_events("\"kernels\"", "", values, 4) == 2);
    CHECK_IS(number_of(values[0], "at once"), 3);
    CHECK_IS(number_of(values[1], "at once"), 1);
}

TEST(a_stream_beyond_those_that_have_rows_has_none_for_waits)
{
    begin();
    static struct cs_stream streams[CS_MATCH_LANES + 1];
    for (cs_u32 i = 0; i < CS_MATCH_LANES + 1; i++) {
        const cs_u32 generation = i < CS_STREAMS ? 1 : 2; /* in the place of one that has ended */
        cs_u64 start = now;
        streams[i] = (struct cs_stream){.lane = 13 + i};
        cs_store(&streams[i].object.ref, generation << CS_REF_INDEX_BITS | i % CS_STREAMS);
        CHECK_IS(cs_gpu_wait_tid(&streams[i], &start, now + 1000),
            i < CS_MATCH_LANES ? cs_lane_tid(13 + i, CS_LANE_SYNC, 0) : 0);
    }
}

/* --- arrows --- */

static struct cs_op op; /* a launch of this thread's, in the present part */

static void launched(void)
{
    op = (struct cs_op){.id = 1, .begin_ns = now, .tid = (cs_u32)getpid(), .file = cs_lanes_file()};
}

static void kernel(void)
{
    const struct cs_gpu_work work = {
        .kind = CS_GPU_KERNEL, .start = cs_ticks(), .end = cs_ticks() + 1000};
    struct cs_match_found found = {
        .work = &work, .op = &op, .lane = lane, .start_ns = now + 100, .end_ns = now + 200};
    CHECK(cs_gpu_work_write(&found));
    op.works++;
    op.work_end_ns = found.end_ns;
    op.work_pid = found.pid;
    op.work_tid = found.tid;
    op.work_file = cs_lanes_file();
}

TEST(work_of_an_earlier_parts_call_is_counted_and_has_no_arrow)
{
    begin();
    launched();
    kernel();
    CHECK_IS(trace_file_count("\"flow_in\"", ""), 1);
    CHECK_IS(cs_totals.arrows_between_parts, 0);
    cs_timeline_begin(CS_BEGIN_PART);
    kernel();
    kernel();
    CHECK_IS(trace_file_count("\"flow_in\"", ""), 1);
    CHECK_IS(cs_totals.arrows_between_parts, 2);
}

TEST(a_wait_that_an_earlier_parts_work_released_is_counted_and_has_no_arrow)
{
    begin();
    launched();
    kernel();
    struct cs_match_wait wait = {
        .begin_ns = now + 150, .end_ns = now + 300, .tid = op.tid, .file = cs_lanes_file()};
    cs_gpu_released(&wait, &op);
    CHECK_IS(trace_file_count("\"cs_dep\"", ""), 3); /* the slice "wake-up" and both ends */
    CHECK_IS(cs_totals.arrows_between_parts, 0);
    cs_timeline_begin(CS_BEGIN_PART);
    cs_gpu_released(&wait, &op);
    wait.file = cs_lanes_file(); /* the wait is in this one */
    cs_gpu_released(&wait, &op);
    CHECK_IS(trace_file_count("\"cs_dep\"", ""), 3);
    CHECK_IS(cs_totals.arrows_between_parts, 2);
}

/* --- a full file --- */

TEST(nothing_is_gathered_for_a_full_file)
{
    setenv("CUSTREAM_TRACE_MAX", "1M", 1);
    begin();
    launched();
    kernel();
    const struct cs_match_wait wait = {
        .begin_ns = now + 150, .end_ns = now + 300, .tid = op.tid, .file = cs_lanes_file()};
    captured_begin();
    for (int i = 0; !cs_output_full() && i < 100000; i++) cs_gpu_released(&wait, &op);
    CHECK_IS(lines_in(captured_end()), 1);
    REQUIRE(cs_output_full());
    const char *room = cs_output_room();
    for (int i = 0; i < 10; i++) cs_gpu_released(&wait, &op);
    const struct cs_gpu_pool pool = {.at = cs_ticks()};
    cs_gpu_pool_write(&pool);
    overhead(cs_ticks(), cs_ticks() + 1000);
    cs_gpu_lost_write(1, CS_LOSS_NO_BUFFER);
    CHECK(cs_output_room() == room);
    CHECK_IS(cs_totals.arrows_between_parts, 0);
}
