/* A trace's file as the writer begins it, in t.json if nothing is there, and what it holds, for
 * tests of what goes into it. */
#ifndef CS_TESTS_UNIT_TRACE_FILE_H
#define CS_TESTS_UNIT_TRACE_FILE_H

#include "shim/base/clock.h"
#include "shim/base/json.h"
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

/* The text of the file so far; it stays. */
static inline char *trace_file_text(void)
{
    static char *texts[64];
    static int count;
    REQUIRE(count < 64);
    cs_output_flush();
    FILE *file = fopen(cs_output_path(), "r");
    REQUIRE(file && !fseek(file, 0, SEEK_END));
    const size_t size = (size_t)ftell(file);
    char *text = texts[count++] = malloc(size + 1);
    rewind(file);
    REQUIRE(text && fread(text, 1, size, file) == size);
    text[size] = 0;
    fclose(file);
    return text;
}

/* How many events of the file have both pieces, and the first of them, each a text of its own. */
static inline int trace_file_events(
    const char *piece, const char *other, const char **found, int most)
{
    int count = 0;
    for (char *line = strtok(trace_file_text(), "\n"); line; line = strtok(NULL, "\n")) {
        if (!strstr(line, piece) || !strstr(line, other)) continue;
        if (count < most) found[count] = line;
        count++;
    }
    return count;
}
static inline int trace_file_count(const char *piece, const char *other)
{
    return trace_file_events(piece, other, NULL, 0);
}

/* The one event with both. */
static inline const char *trace_file_event(const char *piece, const char *other)
{
    const char *found[1] = {""};
    REQUIRE(trace_file_events(piece, other, found, 1) == 1);
    return found[0];
}

/* A number of an event, by its key; of a time, which the file has in microseconds, its nanoseconds.
 */
static inline long long number_of(const char *event, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(event, quoted);
    REQUIRE(at);
    return strtoll(at + strlen(quoted), NULL, 10);
}
/* A time as the file has it; it stays until the next. */
static inline const char *us_text(cs_u64 ns)
{
    static char text[32];
    *cs_put_us(text, ns) = 0;
    return text;
}
static inline long long ns_of(const char *event, const char *key)
{
    char quoted[32], decimals[4] = "";
    long long us;
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(event, quoted);
    REQUIRE(at && sscanf(at + strlen(quoted), "%lld.%3[0-9]", &us, decimals) >= 1);
    for (size_t i = strlen(decimals); i < 3; i++) decimals[i] = '0';
    return us * 1000 + strtoll(decimals, NULL, 10);
}
static inline long long end_of(const char *event)
{
    return ns_of(event, "ts") + ns_of(event, "dur");
}

#endif
