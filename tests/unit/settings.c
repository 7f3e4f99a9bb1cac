/* Options whose values are small languages (base/settings.h). */
#include "shim/base/settings.h"

#include <errno.h>

#include "tests/unit/check.h"

/* Each reader is given what it can't read, and must leave what it was to fill as it was. */
#define REFUSES(read, type, ...) \
    do { \
        static const char *const texts_[] = {__VA_ARGS__}; \
        for (size_t i_ = 0; i_ < CS_COUNT(texts_); i_++) { \
            struct type before_, value_; \
            memset(&before_, 0x5a, sizeof before_); \
            value_ = before_; \
            if (read(texts_[i_], &value_)) fprintf(stderr, "%s(\"%s\") is true\n", #read, \
            texts_[i_]), check_failures++; \
            CHECK(!memcmp(&value_, &before_, sizeof value_)); \
        } \
    } while (0)

TEST(priorities)
{
    static const struct {
        const char *text;
        enum cs_priority_kind kind;
        int value;
        bool strict;
    } valid[] = {
        {"keep", CS_PRIORITY_KEEP, 0, false},
        {"keep,strict", CS_PRIORITY_KEEP, 0, true},
        {"0:-1", CS_PRIORITY_CLAMP, -1, false},
        {"0:0", CS_PRIORITY_CLAMP, 0, false},
        {"0:-100,strict", CS_PRIORITY_CLAMP, -100, true},
        {"set:-3", CS_PRIORITY_SET, -3, false},
        {"set:0", CS_PRIORITY_SET, 0, false},
        {"set:-100,strict", CS_PRIORITY_SET, -100, true},
        {"shift:-2", CS_PRIORITY_SHIFT, -2, false},
        {"shift:3", CS_PRIORITY_SHIFT, 3, false},
        {"shift:+100", CS_PRIORITY_SHIFT, 100, false},
        {"shift:-100,strict", CS_PRIORITY_SHIFT, -100, true},
    };
    for (size_t i = 0; i < CS_COUNT(valid); i++) {
        struct cs_priority p = {.mapped = 7};
        REQUIRE(cs_priority_read(valid[i].text, &p));
        CHECK_IS(p.kind, valid[i].kind);
        CHECK_IS(p.value, valid[i].value);
        CHECK_IS(p.strict, valid[i].strict);
        CHECK_IS(p.mapped, 0);
    }
    REFUSES(cs_priority_read, cs_priority, "", "kee", "Keep", "keep,", "keep,stric", "keep,strict,",
        "keep,strict,strict", "0", "0:", ":-1", "0:1", "1:0", "-1:0", "0:-101", "0: -1", " 0:-1",
        "0:-1 ", "0:-1,", "00:-1x", "set", "set:", "set:1", "set:-101", "set:x", "set:-1.5",
        "shift:", "shift:101", "shift:-101", "shift:--1", "shift:99999999999999999999", "strict",
        "-1", "map");
}

TEST(priorities_by_map)
{
    struct cs_priority p;
    REQUIRE(cs_priority_read("map:0=-2,-1=-5,7=0,strict", &p));
    CHECK_IS(p.kind, CS_PRIORITY_MAP);
    CHECK_IS(p.mapped, 3);
    CHECK(p.strict);
    CHECK(p.map[0].from == 0 && p.map[0].to == -2 && p.map[1].from == -1 && p.map[1].to == -5 &&
          p.map[2].from == 7 && p.map[2].to == 0);
    REQUIRE(cs_priority_read("map:0=0", &p));
    CHECK(p.mapped == 1 && !p.strict);
    REQUIRE(cs_priority_read("map:1=0,2=0,3=0,4=0,5=0,6=0,7=0,8=0", &p));
    CHECK_IS(p.mapped, (int)CS_COUNT(p.map));
    REFUSES(cs_priority_read, cs_priority, "map:", "map:0", "map:0=", "map:0=1", "map:=0",
        "map:0=-1,", "map:0=-1,strict,", "map:0=-1,0=-2", "map:0=-1 -1=0", "map:101=0",
        "map:0=-101", "map:1=0,2=0,3=0,4=0,5=0,6=0,7=0,8=0,9=0", "map:0=-1,strict,1=0");
}

TEST(sharing)
{
    struct cs_sharing s;
    CHECK(cs_sharing_read("keep", &s) && s.kind == CS_SHARING_KEEP);
    CHECK(cs_sharing_read("serial", &s) && s.kind == CS_SHARING_SERIAL);
    CHECK(cs_sharing_read("sync", &s) && s.kind == CS_SHARING_SYNC);
    CHECK(cs_sharing_read("pool:1", &s) && s.kind == CS_SHARING_POOL && s.pool == 1);
    CHECK(cs_sharing_read("pool:1024", &s) && s.pool == 1024);
    REFUSES(cs_sharing_read, cs_sharing, "", "kept", "keep,", "serial ", "Sync", "pool",
        "pool:", "pool:0", "pool:-1", "pool:+1", "pool:1025", "pool:4x", "pool: 4", "4");
}

