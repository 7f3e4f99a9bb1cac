/*
 * Numbers of the runtime's calls that nobody wanted to hear of: a thread that is held up while it
 * leaves one, here by a signal, and others that come round to the place that it has.
 */
#include <signal.h>
#include <time.h>

#include "tests/unit/cupti_stub.h"

enum { RING = 4096, SIGNALS = 300 };

static cs_u64 nobody_listens(cs_u16 turn) { return (void)turn, 0; }

static _Atomic cs_u32 made; /* numbers are given from 1 */
static void call_once(void) { make_call(atomic_load(&subscribed), cs_add(&made, 1) + 1); }

static _Atomic bool interrupted;
static void on_signal(int unused)
{
    (void)unused;
    for (int i = 0; i < RING + 3; i++) call_once();
    cs_store(&interrupted, true);
}

static cs_u32 arrived, last;
static void on_call(const struct cs_gpu_call *call)
{
    CHECK(call->thread == (cs_u32)(uintptr_t)pthread_self() && call->start &&
          call->start == call->end);
    arrived++;
    if (call->correlation > last) last = call->correlation;
}

TEST(one_that_is_held_up_hides_no_others)
{
    timer_t timer;
    stub_begin((struct cs_runtime_listener){.begins = nobody_listens});
    signal(SIGUSR1, on_signal);
    REQUIRE(!timer_create(CLOCK_MONOTONIC,
        &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1}, &timer));
    for (int i = 0; i < SIGNALS; i++) {
        cs_store(&interrupted, false);
        timer_settime(timer, 0, &(struct itimerspec){.it_value.tv_nsec = 20000 + 37 * i}, NULL);
        while (!cs_load(&interrupted)) call_once();
        arrived = 0;
        cs_cupti_runtime_drain(&(struct cs_gpu_sink){.call = on_call});
        /* All that still have a place, but for what the two took from each other. */
        CHECK(arrived >= RING - 2 && arrived <= RING && last == cs_load(&made));
    }
}
