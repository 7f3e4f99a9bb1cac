/*
 * Our object for each CUDA stream.
 *
 * Made when the program creates the stream, or at first sight: default streams (one legacy a context, one per-thread a context and thread) and
 * streams that came by a way that was not wrapped, which are marked adopted. From handle to object without a lock; a handle that the driver hands
 * out again is a new object. Objects outlive their stream until the writer has drained every record that names them.
 */
#ifndef CS_OBJECT_STREAM_H
#define CS_OBJECT_STREAM_H

#include "shim/object/context.h"
#include "shim/object/names.h"

enum cs_stream_origin { CS_STREAM_CREATED, CS_STREAM_ADOPTED, CS_STREAM_LEGACY, CS_STREAM_PER_THREAD };

struct cs_stream {
    struct cs_object object;
    /* constant once the object is in the map */
    _Atomic cs_u64 key; /* the handle; synthetic for default streams */
    _Atomic cs_ref context; /* stored after the key, for the walk over all streams when a context ends */
    int device;
    cs_u32 gpu_id; /* the profiler's number of it; 0 where there is no profiler */
    cs_u32 lane; /* of the timeline: the profiler's number, else 7 for a device's first legacy stream and others from 13; never reused */
    _Atomic enum cs_stream_origin origin; /* who walks over all may look when the place is another's */
    unsigned flags; /* 0 while unasked */
    int priority_asked;           /* before the driver clamped it */
    _Atomic int priority;         /* and after; a rule for its name may change it */
    cs_u16 call;                  /* enum cs_call that created it; 0 if adopted */
    cs_u32 tid;                   /* thread that created it */
    cs_name library;              /* that created it */
    cs_u64 green;                 /* the handle of its green context; 0 none */
    cs_u64 created;               /* ticks */

    char owner[16];               /* of a per-thread stream: its thread's name */

    /* what a policy made of it; written before its creation, or first use, is recorded, or at any time by a rule for its name: then `rule` last */
    unsigned flags_asked;
    _Atomic cs_u16 rule; /* index + 1 of the rule that matched it; 0 none */
    _Atomic bool rule_found;     /* by its name: a thread is at it, or was */
    _Atomic bool steered;        /* it is not what was asked for */
    _Atomic bool priority_ruled; /* a rule has set its priority */
    _Atomic bool redirected; /* a default stream: calls that asked for another one go to it */
    _Atomic bool muted;  /* its calls are left out of the trace */
    bool ours;           /* the program did not ask for it: it carries the work of others (policy/serial.c) */
    bool unseen;         /* and nobody ever has: it is not shown */
    bool serial;         /* it has a carrier */
    _Atomic bool ordered;        /* whose work comes after its own, from before there was one */
    cs_u16 share_place;           /* in its pool, from 1; 0: it is in none (policy/shares.c) */
    _Atomic cs_u32 shares, shares_most; /* who was given it and has not destroyed it: now, and at most */
    _Atomic cs_u32 ordinal;      /* among those that the program made, from 1 (policy/jitter.c); 0 not yet counted */
    _Atomic cs_u32 operations;   /* that might have been delayed so far */

    _Atomic bool unasked;         /* it captured when it was first seen, and its flags cannot be asked for in a capture */
    _Atomic bool filled;          /* the above is */
    _Atomic cs_u64 ended;         /* ticks; 0 while it lives */
    _Atomic cs_u64 capture_began; /* ticks; 0 while it does not capture */
    _Atomic cs_name name;         /* that the program gave it; 0 none */
};

enum { CS_STREAMS = 1 << 16, CS_STREAMS_LOG2 = 17 }; /* kept at once; slots of the table of handles */
extern struct cs_pool cs_streams;
CS_HIDDEN extern struct cs_map cs_stream_handles;

bool cs_streams_init(void);

/* The profiler's number of a stream: the GPU backend's, NULL where it has none. Called on the application's thread, when an object is made. */
typedef bool cs_stream_gpu_id_fn(CUcontext context, CUstream stream, bool per_thread, cs_u32 *id);
extern cs_stream_gpu_id_fn *_Atomic cs_stream_gpu_id;

