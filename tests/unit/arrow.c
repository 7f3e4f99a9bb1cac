/* Arrows of a round (trace/arrow.h). */
#include "shim/trace/arrow.h"

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/trace/totals.h"
#include "tests/unit/check.h"

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
