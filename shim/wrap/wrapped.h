/*
 * A call on its way through its wrapper (wrap/wrappers.c).
 *
 * The short way is in the wrapper itself: recorded, and nothing else is on. All other calls go the long way, whose steps are the functions below. All wrappers
 * share them; what they must know of a call they read in its row of a table (wrap/long.c).
 */
#ifndef CS_WRAP_WRAPPED_H
#define CS_WRAP_WRAPPED_H

#include "shim/calls/real.h"
#include "shim/gpu/mark.h"
#include "shim/policy/hooks.h"
#include "shim/policy/steer.h"
#include "shim/process/process.h"
#include "shim/trace/record.h"
#include "shim/trace/thread_clock.h"

/* What wrappers and effects work with. A wrapper's local whose address nobody else is given, so that it lives in registers. */
struct cs_wrapped {
    struct cs_thread *thread;
    struct cs_long *way;     /* NULL: the short way */
    const void *caller;      /* the wrapper's return address */
    cs_u64 begin, end;       /* ticks around the driver's call; 0 where it is not recorded and no object needs them */
    cs_u16 call;             /* with CS_CALL_MUTED, once it is over */
    bool per_thread;         /* what handle 0 means in the call as it is made */
    bool records;
    CUresult result;         /* the driver's answer, or that of a hook or policy in its place */
    cs_ref stream;           /* where the record says that the work went */
};
#define CS_MADE(w)     ((w)->result == CUDA_SUCCESS)
#define CS_STEERED(w)  (CS_UNLIKELY((w)->way) && (w)->way->steered)        /* hooks and policies have been asked */
#define CS_REFUSED(w)  (CS_STEERED(w) && (w)->way->hook.refused)           /* by a hook: nothing that the call names goes to the driver */
#define CS_ACCEPTED(w) (CS_MADE(w) || (CS_STEERED(w) && (w)->way->steer.accepted)) /* by the driver: a policy's wait may have found an error then */

/* What hooks are told of a call besides its stream, as its effect says. */
struct cs_told {
    CUevent event;
    CUstream stream;
    unsigned flags;
};

/* The long way of one call. */
struct cs_long {
    struct cs_wrapped *wrapped;
    bool steered, stamps;
    bool hooks_alone;  /* where `steered`: there has never been a policy */
    bool only_steered; /* nothing is to be done once the driver has answered: not recorded, no hook, nobody waits */
    bool published;
    bool answered;   /* the driver is not to be called: `answer` is what the call gets */
    CUresult answer;
    CUresult (*instead)(void *state); /* in place of the driver's call; NULL: none */
    void *state;
    CUstream stream; /* of a call that names one: the one to pass */
    CUstream hooked; /* what hooks have put in the place of a handle behind a pointer */
    const struct cs_told *told;
    struct cs_steer steer; /* where `steered`, as is `hook` */
    struct cs_hooked hook;
    struct cs_mark mark;
    struct cs_record *record;
};

/* `where`: the handle that the call names; the address of one that stands behind a pointer of the program's, which is looked at without being relied on; else NULL. */

/* Not cold: a policy for every call comes here at every call.
 * Before the call: enters, asks hooks, then policies. The entry point to call. Without a thread the call is none of ours.
 * `told` may be NULL. */
void *cs_long_begin(struct cs_long *way, struct cs_wrapped *wrapped, cs_u16 call, const void *where, const void *caller, const struct cs_told *told);
/* Right before the driver: marks the stream and takes the time. True: it is not to be called, and `answer` is there. */
bool cs_long_answers(struct cs_long *way, const void *where);
/* Right after it: waits, takes the time, finds the stream, and whether the call is muted. */
void cs_long_done(struct cs_long *way, CUresult result, const void *where);
/* The record, but for its values; NULL: none is made. Then: both in one, of a call without an effect. */
struct cs_record *cs_long_record(struct cs_long *way);
struct cs_record *cs_long_done_record(struct cs_long *way, CUresult result, const void *where);
/* The record has its values. */
void cs_long_publish(struct cs_long *way);
/* Publishes, unless that has been done, tells hooks, and leaves. What the program is answered. */
CUresult cs_long_end(struct cs_long *way, const void *where);

/* The end of a call that is only steered. */
static inline CUresult cs_left(struct cs_wrapped *w, CUresult result)
{
    cs_store(&w->thread->inside, 0);
    return result;
}

/* Where the record says that the work of a call on `handle` went, once the driver has answered `result`. */
cs_ref cs_wrapped_stream(struct cs_thread *thread, CUstream handle, bool per_thread, CUresult result, cs_u64 begin);

/* Ticks right before the driver's call, on the short way: one copy for the calls that are not made most often. */
cs_u64 cs_wrapped_begin(struct cs_thread *thread);

/* Room for the record, filled in but for its values. Inline where calls are made most often; else one copy of it. */
CS_HOT struct cs_record *cs_wrapped_record(struct cs_thread *thread, cs_u16 call, CUresult result, cs_ref stream, cs_u64 begin, cs_u64 end)
{
    struct cs_record *record = cs_record_claim(thread);
    thread->call_ended = end;
    record->begin = begin;
    record->end = end;
    record->call = call;
    record->result = (int16_t)result;
    record->stream = stream;
    record->mark = 0;
    if (CS_UNLIKELY(result != CUDA_SUCCESS)) cs_result_seen(result);
    return record;
}
/* The same of a call that may have held its thread: then the thread's clock is read first. */
struct cs_record *cs_wrapped_record_shared(struct cs_thread *thread, cs_u16 call, CUresult result, cs_ref stream, cs_u64 begin, cs_u64 end);
struct cs_record *cs_wrapped_record_on(struct cs_thread *thread, cs_u16 call, CUresult result, CUstream handle, cs_u64 begin, cs_u64 end);
void cs_wrapped_publish(struct cs_thread *thread, struct cs_record *record);
CUresult cs_wrapped_over(struct cs_thread *thread, struct cs_record *record, CUresult result); /* published, and left */

#endif
