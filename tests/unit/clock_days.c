/*
 * The scale over days of simulated time: clock.c itself, on a counter and a monotonic clock that
 * the test turns.
 *
 * The monotonic clock runs at a rate that changes, as a time service slews it; reading it takes a
 * time that varies.
 */
#define _GNU_SOURCE
#include <math.h>
#include <time.h>

static unsigned long long fake_ticks(void);
static int fake_gettime(clockid_t which, struct timespec *out);
static int fake_sleep(const struct timespec *t, struct timespec *rest);

/* The header's own reader of ticks has another name here: the test's stands in its place. */
#define clock_gettime fake_gettime
#define nanosleep     fake_sleep
#define cs_ticks      cs_ticks_of_header
#include "shim/base/clock.h"
#undef cs_ticks
static inline cs_u64 cs_ticks(void) { return fake_ticks(); }
#include "shim/base/clock.c"
#undef clock_gettime
#undef nanosleep

#include "tests/unit/check.h"

/* Simulated time: ticks of 2.7 GHz, and nanoseconds at `slew` parts per million beside that. */
static const double ghz = 2.7;
static double ticks_now = 5e12, ns_now = 3e12, slew;
static unsigned seed = 3;

static void pass(double ns)
{
    ns_now += ns * (1 + slew * 1e-6);
    ticks_now += ns * ghz;
}

static double jitter(double most)
{
    seed = seed * 1664525 + 1013904223;
    return most * (seed >> 8) / (1 << 24);
}

static unsigned long long fake_ticks(void)
{
    pass(8 + jitter(10));
    return (unsigned long long)ticks_now;
}

static int fake_gettime(clockid_t which, struct timespec *out)
{
    (void)which;
    pass(15 + jitter(15));
    out->tv_sec = (time_t)(ns_now / 1e9);
    out->tv_nsec = (long)(ns_now - (double)out->tv_sec * 1e9);
    pass(15 + jitter(jitter(1) > 0.99 ? 5000 : 15)); /* now and then the thread is interrupted */
    return 0;
}

static int fake_sleep(const struct timespec *t, struct timespec *rest)
{
    (void)rest;
    pass((double)t->tv_sec * 1e9 + (double)t->tv_nsec);
    return 0;
}

static double zero; /* ns_now at the zero point, to within the first reading */

static void start(void)
{
    cs_clock_init();
    zero = ns_now;
    cs_clock_sync();
    zero = (double)zero_ns;
}

/* How far the scale is from the truth, now. */
static double error_now(void)
{
    return fabs((double)cs_clock_ns((cs_u64)ticks_now) - (ns_now - zero));
}

TEST(a_steady_clock_is_followed_to_its_reading_error)
{
    slew = 37;
    start();
    for (int i = 0; i < 20000; i++) {
        pass(i < 1000 ? 2e6 : 5e8);
        cs_clock_sync();
        double allowed = (double)cs_clock_error_ns() +
                         500; /* what the rate, learnt over 6 s, is off after another 10 s */
        if (error_now() > allowed) CHECK_IS(error_now(), allowed);
    }
    CHECK(cs_clock_error_ns() < 10000);
}

TEST(a_slewed_clock_is_followed)
{
    start();
    for (int i = 0; i < 5000; i++) {
        if (i % 100 == 0) slew = jitter(200) - 100;
        pass(5e8);
        cs_clock_sync();
        /* 200 ppm of change over 10 s, between anchors, and as much again until the bend has taken
         * it back */
        if (error_now() > 5e6) CHECK_IS(error_now(), 5e6);
    }
    slew = 0;
    for (int i = 0; i < 400; i++) pass(5e8), cs_clock_sync();
    CHECK(error_now() < 1e6); /* the rate is of the whole run */
}

TEST(rises_and_has_no_jumps)
{
    start();
    cs_u64 first = (cs_u64)ticks_now;
    for (int i = 0; i < 2000; i++) {
        if (i % 50 == 0) slew = jitter(800) - 400;
        pass(5e8);
        cs_clock_sync();
    }
    cs_u64 last = (cs_u64)ticks_now, before = 0;
    for (cs_u64 t = first; t < last; t += 100000007) {
        cs_u64 ns = cs_clock_ns(t), next = cs_clock_ns(t + 3); /* 3 ticks are 1.1 ns */
        CHECK(ns >= before && next >= ns && next - ns <= 3);
        before = next;
    }
    for (int i = 1; i < anchor_count; i++) { /* at every joint */
        cs_u64 ns = cs_clock_ns(anchors[i].ticks), just_before = cs_clock_ns(anchors[i].ticks - 1);
        CHECK(ns >= just_before && ns - just_before <= 2);
    }
    CHECK(anchor_count > 50);
}

/* A child gets the table as the writer's thread of its parent had it in hand: in the middle of
 * moving every second anchor, or of keeping a stretch. */
TEST(a_fork_in_the_middle_of_the_scale)
{
    slew = 37;
    start();
    for (int i = 0; i < 3000; i++) pass(1e10), cs_clock_sync();
    for (int i = 2, kept = 1; i < 1500; i += 2) anchors[kept++] = anchors[i];
    cs_clock_recent =
        (struct cs_clock_stretch){anchors[2000].ticks, INT64_MAX, 0, anchors[2000].rate};
    cs_clock_after_fork_in_child();
    pass(1e6);
    cs_clock_sync();
    cs_u64 before = 0;
    for (double ago = 1e13; ago >= 0; ago -= 1e9) {
        const cs_u64 at = (cs_u64)(ticks_now - ago * ghz), ns = cs_clock_ns(at);
        CHECK(ns >= before);
        before = ns;
        const double off = fabs((double)ns - (ns_now - ago * (1 + slew * 1e-6) - zero));
        if (off > 5000) CHECK_IS(off, 0);
    }
}

TEST(what_was_converted_stays)
{
    start();
    cs_u64 ticks[200], ns[200];
    for (int i = 0; i < 200; i++) {
        slew = jitter(400) - 200;
        pass(3e8);
        cs_clock_sync();
        ticks[i] = (cs_u64)ticks_now;
        ns[i] = cs_clock_ns(ticks[i]);
        for (int k = 0; k <= i; k++) CHECK_IS(cs_clock_ns(ticks[k]), ns[k]);
    }
}

TEST(a_week_fits_the_table)
{
    slew = 20;
    start();
    cs_u64 before = 0;
    for (int i = 0; i < 70000; i++) {
        pass(i < 20 ? 4e8 : 1e10);
        cs_clock_sync();
        cs_u64 ns = cs_clock_ns((cs_u64)ticks_now);
        CHECK(ns > before);
        before = ns;
        if (error_now() > (double)cs_clock_error_ns() + 500) CHECK_IS(error_now(), 0);
        CHECK(anchor_count <= ANCHORS);
    }
    CHECK(ns_now - zero > 6e14); /* seven days and a little */
    before = 0;
    for (int i = 1; i < anchor_count; i++) {
        cs_u64 at = cs_clock_ns(anchors[i].ticks), just_before = cs_clock_ns(anchors[i].ticks - 1);
        CHECK(just_before >= before && at >= just_before && at - just_before <= 2);
        before = at;
    }
}
