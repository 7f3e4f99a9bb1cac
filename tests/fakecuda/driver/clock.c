/*
 * The virtual clock (clock.h): the program's threads and the GPU as one simulation of events.
 *
 * Each thread has its own time, and one thread goes on at once: that with the earliest. So a call
 * finds everything that others did before it, and nothing of what they do later. The GPU is taken
 * to the time of the thread that goes on, event by event. A thread that waits for work has no time
 * until that has ended.
 *
 * Calls, the way to the GPU and the way back take a fixed time each, which are typical of an H200.
 * What a call takes passes before it does anything, and so its work begins behind its return.
 */
#define _GNU_SOURCE
#include "tests/fakecuda/driver/clock.h"

#include <dlfcn.h>
#include <stdio.h>

#include "tests/fakecuda/driver/fake.h"

enum {
    BACK_NS = 2000, /* from the end of what the host waits for to its return */
    THREADS = 9,    /* the last one is the driver's, for host functions */
    HOST_THREAD = THREADS - 1,
    READINGS = 64, /* by threads that take no part, until their time goes on by a step */
    STEP_NS = 1000000,
};
static const uint64_t FIRST_NS = 2000000000, /* when the program begins */
    LATE_NS = 3000000000; /* threads that take no part find that all of it is over */

bool fake_virtual;
uint64_t fake_call_ns, fake_launch_ns;
static struct thread {
    uint64_t time;
    bool goes; /* it takes part, and if it is the driver's, it has something to do */
    struct fake_record *waits;
    pthread_cond_t turn_comes;
} threads[THREADS];
static pthread_cond_t all_over = PTHREAD_COND_INITIALIZER;
static struct thread *turn; /* the one that goes on */
static uint64_t gpu_time;   /* so far the GPU's work has been done */
static unsigned readings;   /* relaxed */
static TLS struct thread *own;

__attribute__((constructor)) static void choose(void)
{
    const char *clock = getenv("CUSTREAM_FAKE_CLOCK");
    fake_virtual = clock && !strcmp(clock, "virtual");
    if (!fake_virtual) return;
    fake_call_ns = (uint64_t)fake_setting("CUSTREAM_FAKE_CALL_NS", 2000);
    fake_launch_ns = (uint64_t)fake_setting("CUSTREAM_FAKE_LAUNCH_NS", (long)fake_call_ns);
    void (*preloaded)(uint64_t (*)(void)) =
        (void (*)(uint64_t (*)(void)))dlsym(RTLD_DEFAULT, "custream_virtual_clock");
    if (preloaded) preloaded(fake_now);
    gpu_time = FIRST_NS;
    for (int i = 0; i < THREADS; i++) pthread_cond_init(&threads[i].turn_comes, NULL);
}

uint64_t fake_clock_now(void)
{
    if (own) return own->time;
    return LATE_NS +
           (uint64_t)__atomic_fetch_add(&readings, 1, __ATOMIC_RELAXED) / READINGS * STEP_NS;
}

uint64_t fake_clock_gpu(void) { return gpu_time; }

/* --- whose turn it is --- */

/* Returns when a thread can go on; UINT64_MAX: it waits, or takes no part. */
static uint64_t goes_on(const struct thread *t)
{
    if (!t->goes || (t->waits && !t->waits->done)) return UINT64_MAX;
    return t->waits && t->waits->time + BACK_NS > t->time ? t->waits->time + BACK_NS : t->time;
}

/* Takes the GPU to the time at which the next thread can go on, and gives it the turn. NULL: none
 * can any more. */
static struct thread *turn_give(void)
{
    for (;;) {
        const uint64_t event = fake_advance();
        struct thread *first = &threads[0];
        for (struct thread *t = threads; t < threads + THREADS; t++)
            if (goes_on(t) < goes_on(first)) first = t;
        const uint64_t at = goes_on(first);
        if (at == UINT64_MAX && event == UINT64_MAX) {
            pthread_cond_broadcast(&all_over);
            return turn = NULL;
        }
        if (event <= at) {
            gpu_time = event;
            continue;
        }
        if (at > gpu_time) gpu_time = at;
        first->time = at;
        pthread_cond_signal(&first->turn_comes);
        return turn = first;
    }
}

static void turn_await(void)
{
    if (!own || !turn_give()) {
        fprintf(stderr, "custream simulated GPU: %s\n",
            own ? "all threads wait, and nothing runs"
                : "a thread waits that takes no part in time");
        abort();
    }
    while (turn != own) pthread_cond_wait(&own->turn_comes, &fake_lock);
}

/* --- time that passes --- */

void fake_clock_spend(uint64_t ns)
{
    if (!own) return;
    own->time += ns;
    turn_await();
}

void fake_clock_took(const uint64_t *began)
{
    if (own)
        fake_clock_spend(*began + fake_call_ns > own->time ? *began + fake_call_ns - own->time : 0);
}

void fake_clock_wait(struct fake_record *record)
{
    if (own) own->waits = fake_record_hold(record);
    turn_await();
    own->waits = NULL;
    fake_record_drop(record);
}

void fake_clock_back(uint64_t ended)
{
    if (own && ended + BACK_NS > own->time) own->time = ended + BACK_NS;
}

/* --- the driver's thread for host functions --- */

void fake_clock_host_due(uint64_t time)
{
    struct thread *host = &threads[HOST_THREAD];
    if (time > host->time) host->time = time;
    host->goes = true;
}

void fake_clock_host_begin(void)
{
    own = &threads[HOST_THREAD];
    while (turn != own) pthread_cond_wait(&own->turn_comes, &fake_lock);
}

void fake_clock_host_end(bool more)
{
    own->goes = more;
    turn_give();
}

/* --- the program's door --- */

static void join(unsigned number)
{
    FAKE_LOCKED;
    own = &threads[number % HOST_THREAD];
    own->time = gpu_time;
    own->goes = true;
    if (!turn) turn = own;
}

static void spend(uint64_t ns)
{
    FAKE_LOCKED;
    fake_clock_spend(ns);
}

static void leave(void)
{
    FAKE_LOCKED;
    own->goes = false;
    turn_give();
    own = NULL;
}

static uint64_t finish(void)
{
    FAKE_LOCKED;
    while (turn) pthread_cond_wait(&all_over, &fake_lock);
    return gpu_time - FIRST_NS;
}

EXPORT const struct fake_clock *custream_fakecuda_clock(void)
{
    static const struct fake_clock clock = {join, spend, leave, finish};
    return fake_virtual ? &clock : NULL;
}
