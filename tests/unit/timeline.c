/* Records made into a timeline (trace/timeline.h): calls of the runtime, arrows, lives of streams,
 * at the edges of gaps, parts and the file. */
#include "shim/match/state.h"
#include "shim/trace/annotation.h"
#include "shim/trace/arrow.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/trace/runtime.h"
#include "shim/trace/stream_life.h"
#include "tests/unit/trace_file.h"

static struct cs_thread *thread;
static cs_u64 start, place; /* ticks; in the thread's ring */

static void begin(void)
{
    REQUIRE(cs_contexts_init() && cs_streams_init());
    trace_file_begin();
    thread = cs_thread_start();
    REQUIRE(thread);
    start = cs_ticks();
}

static cs_u64 at(cs_u64 n) { return start + n * 10000; }
static long long ns_at(cs_u64 n) { return (long long)cs_clock_ns(at(n)); }

static void record(struct cs_record r)
{
    cs_runtime_before(thread, place++);
    cs_timeline_record(thread, &r);
}
static void driver_call(cs_u64 from, cs_u64 to)
{
    record((struct cs_record){.begin = at(from), .end = at(to), .call = CS_CALL_cuStreamQuery});
}
static void gap(cs_u64 from, cs_u64 to)
{
    record(
        (struct cs_record){.begin = at(from), .end = at(to), .call = CS_CALL_LOSS, .value = {2}});
}

/* That has made the calls since one place of the ring. */
static void runtime_call(cs_u64 from, cs_u64 to, cs_u64 first)
{
    record((struct cs_record){
        .begin = at(from), .end = at(to), .call = CS_RUNTIME_cudaStreamQuery, .value = {first}});
}

/* --- calls of the runtime --- */

TEST(a_gap_that_began_before_a_call_of_the_runtime_stays_outside_of_it)
{
    begin();
    driver_call(0, 1);
    const cs_u64 first = place;
    gap(10, 40); /* from an earlier call to one that this one made */
    driver_call(50, 60);
    runtime_call(20, 70, first);
    const char *lost = trace_file_event("\"cs_loss\"", "\"dur\""),
               *outer = trace_file_event("\"cuda_runtime\"", "");
    CHECK_IS(ns_of(lost, "ts"), ns_at(10));
    CHECK_IS(end_of(lost), ns_at(40));
    CHECK_IS(ns_of(outer, "ts"), ns_at(40));
    CHECK_IS(end_of(outer), ns_at(70));
}

TEST(a_gap_in_a_call_of_the_runtime_is_in_it)
{
    begin();
    const cs_u64 first = place;
    gap(30, 40);
    runtime_call(20, 70, first);
    CHECK_IS(ns_of(trace_file_event("\"cuda_runtime\"", ""), "ts"), ns_at(20));
}

TEST(a_call_of_the_runtime_ends_with_the_last_that_it_made)
{
    begin();
    const cs_u64 first = place;
    driver_call(30, 50);
    driver_call(50, 50); /* the clock says the same: the slice is moved, and lasts a nanosecond */
    runtime_call(20, 50, first);
    const char *inner[2], *outer = trace_file_event("\"cuda_runtime\"", "");
    REQUIRE(trace_file_events("\"cuda_driver\"", "", inner, 2) == 2);
    CHECK_IS(ns_of(outer, "ts"), ns_at(20));
    CHECK_IS(end_of(inner[1]), ns_at(50) + 1);
    CHECK_IS(end_of(outer), ns_at(50) + 1);
}

TEST(the_gap_at_the_end_of_a_full_file_is_that_of_the_calls_left_out)
{
    setenv("CUSTREAM_TRACE_MAX", "1M", 1);
    begin();
    cs_u64 made = 0;
    captured_begin();
    while (!cs_output_full() && made < 100000)
        runtime_call(10 * made, 10 * made + 5, place), made++;
    CHECK_IS(lines_in(captured_end()), 1);
    REQUIRE(cs_output_full());
    const cs_u64 shown = (cs_u64)trace_file_count("\"cuda_runtime\"", "");
    const char *lost = trace_file_event("\"cs_loss\"", "\"dur\"");
    CHECK(shown && shown < made);
    CHECK_IS(number_of(lost, "count"), made - shown);
    CHECK_IS(ns_of(lost, "ts"), ns_at(10 * shown));
    CHECK_IS(end_of(lost), ns_at(10 * made - 5));
}

