/* Options and the lines on stderr (base/options.h, base/log.h). */
#include "shim/base/options.h"

#include <errno.h>

#include "shim/base/log.h"
#include "shim/base/watch.h"
#include "tests/unit/check.h"

static const char *read_with(const char *variable, const char *value)
{
    if (variable) setenv(variable, value, 1);
    captured_begin();
    cs_options_read();
    const char *said = captured_end();
    if (variable) unsetenv(variable);
    return said;
}

TEST(defaults_without_environment)
{
    CHECK_TEXT(read_with(NULL, NULL), "");
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        CHECK_TEXT(cs_option_text((enum cs_option)i), cs_option_info[i].preset);
        CHECK(!cs_option_check((enum cs_option)i, cs_option_info[i].preset));
    }
    CHECK_IS(cs_option_size(CS_OPTION_BUFFER), 4 << 20);
    CHECK_IS(cs_option_size(CS_OPTION_TRACE_MAX), 1 << 30);
    CHECK(cs_option_is(CS_OPTION_FULL, "drop"));
}

TEST(an_empty_value_is_no_value)
{
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        CHECK_TEXT(read_with(cs_option_info[i].env, ""), "");
        CHECK_TEXT(cs_option_text((enum cs_option)i), cs_option_info[i].preset);
    }
}

