/*
 * How a record gets into its thread's ring (match/record.h says what one is).
 */
#ifndef CS_TRACE_RECORD_H
#define CS_TRACE_RECORD_H

#include "shim/match/record.h"
#include "shim/object/thread.h"

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
    return CS_LIKELY(cs_ring_has_room(&thread->ring)) ? cs_ring_next(&thread->ring) : cs_record_claim_slowly(thread);
}

/* The record is filled. */
CS_HOT void cs_record_publish(struct cs_thread *thread, struct cs_record *record)
{
    if (CS_LIKELY((void *)record == (void *)thread->ring.next)) cs_ring_publish(&thread->ring);
    else cs_record_lost(thread, record->begin, record->end);
}

#endif
