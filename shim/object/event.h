/*
 * Our object for each CUDA event: who made it, and where it was last recorded, so that a wait can point back at its cause.
 *
 * Lives like a stream object (stream.h). The last record is three words behind a sequence number: one recorder writes at a time, a second one that comes
 * at the same moment leaves the field to the first, and readers that meet a writer try again. Nobody waits.
 */
#ifndef CS_OBJECT_EVENT_H
#define CS_OBJECT_EVENT_H

#include "shim/object/context.h"
#include "shim/object/names.h"

struct cs_event {
    struct cs_object object;
    _Atomic cs_u64 handle;
    _Atomic cs_ref context; /* stored after what stands above, for the walk over all events when a context ends */
    unsigned flags;
    cs_u32 number; /* of this event among all of the process, from 1, never reused: what the trace shows */
    cs_u16 call; /* enum cs_call; 0 if adopted */
    cs_name library;
    cs_u64 created;
    _Atomic cs_u64 ended;
    _Atomic cs_name name; /* that the program gave it; 0 none */
    _Atomic bool captured; /* its last record went into a capture, as far as a policy needs to know (policy/serial.c) */
    _Atomic bool elsewhere; /* some of its records are no call of this process: a graph's, a launch's, another process's. For good */

    _Atomic cs_u32 sequence; /* odd while the three below are being written */
    _Atomic cs_u32 recorded_tid;
    _Atomic cs_u32 recorded_stream;
    _Atomic cs_u64 recorded; /* ticks at which that record call began; 0: never recorded */
};

/* The record that a wait waits for, in the form of the two values a record of the ring carries. */
struct cs_cause {
    cs_u64 ticks; /* 0: none known */
    cs_u64 where; /* thread id | stream reference << 32 */
};

/* Of an event that is recorded elsewhere too the last call that recorded it is sure only for waits that join a capture (trace/timeline.c). The second takes the
 * place of `where` where it is not. */
#define CS_CAUSE_UNSURE    ((cs_u64)1 << 63) /* a bit of `ticks` */
#define CS_CAUSE_ELSEWHERE ((cs_u64)1)

/* Ticks: since then, no record of an event has gone unseen. What was recorded before may have been recorded anew while calls were not (process/window.c). */
extern _Atomic cs_u64 cs_events_known_since;

extern struct cs_pool cs_events;
CS_HIDDEN extern struct cs_map cs_event_handles;

bool cs_events_init(void);
cs_ref cs_event_created(struct cs_thread *thread, CUevent handle, unsigned flags, cs_u16 call, const void *caller, cs_u64 ticks);
cs_ref cs_event_destroying(CUevent handle);
void cs_event_destroyed(cs_ref event, bool done, cs_u64 ticks);
void cs_events_end_with(cs_ref context);

/* The event a handle means, where a live one is known. */
CS_HOT cs_ref cs_event_find(CUevent handle)
{
    cs_u64 value = cs_map_get(&cs_event_handles, (uintptr_t)handle);
    return CS_LIKELY(!(value & CS_MAP_DEAD)) ? (cs_ref)value : 0;
}

/* The event that a call which began at `begin` meant: also the dead one that the handle last stood for, and, if the driver accepted the call, one
 * that we did not see created. 0 where there is none. */
cs_ref cs_event_of(struct cs_thread *thread, CUevent handle, bool accepted, cs_u64 begin);

void cs_event_named(CUevent handle, cs_name name); /* the program's own name for a live event */
void cs_event_recorded(cs_ref event, cs_u64 begin, cs_u32 tid, cs_ref stream); /* after the record of that call is in the ring */
void cs_event_elsewhere(cs_ref event); /* records of it will go unseen */
struct cs_cause cs_event_cause(CUevent handle);

#endif