TEST(valid_values_are_taken)
{
    static const struct {
        enum cs_option id;
        const char *value;
        long long size;
    } valid[] = {
        {CS_OPTION_TRACE, "off", 0},
        {CS_OPTION_TRACE, "t.json", 0},
        {CS_OPTION_TRACE, "/a b/%e-%p-%h-%r.json.gz", 0},
        {CS_OPTION_TRACE, "100%%.json", 0},
        {CS_OPTION_FORCE, "on", 0},
        {CS_OPTION_FORCE, "off", 0},
        {CS_OPTION_QUIET, "on", 0},
        {CS_OPTION_QUIET, "off", 0},
        {CS_OPTION_FULL, "drop", 0},
        {CS_OPTION_FULL, "block", 0},
        {CS_OPTION_BUFFER, "65536", 65536},
        {CS_OPTION_BUFFER, "64k", 65536},
        {CS_OPTION_BUFFER, "1G", 1 << 30},
        {CS_OPTION_BUFFER, "100000", 100000},
        {CS_OPTION_TRACE_MAX, "1m", 1 << 20},
        {CS_OPTION_TRACE_MAX, "1024G", 1ll << 40},
        {CS_OPTION_TRACE_MAX, "1099511627776", 1ll << 40},
        {CS_OPTION_TRACE_MAX, "256M,rotate", 256 << 20},
        {CS_OPTION_TRACE_MAX, "1048576,rotate:2", 1 << 20},
        {CS_OPTION_TRACE_MAX, "2g,rotate:9999", 2ll << 30},
        {CS_OPTION_GPU, "auto", 0},
        {CS_OPTION_GPU, "cupti", 0},
        {CS_OPTION_GPU, "events", 0},
        {CS_OPTION_GPU, "off", 0},
        {CS_OPTION_CUPTI, "/opt/cuda/libcupti.so.13", 0},
        {CS_OPTION_GRAPH, "graph", 0},
        {CS_OPTION_GRAPH, "node", 0},
        {CS_OPTION_COUNTERS, "gpu", 0},
        {CS_OPTION_COUNTERS, "streams", 0},
        {CS_OPTION_COUNTERS, "off", 0},
        {CS_OPTION_NVTX, "on", 0},
        {CS_OPTION_NVTX, "all", 0},
        {CS_OPTION_NVTX, "off", 0},
        {CS_OPTION_DEFAULT_STREAM, "keep", 0},
        {CS_OPTION_DEFAULT_STREAM, "per-thread", 0},
        {CS_OPTION_DEFAULT_STREAM, "legacy", 0},
        {CS_OPTION_DEFAULT_STREAM, "audit", 0},
        {CS_OPTION_DEFAULT_HANDLES, "zero", 0},
        {CS_OPTION_DEFAULT_HANDLES, "all", 0},
        {CS_OPTION_PRIORITY, "keep,strict", 0},
        {CS_OPTION_PRIORITY, "0:-1", 0},
        {CS_OPTION_PRIORITY, "map:0=-1,-1=-2,strict", 0}, /* more in settings.c */
        {CS_OPTION_STREAMS, "keep", 0},
        {CS_OPTION_STREAMS, "pool:4", 0},
        {CS_OPTION_STREAMS, "serial", 0},
        {CS_OPTION_STREAMS, "sync", 0},
        {CS_OPTION_JITTER, "off", 0},
        {CS_OPTION_JITTER, "seed=1,us=50,on=copy+launch", 0},
        {CS_OPTION_POLICY, "policy.json", 0},
        {CS_OPTION_POLICY, "{\"rules\": []}", 0},
        {CS_OPTION_POLICY, "anything: what it holds is the policy layer's", 0},
        {CS_OPTION_KEEP, "auto", 0},
        {CS_OPTION_KEEP, "off", 0},
        {CS_OPTION_KEEP, "/a folder", 0},
        {CS_OPTION_PLUGIN, "libmine.so:/opt/a b/plugin.so", 0},
        {CS_OPTION_TRIGGER, "/shared/trigger", 0},
        {CS_OPTION_METRICS, "/a b/%e-%p-%h-%r.prom", 0},
        {CS_OPTION_WINDOW, "all", 0},
        {CS_OPTION_WINDOW, "profiler", 0},
        {CS_OPTION_WINDOW, "delay=0.5,duration=2", 0},
        {CS_OPTION_CTL, "auto", 0},
        {CS_OPTION_CTL, "on", 0},
        {CS_OPTION_CTL, "off", 0},
        {CS_OPTION_THREAD_CLOCKS, "on", 0},
        {CS_OPTION_THREAD_CLOCKS, "off", 0},
        {CS_OPTION_RUNTIME, "on", 0},
        {CS_OPTION_RUNTIME, "off", 0},
        {CS_OPTION_LOG, "error", 0},
        {CS_OPTION_LOG, "warn", 0},
        {CS_OPTION_LOG, "info", 0},
        {CS_OPTION_LOG, "debug", 0},
    };
    bool seen[CS_OPTION_COUNT] = {false};
    for (size_t i = 0; i < CS_COUNT(valid); i++) {
        enum cs_option id = valid[i].id;
        seen[id] = true;
        CHECK_TEXT(read_with(cs_option_info[id].env, valid[i].value), "");
        CHECK_TEXT(cs_option_text(id), valid[i].value);
        CHECK(cs_option_is(id, valid[i].value));
        if (cs_option_info[id].type == CS_TYPE_SIZE || cs_option_info[id].type == CS_TYPE_LIMIT)
            CHECK_IS(cs_option_size(id), valid[i].size);
    }
    for (int i = 0; i < CS_OPTION_COUNT; i++)
        CHECK(seen[i]); /* an option added to the table wants its values here */
}

TEST(a_switch_may_be_a_number)
{
    CHECK_TEXT(read_with("CUSTREAM_QUIET", "1"), "");
    CHECK(cs_option_is(CS_OPTION_QUIET, "on"));
    CHECK_TEXT(read_with("CUSTREAM_QUIET", "0"), "");
    CHECK(cs_option_is(CS_OPTION_QUIET, "off"));
    CHECK_TEXT(read_with(CS_WATCH_VARIABLE, "-"), ""); /* custream run's own, and no option */
}

/* Each of these is one line that names the variable, the value and what is allowed, and leaves the
 * default. */
