/*
 * Calls of the runtime as CUPTI tells of them, for the thread sanitizer: on several threads, and
 * while the backend comes and goes.
 */
#include <sched.h>
#include <time.h>

#include "tests/unit/cupti_stub.h"

enum { THREADS = 3, CALLS = 20000, LAST = 1000 };

/* --- who listens --- */

static _Atomic bool wanted;
static _Atomic cs_u64 begun, ended;
static __thread cs_u64 open_call;

static cs_u64 begins(cs_u16 turn)
{
    if (!cs_load(&wanted)) return 0;
    cs_add(&begun, 1);
    return open_call = (cs_u64)turn << 32 | 1;
}
static void ends(cs_u16 turn, cs_u64 began, cs_u16 call, int result, cs_u32 correlation)
{
    CHECK(began == open_call && began >> 32 == turn &&
          !strcmp(cs_runtime_name(call), "cudaStreamSynchronize") && !result && correlation);
    cs_add(&ended, 1);
}

/* --- numbers of calls that nobody wanted to hear of --- */

static cs_u32 of_thread[THREADS]; /* by the upper byte of a number */
static cs_u64 last_number[THREADS], arrived, last_arrived;
static void on_call(const struct cs_gpu_call *call)
{
    const cs_u32 who = call->correlation >> 24, number = call->correlation & 0xffffff;
    REQUIRE(who < THREADS);
    CHECK(call->thread == of_thread[who] && call->start && call->start == call->end &&
          number > last_number[who]);
    last_number[who] = number;
    arrived++;
    last_arrived += number > CALLS;
}
static const struct cs_gpu_sink sink = {.call = on_call};

static _Atomic int running;
static void *calls(void *which)
{
    const cs_u32 who = (cs_u32)(uintptr_t)which;
    void *turn = atomic_load(&subscribed);
    for (cs_u32 i = 1; i <= CALLS; i++) make_call(turn, who << 24 | i);
    cs_add(&running, -1);
    while (cs_load(&running)) sched_yield(); /* until all that came before has been fetched */
    for (cs_u32 i = 1; i <= LAST; i++) make_call(turn, who << 24 | (CALLS + i));
    return NULL;
}

TEST(numbers_of_calls_that_are_not_recorded)
{
    pthread_t thread[THREADS];
    stub_begin((struct cs_runtime_listener){begins, ends});
    cs_store(&running, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&thread[i], NULL, calls, (void *)i);
        of_thread[i] = (cs_u32)(uintptr_t)thread[i];
    }
    while (cs_load(&running) > 1) cs_cupti_runtime_drain(&sink);
    cs_cupti_runtime_drain(&sink);
    cs_store(&running, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    cs_cupti_runtime_drain(&sink);
    CHECK_IS(last_arrived, THREADS * LAST);
    CHECK(arrived > last_arrived && !cs_load(&begun));
}

/* --- while the backend comes and goes --- */

static _Atomic bool done;
static void *calls_back(void *unused)
{
    while (!cs_load(&done)) {
        void *turn = atomic_load(&subscribed);
        if (turn) make_call(turn, 1);
    }
    return unused;
}

TEST(it_comes_and_goes)
{
    pthread_t thread[THREADS];
    cs_store(&wanted, true);
    stub_begin((struct cs_runtime_listener){begins, ends});
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, calls_back, NULL);
    for (int i = 0; i < 2000; i++) {
        const cs_u16 turn = cs_load(&cs_runtime_turn);
        CHECK((uintptr_t)atomic_load(&subscribed) == turn);
        CHECK(cs_cupti_runtime_end() && !cs_cupti_runtime_end() && !atomic_load(&subscribed) &&
              cs_load(&cs_runtime_source) == CS_RUNTIME_SYMBOLS);
        CHECK_IS(cs_load(&cs_runtime_turn), turn + 1);
        CHECK(cs_cupti_runtime_begin(true, false));
        if (i % 100 == 0) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    cs_cupti_runtime_claim(); /* for two other clients: until both have left */
    cs_cupti_runtime_claim();
    const int set = cs_load(&kinds_set);
    CHECK(!atomic_load(&subscribed) && !cs_cupti_runtime_begin(true, false));
    cs_cupti_ask_again(); /* the other client has the place: the records of all calls are asked for
                             anew, and nothing else */
    CHECK(!atomic_load(&subscribed) && !cs_load(&refusals) && cs_load(&kinds_set) == set + 4 &&
          cs_cupti_calls_are_all());
    cs_cupti_ask_again();
    CHECK_IS(cs_load(&kinds_set), set + 4);
    cs_cupti_runtime_unclaim();
    cs_cupti_ask_again();
    CHECK(!atomic_load(&subscribed));
    cs_cupti_runtime_unclaim();
    CHECK(!atomic_load(&subscribed));
    cs_cupti_ask_again();
    CHECK(atomic_load(&subscribed) && cs_load(&cs_runtime_source) == CS_RUNTIME_PROFILER);
    cs_cupti_runtime_unclaim(); /* of one that had not claimed */
    cs_cupti_ask_again();
    cs_cupti_runtime_claim();
    CHECK(!atomic_load(&subscribed));
    cs_store(&done, true);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    CHECK(cs_load(&begun) && cs_load(&begun) == cs_load(&ended));
}
