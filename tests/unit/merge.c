/* The rings of all threads, read in order of time (trace/merge.h). */
#include "shim/trace/merge.h"

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "tests/unit/check.h"

enum { THREADS = 5, SLOTS = 1024 };

static struct cs_thread threads[THREADS];
static _Alignas(CS_SLOT) unsigned char slots[THREADS][SLOTS][CS_SLOT];
static cs_u64 base, taken[THREADS * SLOTS];
static size_t taken_count;
static int were_read[THREADS], were_over[THREADS];

static void take(struct cs_thread *thread, cs_u64 place)
{
    taken[taken_count++] =
        ((const struct cs_record *)thread->ring.slots[place & thread->ring.mask])->end;
}
static void read_one(struct cs_thread *thread, bool over)
{
    were_read[thread - threads]++;
    were_over[thread - threads] += over;
}

static void begin(void)
{
    cs_clock_init();
    REQUIRE(cs_tables_make(CS_TABLES_TRACE, "a test"));
    base = cs_ticks();
    for (cs_u32 i = 0; i < THREADS; i++) {
        threads[i].index = i + 1;
        threads[i].ring.slots = slots[i];
        threads[i].ring.mask = SLOTS - 1;
        threads[i].next = i ? &threads[i - 1] : NULL;
        cs_store(&threads[i].state, CS_THREAD_LIVE);
    }
    cs_store(&cs_threads, &threads[THREADS - 1]);
}

static void called(int thread, cs_u64 end)
{
    struct cs_record *r = cs_ring_claim(&threads[thread].ring);
    REQUIRE(r);
    *r = (struct cs_record){.begin = end, .end = end};
    cs_ring_publish(&threads[thread].ring);
}

TEST(records_come_in_the_order_in_which_calls_ended)
{
    begin();
    for (cs_u64 i = 0; i < 2000; i++) called((int)((i * i + i / 7) % THREADS), i + 1);
    CHECK_IS(cs_merge_pass(take, read_one), 2000);
    CHECK_IS(taken_count, 2000);
    for (cs_u64 i = 0; i < 2000; i++) CHECK_IS(taken[i], i + 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(!cs_load(&threads[i].ring.head) ||
              (were_read[i] == 1 &&
                  cs_load(&threads[i].ring.tail) == cs_load(&threads[i].ring.head)));
    CHECK_IS(cs_merge_pass(take, read_one), 0);
}

/* A thread that has published a call since, or writes with a clock that is ahead, waits for the
 * next pass: what others did before must come first. */
TEST(what_ends_after_the_pass_began_is_for_the_next)
{
    const cs_u64 later = 100000000;
    begin();
    called(0, base);
    called(1, base + 1);
    called(1, cs_ticks() + later);
    called(1, base + 2); /* behind it in its ring */
    called(2, base + 3);
    cs_store(&threads[1].state, CS_THREAD_DONE);
    cs_store(&threads[2].state, CS_THREAD_DONE);
    CHECK_IS(cs_merge_pass(take, read_one), 3);
    CHECK(taken[0] == base && taken[1] == base + 1 && taken[2] == base + 3);
    CHECK(!were_over[0] && !were_over[1] && were_over[2] == 1);
    const cs_u64 until = cs_ticks() + 2 * later;
    while (cs_ticks() < until) continue;
    CHECK_IS(cs_merge_pass(take, read_one), 2);
    CHECK(were_over[1] == 1 && !were_over[0]);
}

TEST(what_belongs_to_the_call_behind_it_stays_before_it)
{
    begin();
    called(0, base + 10);
    called(0, 0); /* where the next call was made: no time */
    called(0, base + 30);
    called(1, base + 20);
    CHECK_IS(cs_merge_pass(take, read_one), 4);
    CHECK(taken[0] == base + 10 && taken[1] == 0 && taken[2] == base + 20 && taken[3] == base + 30);
}

TEST(a_free_state_and_a_thread_without_a_ring_have_nothing)
{
    begin();
    called(0, 1);
    cs_store(&threads[0].state, CS_THREAD_FREE);
    threads[1].ring = (struct cs_ring){.mask = UINT64_MAX};
    cs_store(&threads[1].state, CS_THREAD_DONE);
    CHECK_IS(cs_merge_pass(take, read_one), 0);
    CHECK(!were_read[0] && were_over[1] == 1);
}
