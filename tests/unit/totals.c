/* The frame of the file and the sums in it (trace/totals.h): over parts, at a full file, and for
 * those who ask meanwhile. */
#include "shim/base/verdict.h"
#include "shim/object/context.h"
#include "shim/object/event.h"
#include "shim/object/stream.h"
#include "tests/unit/trace_file.h"

static void begin(const char *most)
{
    if (most) setenv("CUSTREAM_TRACE_MAX", most, 1);
    REQUIRE(cs_contexts_init() && cs_streams_init() && cs_events_init());
    trace_file_begin();
    cs_totals_reset();
}

static const char *trailer(unsigned how)
{
    static char text[65536];
    *cs_totals_teller.trailer(text, sizeof text, how) = 0;
    return text;
}

static void check_holds(const char *text, const char *piece)
{
    if (!strstr(text, piece)) CHECK_TEXT(text, piece);
}

/* As many of each as nothing else has. */
static void gathered(cs_u64 n)
{
    cs_totals.sum.recorded += 10 * n, cs_totals.sum.calls += 8 * n, cs_totals.sum.lost += 3 * n;
    cs_totals.sum.gpu.count[CS_GPU_KERNEL] += 100 * n,
        cs_totals.sum.gpu.count[CS_GPU_RANGE] += 1000 * n,
        cs_totals.sum.gpu.count[CS_GPU_OVERHEAD] += 50000 * n;
    cs_totals.sum.gpu.lost += 4 * n, cs_totals.sum.gpu.missed += 5 * n,
        cs_totals.sum.gpu.no_times += 6 * n;
    cs_totals_gathered(1000 * n, 1000 * n + 500);
}

static struct cs_verdict verdict(void)
{
    static char room[256];
    struct cs_verdict v;
    cs_totals_verdict(&v, room, sizeof room);
    return v;
}

TEST(sums_of_all_parts)
{
    begin("1M,rotate:3");
    gathered(1);
    cs_totals_part_begin();
    CHECK_IS(cs_totals_before(), 10);
    CHECK(!cs_totals.sum.recorded && !cs_totals.sum.calls && !cs_totals.sum.lost &&
          !cs_totals.sum.gpu.lost && cs_totals.begin_ns == UINT64_MAX);
    gathered(2);
    cs_totals_part_begin();
    CHECK_IS(cs_totals_before(), 20);
    gathered(3);
    const char *text = trailer(0);
    check_holds(
        text, "\"totals\":{\"recorded\":30,\"calls\":24,\"lost_records\":9,\"complete\":false,");
    check_holds(text, "\"parts_deleted\":0,\"recorded_in_deleted_parts\":0,\"recorded_in_all_"
                      "parts\":60,\"calls_in_all_parts\":48,\"lost_in_all_parts\":18,"
                      "\"gpu_work_in_all_parts\":6600,\"gpu_work_lost_in_all_parts\":24");
    const struct cs_verdict v = verdict();
    CHECK(v.calls == 48 && v.operations == 6600 && v.lost_calls == 18 && v.lost_work == 24 &&
          v.untimed == 66 && v.complete && !v.ended);
    cs_totals_teller.part_deleted(10);
    cs_totals_teller.part_deleted(20);
    check_holds(trailer(0),
        "\"parts_deleted\":2,\"recorded_in_deleted_parts\":30,\"recorded_in_all_parts\":60,");
}

TEST(a_part_that_is_undone_leaves_the_sums_as_they_were)
{
    begin("1M,rotate:3");
    gathered(1);
    cs_totals_part_begin();
    gathered(2);
    cs_totals_part_begin();
    cs_totals_part_undo();
    CHECK(cs_totals.sum.recorded == 20 && cs_totals.sum.gpu.count[CS_GPU_KERNEL] == 200);
    check_holds(trailer(0),
        "\"recorded_in_all_parts\":30,\"calls_in_all_parts\":24,\"lost_in_all_parts\":"
        "9,\"gpu_work_in_all_parts\":3300,\"gpu_work_lost_in_all_parts\":12");
    const struct cs_verdict v = verdict();
    CHECK(v.calls == 24 && v.operations == 3300 && v.lost_calls == 9 && v.lost_work == 12 &&
          v.untimed == 33);
    cs_totals_teller.unflushed(); /* all of it is in the file */
    check_holds(trailer(0), "\"recorded\":20,\"calls\":16,\"lost_records\":6,");
}

TEST(who_asks_is_told_what_is_in_the_file)
{
    begin("1M,rotate:3");
    gathered(1);
    CHECK_IS(cs_totals_told().recorded, 0);
    cs_totals_teller.flushed();
    struct cs_totals_told told = cs_totals_told();
    CHECK(told.recorded == 10 && told.lost == 3 && told.works == 1100);
    cs_totals_part_begin();
    gathered(2);
    told = cs_totals_told();
    CHECK(told.recorded == 10 && told.lost == 3 && told.works == 1100);
    cs_totals_teller.flushed();
    told = cs_totals_told();
    CHECK(told.recorded == 30 && told.lost == 9 && told.works == 3300);
    cs_totals_cut(7, 1, 2);
    cs_totals_teller.flushed();
    CHECK_IS(cs_totals_told().lost, 16);
}

/* It is in the gap at the end: what was gathered since the last flush, from its first to its last.
 */