TEST(invalid_values_are_one_line)
{
    static const struct {
        enum cs_option id;
        const char *value;
    } invalid[] = {
        {CS_OPTION_TRACE, "trace"},
        {CS_OPTION_TRACE, "t.json.zst"},
        {CS_OPTION_TRACE, "%x.json"},
        {CS_OPTION_TRACE, "t.json%"},
        {CS_OPTION_TRACE, "OFF"},
        {CS_OPTION_FULL, "Drop"},
        {CS_OPTION_FULL, "dro"},
        {CS_OPTION_FULL, "drop|block"},
        {CS_OPTION_FULL, "drop "},
        {CS_OPTION_BUFFER, "4"},
        {CS_OPTION_BUFFER, "2G"},
        {CS_OPTION_BUFFER, "-4M"},
        {CS_OPTION_BUFFER, "4MB"},
        {CS_OPTION_BUFFER, "M"},
        {CS_OPTION_BUFFER, " 4M"},
        {CS_OPTION_BUFFER, "0x100000"},
        {CS_OPTION_BUFFER, "1e6"},
        {CS_OPTION_BUFFER, "4.5M"},
        {CS_OPTION_TRACE_MAX, "0"},
        {CS_OPTION_TRACE_MAX, "1025G"},
        {CS_OPTION_TRACE_MAX, "99999999999999999999"},
        {CS_OPTION_TRACE_MAX, "18446744073709551615G"},
        {CS_OPTION_TRACE_MAX, "17179869184G"},
        {CS_OPTION_TRACE_MAX, "1M,"},
        {CS_OPTION_TRACE_MAX, "1M,rotate:"},
        {CS_OPTION_TRACE_MAX, "1M,rotate:1"},
        {CS_OPTION_TRACE_MAX, "1M,rotate:10000"},
        {CS_OPTION_TRACE_MAX, "1M rotate"},
        {CS_OPTION_TRACE_MAX, "rotate"},
        {CS_OPTION_TRACE_MAX, "1K,rotate"},
        {CS_OPTION_TRACE_MAX, "1M,rotate:3,"},
        {CS_OPTION_METRICS, "m.txt"},
        {CS_OPTION_METRICS, "%x.prom"},
        {CS_OPTION_METRICS, "m.prom%"},
        {CS_OPTION_GPU, "cuda"},
        {CS_OPTION_GPU, "0"},
        {CS_OPTION_GRAPH, "nodes"},
        {CS_OPTION_LOG, "verbose"},
        {CS_OPTION_LOG, "1"},
        {CS_OPTION_NVTX, "yes"},
        {CS_OPTION_NVTX, "0"},
        {CS_OPTION_FORCE, "yes"},
        {CS_OPTION_FORCE, "2"},
        {CS_OPTION_QUIET, "yes"},
        {CS_OPTION_QUIET, "ON"},
        {CS_OPTION_COUNTERS, "all"},
        {CS_OPTION_DEFAULT_STREAM, "perthread"},
        {CS_OPTION_DEFAULT_STREAM, "per-thread|legacy"},
        {CS_OPTION_DEFAULT_HANDLES, "both"},
        {CS_OPTION_PRIORITY, "0:1"},
        {CS_OPTION_PRIORITY, "high"},
        {CS_OPTION_PRIORITY, "set:1"},
        {CS_OPTION_STREAMS, "pool"},
        {CS_OPTION_STREAMS, "pool:0"},
        {CS_OPTION_JITTER, "on"},
        {CS_OPTION_JITTER, "us=5"},
        {CS_OPTION_WINDOW, "delay"},
        {CS_OPTION_WINDOW, "duration=0"},
        {CS_OPTION_CTL, "yes"},
        {CS_OPTION_THREAD_CLOCKS, "auto"},
        {CS_OPTION_RUNTIME, "auto"},
    };
    bool seen[CS_OPTION_COUNT] = {false};
    for (size_t i = 0; i < CS_COUNT(invalid); i++) {
        const struct cs_option_info *info = &cs_option_info[invalid[i].id];
        char expected[1024];
        seen[invalid[i].id] = true;
        snprintf(expected, sizeof expected,
            "custream: warning: %s=%s is not valid: allowed is %s; using %s\n", info->env,
            invalid[i].value, info->allowed, info->preset);
        CHECK_TEXT(read_with(info->env, invalid[i].value), expected);
        CHECK_TEXT(cs_option_text(invalid[i].id), info->preset);
        CHECK_TEXT(cs_option_check(invalid[i].id, invalid[i].value) ?: "valid", info->allowed);
    }
    for (int i = 0; i < CS_OPTION_COUNT; i++)
        CHECK(seen[i] || cs_option_info[i].type == CS_TYPE_FILE ||
              i == CS_OPTION_POLICY); /* any text may be a path */
}

