/* Arrows of a round (trace/arrow.h). */
#include "shim/trace/arrow.h"

#include "shim/trace/thread_row.h"
#include "tests/unit/trace_file.h"

TEST(more_arrows_than_there_is_room_for_are_counted)
{
    enum { ROOM = 1 << 20 };
    cs_clock_init();
    REQUIRE(cs_tables_make(CS_TABLES_TRACE, "a test"));
    cs_arrows_begin();
    for (int i = 0; i < ROOM; i++) cs_arrow_note(cs_ticks(), 1, 1, 1);
    CHECK_IS(cs_totals.arrows_dropped, 0);
    for (int i = 0; i < 3; i++) cs_arrow_note(cs_ticks(), 1, 1, 1);
    CHECK_IS(cs_totals.arrows_dropped, 3);
}

TEST(an_arrow_is_written_in_the_round_after_the_one_that_found_it)
{
    trace_file_begin();
    const cs_u64 from = cs_ticks(), from_ns = cs_clock_ns(from);
    for (cs_u32 round = 1; round <= 5; round++) {
        cs_arrow_note(from, 1, from_ns + round, 2);
        cs_arrows_round(false);
        CHECK_IS(cs_arrows_waiting(), 1);
        CHECK_IS(trace_file_count("\"cs_dep\"", "\"ph\":\"f\""), round - 1);
    }
    cs_arrows_round(true);
    CHECK_IS(cs_arrows_waiting(), 0);
    CHECK_IS(trace_file_count("\"cs_dep\"", "\"ph\":\"f\""), 5);
}

/* --- parts --- */

static void note(cs_u64 from, cs_u32 from_tid) { cs_arrow_note(from, from_tid, cs_clock_ns(from) + 500, 99); }
static int written(void) { return trace_file_count("\"cs_dep\"", "\"ph\":\"f\""); }

TEST(a_part_ends_with_all_arrows_that_are_on_their_way)
{
    trace_file_begin();
    note(cs_ticks(), 1);
    cs_arrows_round(false);
    note(cs_ticks(), 1);
    note(cs_ticks(), 1);
    CHECK_IS(cs_arrows_waiting(), 3);
    cs_arrows_part_ends(cs_clock_ns(cs_ticks()));
    CHECK(written() == 3 && !cs_arrows_waiting() && !cs_totals.arrows_between_parts);
    cs_arrows_round(false);
    CHECK_IS(written(), 3);
}

/* Of a thread that has ended nothing is known but that the part before reached so far. */
TEST(an_arrow_begins_in_the_part_that_has_its_slice)
{
    trace_file_begin();
    const cs_u64 early = cs_ticks();
    usleep(1000);
    const cs_u64 edge = cs_ticks();
    usleep(1000);
    const cs_u64 late = cs_ticks();
    cs_arrows_part_ends(cs_clock_ns(edge));
    note(early, 1), note(edge, 1), note(late, 1);
    cs_arrows_round(true);
    CHECK_IS(written(), 2);
    CHECK_IS(cs_totals.arrows_between_parts, 1);
}

TEST(an_arrow_from_a_thread_begins_on_what_its_row_has)
{
    enum { ROWS = 4 };
    trace_file_begin();
    struct cs_thread *thread = cs_thread_start();
    REQUIRE(thread);
    struct cs_thread_row *row = cs_thread_row(thread);
    const cs_u64 base = cs_ticks();
    const cs_u64 base_ns = cs_clock_ns(base);
    const char *from[ROWS];
    cs_arrows_part_ends(base_ns + 100000); /* other threads got that far */
    row->part_since_ns = base_ns, row->part_first_ns = base_ns, row->last_end_ns = base_ns + 1;
    note(base, thread->tid);
    row->part_first_ns = base_ns + 7; /* it gives way to ranges that go on */
    cs_arrows_round(true);
    REQUIRE(trace_file_events("\"cs_dep\"", "\"ph\":\"s\"", from, ROWS) == 1);
    CHECK_IS(ns_of(from[0], "ts"), base_ns + 7);
    row->part_since_ns = base_ns + 1; /* in the part before */
    note(base, thread->tid);
    cs_arrows_round(true);
    CHECK(written() == 1 && cs_totals.arrows_between_parts == 1);
    row->part_since_ns = base_ns, row->last_end_ns = base_ns; /* its slice is to come */
    note(base, thread->tid);
    cs_arrows_round(true);
    CHECK(written() == 1 && cs_totals.arrows_between_parts == 2);
}

TEST(an_arrow_never_leads_back)
{
    trace_file_begin();
    const cs_u64 from = cs_ticks();
    cs_arrow_note(from, 1, cs_clock_ns(from) - 5, 2);
    cs_arrows_round(true);
    CHECK_IS(ns_of(trace_file_event("\"cs_dep\"", "\"ph\":\"f\""), "ts"), cs_clock_ns(from));
}

TEST(a_forked_child_has_no_arrows_of_its_parents)
{
    trace_file_begin();
    note(cs_ticks(), 1);
    cs_arrows_round(false);
    note(cs_ticks(), 1);
    cs_arrows_part_ends(UINT64_MAX / 2);
    note(cs_ticks(), 1);
    cs_arrows_round(false);
    note(cs_ticks(), 1);
    cs_timeline_begin(CS_BEGIN_FILE);
    CHECK_IS(cs_arrows_waiting(), 0);
    const int before = written();
    note(cs_ticks(), 1);
    cs_arrows_round(true);
    CHECK_IS(written(), before + 1);
}
