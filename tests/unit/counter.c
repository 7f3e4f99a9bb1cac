/* Counters of memory pools as they stand in the file (trace/gpu_shown.h). */
#include "shim/trace/gpu_shown.h"
#include "tests/unit/trace_file.h"

TEST(a_pool_is_counted_on_its_device)
{
    static char text[1 << 16];
    trace_file_begin();
    cs_gpu_pool_write(&(struct cs_gpu_pool){
        .device = 3, .at = cs_ticks(), .address = 0x1000, .size = 77, .used = 55});
    cs_output_finish();
    FILE *file = fopen("t.json", "r");
    REQUIRE(file && fread(text, 1, sizeof text - 1, file));
    const char *name = strstr(text, "memory pool 0x1000"), *line = name;
    REQUIRE(name);
    while (line > text && line[-1] != '\n') line--;
    *strchr(name, '\n') = 0;
    CHECK(strstr(line, "\"pid\":3,") && strstr(line, "\"reserved\":77,\"used\":55"));
}
