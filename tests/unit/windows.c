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
    for (int i = 0; i < ROOM; i++) cs_windows_tell(i % 2 ? CS_WINDOW_OPENED : CS_WINDOW_CLOSED, cs_ticks(), "a test");
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
    snprintf(lasted, sizeof lasted, "\"dur\":%llu.%03llu,", (unsigned long long)ns / 1000, (unsigned long long)ns % 1000);
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
