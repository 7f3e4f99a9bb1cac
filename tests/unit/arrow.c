/* Arrows of a round (trace/arrow.h). */
#include "shim/trace/arrow.h"

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
