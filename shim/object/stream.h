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
    cs_u64 key; /* the handle; synthetic for default streams */
    cs_ref context;
    int device;
    cs_u32 lane; /* of the timeline: 7 for a device's first legacy stream, others from 13; never reused */
    enum cs_stream_origin origin;
    unsigned flags;
    int priority_asked, priority; /* before and after the driver clamped it */
    cs_u16 call;                  /* enum cs_call that created it; 0 if adopted */
    cs_u32 tid;                   /* thread that created it */
    cs_name library;              /* that created it */
    cs_u64 created;               /* ticks */

    _Atomic cs_u64 ended;         /* ticks; 0 while it lives */
    _Atomic cs_u64 capture_began; /* ticks; 0 while it does not capture */

    /* the writer's: what went through it */
    bool announced;
    cs_u64 work[8]; /* by enum cs_stream_work */
    cs_u64 bytes_copied;
};

enum cs_stream_work {
    CS_WORK_LAUNCHES, CS_WORK_COPIES, CS_WORK_SETS, CS_WORK_RECORDS, CS_WORK_WAITS, CS_WORK_SYNCS, CS_WORK_GRAPHS, CS_WORK_OTHER
};

extern struct cs_pool cs_streams;
extern struct cs_map cs_stream_handles;

bool cs_streams_init(void);

/* A stream that a wrapped call has just created. `priority_asked` as the program gave it; `call` an enum cs_call. */
cs_ref cs_stream_created(struct cs_thread *thread, CUstream handle, unsigned flags, int priority_asked, cs_u16 call, const void *caller, cs_u64 ticks);

/* Around the driver's destroy: from here on the handle belongs to nobody, since the driver may hand it out again before its call returns. Then
 * the outcome: ended, or alive again where the driver refused. */
cs_ref cs_stream_destroying(struct cs_thread *thread, CUstream handle, bool per_thread);
void cs_stream_destroyed(cs_ref stream, bool done, cs_u64 ticks);
void cs_streams_end_with(cs_ref context);

/* Notes that the stream captures since `began` (ticks), 0: no longer. Returns what was noted before. */
cs_u64 cs_stream_capture(cs_ref stream, cs_u64 began);

/* The slow halves of cs_stream_of. */
CS_COLD cs_ref cs_stream_default(struct cs_thread *thread, bool per_thread, cs_u64 begin);
CS_COLD cs_ref cs_stream_unknown(struct cs_thread *thread, CUstream handle, cs_u64 value, bool accepted, cs_u64 begin);

/* The stream a handle means in a call that began at `begin`: 0 and CU_STREAM_LEGACY, CU_STREAM_PER_THREAD (and 0 in a _ptds or _ptsz call), a
 * stream of the registry, or one to adopt if the driver accepted the call. 0 where there is none. */
CS_HOT cs_ref cs_stream_of(struct cs_thread *thread, CUstream handle, bool per_thread, bool accepted, cs_u64 begin)
{
    cs_u64 key = (uintptr_t)handle;
    if (CS_LIKELY(key > (uintptr_t)CU_STREAM_PER_THREAD)) {
        cs_u64 value = cs_map_get(&cs_stream_handles, key);
        if (CS_LIKELY(value && !(value & CS_MAP_DEAD))) return (cs_ref)value;
        return cs_stream_unknown(thread, handle, value, accepted, begin);
    }
    bool own = key == (uintptr_t)CU_STREAM_PER_THREAD || (!key && per_thread);
    cs_ref stream = thread->default_stream[own];
    if (CS_LIKELY(stream && thread->context_epoch == cs_load(&cs_context_epoch))) return stream;
    return cs_stream_default(thread, own, begin);
}

#endif