static cs_u64 left_out(void)
{
    static char text[65536];
    *cs_totals_teller.trailer(text, sizeof text, 0) = 0;
    const char *lost = strstr(text, "\"cs_loss\"");
    return lost ? (cs_u64)number_of(lost, "count") : 0;
}

static void fill(void)
{
    setenv("CUSTREAM_TRACE_MAX", "1M", 1);
    begin();
    captured_begin();
    for (cs_u64 made = 0; !cs_output_full() && made < 100000; made++)
        driver_call(10 * made, 10 * made + 5);
    captured_end();
    REQUIRE(cs_output_full());
}

/* A range of a thread is one event, told of by its pop; one of the process is one, told of by its
 * start. */
TEST(each_range_and_mark_that_a_full_file_lacks_counts_once)
{
    static const struct {
        cs_u16 call;
        cs_u64 adds;
    } rows[] = {{CS_CALL_RANGE_PUSH, 0}, {CS_CALL_RANGE_POP, 1}, {CS_CALL_MARK, 1},
        {CS_CALL_RANGE_START, 1}, {CS_CALL_RANGE_END, 0}, {CS_CALL_cuStreamQuery, 1}};
    fill();
    for (size_t i = 0; i < CS_COUNT(rows); i++) {
        const cs_u64 before = left_out();
        record((struct cs_record){
            .begin = at(2000000 + i), .end = at(2000001 + i), .call = rows[i].call});
        CHECK_IS(left_out() - before, rows[i].adds);
    }
}

/* --- parts --- */

static void next_part(void)
{
    cs_timeline_part_end();
    cs_timeline_begin(CS_BEGIN_PART);
}

static void push(cs_u64 when, cs_u32 id)
{
    struct cs_record r = {.begin = at(when), .end = at(when), .call = CS_CALL_RANGE_PUSH};
    cs_annotation_pack(r.value, &(struct cs_annotation){0},
        (struct cs_annotation_record){.id = id, .place = (cs_u16)(id - 1)});
    record(r);
}

TEST(an_arrow_from_the_first_call_of_a_part_leaves_its_slice)
{
    begin();
    push(0, 1);
    push(1, 2);
    driver_call(10, 20);
    next_part();
    record((struct cs_record){.begin = at(20),
        .end = at(30),
        .call = CS_CALL_cuEventRecord}); /* it gives way to the ranges that go on */
    record((struct cs_record){.begin = at(40),
        .end = at(50),
        .call = CS_CALL_cuEventSynchronize,
        .value = {0, at(20), thread->tid}});
    const char *from = trace_file_event("\"cs_dep\"", "\"ph\":\"s\""),
               *slice = trace_file_event("\"cuEventRecord\"", "");
    CHECK_IS(ns_of(slice, "ts"), ns_at(20) + 2);
    CHECK_IS(ns_of(from, "ts"), ns_of(slice, "ts"));
    CHECK_IS(cs_totals.arrows_between_parts, 0);
}

TEST(a_range_that_goes_on_begins_in_the_next_part_where_the_last_one_ended)
{
    begin();
    push(0, 1);
    driver_call(10, 20);
    next_part();
    driver_call(30, 40);
    next_part();
    const char *pieces[2];
    REQUIRE(trace_file_events("\"user_annotation\"", "", pieces, 2) == 2);
    CHECK_IS(end_of(pieces[0]), ns_at(20));
    CHECK_IS(ns_of(pieces[1], "ts"), ns_at(20));
    CHECK_IS(end_of(pieces[1]), ns_at(40));
}

static struct cs_stream *new_stream(cs_u32 lane)
{
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    stream->lane = lane;
    stream->created = at(0);
    cs_store(&stream->filled, true);
    return stream;
}

TEST(a_life_that_ended_before_the_part_ends_there)
{
    begin();
    struct cs_stream *ended = new_stream(13), *alive = new_stream(14);
    cs_lane_stream(ended);
    cs_lane_stream(alive);
    driver_call(40, 50);
    cs_store(&ended->ended, at(30));
    next_part();
    const char *end = trace_file_event("\"cs_stream\"", "\"stream 13 ends\""),
               *cut = trace_file_event("\"cs_stream\"", "\"stream 14 goes on\"");
    CHECK_IS(ns_of(end, "ts"), ns_at(30));
    CHECK(strstr(end, "\"cs.stream\":13,"));
    CHECK(strstr(end, "\"destroyed\":true"));
    CHECK_IS(ns_of(cut, "ts"), ns_at(50));
    CHECK(strstr(cut, "\"cs.stream\":14,"));
    CHECK(strstr(cut, "\"continues\":true"));
    CHECK_IS(
        trace_file_count("\"stream 13 goes on\"", "") + trace_file_count("\"stream 14 ends\"", ""),
        0);
}

