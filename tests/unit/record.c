/* How a record gets into a ring that is full (trace/record.h), where calls wait for room. The
 * writer is the test's. */
#include "shim/trace/record.h"

#include <errno.h>
#include <pthread.h>

#include "shim/trace/writer.h"
#include "tests/unit/check.h"

static struct cs_thread *thread;
static int looks; /* of a call that waits for room */
static cs_u32 found_inside;
static bool found_cancelable;

static bool drops;
bool cs_writer_blocks(void) { return !drops; }

/* Asked each time round: a signal handler might be what asks. */
bool cs_writer_at_work(void)
{
    int was;
    found_inside = thread->inside;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
    found_cancelable |= was == PTHREAD_CANCEL_ENABLE;
    errno = EINTR;
    if (++looks == 3 && thread->ring.slots)
        cs_store_rel(&thread->ring.tail, cs_load(&thread->ring.head)); /* it has drained the ring */
    REQUIRE(looks < 100);
    return true;
}

static void start(void)
{
    cs_thread_set_ring_size(64 * CS_SLOT);
    thread = cs_thread_start();
    REQUIRE(thread);
}

TEST(a_record_that_waits_for_room_has_its_thread_inside)
{
    start();
    const struct cs_record r = {.begin = 1, .end = 2, .call = CS_CALL_cuStreamQuery};
    errno = ENOMEM;
    while (!looks) cs_record_put(thread, &r);
    int now;
    CHECK_IS(errno, ENOMEM);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &now);
    CHECK(!found_cancelable && now == PTHREAD_CANCEL_ENABLE); /* while it waits, and afterwards */
    CHECK_IS(looks, 3);
    CHECK_IS(found_inside, 1);
    CHECK_IS(thread->inside, 0);
    CHECK_IS(cs_load(&thread->lost), 0);
}

TEST(a_thread_without_a_ring_waits_for_nothing)
{
    start();
    thread->ring = (struct cs_ring){0}; /* there was no memory */
    cs_record_put(thread, &(struct cs_record){.begin = 1, .end = 2, .call = CS_CALL_cuStreamQuery});
    CHECK_IS(looks, 0);
    CHECK_IS(cs_load(&thread->lost), 1);
}

/* --- what is lost --- */

static struct cs_record taken(void)
{
    struct cs_ring *ring = &thread->ring;
    const cs_u64 tail = cs_load(&ring->tail);
    REQUIRE(tail < cs_load(&ring->head));
    const struct cs_record r = *(const struct cs_record *)ring->slots[tail & ring->mask];
    cs_store_rel(&ring->tail, tail + 1);
    return r;
}

TEST(a_gap_is_told_before_the_next_call_that_has_room)
{
    start();
    drops = true;
    cs_u64 n = 0;
    for (; !cs_load(&thread->lost); n++)
        cs_record_put(thread,
            &(struct cs_record){.begin = 10 * n, .end = 10 * n + 5, .call = CS_CALL_cuStreamQuery});
    const cs_u64 kept = n - 1;
    CHECK(cs_load(&thread->lost_begin) == 10 * kept && cs_load(&thread->lost_end) == 10 * kept + 5);
    for (int i = 0; i < 3; i++, n++)
        cs_record_put(thread,
            &(struct cs_record){.begin = 10 * n, .end = 10 * n + 5, .call = CS_CALL_cuStreamQuery});
    CHECK(
        !cs_record_put_if_room(thread, &(struct cs_record){.begin = 10 * n, .call = CS_CALL_SITE}));
    CHECK_IS(cs_load(&thread->lost), 4); /* what is left out without being told of does not count */
    CHECK(cs_load(&thread->lost_begin) == 10 * kept &&
          cs_load(&thread->lost_end) == 10 * (n - 1) + 5);
    for (cs_u64 i = 0; i < 2; i++) CHECK_IS(taken().begin, 10 * i);
    cs_record_put(thread,
        &(struct cs_record){.begin = 10 * n, .end = 10 * n + 5, .call = CS_CALL_cuStreamQuery});
    for (cs_u64 i = 2; i < kept; i++) CHECK_IS(taken().begin, 10 * i);
    const struct cs_record gap = taken(), next = taken();
    CHECK(gap.call == CS_CALL_LOSS && gap.value[0] == 4 && gap.begin == 10 * kept &&
          gap.end == 10 * (n - 1) + 5);
    CHECK(next.call == CS_CALL_cuStreamQuery && next.begin == 10 * n);
    CHECK(!cs_load(&thread->lost) && cs_load(&thread->ring.tail) == cs_load(&thread->ring.head));
    CHECK(cs_record_put_if_room(thread, &(struct cs_record){.begin = 7, .call = CS_CALL_SITE}) &&
          taken().begin == 7);
}
