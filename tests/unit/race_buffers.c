/* Races, for the thread sanitizer: the store of CUPTI's buffers between threads that take and fill
 * them and the writer, which reads, clears and gives pages back. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "shim/gpu/cupti.h"
#include "tests/unit/check.h"

enum { THREADS = 80, ROUNDS = 30 };

static _Atomic unsigned wrong, running;

static CUptiResult CUPTIAPI no_record(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    return (void)buffer, (void)valid, (void)record, CUPTI_ERROR_MAX_LIMIT_REACHED;
}

/* The clock goes fast, so that pages are given back all the time. */
int clock_gettime(clockid_t which, struct timespec *now)
{
    static _Atomic long seconds;
    return (void)which, *now = (struct timespec){cs_add(&seconds, 1), 0}, 0;
}

static void *fill(void *own)
{
    uint8_t *at;
    size_t size, most;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (at = NULL; !at; cs_cupti_buffer_requested(&at, &size, &most))
            usleep(100); /* all may be full */
        const size_t used = size < 100000 ? size : 40000;
        wrong += at[0] || at[used - 1];
        memset(at, (int)(uintptr_t)own, used);
        for (size_t i = 0; i < used; i += 997) wrong += at[i] != (uint8_t)(uintptr_t)own;
        cs_cupti_buffer_completed(NULL, 0, at, size, used);
    }
    return cs_add(&running, (unsigned)-1), NULL;
}

TEST(takers_and_the_writer)
{
    static const struct cs_gpu_sink sink;
    pthread_t threads[THREADS];
    static const struct cs_cupti stub = {.cuptiActivityGetNextRecord = no_record};
    cs_store_rel(&cs_cupti_opened, &stub);
    cs_cupti_buffers_ready();
    running = THREADS;
    for (uintptr_t n = 0; n < THREADS; n++)
        CHECK(!pthread_create(&threads[n], NULL, fill, (void *)(n + 1)));
    while (atomic_load(&running)) cs_cupti_buffers_drain(&sink);
    for (unsigned n = 0; n < THREADS; n++) pthread_join(threads[n], NULL);
    CHECK_IS(wrong, 0);
}