/* A part reaches as far as the calls that are in it, those of the runtime too. */
TEST(a_life_is_cut_behind_the_last_call_of_the_runtime)
{
    begin();
    cs_lane_stream(new_stream(13));
    const cs_u64 first = place;
    driver_call(30, 40);
    runtime_call(20, 70, first);
    next_part();
    CHECK_IS(ns_of(trace_file_event("\"stream 13 goes on\"", ""), "ts"), ns_at(70));
}

/* --- captures --- */

TEST(a_capture_of_a_stream_that_there_was_no_room_for)
{
    begin();
    record(
        (struct cs_record){.begin = at(0), .end = at(10), .call = CS_CALL_cuStreamBeginCapture_v2});
    driver_call(20, 30);
    CHECK_IS(trace_file_count("\"cuda_driver\"", ""), 2);
}

/* Of an end that names no graph too. */
TEST(a_capture_is_a_slice_beside_its_stream)
{
    static const cs_u16 ends[] = {CS_CALL_cuStreamEndCapture, CS_CALL_cuStreamEndCaptureToCig};
    begin();
    for (cs_u64 i = 0; i < CS_COUNT(ends); i++) {
        struct cs_stream *stream = new_stream(13 + (cs_u32)i);
        const cs_u64 from = 100 * i;
        record((struct cs_record){.begin = at(from),
            .end = at(from + 10),
            .call = CS_CALL_cuStreamBeginCapture_v2,
            .stream = cs_load(&stream->object.ref)});
        record((struct cs_record){.begin = at(from + 20),
            .end = at(from + 30),
            .call = ends[i],
            .stream = cs_load(&stream->object.ref),
            .value = {at(from + 10)}});
        CHECK_IS(trace_file_count("\"cs_stream\"", "\"name\":\"capture\""), i + 1);
        CHECK(cs_captures(stream, at(from + 15)) && !cs_captures(stream, at(from + 20)));
    }
}

TEST(a_stream_is_in_a_capture_from_the_begin_of_its_wait_on)
{
    begin();
    struct cs_stream *origin = new_stream(13), *joined = new_stream(14);
    const cs_ref on[] = {cs_load(&origin->object.ref), cs_load(&joined->object.ref)};
    record((struct cs_record){
        .begin = at(0), .end = at(10), .call = CS_CALL_cuStreamBeginCapture_v2, .stream = on[0]});
    record((struct cs_record){
        .begin = at(20), .end = at(30), .call = CS_CALL_cuEventRecord, .stream = on[0]});
    struct cs_record wait = {
        .begin = at(40), .end = at(50), .call = CS_CALL_cuStreamWaitEvent, .stream = on[1]};
    for (int i = 0; i + 1 < CS_VALUES; i++)
        if (cs_call_info[wait.call].shown[i].format == CS_FORMAT_CAUSE)
            wait.value[i] = at(20), wait.value[i + 1] = (cs_u64)on[0] << 32 | thread->tid;
    record(wait);
    CHECK(!cs_captures(joined, at(39)));
    CHECK(cs_captures(joined, at(45))); /* another thread's call, while the wait was made */
    CHECK(cs_captures(joined, at(60)));
}

