/*
 * What is missing for a while, for the thread sanitizer: several threads find out, one reads.
 */
#include <pthread.h>

#include "shim/base/clock.h"
#include "shim/base/no_room.h"
#include "shim/gpu/backend.h"
#include "tests/unit/check.h"

enum { THREADS = 3, TIMES = 20000 };

static const char *const whys[] = {"first", "second", "third"};

static cs_u64 seen[CS_GPU_PARTS], read_all;
static void read_gaps(void)
{
    struct cs_gpu_gap gap;
    while (cs_gpu_missing_over(&gap)) {
        REQUIRE(gap.part == CS_GPU_TIMES || gap.part == CS_GPU_RUNTIME_CALLS);
        CHECK(gap.why == whys[0] || gap.why == whys[1] || gap.why == whys[2]);
        CHECK(gap.from && gap.until && gap.until <= cs_ticks());
        seen[gap.part]++, read_all++;
    }
}

static _Atomic int running;
static void *finds_out(void *which)
{
    for (int i = 0; i < TIMES; i++) {
        const enum cs_gpu_part part = (enum cs_gpu_part)(i % CS_GPU_PARTS);
        cs_gpu_set_missing(part, whys[(uintptr_t)which]);
        cs_gpu_set_missing(part, NULL);
    }
    cs_add(&running, -1);
    return NULL;
}

TEST(each_stretch_is_read_once)
{
    pthread_t thread[THREADS];
    cs_clock_init();
    cs_store(&running, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, finds_out, (void *)i);
    while (cs_load(&running)) read_gaps();
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    read_gaps();
    CHECK(seen[CS_GPU_TIMES] && seen[CS_GPU_RUNTIME_CALLS]);
    const cs_u64 before = read_all, missed = cs_no_room_count(CS_NO_ROOM_FOR_GAPS);
    read_gaps();
    CHECK_IS(read_all, before);
    for (int i = 0; i < 100; i++)
        cs_gpu_set_missing(CS_GPU_TIMES, whys[0]),
            cs_gpu_set_missing(CS_GPU_TIMES, NULL); /* more than there is room for */
    read_gaps();
    CHECK_IS(read_all, before + 64);
    CHECK_IS(cs_no_room_count(CS_NO_ROOM_FOR_GAPS), missed + 36);
}

TEST(the_end_is_no_stretch)
{
    struct cs_gpu_gap gap;
    cs_u64 since;
    cs_gpu_set_missing(CS_GPU_TIMES, cs_gpu_ended);
    CHECK(cs_gpu_missing(CS_GPU_TIMES, &since) == cs_gpu_ended && since);
    cs_gpu_set_missing(CS_GPU_TIMES, whys[0]);
    CHECK(!cs_gpu_missing_over(&gap));
    cs_gpu_set_missing(CS_GPU_TIMES, NULL);
    CHECK(cs_gpu_missing_over(&gap) && gap.part == CS_GPU_TIMES && gap.why == whys[0] &&
          gap.from <= gap.until && !cs_gpu_missing_over(&gap));
    cs_gpu_set_missing(CS_GPU_TIMES, whys[0]);
    cs_gpu_set_missing(CS_GPU_TIMES, whys[1]);
    cs_gpu_missing_after_fork_in_child();
    CHECK(!cs_gpu_missing(CS_GPU_TIMES, &since) && !cs_gpu_missing_over(&gap));
}
