/* Counters of memory pools as they stand in the file (trace/gpu_shown.h). */
#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/out/output.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/timeline.h"
#include "shim/trace/totals.h"
#include "tests/unit/check.h"

TEST(a_pool_is_counted_on_its_device)
{
    static char text[1 << 16];
    setenv("CUSTREAM_TRACE", "t.json", 1);
    cs_options_read();
    REQUIRE(cs_realdl_init());
    cs_clock_init();
    REQUIRE(cs_tables_make(CS_TABLES_TRACE, "a test") && cs_output_open(&cs_totals_teller));
    cs_clock_sync();
    cs_timeline_begin(CS_BEGIN_FILE);
    cs_gpu_pool_write(&(struct cs_gpu_pool){.device = 3, .at = cs_ticks(), .address = 0x1000, .size = 77, .used = 55});
    cs_output_finish();
    FILE *file = fopen("t.json", "r");
    REQUIRE(file && fread(text, 1, sizeof text - 1, file));
    const char *name = strstr(text, "memory pool 0x1000"), *line = name;
    REQUIRE(name);
    while (line > text && line[-1] != '\n') line--;
    *strchr(name, '\n') = 0;
    CHECK(strstr(line, "\"pid\":3,") && strstr(line, "\"reserved\":77,\"used\":55"));
}