/* A lane for a stream of that number (0: unknown): no other stream of the device has it. */
cs_u32 cs_stream_lane(int device, cs_u32 gpu_id, bool legacy);

/* A stream that a wrapped call has just created. `priority_asked` as the program gave it; `call` an enum cs_call. */
cs_ref cs_stream_created(struct cs_thread *thread, CUstream handle, unsigned flags, int priority_asked, cs_u16 call, const void *caller, cs_u64 ticks);

/* Its priority as the driver tells it; where it tells none it stays. */
void cs_stream_ask_priority(struct cs_stream *stream, CUstream handle);

/* Around the driver's destroy: from here on the handle belongs to nobody, since the driver may hand it out again before its call returns. Then
 * the outcome: ended, or alive again where the driver refused. */
cs_ref cs_stream_destroying(struct cs_thread *thread, CUstream handle, bool per_thread);
void cs_stream_destroyed(cs_ref stream, bool done, cs_u64 ticks);
void cs_streams_end_with(cs_ref context);
void cs_streams_end_with_thread(struct cs_thread *thread); /* its per-thread default streams */

/* Whether some stream captures, as far as wrapped calls tell: then nothing is put into streams of ours, and nothing is waited for. */
extern _Atomic int cs_streams_capturing; /* how many */
static inline bool cs_streams_capture(void) { return cs_load(&cs_streams_capturing); }

/* Whether the driver says so of this one, or says nothing, as it does of the legacy stream while another one captures that waits for it. Keeps errno. */
bool cs_stream_is_capturing(CUstream handle, bool per_thread);

/* Since when the stream captures (ticks), 0: it does not; and whether an answer of an end-capture call ended it. */
cs_u64 cs_stream_captures(cs_ref stream);
void cs_stream_capture(cs_ref stream, cs_u64 began);
bool cs_capture_is_over(CUresult of_end);

/* The program's own name for a live stream. `thread` is asked for default streams alone, and may be NULL for others. */
void cs_stream_named(struct cs_thread *thread, CUstream handle, cs_name name);

/* The stream a handle means, where it is known: 0 and CU_STREAM_LEGACY, CU_STREAM_PER_THREAD (and 0 in a _ptds or _ptsz call), a live stream of
 * the registry. 0 where it takes cs_stream_of to tell. */
CS_HOT cs_ref cs_stream_find(struct cs_thread *thread, CUstream handle, bool per_thread)
{
    cs_u64 key = (uintptr_t)handle;
    if (CS_LIKELY(key > (uintptr_t)CU_STREAM_PER_THREAD)) {
        cs_u64 value = cs_map_get(&cs_stream_handles, key);
        return CS_LIKELY(!(value & CS_MAP_DEAD)) ? (cs_ref)value : 0;
    }
    bool own = key == (uintptr_t)CU_STREAM_PER_THREAD || (!key && per_thread);
    return CS_LIKELY(thread->context_epoch == cs_load(&cs_context_epoch)) ? thread->default_stream[own] : 0;
}

/* A stream with a handle of its own that is where its look-up begins, which is nearly every one. 0 where it takes cs_stream_find to tell. */
CS_HOT cs_ref cs_stream_glance(CUstream handle)
{
    const cs_u64 value = cs_map_glance(&cs_stream_handles, CS_STREAMS_LOG2, (uintptr_t)handle);
    return CS_LIKELY(!(value & CS_MAP_DEAD)) ? (cs_ref)value : 0;
}

/* The stream that a call which began at `begin` meant: one that cs_stream_find knows, a default stream not met before, the dead one that the handle
 * last stood for, or, if the driver accepted the call, one to adopt. 0 where there is none. Keeps errno. */
CS_COLD cs_ref cs_stream_of(struct cs_thread *thread, CUstream handle, bool per_thread, bool accepted, cs_u64 begin);

#endif
