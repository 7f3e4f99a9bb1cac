/* The store of buffers that CUPTI fills: many threads that ask at once, and one that asks while the
 * writer gives pages back. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "shim/gpu/cupti.h"
#include "tests/unit/check.h"

enum { THREADS = 200, SMALL = 32 << 10, ALL = 64 + 64 * 64 };

/* A mapping, and giving pages back, take as long as on a machine with other work. */
static _Atomic int pause_us;
int munlock(const void *at, size_t bytes)
{
    return (void)at, (void)bytes, usleep((useconds_t)pause_us), 0;
}
int madvise(void *at, size_t bytes, int advice)
{
    if (advice == MADV_DONTNEED) usleep((useconds_t)pause_us);
    return (int)syscall(SYS_madvise, at, bytes, advice);
}

static CUptiResult CUPTIAPI no_record(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    return (void)buffer, (void)valid, (void)record, CUPTI_ERROR_MAX_LIMIT_REACHED;
}

static uint8_t *taken[ALL];
static size_t sizes[ALL];

static bool request(unsigned n)
{
    size_t most = 0;
    cs_cupti_buffer_requested(&taken[n], &sizes[n], &most);
    return taken[n] && sizes[n];
}

static void *request_one(void *n) { return request((unsigned)(uintptr_t)n) ? n : NULL; }

/* Nobody has what another has: each writes its number at the begin and the end, and finds it there.
 */
static void check_apart(unsigned count)
{
    for (unsigned n = 0; n < count; n++) {
        if (!taken[n]) continue;
        memcpy(taken[n], &n, sizeof n);
        memcpy(taken[n] + sizes[n] - sizeof n, &n, sizeof n);
    }
    for (unsigned n = 0, wrong = 0; n < count; n++) {
        if (!taken[n]) continue;
        wrong +=
            memcmp(taken[n], &n, sizeof n) || memcmp(taken[n] + sizes[n] - sizeof n, &n, sizeof n);
        CHECK_IS(wrong, 0);
    }
}

TEST(many_threads_ask_at_once)
{
    pthread_t threads[THREADS];
    unsigned got = 0;
    pause_us = 20000;
    for (uintptr_t n = 0; n < THREADS; n++)
        CHECK(!pthread_create(&threads[n], NULL, request_one, (void *)(n + 1)));
    for (unsigned n = 0; n < THREADS; n++) {
        void *result;
        pthread_join(threads[n], &result);
        got += result != NULL;
    }
    CHECK_IS(got, THREADS);
    check_apart(THREADS + 1);
}

static void *drain(void *sink) { return cs_cupti_buffers_drain(sink), NULL; }

TEST(who_asks_while_pages_are_given_back_is_given_one)
{
    static const struct cs_gpu_sink sink;
    enum { KEPT = 100 };
    pthread_t writer;
    static const struct cs_cupti stub = {.cuptiActivityGetNextRecord = no_record};
    cs_store_rel(&cs_cupti_opened, &stub);
    for (unsigned n = 0; n < ALL; n++) CHECK(request(n));
    for (unsigned n = ALL - KEPT; n < ALL; n++) {
        CHECK_IS(sizes[n], SMALL);
        memset(taken[n], 1, SMALL);
        cs_cupti_buffer_completed(NULL, 0, taken[n], SMALL, SMALL);
    }
    cs_cupti_buffers_drain(&sink);
    usleep(1100000);
    pause_us = 5000;
    CHECK(!pthread_create(&writer, NULL, drain, (void *)&sink));
    usleep(20000);
    for (unsigned n = ALL - KEPT; n < ALL - 1; n++)
        CHECK(request(n)); /* one may be in the writer's hands */
    pthread_join(writer, NULL);
    CHECK(request(ALL - 1));
    uint8_t *const last = taken[ALL - 1];
    CHECK(!request(ALL - 1)); /* now there is none: what the writer had is there once */
    taken[ALL - 1] = last, sizes[ALL - 1] = SMALL;
    for (unsigned n = ALL - KEPT; n < ALL; n++)
        for (unsigned i = 0; i < SMALL; i += 512) CHECK_IS(taken[n][i], 0);
    check_apart(ALL);
}

TEST(no_memory_costs_no_buffer)
{
    struct rlimit before, none;
    CHECK(!getrlimit(RLIMIT_AS, &before));
    CHECK(request(0));
    none = before, none.rlim_cur = 1 << 20;
    captured_begin();
    CHECK(!setrlimit(RLIMIT_AS, &none));
    for (unsigned n = 0; n < 10 * ALL; n++) CHECK(!request(1));
    CHECK(!setrlimit(RLIMIT_AS, &before));
    CHECK_TEXT(captured_end(), "custream: error: the system has no memory, or no thread, for the "
                               "profiler's records; work has no times\n");
    for (unsigned n = 1; n < ALL; n++) CHECK(request(n));
}
