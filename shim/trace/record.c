#include "shim/trace/record.h"

#include <time.h>

#include "shim/base/keep.h"
#include "shim/trace/writer.h"

/* The gap, as a record of its own, as soon as there is room for it and for the call after it. */
static bool tell_loss(struct cs_thread *thread)
{
    cs_u64 count = cs_load(&thread->lost);
    if (!count) return true;
    struct cs_record *record = cs_ring_claim(&thread->ring);
    if (!record) return false;
    *record = (struct cs_record){
        .begin = cs_load(&thread->lost_begin), .end = cs_load(&thread->lost_end), .call = CS_CALL_LOSS, .value = {count}};
    cs_store(&thread->lost, 0); /* before the record is seen: the writer adds up both */
    cs_ring_publish(&thread->ring);
    return true;
}

static struct cs_record *wait_for_room(struct cs_thread *thread)
{
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    struct cs_record *record;
    while (!(record = cs_ring_claim(&thread->ring)) && cs_writer_at_work() && !cs_ring_is_stuck(&thread->ring)) nanosleep(&(struct timespec){0, 50000}, NULL);
    return record;
}

struct cs_record *cs_record_claim_slowly(struct cs_thread *thread)
{
    struct cs_record *record = NULL;
    if (thread == &cs_orphan) { /* the thread's next call starts afresh */
        cs_self = NULL;
        return (struct cs_record *)thread->spare;
    }
    if (tell_loss(thread)) record = cs_ring_claim(&thread->ring);
    if (!record && thread->ring.slots && cs_writer_blocks()) record = wait_for_room(thread);
    if (record) return record;
    cs_ring_look_again(&thread->ring); /* and the next call tells of the loss first */
    return (struct cs_record *)thread->spare;
}

static bool put(struct cs_thread *thread, const struct cs_record *filled, bool counts)
{
    const cs_u32 inside = cs_load(&thread->inside);
    cs_store(&thread->inside, CS_INSIDE_OURS);
    atomic_signal_fence(memory_order_seq_cst);
    struct cs_record *record = cs_record_claim(thread);
    const bool room = (unsigned char *)record != thread->spare;
    *record = *filled;
    if (room || counts) cs_record_publish(thread, record);
    atomic_signal_fence(memory_order_seq_cst);
    cs_store(&thread->inside, inside);
    return room;
}

void cs_record_put(struct cs_thread *thread, const struct cs_record *filled) { put(thread, filled, true); }
bool cs_record_put_if_room(struct cs_thread *thread, const struct cs_record *filled) { return put(thread, filled, false); }

void cs_record_lost(struct cs_thread *thread, cs_u64 begin, cs_u64 end)
{
    if (!cs_load(&thread->lost)) cs_store(&thread->lost_begin, begin);
    cs_store(&thread->lost_end, end);
    cs_store_rel(&thread->lost, cs_load(&thread->lost) + 1);
}
