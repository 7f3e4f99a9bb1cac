/* A clock that stands still: whoever waits for it waits a while, and goes on (base/clock.h). */
#define _GNU_SOURCE
#include "shim/base/aide.h"
#include "shim/base/clock.h"
#include "shim/base/worker.h"
#include "tests/unit/check.h"

static cs_u64 stands_at = 1000000000;

/* In front of the C library's. */
int clock_gettime(clockid_t which, struct timespec *to)
{
    (void)which;
    *to = (struct timespec){(time_t)(stands_at / 1000000000), (long)(stands_at % 1000000000)};
    return 0;
}

TEST(a_deadline_is_over_by_rounds)
{
    struct cs_deadline deadline = cs_deadline_in(1000, 100);
    int rounds = 0;
    while (!cs_deadline_is_over(&deadline)) rounds++;
    CHECK(rounds >= 10 && rounds < 20);
}

TEST(a_deadline_is_over_by_the_clock)
{
    struct cs_deadline deadline = cs_deadline_in(100, 50);
    for (int i = 0; i < 1000;
        i++) { /* rounds that are cut short, while the clock moves now and then */
        CHECK(!cs_deadline_is_over(&deadline));
        if (i % 5 == 4 && i < 400) stands_at++;
        if (i >= 400) break;
    }
    stands_at += 100;
    CHECK(cs_deadline_is_over(&deadline));
}

TEST(the_scale)
{
    cs_clock_init();
    cs_clock_sync();
    cs_clock_sync();
    const cs_u64 ticks = cs_ticks();
    CHECK(cs_clock_ns(ticks + 1000) >= cs_clock_ns(ticks));
    cs_ticks_before();
}

static _Atomic bool goes_on;
static void task(void)
{
    while (!cs_load(&goes_on)) nanosleep(&(struct timespec){0, 1000000}, NULL);
}

TEST(a_task_of_the_aide_that_takes_long)
{
    cs_aide_start();
    CHECK(!cs_aide_run(task, 200));
    cs_store(&goes_on, true);
}

static struct cs_worker worker = {.loads = true};

static void *never_ready(void *unused)
{
    while (!cs_load(&goes_on)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    return unused;
}

TEST(a_worker_that_does_not_come_up)
{
    CHECK(cs_worker_start(&worker, never_ready));
    CHECK_IS(cs_load(&worker.state), CS_WORKER_STARTING);
    cs_worker_ask(&worker, CS_WORKER_FINISHING, 200);
    cs_store(&goes_on, true);
}