/* What is called on the stream by another thread, while the wait is made, comes after it too. */
TEST(a_stream_waits_from_the_begin_of_the_call_on)
{
    begin();
    struct cs_stream *recorded = new_stream(13), *waits = new_stream(14);
    struct cs_match_lane *from = cs_match_lane_of(recorded), *lane = cs_match_lane_of(waits);
    from->last = ++cs_match.ops.newest;
    *cs_op_place(from->last) = (struct cs_op){.id = from->last, .begin = at(10), .end = at(11)};
    struct cs_record wait = {.begin = at(40),
        .end = at(50),
        .call = CS_CALL_cuStreamWaitEvent,
        .stream = cs_load(&waits->object.ref)};
    for (int i = 0; i + 1 < CS_VALUES; i++)
        if (cs_call_info[wait.call].shown[i].format == CS_FORMAT_CAUSE)
            wait.value[i] = at(20),
            wait.value[i + 1] = (cs_u64)cs_load(&recorded->object.ref) << 32 | thread->tid;
    record(wait);
    CHECK(lane->event_wait == 1 && cs_match.event_wait_count == 1);
    const struct cs_event_wait *kept = &cs_match.table.event_waits[0];
    CHECK(kept->ticks == at(40) && kept->op == from->last && kept->stream == from->tid);
    wait.result = CUDA_ERROR_INVALID_VALUE; /* no wait */
    record(wait);
    CHECK(lane->event_wait == 1 && cs_match.event_wait_count == 1);
    const char *row = trace_file_event("\"cuda_sync\"", "");
    CHECK(strstr(row, "\"Stream Wait Event\"") &&
          strstr(row, "\"args\":{\"device\":0,\"cs.stream\":14,\"recorded on\":13}"));
    CHECK_IS(ns_of(row, "ts"), ns_at(40));
    CHECK_IS(end_of(row), ns_at(50));
}

/* --- ends of streams --- */

TEST(the_lane_of_a_stream_that_has_ended_is_free)
{
    begin();
    struct cs_stream *stream = new_stream(13);
    const cs_u32 number = cs_match_lane_of(stream)->number;
    cs_lane_stream(stream);
    cs_store(&stream->ended, at(10));
    cs_timeline_stream_end(stream, at(10));
    CHECK(!cs_match_lane_made(stream) && !cs_match_lane_get(number));
    CHECK_IS(trace_file_count("\"stream 13 ends\"", ""), 1);
    CHECK_IS(cs_match_lane_of(new_stream(14))->number, number);
}

TEST(a_life_ends_behind_its_last_work)
{
    begin();
    struct cs_stream *stream = new_stream(13);
    struct cs_match_lane *lane = cs_match_lane_of(stream);
    cs_lane_stream(stream);
    lane->work.filled[0] = (cs_u64)ns_at(30);
    cs_store(&stream->ended, at(10));
    cs_timeline_stream_end(stream, at(10));
    CHECK_IS(ns_of(trace_file_event("\"stream 13 ends\"", ""), "ts"), ns_at(30));
}

/* --- a new process --- */

/* --- marks --- */

static void process_range(cs_u16 call, cs_u64 when, cs_u32 id)
{
    struct cs_record r = {.begin = at(when), .end = at(when + 1), .call = call};
    cs_annotation_pack(
        r.value, &(struct cs_annotation){0}, (struct cs_annotation_record){.id = id});
    record(r);
}

/* Each part has both ends of it; one whose end was read first waits for its begin. */
TEST(a_range_of_the_process_goes_on_in_the_next_part)
{
    begin();
    const char *ends[4];
    process_range(CS_CALL_RANGE_START, 10, 5);
    process_range(CS_CALL_RANGE_END, 20, 6);
    driver_call(30, 40);
    next_part();
    REQUIRE(trace_file_events("\"ph\":\"b\"", "", ends, 4) == 2 &&
            trace_file_events("\"ph\":\"e\"", "", ends, 4) == 1);
    CHECK(strstr(ends[0], "\"cs.cut\":\"goes_on\"") && strstr(ends[0], "\"local\":5}") &&
          ns_of(ends[0], "ts") == ns_at(40));
    process_range(CS_CALL_RANGE_START, 15, 6); /* another thread's ring */
    process_range(CS_CALL_RANGE_END, 50, 5);
    REQUIRE(trace_file_events("\"ph\":\"b\"", "", ends, 4) == 3 &&
            trace_file_events("\"ph\":\"e\"", "", ends, 4) == 3);
    CHECK(strstr(ends[1], "\"local\":6}") && strstr(ends[2], "\"local\":5}") &&
          ns_of(ends[2], "ts") == ns_at(51));
    next_part();
    cs_annotations_end();
    CHECK(trace_file_count("\"ph\":\"b\"", "") == 3 && trace_file_count("\"ph\":\"e\"", "") == 3);
}

/* What is open at the end ends there. */
TEST(a_range_of_the_process_that_nobody_ended)
{
    begin();
    process_range(CS_CALL_RANGE_START, 0, 5);
    process_range(CS_CALL_RANGE_END, 20, 6);
    usleep(1000);
    cs_annotations_end();
    cs_annotations_end();
    const char *end = trace_file_event("\"ph\":\"e\"", "\"cs.cut\":\"process_ended\"");
    CHECK(strstr(end, "\"local\":5}") && ns_of(end, "ts") > ns_at(0));
    CHECK_IS(cs_totals.sum.recorded, 1);
}