TEST(what_could_not_be_written_is_cut)
{
    begin("1M,rotate:3");
    gathered(5);
    cs_totals_teller.flushed();
    CHECK(cs_totals.begin_ns == UINT64_MAX && !cs_totals.end_ns);
    gathered(7);
    gathered(6);
    cs_totals_teller.unflushed();
    const char *text = trailer(0);
    check_holds(text,
        "\"totals\":{\"recorded\":50,\"calls\":40,\"lost_records\":184,"); /* 15 in the file, and 13
                                                                              times 13 more */
    check_holds(text, "\"ts\":6,\"dur\":1.5,\"args\":{\"count\":169,\"gpu_work\":14352,");
    check_holds(text, "\"gpu_work_in_all_parts\":5500,\"gpu_work_lost_in_all_parts\":14372");
    CHECK_IS(verdict().lost_calls, 184);
    CHECK_IS(verdict().work_not_written, 14352);
    CHECK_IS(verdict().calls_not_written, 169);
    cs_totals_cut(0, 1, 9000); /* nothing makes the gap no longer */
    cs_totals_cut_work(0, 1, 9000);
    check_holds(trailer(0), "\"ts\":6,\"dur\":1.5,");
    cs_totals_reset();
    CHECK(!strstr(trailer(0), "cs_loss"));
}

TEST(a_file_is_complete_at_its_end_or_where_a_part_follows)
{
    begin("1M,rotate:3");
    check_holds(trailer(0), "\"complete\":false,");
    check_holds(trailer(CS_TRAILER_LAST), "\"complete\":true,");
    cs_totals.part_ends = true;
    check_holds(trailer(0), "\"complete\":true,");
    check_holds(trailer(0), "\"part\":1,\"continues\":true,");
    CHECK(!strstr(trailer(0), "left_out_by_rule") && !strstr(trailer(0), "neverDestroyed") &&
          !strstr(trailer(CS_TRAILER_LAST | CS_TRAILER_BRIEF), "neverDestroyed"));
    cs_totals.muted = 9, cs_totals.arrows_between_parts = 12;
    cs_store(&cs_streams.refused, 100);
    cs_store(&cs_events.refused, 20);
    cs_store(&cs_contexts.refused, 3);
    const char *text = trailer(0);
    check_holds(text, "\"left_out_by_rule\":9,\"complete\"");
    check_holds(text, "\"untracked_objects\":123,");
    CHECK_IS(verdict().no_room[CS_NO_ROOM_FOR_OBJECTS], 123);
    check_holds(text, ",\"arrows_between_parts\":12,");
}

TEST(what_a_full_table_lost_is_told_of_the_whole_process)
{
    begin("1M,rotate:3");
    CHECK(!strstr(trailer(0), "no_room"));
    cs_no_room(CS_NO_ROOM_FOR_WAITS, 2);
    cs_totals_part_begin();
    cs_no_room(CS_NO_ROOM_FOR_WAITS, 1);
    check_holds(trailer(0), ",\"no_room\":{\"waits\":3},");
    CHECK_IS(verdict().no_room[CS_NO_ROOM_FOR_WAITS], 3);
    cs_no_room_after_fork_in_child();
    CHECK(!strstr(trailer(0), "no_room"));
}

TEST(the_verdict_says_what_there_was_no_memory_for)
{
    char room[12];
    struct cs_verdict v;
    begin(NULL);
    CHECK(!verdict().no_memory_for && verdict().complete);
    captured_begin();
    cs_refused("one");
    cs_refused("two");
    captured_end();
    CHECK_TEXT(verdict().no_memory_for, "one, two");
    CHECK(!verdict().complete);
    cs_totals_verdict(&v, room, 6);
    CHECK_TEXT(room, "one, ");
}

/* --- what was never destroyed --- */

static struct cs_stream *new_stream(cs_u16 call)
{
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    stream->call = call;
    cs_store(&stream->filled, true);
    return stream;
}

TEST(what_was_never_destroyed_is_counted_by_who_made_it)
{
    begin(NULL);
    for (int i = 0; i < 3; i++) new_stream(CS_CALL_cuStreamCreate);
    new_stream(CS_CALL_cuStreamCreateWithPriority);
    cs_pool_end(&cs_streams, &new_stream(CS_CALL_cuStreamCreate)->object);
    new_stream(CS_CALL_cuStreamCreate)->ours = true;
    new_stream(CS_CALL_cuStreamCreate)->origin = CS_STREAM_ADOPTED;
    cs_store(&new_stream(CS_CALL_cuStreamCreate)->filled, false);
    struct cs_stream *shared = new_stream(CS_CALL_cuStreamCreateWithPriority);
    shared->share_place = 1;
    cs_store(&shared->shares, 5); /* as often as it was given out and not given back */
    for (int i = 0; i < 4; i++) {
        struct cs_event *event = cs_pool_new(&cs_events);
        REQUIRE(event);
        event->call = i ? CS_CALL_cuEventCreate : 0; /* one that was only seen in use */
        if (i == 1) cs_pool_end(&cs_events, &event->object);
    }
    check_holds(trailer(CS_TRAILER_LAST),
        ",\"leaked_streams\":9,\"leaked_events\":2},\n\"neverDestroyed\":["
        "\n{\"object\":\"stream\",\"library\":\"\",\"call\":\"cuStreamCreate\",\"count\":3},"
        "\n{\"object\":\"stream\",\"library\":\"\",\"call\":\"cuStreamCreateWithPriority\","
        "\"count\":6},"
        "\n{\"object\":\"event\",\"library\":\"\",\"call\":\"cuEventCreate\",\"count\":2}]");
}
