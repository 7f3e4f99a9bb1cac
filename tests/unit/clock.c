/* Ticks to nanoseconds on the machine's own clocks (base/clock.h). */
#include "shim/base/clock.h"
#include "tests/unit/check.h"

/* A moment: ticks, and CLOCK_MONOTONIC before and after they were read. However long the process
 * sleeps in between, the tick lies there. */
struct moment {
    cs_u64 before, ticks, after;
};

static struct moment now(void)
{
    struct moment m;
    m.before = cs_monotonic_ns();
    m.ticks = cs_ticks();
    m.after = cs_monotonic_ns();
    return m;
}

TEST(agrees_with_the_monotonic_clock)
{
    enum {
        SLACK_NS = 100000
    }; /* rounding of rates over 1.5 s; a wrong rate or zero point is off by milliseconds */
    cs_u64 init_begin = cs_monotonic_ns();
    cs_clock_init();
    cs_u64 init_end = cs_monotonic_ns();
    cs_clock_sync();
    cs_u64 off = cs_clock_error_ns() + SLACK_NS, last = 0;
    for (int i = 0; i < 150; i++) {
        struct moment m = now();
        cs_clock_sync();
        cs_u64 ns = cs_clock_ns(m.ticks);
        CHECK(ns >= last);
        CHECK(ns + init_end + off >= m.before);
        CHECK(ns + init_begin <= m.after + off);
        last = ns;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
}

TEST(before_the_zero_point_is_zero)
{
    cs_u64 early = cs_ticks();
    cs_clock_init();
    cs_clock_sync();
    CHECK_IS(cs_clock_ns(early > 1000000 ? early - 1000000 : 0), 0);
    CHECK_IS(cs_clock_ns(0), 0);
    CHECK(cs_clock_ns(cs_ticks()) > 0);
}

TEST(zero_point_is_the_wall_clock)
{
    struct timespec before, after;
    clock_gettime(CLOCK_REALTIME, &before);
    cs_clock_init();
    clock_gettime(CLOCK_REALTIME, &after);
    cs_u64 wall = cs_clock_wall_base_ns();
    CHECK(wall >= (cs_u64)before.tv_sec * 1000000000u + (cs_u64)before.tv_nsec);
    CHECK(wall <= (cs_u64)after.tv_sec * 1000000000u + (cs_u64)after.tv_nsec);
}

TEST(what_comes_next_is_later)
{
    cs_clock_init();
    for (int i = 0; i < 100000; i++) {
        const cs_u64 before = cs_ticks_before(), next = cs_ticks();
        if (next <= before) CHECK_IS(next, before + 1);
    }
}