static cs_u32 kinds_of(const char *names)
{
    cs_u32 kinds = 0;
    for (int i = 0; cs_jitter_kinds[i]; i++)
        if (strstr(names, cs_jitter_kinds[i])) kinds |= 1u << i;
    return kinds;
}

TEST(jitter)
{
    struct cs_jitter j = {.on = true};
    CHECK(cs_jitter_read("off", &j) && !j.on);
    REQUIRE(cs_jitter_read("seed=7", &j));
    CHECK(j.on && j.host && j.stream && j.seed == 7 && j.us > 0 && j.percent > 0 && j.kinds == ~0u);
    REQUIRE(cs_jitter_read(
        "seed=0,us=1000000,percent=100,at=host,on=launch+copy+set+event+wait+graph", &j));
    CHECK(j.on && j.host && !j.stream && j.seed == 0 && j.us == 1000000 && j.percent == 100);
    CHECK_IS(j.kinds, kinds_of("launch copy set event wait graph"));
    REQUIRE(cs_jitter_read("seed=9223372036854775807,at=stream,on=copy", &j));
    CHECK(!j.host && j.stream && j.seed == INT64_MAX && j.kinds == kinds_of("copy"));
    REQUIRE(cs_jitter_read("seed=1,at=both,us=1,percent=1", &j));
    CHECK(j.host && j.stream && j.us == 1 && j.percent == 1);
    REFUSES(cs_jitter_read, cs_jitter, "", "on", "off,", "Off", "us=100", "us=100,seed=1", "seed",
        "seed=", "seed=-1", "seed=9223372036854775808", "seed=1,", "seed=1,us=0",
        "seed=1,us=1000001", "seed=1,percent=0", "seed=1,percent=101",
        "seed=1,at=", "seed=1,at=gpu", "seed=1,on=", "seed=1,on=launch+", "seed=1,on=launch,copy",
        "seed=1,on=all", "seed=1 us=1", "seed=0x10");
}

TEST(windows)
{
    static const struct {
        const char *text;
        enum cs_window_kind kind;
        cs_u64 delay, duration, every, for_;
    } valid[] = {
        {"all", CS_WINDOW_ALL, 0, 0, 0, 0},
        {"profiler", CS_WINDOW_PROFILER, 0, 0, 0, 0},
        {"delay=0", CS_WINDOW_TIME, 0, 0, 0, 0},
        {"delay=2", CS_WINDOW_TIME, 2000000000, 0, 0, 0},
        {"duration=0.25", CS_WINDOW_TIME, 0, 250000000, 0, 0},
        {"delay=1.000001,duration=0.000001", CS_WINDOW_TIME, 1000001000, 1000, 0, 0},
        {"duration=1000000,delay=3", CS_WINDOW_TIME, 3000000000, 1000000000000000, 0, 0},
        {"ctl", CS_WINDOW_CTL, 0, 0, 0, 0},
        {"delay=1s,duration=0.5s", CS_WINDOW_TIME, 1000000000, 500000000, 0, 0},
        {"every=60s,for=1s", CS_WINDOW_EVERY, 0, 0, 60000000000, 1000000000},
        {"for=0.1,every=0.2", CS_WINDOW_EVERY, 0, 0, 200000000, 100000000},
    };
    for (size_t i = 0; i < CS_COUNT(valid); i++) {
        struct cs_window w;
        REQUIRE(cs_window_read(valid[i].text, &w));
        CHECK_IS(w.kind, valid[i].kind);
        CHECK_IS(w.delay_ns, valid[i].delay);
        CHECK_IS(w.duration_ns, valid[i].duration);
        CHECK_IS(w.every_ns, valid[i].every);
        CHECK_IS(w.for_ns, valid[i].for_);
    }
    REFUSES(cs_window_read, cs_window, "", "All", "all,", "allx", "profiler,delay=1", "delay",
        "delay=", "delay=-1", "delay=1.", "delay=.5", "delay=1.0000001", "delay=1ms", "ctl,delay=1",
        "every=60", "for=1", "every=1,for=1", "every=1,for=2", "every=0,for=0", "every=60,for=0",
        "every=60,for=1,delay=1", "every=60,for=1,duration=1", "every=60,for=1,profiler",
        "duration=0", "duration=0.0", "delay=1,delay=2", "delay=1,", "delay=1 duration=1",
        "delay=1000001", "delay=1,duration=1,delay=1", "delay=1e3");
}

