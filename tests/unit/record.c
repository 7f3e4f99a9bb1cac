/* How a record gets into a ring that is full (trace/record.h), where calls wait for room. The writer is the test's. */
#include "shim/trace/record.h"

#include "shim/trace/writer.h"
#include "tests/unit/check.h"

static struct cs_thread *thread;
static int looks; /* of a call that waits for room */
static cs_u32 found_inside;

bool cs_writer_blocks(void) { return true; }

/* Asked each time round: a signal handler might be what asks. */
bool cs_writer_at_work(void)
{
    found_inside = thread->inside;
    if (++looks == 3 && thread->ring.slots) cs_store_rel(&thread->ring.tail, cs_load(&thread->ring.head)); /* it has drained the ring */
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
    while (!looks) cs_record_put(thread, &r);
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
