/*
 * The clock of the records: the client's, or CLOCK_REALTIME. What happens on a CPU reads it there
 * and then.
 *
 * The simulated GPU's times are CLOCK_MONOTONIC. They are converted as the real CUPTI converts the
 * GPU's: both clocks are read together now and then, and in between lies a straight line. The line
 * through all these marks never goes back, so order and equality of times survive.
 */
#include "tests/fakecuda/cupti/fake_cupti.h"

#include <time.h>

struct mark {
    uint64_t monotonic, domain;
};
enum { MARKS = 1 << 16 };        /* of some minutes: a program may run for long */
static struct mark marks[MARKS]; /* oldest first */
static size_t mark_count;
static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards the marks; the client's clock is read under it */
static CUpti_TimestampCallbackFunc callback; /* atomic */

enum { GOOD_NS = 1000, MIN_TRIES = 4, TRIES = 20 };

uint64_t cupti_read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t cupti_now(void)
{
    CUpti_TimestampCallbackFunc function = __atomic_load_n(&callback, __ATOMIC_ACQUIRE);
    return function ? function() : cupti_read_clock(CLOCK_REALTIME);
}

/* The driver's CLOCK_MONOTONIC, or what stands for it. */
static uint64_t gpu_now(void)
{
    return cupti_driver() ? cupti_driver()->now() : cupti_read_clock(CLOCK_MONOTONIC);
}

/* Reads both clocks, again if something came in between: the pair that took the shortest. */
static struct mark sample(void)
{
    struct mark best = {0, 0};
    uint64_t shortest = UINT64_MAX;

    for (int i = 0; i < MIN_TRIES || (i < TRIES && shortest > GOOD_NS); i++) {
        uint64_t before = gpu_now(), domain = cupti_now(), after = gpu_now();

        if (after - before >= shortest) continue;
        shortest = after - before;
        best = (struct mark){before + shortest / 2, domain};
    }
    return best;
}

static void mark(void)
{
    struct mark now = sample();

    if (mark_count && (now.monotonic <= marks[mark_count - 1].monotonic ||
                          now.domain < marks[mark_count - 1].domain))
        return;
    if (mark_count == MARKS)
        memmove(marks, marks + MARKS / 2, (mark_count = MARKS / 2) * sizeof *marks);
    marks[mark_count++] = now;
}

void cupti_clock_mark(void)
{
    LOCKED(lock);
    mark();
}

void cupti_clock_set(CUpti_TimestampCallbackFunc function)
{
    LOCKED(lock);
    __atomic_store_n(&callback, function, __ATOMIC_RELEASE);
    mark_count = 0; /* they belong to the clock before */
    mark();
}

void cupti_clock_forked(void) { pthread_mutex_init(&lock, NULL); }

uint64_t cupti_convert(uint64_t monotonic)
{
    size_t low = 0, high;
    const struct mark *a, *b;

    LOCKED(lock);
    if (!mark_count) mark();
    if (monotonic <= marks[0].monotonic) return marks[0].domain - (marks[0].monotonic - monotonic);
    for (high = mark_count; high - low > 1;) {
        size_t middle = (low + high) / 2;
        if (marks[middle].monotonic <= monotonic) low = middle;
        else high = middle;
    }
    a = &marks[low];
    if (low + 1 == mark_count) return a->domain + (monotonic - a->monotonic);
    b = a + 1;
    return a->domain + (uint64_t)((unsigned __int128)(monotonic - a->monotonic) *
                                  (b->domain - a->domain) / (b->monotonic - a->monotonic));
}
