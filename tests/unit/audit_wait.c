/* Waits of the audit in the timeline (audit/audit_wait.c): the file itself. */
#define end_of end_of_work /* trace_file.h has another */
#include "shim/audit/audit_wait.c"
#undef end_of
#include "shim/base/no_room.h"

#include "tests/unit/trace_file.h"

/* An instant beside a stream, as there are no times. */
static void show_beside(cs_u32 number)
{
    const struct wait wait = {.number = number};
    const struct on on = {0};
    unneeded_shown = 0;
    show(&wait, &on, 0, 0);
}

TEST(waits_beside_more_streams_than_there_are_rows_are_counted)
{
    trace_file_begin();
    REQUIRE(cs_tables_make(CS_TABLES_AUDIT, "a test"));
    cs_audit_waits_begin();
    for (cs_u32 i = 1; i <= ROWS; i++) show_beside(i);
    CHECK_IS(trace_file_count("\"cs_audit\"", "implicit wait"), ROWS);
    CHECK_IS(cs_no_room_count(CS_NO_ROOM_FOR_AUDIT), 0);
    show_beside(ROWS + 1);
    show_beside(1);
    CHECK_IS(trace_file_count("\"cs_audit\"", "implicit wait"), ROWS + 1);
    CHECK_IS(cs_no_room_count(CS_NO_ROOM_FOR_AUDIT), 1);
    unneeded_shown = SHOWN; /* left out for another reason */
    show(&(struct wait){.number = ROWS + 2}, &(struct on){0}, 0, 0);
    CHECK_IS(cs_no_room_count(CS_NO_ROOM_FOR_AUDIT), 1);
}
