/* A trace's file as the writer begins it, in t.json, for tests of what goes into it. */
#ifndef CS_TESTS_UNIT_TRACE_FILE_H
#define CS_TESTS_UNIT_TRACE_FILE_H

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/out/output.h"
#include "shim/trace/timeline.h"
#include "shim/trace/totals.h"
#include "tests/unit/check.h"

/* Other options come from the environment. */
static inline void trace_file_begin(void)
{
    setenv("CUSTREAM_TRACE", "t.json", 1);
    cs_options_read();
    REQUIRE(cs_realdl_init());
    cs_clock_init();
    REQUIRE(cs_tables_make(CS_TABLES_TRACE, "a test") && cs_output_open(&cs_totals_teller));
    cs_clock_sync();
    cs_timeline_begin(CS_BEGIN_FILE);
}

#endif
