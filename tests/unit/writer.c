/* The writer thread's own (trace/writer.c): objects that have ended, and what a forked child
 * forgets. */
#include "shim/trace/writer.c"

#include "shim/match/state.h"
#include "shim/object/event.h"
#include "shim/trace/lanes.h"
#include "tests/unit/trace_file.h"

static void begin_recording(void)
{
    REQUIRE(cs_contexts_init() && cs_streams_init() && cs_events_init());
    trace_file_begin();
    cs_store(&had, true);
}

static struct cs_stream *new_stream(cs_u32 lane)
{
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    stream->lane = lane;
    stream->created = cs_ticks();
    cs_store(&stream->filled, true);
    cs_lane_stream(stream);
    return stream;
}

/* As the destroy call leaves it. */
static void end_stream(struct cs_stream *stream)
{
    cs_store(&stream->ended, cs_ticks());
    cs_pool_end(&cs_streams, &stream->object);
}

static int ends_shown(void) { return trace_file_count("\"cs_stream\"", " ends\""); }

/* --- streams that have ended --- */

TEST(streams_that_end_together_end_in_the_file_once_their_work_is_there)
{
    enum { STREAMS = 6 };
    struct cs_stream *streams[STREAMS];
    begin_recording();
    for (cs_u32 i = 0; i < STREAMS; i++) {
        streams[i] = new_stream(13 + i);
        if (i % 2) cs_match_lane_of(streams[i])->first = 1; /* some work of it is out */
    }
    for (int i = 0; i < STREAMS; i++) end_stream(streams[i]);
    round_once();
    CHECK_IS(ends_shown(), 0); /* a ring may hold a record from before */
    round_once();
    CHECK_IS(ends_shown(), STREAMS / 2);
    round_once();
    CHECK_IS(ends_shown(), STREAMS / 2);
    for (int i = 0; i < STREAMS; i += 2) CHECK(!cs_load(&streams[i]->object.ref));
    for (int i = 1; i < STREAMS; i += 2) {
        CHECK(cs_load(&streams[i]->object.ref));
        cs_match_lane_of(streams[i])->first = 0; /* it has come */
    }
    round_once();
    CHECK_IS(ends_shown(), STREAMS);
    for (int i = 0; i < STREAMS; i++) CHECK(!cs_load(&streams[i]->object.ref));
    CHECK(!lingering_streams && !ended_streams);
}

TEST(without_a_file_streams_go_at_once)
{
    begin_recording();
    struct cs_stream *stream = new_stream(13);
    cs_match_lane_of(stream)->first = 1;
    cs_store(&had, false);
    end_stream(stream);
    CHECK_IS(round_once(), 0);
    CHECK(cs_load(&stream->object.ref));
    CHECK_IS(round_once(), 0);
    CHECK(!cs_load(&stream->object.ref));
    CHECK_IS(ends_shown(), 0);
}

TEST(events_and_contexts_stay_for_a_round)
{
    begin_recording();
    struct cs_event *events[3];
    for (int i = 0; i < 3; i++) REQUIRE((events[i] = cs_pool_new(&cs_events)));
    for (int i = 0; i < 3; i++) cs_pool_end(&cs_events, &events[i]->object);
    struct cs_object *context = cs_pool_new(&cs_contexts);
    REQUIRE(context);
    cs_pool_end(&cs_contexts, context);
    round_once();
    for (int i = 0; i < 3; i++) CHECK(cs_load(&events[i]->object.ref));
    CHECK(
        cs_load(&context->ref) && !cs_load(&cs_events.released) && !cs_load(&cs_contexts.released));
    round_once();
    for (int i = 0; i < 3; i++) CHECK(!cs_load(&events[i]->object.ref));
    CHECK(
        !cs_load(&context->ref) && cs_load(&cs_events.released) && cs_load(&cs_contexts.released));
}

/* --- a forked child --- */

