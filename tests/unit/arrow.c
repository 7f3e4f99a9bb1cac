/* Arrows between calls of the host, and where they begin in a part (trace/arrow.h). */
#include "shim/trace/arrow.h"

#include "shim/trace/annotation.h"
#include "shim/trace/thread_row.h"
#include "tests/unit/trace_file.h"

static void arrow(cs_u64 from, cs_u32 from_tid)
{
    cs_arrow_write(from, from_tid, cs_clock_ns(from) + 500, 99);
}
static int written(void) { return trace_file_count("\"cs_dep\"", "\"ph\":\"f\""); }

TEST(an_arrow_leads_from_one_call_to_the_other)
{
    trace_file_begin();
    const cs_u64 from = cs_ticks();
    cs_arrow_write(from, 5, cs_clock_ns(from) + 500, 6);
    const char *start = trace_file_event("\"cs_dep\"", "\"ph\":\"s\""),
               *end = trace_file_event("\"cs_dep\"", "\"ph\":\"f\"");
    CHECK(ns_of(start, "ts") == (long long)cs_clock_ns(from) && number_of(start, "tid") == 5);
    CHECK(ns_of(end, "ts") == (long long)cs_clock_ns(from) + 500 && number_of(end, "tid") == 6);
    CHECK_IS(number_of(start, "id"), number_of(end, "id"));
    cs_arrow_write(from, 5, cs_clock_ns(from) + 500, 6);
    const char *ends[2];
    REQUIRE(trace_file_events("\"cs_dep\"", "\"ph\":\"f\"", ends, 2) == 2);
    CHECK(number_of(ends[0], "id") != number_of(ends[1], "id"));
}

TEST(an_arrow_never_leads_back)
{
    trace_file_begin();
    const cs_u64 from = cs_ticks();
    cs_arrow_write(from, 1, cs_clock_ns(from) - 5, 2);
    CHECK_IS(ns_of(trace_file_event("\"cs_dep\"", "\"ph\":\"f\""), "ts"), cs_clock_ns(from));
}

TEST(a_full_file_has_no_more_arrows)
{
    setenv("CUSTREAM_TRACE_MAX", "1M", 1);
    trace_file_begin();
    captured_begin();
    for (int i = 0; i < 100000 && !cs_output_full(); i++) arrow(cs_ticks(), 1);
    captured_end();
    REQUIRE(cs_output_full());
    const int before = written();
    CHECK(before > 0);
    cs_arrows_part_ends(UINT64_MAX / 2);
    arrow(cs_ticks(), 1);
    CHECK_IS(written(), before);
    CHECK_IS(cs_totals.arrows_between_parts, 0);
}

/* --- parts --- */

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
    arrow(early, 1), arrow(edge, 1), arrow(late, 1);
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
    row->part_since_ns = base_ns, row->part_first_ns = base_ns + 7,
    row->last_end_ns = base_ns + 1; /* it gives way to ranges that go on */
    arrow(base, thread->tid);
    REQUIRE(trace_file_events("\"cs_dep\"", "\"ph\":\"s\"", from, ROWS) == 1);
    CHECK_IS(ns_of(from[0], "ts"), base_ns + 7);
    row->part_first_ns = base_ns - 7;
    arrow(base, thread->tid);
    REQUIRE(trace_file_events("\"cs_dep\"", "\"ph\":\"s\"", from, ROWS) == 2);
    CHECK_IS(ns_of(from[1], "ts"), base_ns);
    row->part_since_ns = base_ns + 1; /* in the part before */
    arrow(base, thread->tid);
    CHECK(written() == 2 && cs_totals.arrows_between_parts == 1);
    row->part_since_ns = base_ns, row->last_end_ns = base_ns; /* it has no slice there */
    arrow(base, thread->tid);
    CHECK(written() == 2 && cs_totals.arrows_between_parts == 2);
    cs_arrows_part_ends(
        base_ns - CS_RANGES_OPEN + 1); /* so near to it that ranges may be in its way */
    arrow(base, thread->tid);
    CHECK(written() == 2 && cs_totals.arrows_between_parts == 3);
    cs_arrows_part_ends(base_ns - CS_RANGES_OPEN);
    arrow(base, thread->tid);
    CHECK(written() == 3 && cs_totals.arrows_between_parts == 3);
}

TEST(a_forked_child_knows_nothing_of_its_parents_parts)
{
    trace_file_begin();
    arrow(cs_ticks(), 1);
    cs_arrows_part_ends(UINT64_MAX / 2);
    arrow(cs_ticks(), 1);
    CHECK_IS(written(), 1);
    cs_timeline_begin(CS_BEGIN_FILE);
    arrow(cs_ticks(), 1);
    const char *ends[2];
    REQUIRE(trace_file_events("\"cs_dep\"", "\"ph\":\"f\"", ends, 2) == 2);
    CHECK_IS(
        number_of(ends[1], "id"), number_of(ends[0], "id")); /* and its arrows are counted anew */
}
