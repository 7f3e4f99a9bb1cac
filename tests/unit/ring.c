/* The ring between an application thread and the writer, and what happens when it is full
 * (base/ring.h, trace/record.h). */
#include "shim/base/ring.h"

#include <sys/mman.h>

#include "shim/base/memory.h"
#include "shim/trace/record.h"
#include "tests/unit/check.h"

static struct cs_ring ring_new(size_t slots)
{
    struct cs_ring ring = {.slots = cs_memory_map(slots * CS_SLOT, "a test"), .mask = slots - 1};
    REQUIRE(ring.slots);
    return ring;
}

static bool push(struct cs_ring *ring, cs_u64 value)
{
    cs_u64 *slot = cs_ring_claim(ring);
    if (!slot) return false;
    for (int i = 0; i < CS_SLOT / 8; i++) slot[i] = value + (cs_u64)i;
    cs_ring_publish(ring);
    return true;
}

static cs_u64 pop(struct cs_ring *ring)
{
    cs_u64 tail = cs_load(&ring->tail);
    REQUIRE(tail < cs_load_acq(&ring->head));
    cs_u64 *slot = (cs_u64 *)ring->slots[tail & ring->mask], value = slot[0];
    for (int i = 0; i < CS_SLOT / 8; i++) CHECK_IS(slot[i], value + (cs_u64)i);
    cs_store_rel(&ring->tail, tail + 1);
    return value;
}

TEST(holds_as_many_as_it_has_slots)
{
    struct cs_ring ring = ring_new(8);
    for (cs_u64 i = 0; i < 8; i++) CHECK(push(&ring, i * 100));
    CHECK(!cs_ring_claim(&ring));
    CHECK(!cs_ring_claim(&ring));
    CHECK_IS(pop(&ring), 0);
    CHECK(push(&ring, 800));
    CHECK(!push(&ring, 900));
    for (cs_u64 i = 1; i <= 8; i++) CHECK_IS(pop(&ring), i * 100);
    CHECK_IS(cs_load(&ring.head), cs_load(&ring.tail));
}

TEST(a_claim_without_publish_is_given_again)
{
    struct cs_ring ring = ring_new(4);
    void *slot = cs_ring_claim(&ring);
    CHECK(slot && cs_ring_claim(&ring) == slot);
    CHECK_IS(cs_load(&ring.head), 0);
    cs_ring_publish(&ring);
    CHECK(cs_ring_claim(&ring) != slot);
}

TEST(wraps_many_times)
{
    struct cs_ring ring = ring_new(4);
    cs_u64 in = 0, out = 0;
    for (int round = 0; round < 100000; round++) {
        for (int i = 0; i < 1 + round % 4; i++) CHECK(push(&ring, in++ * 10));
        for (int i = 0; i < 1 + round % 4; i++) CHECK_IS(pop(&ring), out++ * 10);
    }
}

TEST(goes_on_past_the_end_of_its_counters)
{
    struct cs_ring ring = ring_new(4);
    cs_store(&ring.head, UINT64_MAX - 1);
    cs_store(&ring.tail, UINT64_MAX - 1);
    for (cs_u64 i = 0; i < 4; i++) CHECK(push(&ring, i));
    CHECK(!push(&ring, 4));
    CHECK_IS(cs_load(&ring.head), 2);
}

/* The thread's ring, drained of its oldest `n` records; calls in them and calls they say were lost
 * are counted. */
static cs_u64 calls, lost;
static void drain(struct cs_thread *t, cs_u64 n)
{
    for (cs_u64 tail = cs_load(&t->ring.tail); n && tail < cs_load(&t->ring.head); n--, tail++) {
        const struct cs_record *r = (const struct cs_record *)t->ring.slots[tail & t->ring.mask];
        if (r->call == CS_CALL_LOSS) lost += r->value[0];
        else calls++;
        cs_store_rel(&t->ring.tail, tail + 1);
    }
}

static bool call(struct cs_thread *t, cs_u64 time)
{
    struct cs_record *r = cs_record_claim(t);
    REQUIRE(r);
    *r = (struct cs_record){.begin = time, .end = time + 1, .call = 1};
    cs_record_publish(t, r);
    return (unsigned char *)r != t->spare;
}

TEST(calls_that_find_it_full_are_counted)
{
    cs_thread_set_ring_size(1024);
    struct cs_thread *t = cs_thread_start();
    REQUIRE(t && t->ring.mask == 15);
    for (cs_u64 i = 0; i < 16; i++) CHECK(call(t, i * 10));
    for (cs_u64 i = 16; i < 20; i++) CHECK(!call(t, i * 10));
    CHECK_IS(cs_load(&t->lost), 4);
    CHECK_IS(cs_load(&t->lost_begin), 160);
    CHECK_IS(cs_load(&t->lost_end), 191);
    drain(t, 1); /* room for the gap's own record, not yet for a call: it is lost too, and counted
                    for the next gap */
    CHECK(!call(t, 200));
    CHECK_IS(cs_load(&t->lost), 1);
    CHECK_IS(cs_load(&t->lost_begin), 200);
    drain(t, 100);
    CHECK(call(t, 300));
    drain(t, 100);
    CHECK_IS(calls, 17);
    CHECK_IS(lost, 5);
    CHECK_IS(cs_load(&t->lost), 0);
}

TEST(every_call_is_recorded_or_counted)
{
    unsigned seed = 7;
    cs_thread_set_ring_size(1024);
    struct cs_thread *t = cs_thread_start();
    for (cs_u64 i = 0; i < 200000; i++) {
        call(t, i * 10);
        seed = seed * 1664525 + 1013904223;
        if (!(seed >> 28)) drain(t, seed >> 24 & 15);
    }
    drain(t, 100);
    CHECK(lost > 1000);
    CHECK_IS(calls + lost + cs_load(&t->lost), 200000);
}

TEST(ring_size_is_a_power_of_two)
{
    cs_thread_set_ring_size(100000);
    struct cs_thread *t = cs_thread_start();
    REQUIRE(t);
    CHECK_IS((t->ring.mask + 1) * CS_SLOT, 65536);
}

static size_t pages_of(const struct cs_thread *t)
{
    enum { PAGE = 4096 };
    const size_t bytes = (t->ring.mask + 1) * CS_SLOT;
    static unsigned char there[1 << 12];
    size_t count = 0;
    REQUIRE(bytes / PAGE <= sizeof there && !mincore(t->ring.slots, bytes, there));
    for (size_t i = 0; i < bytes / PAGE; i++) count += there[i] & 1;
    return count;
}

TEST(the_ring_of_a_thread_that_has_ended_takes_no_memory)
{
    cs_thread_set_ring_size(1 << 20);
    struct cs_thread *t = cs_thread_start();
    REQUIRE(t);
    for (cs_u64 i = 0; i < (1 << 20) / CS_SLOT; i++) CHECK(call(t, i * 10));
    CHECK(pages_of(t) > 200);
    drain(t, UINT64_MAX);
    cs_thread_recycle(t);
    CHECK_IS(pages_of(t), 0);
}
