/*
 * The preload library's clock under the simulated GPU's virtual one (driver/clock.h):
 * CLOCK_MONOTONIC is the calling thread's virtual time, and there is no counter. Each thread has a
 * processor of its own, and waits by asking again and again: its processor time is the same. All
 * else of the library is as it is.
 */
#include <time.h>

/* The definition in clock.c has `void` in it, its call has nothing. */
#define counter_is_constant(nothing) counter_##nothing(nothing)
#define counter_()                   false
#pragma GCC diagnostic ignored "-Wunused-function"
#include "shim/base/clock.c"

int __real_clock_gettime(clockid_t which, struct timespec *to);
int __wrap_clock_gettime(clockid_t which, struct timespec *to);

/* The driver comes late: until then a step each 64 readings. */
static cs_u64 steps(void)
{
    static unsigned readings;
    return 1000000000 + (cs_u64)(readings++ / 64) * 1000000;
}
static cs_u64 (*now)(void) = steps;

__attribute__((visibility("default"))) void custream_virtual_clock(cs_u64 (*clock)(void));
void custream_virtual_clock(cs_u64 (*clock)(void)) { now = clock; }

int __wrap_clock_gettime(clockid_t which, struct timespec *to)
{
    if (which != CLOCK_MONOTONIC && which != CLOCK_THREAD_CPUTIME_ID)
        return __real_clock_gettime(which, to);
    const cs_u64 ns = now();
    *to = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    return 0;
}