TEST(a_very_long_or_many_lined_value_is_one_line)
{
    static char longest[(1 << 16) + 1];
    memset(longest, 'x', sizeof longest - 1);
    memcpy(longest + sizeof longest - 6, ".json", 5);
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        const char *value = i == CS_OPTION_POLICY ? longest : longest + sizeof longest - 10000;
        const char *said = read_with(cs_option_info[i].env, value);
        CHECK_IS(lines_in(said), 1);
        CHECK(strlen(said) < 1024);
        CHECK_TEXT(cs_option_text((enum cs_option)i), cs_option_info[i].preset);
        said = read_with(cs_option_info[i].env, "one\ntwo\r\033[31m\n");
        CHECK_IS(lines_in(said), i != CS_OPTION_POLICY); /* which is the name of a file that isn't
                                                            there, said elsewhere */
        for (const char *p = said; *p; p++) CHECK(*p == '\n' ? !p[1] : (unsigned char)*p >= 0x20);
    }
}

TEST(how_many_parts_are_kept)
{
    static const struct {
        const char *value;
        unsigned parts;
    } limits[] = {{"256M", 0}, {"256M,rotate", 2}, {"256M,rotate:2", 2}, {"256M,rotate:04", 4},
        {"1m,rotate:9999", 9999}};
    for (size_t i = 0; i < CS_COUNT(limits); i++) {
        CHECK_TEXT(read_with("CUSTREAM_TRACE_MAX", limits[i].value), "");
        CHECK_IS(cs_option_parts(CS_OPTION_TRACE_MAX), limits[i].parts);
    }
    read_with("CUSTREAM_TRACE_MAX", "1M,rotate:0");
    CHECK_IS(cs_option_parts(CS_OPTION_TRACE_MAX), 0);
    CHECK_IS(cs_option_size(CS_OPTION_TRACE_MAX), 1 << 30);
}

TEST(the_environment_beats_what_is_given)
{
    setenv("CUSTREAM_BUFFER", "1M", 1);
    setenv("CUSTREAM_GPU", "gpu", 1);
    CHECK_IS(lines_in(read_with(NULL, NULL)), 1);
    CHECK(cs_option_given(CS_OPTION_BUFFER) && cs_option_given(CS_OPTION_GPU) &&
          !cs_option_given(CS_OPTION_FULL));
    cs_option_give(CS_OPTION_BUFFER, "2M");
    cs_option_give(
        CS_OPTION_GPU, "events"); /* a line said which value is used in place of the wrong one */
    cs_option_give(CS_OPTION_FULL, "block");
    cs_option_give(CS_OPTION_TRACE_MAX, "5M,rotate:7");
    CHECK_TEXT(cs_option_text(CS_OPTION_BUFFER), "1M");
    CHECK_IS(cs_option_size(CS_OPTION_BUFFER), 1 << 20);
    CHECK_TEXT(cs_option_text(CS_OPTION_GPU), "auto");
    CHECK_TEXT(cs_option_text(CS_OPTION_FULL), "block");
    CHECK(cs_option_size(CS_OPTION_TRACE_MAX) == 5 << 20 &&
          cs_option_parts(CS_OPTION_TRACE_MAX) == 7);
    CHECK(!cs_option_given(CS_OPTION_FULL));
    cs_option_drop(CS_OPTION_BUFFER);
    cs_option_give(CS_OPTION_BUFFER, "2M");
    CHECK_TEXT(cs_option_text(CS_OPTION_BUFFER), "4M");
    CHECK_IS(cs_option_size(CS_OPTION_BUFFER), 4 << 20);
}

