/* Counters in the file (trace/gpu_count.c): which steps are written, when, and where. */
#include "shim/match/state.h"
#include "shim/trace/gpu_shown.h"
#include "tests/unit/trace_file.h"

enum { STEP = 50000, SHARE = 200000 };

static cs_u64 at; /* ns: where a stretch of the share begins */

static void begin(void)
{
    trace_file_begin();
    cs_gpu_shown.loads = cs_gpu_shown.depths = true;
    at = cs_clock_ns(cs_ticks()) / SHARE * SHARE + 10 * SHARE;
}

static void load(cs_u32 device, cs_u64 after, cs_u32 works, cs_u32 kernels)
{
    cs_gpu_load_write(device, at + after, &(struct cs_load){.works = works, .kernels = kernels});
}

struct step {
    cs_u64 after;
    long long value;
};

/* The counter of a GPU has these steps and no other. */
static void check_steps(
    cs_u32 device, const char *name, const char *unit, const struct step *steps, int count)
{
    const char *rows[32];
    char quoted[64], pid[32];
    snprintf(quoted, sizeof quoted, "\"ph\":\"C\",\"name\":\"%s\"", name);
    snprintf(pid, sizeof pid, "\"pid\":%u,\"tid\":%u,", device,
        cs_lane_tid(CS_LANE_COUNTERS, CS_LANE_WORK, 0));
    const int found = trace_file_events(quoted, pid, rows, 32);
    int k = 0;
    for (int i = 0; i < found; i++) {
        if (!strstr(rows[i], unit)) continue; /* another counter with that name */
        if (k < count) CHECK_IS(ns_of(rows[i], "ts") - (long long)at, steps[k].after);
        if (k < count) CHECK_IS(number_of(rows[i], unit), steps[k].value);
        k++;
    }
    CHECK_IS(k, count);
}
#define CHECK_STEPS(device, name, unit, ...) \
    check_steps(device, name, unit, (const struct step[]){__VA_ARGS__}, sizeof(const struct \
    step[]){__VA_ARGS__} / sizeof(struct step))

/* --- the share of time at work --- */

TEST(the_share_of_each_stretch_is_written_where_it_changes)
{
    begin();
    load(2, 50000, 1, 0);
    load(2, 150000, 0, 0);
    load(2, 300000, 2, 0);
    load(2, 500000, 1, 0); /* still at work */
    load(2, 1000000, 0, 0);
    load(2, 1300000, 1, 0);
    cs_gpu_counters_end();
    CHECK_STEPS(2, "busy", "%", {0, 50}, {2 * SHARE, 100}, {5 * SHARE, 0}, {6 * SHARE, 50},
        {7 * SHARE, 100});
}

TEST(a_share_is_rounded)
{
    begin();
    for (cs_u64 i = 0; i < 3; i++) {
        load(0, i * SHARE + 100, 1, 0);
        load(0, i * SHARE + 100 + 999 + (i == 1), 0, 0);
    }
    cs_gpu_counters_end();
    CHECK_STEPS(0, "busy", "%", {SHARE, 1}, {2 * SHARE, 0});
}

TEST(a_gpu_that_has_done_nothing_has_no_counters)
{
    begin();
    load(1, 0, 1, 1);
    cs_gpu_counters_end();
    CHECK_IS(trace_file_count("\"ph\":\"C\"", "\"pid\":0,"), 0);
    CHECK_IS(trace_file_count("\"counters\"", ""), 1);
}

TEST(nothing_is_counted_that_nobody_wants)
{
    begin();
    cs_gpu_shown.loads = cs_gpu_shown.depths = false;
    load(0, 0, 1, 1);
    struct cs_match_lane lane = {.used = true, .number = 1, .serial = 1, .tid = 13, .depth = 1};
    cs_gpu_depth_write(&lane, at);
    cs_gpu_counters_end();
    CHECK_IS(trace_file_count("\"ph\":\"C\"", ""), 0);
}

/* --- the most at once --- */

TEST(each_stretch_has_the_most_that_ran_at_once_in_it)
{
    begin();
    load(0, 0, 1, 1);
    load(0, 10, 1, 3);
    load(0, 20, 1, 2);
    load(0, SHARE - 1, 1, 1);
    CHECK_STEPS(0, "kernels", "at once", ); /* it is not over */
    load(0, SHARE, 1, 2);
    CHECK_STEPS(0, "kernels", "at once", {0, 3});
    load(0, SHARE + 10, 1, 1);
    load(0, 2 * SHARE + 10, 1, 0);
    cs_gpu_counters_end();
    CHECK_STEPS(0, "kernels", "at once", {0, 3}, {SHARE, 2}, {2 * SHARE, 1}, {3 * SHARE, 0});
}

