/* Windows as the writer is told of them (trace/windows.h). */
#include "shim/trace/windows.h"

#include "shim/base/clock.h"
#include "tests/unit/check.h"

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
