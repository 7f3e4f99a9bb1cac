/*
 * Another client of CUPTI, for the thread sanitizer: several threads bring it records while it
 * listens, listens no more and listens again. It gets each of its buffers back once, and before it
 * is told that all has been flushed.
 */
#include <pthread.h>
#include <sched.h>

#include "shim/base/clock.h"
#include "shim/base/options.h"
#include "shim/gpu/share.h"
#include "tests/unit/check.h"

enum {
    THREADS = 3,
    RECORDS = 4,
    SESSIONS = 3000,
    BUFFERS = 64,
    ROOM = 3 * sizeof(CUpti_ActivityDevice5)
};
static const CUpti_ActivityKind KIND = CUPTI_ACTIVITY_KIND_DEVICE; /* without times */

/* --- CUPTI --- */

static CUptiResult CUPTIAPI stub_enable(CUpti_ActivityKind kind)
{
    return (void)kind, CUPTI_SUCCESS;
}
static CUptiResult CUPTIAPI stub_flush(uint32_t flag) { return (void)flag, CUPTI_SUCCESS; }
static CUptiResult CUPTIAPI stub_next(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + sizeof(CUpti_ActivityDevice5) : buffer;
    if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    return *record = (CUpti_Activity *)next, CUPTI_SUCCESS;
}

static void bring(void)
{
    CUpti_ActivityDevice5 ours[RECORDS];
    for (int i = 0; i < RECORDS; i++) ours[i].kind = KIND;
    cs_share_completed((const uint8_t *)ours, sizeof ours);
}

/* --- the client --- */

static struct {
    _Atomic int state; /* 0: its own, 1: handed out */
    uint8_t bytes[ROOM] __attribute__((aligned(8)));
} buffers[BUFFERS];
static _Atomic int out, requests, completions, records;
static _Atomic bool holds; /* the next request takes until it does not */

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most)
{
    cs_add(&requests, 1);
    while (cs_load_acq(&holds)) sched_yield();
    for (int i = 0; i < BUFFERS; i++) {
        int own = 0;
        if (!atomic_compare_exchange_strong(&buffers[i].state, &own, 1)) continue;
        atomic_fetch_add(&out, 1);
        *buffer = buffers[i].bytes;
        *size = ROOM - (size_t)(i & 1) * 8; /* of two sizes: each has its own */
        *most = 0;
        return;
    }
    REQUIRE(false);
}

static void CUPTIAPI completed(
    CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream;
    const size_t i = (size_t)(buffer - buffers[0].bytes) / sizeof buffers[0];
    REQUIRE(i < BUFFERS && buffer == buffers[i].bytes);
    CHECK_IS(size, ROOM - (i & 1) * 8);
    CHECK(valid <= size && valid % sizeof(CUpti_ActivityDevice5) == 0);
    cs_add(&records, (int)(valid / sizeof(CUpti_ActivityDevice5)));
    cs_add(&completions, 1);
    memset(buffer, 0xff, ROOM); /* it does with it what it likes */
    atomic_fetch_sub(&out, 1);
    CHECK_IS(atomic_exchange(&buffers[i].state, 0), 1);
}

static uint64_t CUPTIAPI ticks(void) { return cs_ticks(); }

static void client_begins(void)
{
    cs_options_read();
    cs_clock_init();
    static const struct cs_cupti stub = {
        .cuptiActivityEnable = stub_enable,
        .cuptiActivityDisable = stub_enable,
        .cuptiActivityFlushAll = stub_flush,
        .cuptiActivityGetNextRecord = stub_next,
    };
    cs_store_rel(&cs_cupti_opened, &stub);
    REQUIRE(cs_share_begin());
    CHECK_IS(cs_share_cuptiActivityRegisterTimestampCallback(ticks), CUPTI_SUCCESS);
    CHECK_IS(cs_share_cuptiActivityRegisterCallbacks(requested, completed), CUPTI_SUCCESS);
    CHECK_IS(cs_share_cuptiActivityEnable(KIND), CUPTI_SUCCESS);
}

static void client_ends(void)
{
    CHECK_IS(cs_share_cuptiActivityDisable(KIND), CUPTI_SUCCESS);
    CHECK_IS(cs_share_cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    CHECK_IS(cs_load(&out), 0);
}

/* --- the tests --- */

static void *ends(void *unused) { return client_ends(), unused; }
static void *brings(void *unused) { return bring(), unused; }

TEST(it_leaves_while_it_is_asked_for_a_buffer)
{
    pthread_t leaves, serves;
    client_begins();
    CHECK_IS(cs_load(&requests), 1);
    cs_store_rel(&holds, true);
    pthread_create(
        &serves, NULL, brings, NULL); /* takes the one that is out, and asks for the next */
    while (cs_load(&requests) < 2) sched_yield();
    pthread_create(&leaves, NULL, ends, NULL);
    while (cs_share_serves()) sched_yield(); /* it has begun to leave, and waits */
    for (int i = 0; i < 1000; i++) sched_yield();
    cs_store_rel(&holds, false);
    pthread_join(serves, NULL);
    pthread_join(leaves, NULL);
    CHECK_IS(cs_load(&out), 0);
    CHECK_IS(cs_load(&records), RECORDS);
}

TEST(two_are_asked_for_at_once)
{
    pthread_t threads[2];
    client_begins();
    bring();
    cs_store(&requests, 0);
    cs_store_rel(&holds, true);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, brings, NULL);
    while (cs_load(&requests) < 2)
        sched_yield(); /* one has the spare, and then wants another; the other wants one */
    cs_store_rel(&holds, false);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    CHECK_IS(cs_load(&out), 1);
    client_ends();
    CHECK_IS(cs_load(&records), 3 * RECORDS);
}

static _Atomic bool done;
static void *bring_all_the_time(void *unused)
{
    while (!cs_load(&done)) bring(), sched_yield();
    return unused;
}

/* Not ours, so that it is asked for each buffer; others get on meanwhile. */
static uint64_t CUPTIAPI other_clock(void) { return sched_yield(), cs_ticks() / 2; }

static void *chooses_clocks(void *unused)
{
    uint64_t now;
    for (int i = 0; i < SESSIONS; i++) {
        CHECK_IS(cs_share_cuptiActivityRegisterTimestampCallback(i % 2 ? ticks : other_clock),
            CUPTI_SUCCESS);
        CHECK_IS(cs_share_cuptiGetTimestamp(&now), CUPTI_SUCCESS);
    }
    cs_store(&done, true);
    return unused;
}

TEST(it_chooses_a_clock_while_two_threads_bring_records)
{
    pthread_t threads[3];
    client_begins();
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, i ? bring_all_the_time : chooses_clocks, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    client_ends();
}

TEST(it_comes_and_goes)
{
    pthread_t threads[THREADS];
    client_begins();
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, bring_all_the_time, NULL);
    for (int i = 0; i < SESSIONS; i++) {
        client_ends();
        if (i % 100 == 0) sched_yield();
        CHECK_IS(cs_share_cuptiActivityEnable(KIND),
            CUPTI_SUCCESS); /* it listens again, without registering again */
    }
    client_ends();
    cs_store(&done, true);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_IS(cs_load(&out), 0);
    CHECK(cs_load(&records) && cs_load(&requests) == cs_load(&completions));
}
