/*
 * The record of one call: 64 bytes, written once by the thread that made the call, read once by the writer thread.
 *
 * Numbers only; every text is a number of shim/object/names.h, every object a reference. What the four values mean is told by the call's
 * row in the table (cs_call_info).
 */
#ifndef CS_TRACE_RECORD_H
#define CS_TRACE_RECORD_H

#include "shim/calls/calls.h"
#include "shim/object/thread.h"

struct cs_record {
    cs_u64 begin, end;  /* ticks around the driver's call */
    cs_u16 call;        /* enum cs_call; with CS_CALL_MUTED it is not to be shown, and stands here for the sake of its work's times */
    int16_t result;     /* CUresult */
    cs_ref stream;      /* where the work went; 0 none or unknown */
    cs_u64 mark;        /* of a call that puts work on a GPU: struct cs_mark's number; else undefined */
    cs_u64 value[CS_VALUES];
};
enum { CS_CALL_MUTED = 1 << 15 };
_Static_assert((int)CS_CALL_COUNT < (int)CS_CALL_MUTED, "the bit is free");
_Static_assert(sizeof(struct cs_record) == CS_SLOT, "a record is one slot of the ring, one cache line");

/* Every record but a wrapper's own goes in here: filled by the caller, copied into the thread's ring as one step. A signal handler that comes in between
 * finds the thread inside, as in a wrapper: its calls of CUDA are made and not recorded, so no two ever hold the same slot. The thread's own alone. */
void cs_record_put(struct cs_thread *thread, const struct cs_record *filled);
bool cs_record_put_if_room(struct cs_thread *thread, const struct cs_record *filled); /* a full ring takes it not, and does not count it as lost */

/* --- the wrappers' way, inline: they are inside (struct cs_thread) from before the claim until after the publish --- */

CS_COLD struct cs_record *cs_record_claim_slowly(struct cs_thread *thread);
CS_COLD void cs_record_lost(struct cs_thread *thread, cs_u64 begin, cs_u64 end);

/* Room for the record of a call that is about to be made. Never NULL: where the ring is full (and CUSTREAM_FULL is not block) it is the
 * thread's spare slot, and publishing that counts the call as lost. */
CS_HOT struct cs_record *cs_record_claim(struct cs_thread *thread)
{
    struct cs_record *record = cs_ring_claim_fast(&thread->ring);
    return CS_LIKELY(record) ? record : cs_record_claim_slowly(thread);
}

/* The record is filled. */
CS_HOT void cs_record_publish(struct cs_thread *thread, struct cs_record *record)
{
    if (CS_LIKELY((unsigned char *)record != thread->spare)) cs_ring_publish(&thread->ring);
    else cs_record_lost(thread, record->begin, record->end);
}

#endif
