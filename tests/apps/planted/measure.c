/* What the planted programs measure, and how they take their time on the host. */
#include "tests/apps/planted/planted.h"

#include <errno.h>
#include <time.h>

struct measured measured;
size_t copy_bytes = 1 << 20;

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int64_t rest(unsigned us)
{
    int64_t begin = now_ns();
    struct timespec left = {us / 1000000, us % 1000000 * 1000l};
    while (nanosleep(&left, &left) && errno == EINTR) continue;
    return now_ns() - begin;
}

void spin(unsigned us)
{
    for (int64_t begin = now_ns(); now_ns() - begin < us * 1000ll;) continue;
}

void pause_now(void *unused)
{
    (void)unused;
    __atomic_fetch_add(&measured.idle_ns, rest(PAUSE_US), __ATOMIC_RELAXED);
}
