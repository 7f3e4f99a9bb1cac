/* Windows as the writer is told of them (trace/windows.h). */
#include "shim/trace/windows.h"

#include "tests/unit/trace_file.h"

static const char *totals(void)
{
    static char text[4096];
    *cs_windows_put_totals(text, true) = 0;
    return text;
}

TEST(steps_that_the_writer_was_too_late_for_are_counted)
{
    enum { ROOM = 1024 };
    cs_clock_init();
    for (int i = 0; i < ROOM; i++)
        cs_windows_tell(i % 2 ? CS_WINDOW_OPENED : CS_WINDOW_CLOSED, cs_ticks(), "a test");
    for (int i = 0; i < 3; i++) cs_windows_tell(CS_WINDOW_CLOSED, cs_ticks(), "a test");
    cs_windows_collect(false);
    CHECK(strstr(totals(), ",\"untold\":3,"));
}

TEST(a_window_that_opened_since_the_last_round_ends_the_gap_of_a_part)
{
    char lasted[64];
    trace_file_begin();
    const cs_u64 closed = cs_ticks();
    cs_windows_tell(CS_WINDOW_CLOSED, closed, "a test");
    cs_windows_collect(true);
    usleep(1000);
    const cs_u64 opened = cs_ticks();
    cs_windows_tell(CS_WINDOW_OPENED, opened, "a test");
    usleep(1000);
    cs_windows_part_ends();
    const cs_u64 ns = cs_clock_ns(opened) - cs_clock_ns(closed);
    snprintf(lasted, sizeof lasted, "\"dur\":%s,", us_text(ns));
    const char *gap = strstr(trace_file_text(), "\"cs_window\"");
    CHECK(gap && strstr(gap, lasted) && !strstr(gap + 1, "\"cs_window\""));
    CHECK(!cs_windows_closed());
}

TEST(work_of_a_window_that_closed_since_the_last_round_is_outside)
{
    cs_clock_init();
    const cs_u64 closed = cs_ticks();
    cs_windows_tell(CS_WINDOW_CLOSED, closed, "a test");
    CHECK_IS(cs_windows_outside(closed), CS_MAY_BE_OUTSIDE);
}

static void tell(enum cs_window_step step, cs_u64 ticks)
{
    cs_windows_tell(step, ticks, step == CS_WINDOW_OPENED ? "who" : "why");
}

/* What the parent has been told, and has not looked at, is none of the child's. */
TEST(a_forked_child_has_no_windows_of_its_parents)
{
    cs_clock_init();
    tell(CS_WINDOW_CLOSED, cs_ticks());
    cs_windows_collect(false);
    for (int i = 0; i < 1024; i++) tell(i % 2 ? CS_WINDOW_CLOSED : CS_WINDOW_OPENED, cs_ticks());
    tell(CS_WINDOW_CLOSED, cs_ticks()); /* there is no room for it */
    cs_windows_after_fork_in_child();
    cs_windows_collect(false);
    CHECK(!cs_windows_closed() && !cs_windows_ever_closed());
    CHECK_TEXT(totals(), "");
    const cs_u64 before = cs_ticks();
    CHECK_IS(cs_windows_outside(before), CS_INSIDE);
    tell(CS_WINDOW_CLOSED, cs_ticks());
    CHECK(cs_windows_closed() && !strstr(totals(), "untold") &&
          strstr(totals(), "{\"opened\":0,\"open\":false,\"cause\":\"why\","));
}

/* The last of the moments that are so many ns behind that one, or less. */
static cs_u64 ticks_behind(cs_u64 ticks, cs_u64 ns)
{
    const cs_u64 until = cs_clock_ns(ticks) + ns;
    cs_u64 low = ticks, high = ticks + 8 * ns + 1000;
    while (high - low > 1) {
        const cs_u64 middle = low + (high - low) / 2;
        if (cs_clock_ns(middle) <= until) low = middle;
        else high = middle;
    }
    return low;
}

/* A thread may have looked whether to record before the window closed or opened, and called the
 * driver so long after it. */
TEST(for_200_ms_behind_an_edge_nothing_is_sure)
{
    enum { UNSURE = 200000000 };
    cs_clock_init();
    const cs_u64 closed = cs_ticks(), opened = closed + 8000000000u, later = opened + 8000000000u;
    tell(CS_WINDOW_CLOSED, closed);
    tell(CS_WINDOW_OPENED, opened);
    CHECK_IS(cs_windows_outside(closed - 1), CS_INSIDE);
    CHECK_IS(cs_windows_outside(closed), CS_MAY_BE_OUTSIDE);
    CHECK_IS(cs_windows_outside(ticks_behind(closed, UNSURE - 1)), CS_MAY_BE_OUTSIDE);
    CHECK_IS(cs_windows_outside(ticks_behind(closed, UNSURE - 1) + 100), CS_OUTSIDE);
    CHECK_IS(cs_windows_outside(opened - 1), CS_OUTSIDE);
    CHECK_IS(cs_windows_outside(opened), CS_MAY_BE_OUTSIDE);
    CHECK_IS(cs_windows_outside(ticks_behind(opened, UNSURE - 1)), CS_MAY_BE_OUTSIDE);
    CHECK_IS(cs_windows_outside(ticks_behind(opened, UNSURE - 1) + 100), CS_INSIDE);
    tell(CS_WINDOW_CLOSED, later); /* for good */
    CHECK_IS(cs_windows_outside(later - 1), CS_INSIDE);
    CHECK_IS(cs_windows_outside(later + 8000000000u), CS_OUTSIDE);
    CHECK_IS(
        cs_windows_outside(closed + 4000000000u), CS_OUTSIDE); /* the one before is still known */
    CHECK(cs_windows_within(closed, opened - 1) && !cs_windows_within(closed, opened) &&
          !cs_windows_within(closed - 1, closed));
    CHECK(cs_windows_covers(closed) && !cs_windows_covers(opened) && cs_windows_covers(later) &&
          cs_windows_within(later, UINT64_MAX - 1));
}