TEST(a_forked_child_has_no_writer_and_no_file)
{
    static const struct {
        int before, after;
    } rows[] = {{CS_WORKER_IDLE, CS_WORKER_IDLE}, {CS_WORKER_STARTING, CS_WORKER_IDLE},
        {CS_WORKER_RUNNING, CS_WORKER_IDLE}, {CS_WORKER_FLUSHING, CS_WORKER_IDLE},
        {CS_WORKER_FINISHING, CS_WORKER_IDLE}, {CS_WORKER_FINISHED, CS_WORKER_FINISHED},
        {CS_WORKER_FAILED, CS_WORKER_FAILED}};
    begin_recording();
    struct cs_stream *stream = new_stream(13);
    const cs_ref ref = cs_load(&stream->object.ref);
    const struct cs_record launch = {.call = CS_CALL_cuLaunchKernel, .stream = ref};
    cs_u64 work[CS_WORK_KINDS], bytes;
    cs_stream_life_works(stream, &launch);
    cs_stream_life_history(ref, work, &bytes);
    CHECK_IS(work[CS_WORK_LAUNCHES], 1);
    for (size_t i = 0; i < CS_COUNT(rows); i++) {
        cs_store(&wanted, true);
        cs_store(&had, true);
        ended_streams = ended_events = ended_contexts = lingering_streams = 1;
        cs_store(&writer.state, rows[i].before);
        cs_windows_tell(CS_WINDOW_CLOSED, cs_ticks(), "a test");
        cs_writer_after_fork_in_child();
        CHECK_IS(cs_load(&writer.state), rows[i].after);
        CHECK(!cs_load(&wanted) && !cs_load(&had) && !ended_streams && !ended_events &&
              !ended_contexts && !lingering_streams);
        CHECK(!cs_windows_closed());
        CHECK_TEXT(cs_output_path(), "");
    }
    cs_stream_life_history(ref, work, &bytes);
    CHECK_IS(work[CS_WORK_LAUNCHES], 0);
    CHECK(cs_writer_failed() && !cs_writer_alive() && !cs_writer_at_work());
}

TEST(what_others_ask_of_the_writer)
{
    for (int state = CS_WORKER_IDLE; state <= CS_WORKER_FAILED; state++) {
        cs_store(&writer.state, state);
        CHECK(cs_writer_alive() == (state >= CS_WORKER_STARTING && state <= CS_WORKER_FLUSHING));
        CHECK(cs_writer_at_work() == (state == CS_WORKER_RUNNING || state == CS_WORKER_FLUSHING));
        CHECK(cs_writer_failed() == (state == CS_WORKER_FAILED));
    }
    cs_store(&writer.state, CS_WORKER_RUNNING);
    CHECK(cs_writer_start(true, true) && !cs_load(&wanted) && !needed); /* it is there */
}

/* --- parts --- */

static char *text_now(const char *name)
{
    static char text[1 << 21];
    FILE *file = fopen(name, "r");
    REQUIRE(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static bool is_whole(const char *text)
{
    const char *end = text + strlen(text);
    while (end > text && (end[-1] == ' ' || end[-1] == '\n')) end--;
    return end > text && end[-1] == '}' && !strncmp(text, "{\"schemaVersion\":2,", 19);
}

/* No moment has half a file, whoever kills the process. */
TEST(a_part_that_has_just_begun_is_whole)
{
    setenv("CUSTREAM_TRACE_MAX", "1M,rotate:3", 1);
    begin_recording();
    cs_rotate_if_due();
    CHECK_IS(cs_output_part(), 1);
    cs_totals.sum.recorded = 7;
    for (int i = 0; i < 103; i++) {
        char *at = cs_output_room();
        memset(at, ' ', 10000);
        cs_output_commit(at + 10000);
    }
    cs_rotate_if_due();
    CHECK_IS(cs_output_part(), 2);
    CHECK(is_whole(text_now("t.json")) && strstr(text_now("t.json"), "\"part\":2,") &&
          strstr(text_now("t.json"), "\"complete\":false"));
    CHECK(is_whole(text_now("t.1.json")) && strstr(text_now("t.1.json"), "\"part\":1,"));
    CHECK(strstr(text_now("t.1.json"), "\"continues\":true") &&
          strstr(text_now("t.1.json"), "\"complete\":true") &&
          strstr(text_now("t.1.json"), "\"recorded\":7,"));
    CHECK(strstr(text_now("t.json"), "\"recorded\":0,") &&
          strstr(text_now("t.json"), "\"recorded_in_all_parts\":7,"));
    CHECK(!cs_totals.part_ends);
}

/* All that a GPU did may come in one round: parts end in between. */
TEST(a_part_ends_between_two_pieces_of_work)
{
    setenv("CUSTREAM_TRACE_MAX", "1M,rotate:3", 1);
    begin_recording();
    struct cs_match_lane *lane = cs_match_lane_of(new_stream(13));
    const struct cs_gpu_work work = {.kind = CS_GPU_RANGE};
    const cs_u64 now = cs_clock_ns(cs_ticks());
    for (cs_u64 i = 0; cs_output_part() < 3 && i < 100000; i++) {
        struct cs_match_found found = {
            .work = &work, .lane = lane, .start_ns = now + 10 * i, .end_ns = now + 10 * i + 5};
        CHECK(cs_match.sink->work(&found));
    }
    CHECK_IS(cs_output_part(), 3);
}