TEST(values_are_copies)
{
    setenv("CUSTREAM_TRACE", "before.json", 1);
    cs_options_read();
    setenv("CUSTREAM_TRACE", "after.json", 1);
    CHECK_TEXT(cs_option_text(CS_OPTION_TRACE), "before.json");
}

TEST(unknown_variables_are_told_apart)
{
    CHECK_TEXT(read_with("CUSTREAM_TRACEMAX", "1M"),
        "custream: warning: CUSTREAM_TRACEMAX is not an "
        "option; did you mean CUSTREAM_TRACE_MAX?\n");
    CHECK_TEXT(read_with("CUSTREAM_PYTHON", "python3"), "");
    CHECK_TEXT(read_with("CUSTREAM_PYTEST", "1"), "");
    CHECK_TEXT(read_with("CUSTREAM_TRAEC", "off"),
        "custream: warning: CUSTREAM_TRAEC is not an option; did you mean CUSTREAM_TRACE?\n");
    CHECK_TEXT(read_with("CUSTREAM_log", "info"),
        "custream: warning: CUSTREAM_log is not an option; did you mean CUSTREAM_LOG?\n");
    CHECK_TEXT(read_with("CUSTREAM_SOMETHING_ELSE_ENTIRELY", "1"),
        "custream: warning: CUSTREAM_SOMETHING_ELSE_ENTIRELY is not an option of this version\n");
    CHECK_TEXT(read_with("CUSTREAM_FAKE_DEVICES", "2"), "");
    CHECK_TEXT(read_with("NOT_CUSTREAM_TRACE", "1"), "");
    char name[4000] = "CUSTREAM_";
    memset(name + 9, 'A', sizeof name - 10);
    CHECK_IS(lines_in(read_with(name, "1")), 1);
}

TEST(log_level_is_kept_to)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"}, *const words[] = {
                                                                                "error", "warning",
                                                                                "info", "debug"};
    for (int set = 0; set < 4; set++) {
        read_with("CUSTREAM_LOG", levels[set]);
        for (int at = 0; at < 4; at++) {
            char expected[64] = "";
            if (at <= set)
                snprintf(expected, sizeof expected, "custream: %s: number 7\n", words[at]);
            captured_begin();
            cs_log((enum cs_log_level)at, "number %d", 7);
            CHECK_TEXT(captured_end(), expected);
        }
    }
    read_with(NULL, NULL);
    cs_option_give(
        CS_OPTION_LOG, "error"); /* from a policy file, when the options have been read */
    captured_begin();
    cs_log(CS_LOG_WARN, "kept back");
    CHECK_TEXT(captured_end(), "");
}

TEST(log_keeps_errno_and_cuts_long_lines)
{
    static char text[5000];
    memset(text, 'y', sizeof text - 1);
    captured_begin();
    errno = EDOM;
    cs_log(CS_LOG_ERROR, "%s", text);
    int after = errno;
    const char *said = captured_end();
    CHECK_IS(after, EDOM);
    CHECK_IS(lines_in(said), 1);
    CHECK(strlen(said) <= 1024 && said[strlen(said) - 1] == '\n');
    captured_begin();
    for (int i = 0; i < 5; i++) cs_log_once(CS_LOG_ERROR, "once");
    CHECK_TEXT(captured_end(), "custream: error: once\n");
}