TEST(the_last_1024_closed_spans_are_known)
{
    enum { SPANS = 1024 };
    cs_clock_init();
    const cs_u64 first = cs_ticks();
    for (cs_u64 i = 0; i <= SPANS; i++) {
        if (i == SPANS)
            CHECK(cs_windows_covers(first) && cs_windows_covers(first + 100 * (SPANS - 1)));
        tell(CS_WINDOW_CLOSED, first + 100 * i);
        tell(CS_WINDOW_OPENED, first + 100 * i + 50);
        cs_windows_collect(false);
    }
    for (cs_u64 i = 0; i <= SPANS; i++) {
        CHECK(cs_windows_covers(first + 100 * i + 49) == (i > 0));
        CHECK(!cs_windows_covers(first + 100 * i + 50));
    }
}

TEST(the_last_64_windows_are_listed)
{
    static char brief[4096];
    char last[96];
    cs_clock_init();
    const cs_u64 first = cs_ticks();
    static char text[16384];
    for (cs_u64 i = 0; i < 66; i++) {
        tell(CS_WINDOW_OPENED, first + 100000 * i);
        tell(CS_WINDOW_OPENED, first + 100000 * i + 10); /* it is open */
        tell(CS_WINDOW_CLOSED, first + 100000 * i + 50000);
        tell(CS_WINDOW_CLOSED, first + 100000 * i + 50010); /* it is closed */
        cs_windows_collect(false);
        *cs_windows_put_totals(text, false) = 0;
        int count = 0;
        for (const char *at = text; (at = strstr(at, "\"from_us\"")); at++) count++;
        CHECK_IS(count, i < 64 ? i + 1 : 64);
    }
    const cs_u64 oldest = cs_clock_ns(first + 100000 * 2),
                 end = cs_clock_ns(first + 100000 * 65 + 50000);
    snprintf(last, sizeof last, "\"last\":[\n{\"from_us\":%s,", us_text(oldest));
    CHECK(strstr(text, last));
    snprintf(
        last, sizeof last, "\"to_us\":%s,\"opened_by\":\"who\",\"cause\":\"why\"}]}", us_text(end));
    CHECK(strstr(text, last));
    CHECK(strstr(text, "{\"opened\":66,\"open\":false,\"cause\":\"why\",\"recorded_us\":"));
    cs_u64 open_ns = 0;
    for (cs_u64 i = 0; i < 66; i++)
        open_ns += cs_clock_ns(first + 100000 * i + 50000) - cs_clock_ns(first + 100000 * i);
    snprintf(last, sizeof last, "\"recorded_us\":%s,\"last\"", us_text(open_ns));
    CHECK(strstr(text, last));
    *cs_windows_put_totals(brief, true) = 0;
    CHECK(strstr(brief, "\"last\":[]}"));
}

/* --- in the file --- */

TEST(each_gap_and_each_change_of_the_policy_is_in_the_file)
{
    trace_file_begin();
    const char *gaps[4];
    const cs_u64 first = cs_ticks();
    while (cs_ticks() <= first + 200000)
        usleep(100); /* by then all of it is over, however long a tick is */
    tell(CS_WINDOW_CLOSED, first);
    cs_windows_tell(CS_WINDOW_POLICY, first + 1000, "a policy");
    tell(CS_WINDOW_OPENED, first + 100000);
    tell(CS_WINDOW_OPENED, first + 150000);
    tell(CS_WINDOW_CLOSED, first + 200000);
    cs_windows_collect(true);
    cs_windows_part_ends();
    REQUIRE(trace_file_events("\"cs_window\"", "\"cause\":\"why\"", gaps, 4) == 2);
    CHECK_IS(ns_of(gaps[0], "ts"), cs_clock_ns(first));
    CHECK_IS(end_of(gaps[0]), cs_clock_ns(first + 100000));
    CHECK_IS(ns_of(gaps[1], "ts"), cs_clock_ns(first + 200000));
    const char *policy = trace_file_event("\"cs_policy\"", "\"policy\":\"a policy\"");
    CHECK_IS(ns_of(policy, "ts"), cs_clock_ns(first + 1000));
    CHECK_IS(trace_file_count("\"custream: not recorded\"", ""), 1);
    cs_timeline_begin(CS_BEGIN_PART);
    const cs_u64 end = (cs_u64)end_of(gaps[1]);
    cs_windows_part_ends(); /* what is left of the gap, on a row that the next part names too */
    REQUIRE(trace_file_events("\"cs_window\"", "", gaps, 4) == 3);
    CHECK(ns_of(gaps[2], "ts") >= (long long)end);
    CHECK_IS(trace_file_count("\"custream: not recorded\"", ""), 2);
}