TEST(what_was_there_before_a_stretch_counts_in_it)
{
    begin();
    load(0, SHARE / 2, 1, 4);
    load(0, SHARE + 1, 1, 1);
    load(0, 5 * SHARE + 1, 1, 2);
    cs_gpu_counters_end();
    CHECK_STEPS(0, "kernels", "at once", {0, 4}, {2 * SHARE, 1}, {5 * SHARE, 2});
}

TEST(in_a_row_of_equal_stretches_the_first_alone_is_written)
{
    begin();
    for (cs_u64 i = 0; i < 8; i++) load(0, i * SHARE + 5, 1, 2), load(0, i * SHARE + 6, 1, 1);
    load(0, 8 * SHARE, 0, 0);
    cs_gpu_counters_end();
    CHECK_STEPS(0, "kernels", "at once", {0, 2}, {8 * SHARE, 1}, {9 * SHARE, 0});
}

TEST(what_comes_late_counts_from_then_on)
{
    begin();
    load(0, 10, 1, 1);
    load(0, SHARE + 10, 0, 0);
    load(0, 20, 1, 1);
    load(0, SHARE + 50010, 0, 0);
    cs_gpu_counters_end();
    CHECK_STEPS(0, "busy", "%", {0, 100}, {SHARE, 25}, {2 * SHARE, 0});
    CHECK_STEPS(0, "kernels", "at once", {0, 1}, {2 * SHARE, 0});
}

TEST(each_way_of_copies_has_a_counter)
{
    begin();
    cs_gpu_load_write(3, at, &(struct cs_load){.works = 4, .bytes = {1, 20, 300, 4000, 50000}});
    cs_gpu_load_write(
        3, at + SHARE, &(struct cs_load){.works = 4, .bytes = {0, 21, 301, 4001, 50001}});
    cs_gpu_counters_end();
    CHECK_STEPS(3, "bytes in flight", "HtoD", {0, 20}, {SHARE, 21});
    CHECK_STEPS(3, "bytes in flight", "DtoH", {0, 300}, {SHARE, 301});
    CHECK_STEPS(3, "bytes in flight", "DtoD", {0, 4000}, {SHARE, 4001});
    CHECK_STEPS(3, "bytes in flight", "PtoP", {0, 50000}, {SHARE, 50001});
    CHECK_IS(trace_file_count("\"bytes in flight\"", ""), 8);
}

TEST(bytes_in_flight_end_with_the_last_copy_beside_kernels)
{
    begin();
    cs_gpu_load_write(3, at, &(struct cs_load){.works = 2, .kernels = 1, .bytes = {0, 20}});
    cs_gpu_load_write(3, at + SHARE, &(struct cs_load){.works = 1, .kernels = 1});
    cs_gpu_load_write(3, at + 2 * SHARE, &(struct cs_load){0});
    cs_gpu_counters_end();
    CHECK_STEPS(
        3, "bytes in flight", "HtoD", {0, 20}, {2 * SHARE, 0}); /* the most of each stretch */
}

/* --- depths of streams --- */

TEST(a_depth_is_written_as_a_step_of_its_gpu)
{
    begin();
    struct cs_match_lane lane = {.used = true, .number = 1, .serial = 1, .device = 2, .tid = 13};
    static const struct step steps[] = {
        {0, 1}, {10, 2}, {5, 3}, {STEP, 4}, {3 * STEP, 0}, {3 * STEP + 1, 7}, {3 * STEP + 2, 6}};
    for (size_t i = 0; i < CS_COUNT(steps); i++) {
        lane.depth = (cs_u32)steps[i].value;
        cs_gpu_depth_write(&lane, at + steps[i].after);
    }
    /* One that comes late counts from the last on. What follows none at all is told at once. */
    CHECK_STEPS(
        2, "stream 13 depth", "n", {0, 1}, {10, 3}, {STEP, 4}, {3 * STEP, 0}, {3 * STEP + 1, 7});
}

TEST(a_stream_that_ends_has_its_last_depth_in_the_file)
{
    begin();
    static struct cs_stream stream = {.lane = 13, .device = 2}, other = {.lane = 14};
    cs_store(&stream.object.ref, 1u << CS_REF_INDEX_BITS);
    struct cs_match_lane *lane = cs_match_lane_of(&stream);
    REQUIRE(lane);
    for (cs_u32 i = 1; i <= 2; i++) lane->depth = i, cs_gpu_depth_write(lane, at + i);
    CHECK_STEPS(2, "stream 13 depth", "n", {1, 1});
    cs_store(&other.object.ref, 1u << CS_REF_INDEX_BITS | 1);
    cs_gpu_trace_stream_ends(&other); /* that has no lane */
    cs_gpu_trace_stream_ends(&stream);
    CHECK_STEPS(2, "stream 13 depth", "n", {1, 1}, {2, 2});
}