TEST(triggers)
{
    static const struct {
        const char *start;
        cs_u64 ns;
    } valid[] = {{"0", 0}, {"1764108600", 1764108600000000000},
        {"1764108600.25", 1764108600250000000}, {"1970-01-01T00:00:00Z", 0},
        {"1970-12-31T23:59:59Z", 31535999000000000}, {"2000-03-01T00:00:00Z", 951868800000000000},
        {"2024-02-29T12:00:00.5Z", 1709208000500000000},
        {"2026-11-25T22:10:00Z", 1795644600000000000},
        {"2100-03-01T00:00:00Z", 4107542400000000000},
        {"2199-12-31T23:59:59.999999Z", 7258118399999999000}, {"2026", 2026000000000}};
    char text[256];
    struct cs_trigger t;
    int line;
    for (size_t i = 0; i < CS_COUNT(valid); i++) {
        snprintf(text, sizeof text, "duration=0.5s\nstart=%s", valid[i].start);
        REQUIRE(!cs_trigger_read(text, &t, &line));
        CHECK_IS(t.start_ns, valid[i].ns);
        CHECK(t.duration_ns == 500000000 && !t.range_count && !t.policy &&
              cs_trigger_names(&t, -1) && cs_trigger_names(&t, 7));
    }
    static const char *const wrong[] = {"", "now", "1e9", "1764108600.1234567", "7258118401",
        "1969-12-31T23:59:59Z", "2201-01-01T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z", "2026-04-31T00:00:00Z", "2100-02-29T00:00:00Z",
        "2026-1-5T00:00:00Z", "2026-01-05T24:00:00Z", "2026-01-05T00:60:00Z",
        "2026-01-05T00:00:60Z", "2026-01-05 00:00:00Z", "2026-01-05T00:00:00+01:00", "2026-01-05",
        "2026-01-05T00:00:00Zx"};
    for (size_t i = 0; i < CS_COUNT(wrong); i++) {
        snprintf(text, sizeof text, "duration=1\nstart=%s\n", wrong[i]);
        t.start_ns = 77;
        if (!cs_trigger_read(text, &t, &line) || line != 2 || t.start_ns != 77)
            CHECK_TEXT(wrong[i], "refused in line 2");
    }
    REQUIRE(!cs_trigger_read("start=1\nduration=1\nranks=0,2-4,2147483647\npolicy={}", &t, &line));
    CHECK(t.range_count == 3 && cs_trigger_names(&t, 3) && cs_trigger_names(&t, INT32_MAX) &&
          !cs_trigger_names(&t, 1) && !cs_trigger_names(&t, -1));
    CHECK(t.policy_length == 2 && !memcmp(t.policy, "{}", 2));
    memset(text, 0, sizeof text);
    strcpy(text, "start=1\nduration=1\nranks=1");
    for (int i = 1; i < CS_RANK_RANGES; i++) strcat(text, ",1");
    CHECK(!cs_trigger_read(text, &t, &line) && t.range_count == CS_RANK_RANGES);
    CHECK(cs_trigger_read(strcat(text, ",1"), &t, &line) && line == 3);
}

/* Good files with random bytes in them: each is read or refused, within its bounds (the sanitizers
 * look). */
TEST(any_text_is_read_or_refused_as_a_trigger)
{
    static const char good[] =
        "# x\nstart=2026-11-25T22:10:00.5Z\nduration=5s\nranks=0-7,12\npolicy={\"priority\": "
        "\"0:-1\"}\r\n",
                      bytes[] = "\n\r =-,:.{}#0123456789TZsar\xff\x01";
    cs_u64 random = 88172645463325252ull;
    int read = 0, refused = 0;
    for (int n = 0; n < 20000; n++) {
        struct cs_trigger t;
        int line;
        char *text = strdup(good); /* of its own size */
        for (int i = 0; i <= n % 4; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            text[random % (sizeof good - 1)] = bytes[(random >> 32) % (sizeof bytes - 1)];
        }
        if (n % 16 == 0) text[(random >> 40) % sizeof good] = 0;
        const char *allowed = cs_trigger_read(text, &t, &line);
        if (allowed) CHECK(line >= 0 && line <= 40);
        else
            CHECK(t.duration_ns && (!t.policy || (t.policy >= text && t.policy + t.policy_length <=
                                                                          text + strlen(text))));
        read += !allowed, refused += !!allowed;
        free(text);
    }
    CHECK(read > 100 && refused > 100);
}

TEST(errno_is_kept)
{
    struct cs_priority p;
    struct cs_jitter j;
    errno = EDOM;
    CHECK(!cs_priority_read("shift:99999999999999999999", &p) &&
          !cs_jitter_read("seed=99999999999999999999", &j));
    CHECK_IS(errno, EDOM);
}
