#include "shim/base/clock.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

double cs_clock_first_rate = 1.0;
CS_READ_MOSTLY bool cs_clock_is_counter;

/* The scale: segment i starts at ticks[i] and ns[i] and rises by rate[i]. Only the writer reads and extends it after cs_clock_init. When the table
 * is full every second inner anchor goes, so that it stays bounded; conversions that begin long ago then move by nanoseconds. */
enum { ANCHORS = 4096, FIRST_NS = 100000 };
static struct anchor {
    cs_u64 ticks, ns;
    double rate; /* ns a tick */
} anchors[ANCHORS];
static int anchor_count;
struct cs_clock_stretch cs_clock_recent;
static cs_u64 zero_ns, wall_ns, error_ns;

static bool counter_is_constant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (__get_cpuid(0x80000000, &a, &b, &c, &d) && a >= 0x80000007) {
        __get_cpuid(0x80000007, &a, &b, &c, &d);
        return d & (1u << 8);
    }
    return false;
#else
    return true;
#endif
}

/* Ticks and CLOCK_MONOTONIC at one moment: the narrowest of a few readings. */
static void read_both(cs_u64 *ticks, cs_u64 *ns)
{
    cs_u64 best = UINT64_MAX;
    *ticks = *ns = 0;
    for (int i = 0; i < 5; i++) {
        cs_u64 before = cs_ticks(), now = cs_monotonic_ns(), after = cs_ticks();
        if (after - before < best) best = after - before, *ticks = before + (after - before) / 2, *ns = now;
    }
    if (anchor_count) {
        cs_u64 half = (cs_u64)((double)best * anchors[anchor_count - 1].rate / 2) + 1;
        if (half > error_ns) error_ns = half;
    }
}

void cs_clock_init(void)
{
    struct timespec wall;
    cs_clock_is_counter = counter_is_constant();
    anchor_count = 0;
    cs_clock_recent.ticks = 0;
    error_ns = 0;
    cs_u64 t0, n0, t1, n1;
    read_both(&t0, &n0);
    clock_gettime(CLOCK_REALTIME, &wall);
    struct cs_deadline deadline = cs_deadline_from(n0, FIRST_NS, 0);
    while (!cs_deadline_is_over(&deadline)) {}
    read_both(&t1, &n1); /* a first rate, good to a few ppm; the writer's rounds refine it before anything is written */
    zero_ns = n0;
    wall_ns = (cs_u64)wall.tv_sec * 1000000000u + (cs_u64)wall.tv_nsec;
    cs_clock_first_rate = t1 > t0 && n1 > n0 ? (double)(n1 - n0) / (double)(t1 - t0) : 1.0;
    anchors[0] = (struct anchor){t0, 0, cs_clock_first_rate};
    anchor_count = 1;
}

static void anchors_halve(void)
{
    int kept = 1;
    for (int i = 2; i < anchor_count; i += 2) {
        struct anchor *a = &anchors[kept - 1], *b = &anchors[i];
        a->rate = (double)(b->ns - a->ns) / (double)(b->ticks - a->ticks);
        anchors[kept++] = *b;
    }
    anchor_count = kept;
}

void cs_clock_after_fork_in_child(void)
{
    if (anchor_count > 1) anchor_count = 1;
    cs_clock_recent.ticks = 0;
}

void cs_clock_sync(void)
{
    enum { FIRST_BASE_NS = 5000000, PAUSE_NS = FIRST_BASE_NS / 4 };
    const cs_u64 step_ns = anchor_count < 16 ? 400000000u : 10000000000u;
    cs_u64 ticks, now;
    struct cs_deadline first = cs_deadline_from(zero_ns, FIRST_BASE_NS, PAUSE_NS);
    while (anchor_count == 1 && !cs_deadline_is_over(&first)) /* nothing has been converted yet: wait for a base long enough for a good rate */
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    read_both(&ticks, &now);
    now -= zero_ns;
    struct anchor *last = &anchors[anchor_count - 1];
    if (ticks <= last->ticks || !now || (anchor_count > 1 && now < last->ns + step_ns)) return;
    cs_clock_recent.ticks = 0;
    if (anchor_count == ANCHORS) anchors_halve(), last = &anchors[anchor_count - 1];
    double rate = (double)now / (double)(ticks - anchors[0].ticks); /* of the whole run */
    if (anchor_count == 1) last->rate = rate;
    /* Where the scale says we are, and the rate that takes it back to the true time within a stretch as long as the last. */
    cs_u64 elapsed = ticks - last->ticks, at = last->ns + (cs_u64)((double)elapsed * last->rate);
    double slope = rate + ((double)now - (double)at) / (double)elapsed;
    anchors[anchor_count++] = (struct anchor){ticks, at, slope < rate / 2 ? rate / 2 : slope};
}

cs_u64 cs_clock_ns_slowly(cs_u64 ticks)
{
    int low = 0, high = anchor_count - 1;
    if (ticks <= anchors[0].ticks) return 0;
    if (ticks < anchors[high].ticks) {
        while (high - low > 1) {
            int middle = (low + high) / 2;
            if (anchors[middle].ticks <= ticks) low = middle;
            else high = middle;
        }
    } else {
        low = high;
    }
    const struct anchor *a = &anchors[low];
    const cs_u64 ends = low + 1 < anchor_count ? a[1].ticks - a->ticks : INT64_MAX;
    cs_clock_recent = (struct cs_clock_stretch){a->ticks, ends, a->ns, a->rate};
    return a->ns + (cs_u64)((double)(ticks - a->ticks) * a->rate);
}

void cs_clock_point(cs_u64 *ticks, cs_u64 *ns, double *rate)
{
    const struct anchor *last = &anchors[anchor_count - 1];
    *ticks = last->ticks;
    *ns = last->ns;
    *rate = last->rate;
}

cs_u64 cs_clock_wall_base_ns(void) { return wall_ns; }
cs_u64 cs_clock_wall_now_ns(void) { return wall_ns + (cs_monotonic_ns() - zero_ns); }
cs_u64 cs_clock_error_ns(void) { return error_ns; }