/* Where it began among the calls that are there is not known, so it stands beside them. */
TEST(a_range_whose_push_was_lost_stands_beside_the_calls)
{
    begin();
    struct cs_record r = {.begin = at(10), .end = at(20), .call = CS_CALL_RANGE_POP};
    cs_annotation_pack(r.value, &(struct cs_annotation){0}, (struct cs_annotation_record){.id = 1});
    record(r);
    const char *first = trace_file_event("\"ph\":\"b\"", "\"cs.cut\":\"begin_lost\""),
               *last = trace_file_event("\"ph\":\"e\"", "");
    CHECK(ns_of(first, "ts") == ns_at(10) && ns_of(last, "ts") == ns_at(20));
    push(30, 2);
    r.begin = at(32), r.end = at(40);
    record(r); /* another one's */
    CHECK_IS(trace_file_count("\"cs.cut\":\"begin_lost\"", ""), 2);
    CHECK_IS(cs_totals.sum.recorded, 3);
}

/* The viewer shows a mark on the slice that is there: it takes a nanosecond of the thread's row,
 * and what comes in it begins later. */
TEST(marks_stand_behind_the_slice_before_them)
{
    begin();
    const char *marks[3];
    driver_call(10, 20);
    for (int i = 0; i < 2; i++)
        record((struct cs_record){.begin = at(15), .end = at(15), .call = CS_CALL_MARK});
    record((struct cs_record){.begin = at(30), .end = at(30), .call = CS_CALL_MARK});
    driver_call(25, 40);
    REQUIRE(trace_file_events("\"ph\":\"i\",\"s\":\"t\",\"cat\":\"user_annotation\"", "(no text)",
                marks, 3) == 3);
    CHECK_IS(ns_of(marks[0], "ts"), ns_at(20));
    CHECK_IS(ns_of(marks[1], "ts"), ns_at(20) + 1);
    CHECK_IS(ns_of(marks[2], "ts"), ns_at(30));
    const char *calls[2];
    REQUIRE(trace_file_events("\"cuStreamQuery\"", "", calls, 2) == 2);
    CHECK_IS(ns_of(calls[1], "ts"), ns_at(30) + 1);
}

TEST(a_forked_child_knows_nothing_of_any_thread)
{
    begin();
    struct cs_thread last = {.index = CS_THREADS};
    cs_thread_row(thread)->last_end_ns = cs_thread_row(&last)->last_end_ns = UINT64_MAX;
    cs_timeline_begin(CS_BEGIN_FILE);
    CHECK_IS(cs_thread_row(thread)->last_end_ns, 0);
    CHECK_IS(cs_thread_row(&last)->last_end_ns, 0);
}

TEST(a_forked_childs_file_has_room_where_its_parents_had_none)
{
    fill();
    cs_output_forget();
    trace_file_begin();
    CHECK(!cs_output_full());
    const cs_u64 from = 3000000;
    driver_call(from, from + 1);
    CHECK_IS(ns_of(trace_file_event("\"cuStreamQuery\"", "\"dur\""), "ts"), ns_at(from));
}

/* --- the trailer --- */

TEST(the_gap_at_the_end_reaches_from_the_first_thing_left_out_to_the_last)
{
    static char text[65536];
    begin();
    cs_totals_cut(2, 3000, 4000);
    cs_totals_cut_work(1, 1000, 2000);
    cs_totals_cut(1, 5000, 6000);
    *cs_totals_teller.trailer(text, sizeof text, 0) = 0;
    const char *lost = strstr(text, "\"cs_loss\"");
    REQUIRE(lost);
    CHECK_IS(ns_of(lost, "ts"), 1000);
    CHECK_IS(ns_of(lost, "dur"), 5000);
    CHECK_IS(number_of(lost, "count"), 3);
    CHECK_IS(number_of(lost, "gpu_work"), 1);
}

TEST(what_there_was_no_memory_for_is_listed)
{
    static char text[65536];
    begin();
    captured_begin();
    cs_refused("one thing");
    cs_refused("another");
    captured_end();
    *cs_totals_teller.trailer(text, sizeof text, CS_TRAILER_LAST) = 0;
    CHECK(strstr(text, "\"complete\":false,\"no_memory_for\":[\"one thing\",\"another\"],"));
}
