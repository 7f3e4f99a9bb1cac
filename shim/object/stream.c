#include "shim/object/stream.h"

#include <sys/prctl.h>

#include "shim/base/keep.h"
#include "shim/base/clock.h"
#include "shim/base/lane.h"
#include "shim/base/memory.h"
#include "shim/calls/real.h"
#include "shim/object/creator.h"

enum { DEVICES = 64, FIRST_LANE = 13, LEGACY_LANE = CS_LANE_LEGACY };

struct cs_pool cs_streams;
CS_READ_MOSTLY struct cs_map cs_stream_handles;

cs_stream_gpu_id_fn *_Atomic cs_stream_gpu_id;

/* Lanes given out, per device. Numbers of the profiler's beyond the bits are its own and never given out again. */
enum { LANE_BITS = 1 << 16, AGAIN = 10000 };
static struct {
    _Atomic cs_u32 next;
    _Atomic cs_u64 taken[LANE_BITS / 64];
} *lanes;

bool cs_streams_init(void)
{
    lanes = cs_memory_map(DEVICES * sizeof *lanes, CS_NO_OBJECTS);
    return lanes && cs_pool_init(&cs_streams, sizeof(struct cs_stream), CS_STREAMS) && cs_map_init(&cs_stream_handles, CS_STREAMS_LOG2);
}

static bool lane_take(int d, cs_u32 lane)
{
    if (lane >= LANE_BITS) return true;
    cs_u64 bit = (cs_u64)1 << lane % 64;
    return !(atomic_fetch_or_explicit(&lanes[d].taken[lane / 64], bit, memory_order_relaxed) & bit);
}

cs_u32 cs_stream_lane(int device, cs_u32 gpu_id, bool legacy)
{
    int d = device >= 0 && device < DEVICES ? device : DEVICES - 1;
    const cs_u32 first = gpu_id && gpu_id < CS_LANE_LEGACY ? gpu_id + AGAIN : gpu_id; /* rows of the GPU itself stand at those below */
    for (cs_u32 lane = first; lane && lane < LANE_BITS; lane += AGAIN) /* null streams of all contexts have the same number */
        if (lane_take(d, lane)) return lane;
    if (!gpu_id && legacy && lane_take(d, LEGACY_LANE)) return LEGACY_LANE;
    cs_u32 lane;
    do lane = FIRST_LANE + cs_add(&lanes[d].next, 1);
    while (!lane_take(d, lane));
    if (lane >= CS_LANE_STREAMS) lane = LANE_BITS + lane % (CS_LANE_STREAMS - LANE_BITS); /* those of the first ones, long ago */
    return lane;
}

_Atomic int cs_streams_capturing;

static void captures(struct cs_stream *stream, cs_u64 began)
{
    cs_u64 before = atomic_exchange_explicit(&stream->capture_began, began, memory_order_relaxed);
    if (!before != !began) cs_add(&cs_streams_capturing, began ? 1 : -1);
}

/* Keys of default streams lie where no pointer can: the top byte tells the kind. They stay in the table, so they are made of places, which are used
 * again: else a program that makes a context for each of its jobs fills the table. */
static cs_u64 default_key(cs_ref context, const struct cs_thread *thread, bool per_thread)
{
    const cs_u32 place = cs_ref_index(context);
    return per_thread ? (cs_u64)0xf0 << 56 | (cs_u64)thread->index << 32 | place : (cs_u64)0xe0 << 56 | place;
}

/* Puts a filled object under its key. A dead or missing value gives way; a live one is kept where `keep_live` and the object is given back. */
static cs_ref enter(struct cs_stream *stream, bool keep_live)
{
    cs_store_rel(&stream->filled, true);
    cs_rings_stream(cs_load(&stream->object.ref), stream->lane, (cs_u32)stream->device);
    struct cs_map_slot *slot = cs_map_slot(&cs_stream_handles, stream->key, true);
    cs_ref ref = cs_load(&stream->object.ref);
    cs_u64 value = slot ? cs_load_acq(&slot->value) : 0;
    if (!slot) {
        cs_add(&cs_streams.refused, 1);
        cs_pool_release(&cs_streams, &stream->object);
        return 0;
    }
    do {
        if (keep_live && value && !(value & CS_MAP_DEAD)) {
            cs_pool_release(&cs_streams, &stream->object);
            return (cs_ref)value;
        }
    } while (!atomic_compare_exchange_weak(&slot->value, &value, ref));
    if (value && !(value & CS_MAP_DEAD)) { /* the driver reuses the handle of a stream whose end we did not see */
        struct cs_stream *gone = cs_pool_get(&cs_streams, (cs_ref)value);
        if (gone) {
            cs_store(&gone->ended, stream->created);
            cs_pool_end(&cs_streams, &gone->object);
        }
    }
    return ref;
}

static int device_of(cs_ref context)
{
    struct cs_context *c = cs_pool_get(&cs_contexts, context);
    return c ? c->device : 0;
}

static cs_u32 gpu_id_of(cs_u64 key, cs_ref context, enum cs_stream_origin origin)
{
    cs_stream_gpu_id_fn *ask = cs_load_acq(&cs_stream_gpu_id);
    struct cs_context *c = ask ? cs_pool_get(&cs_contexts, context) : NULL;
    cs_u32 id = 0;
    CUstream handle = origin >= CS_STREAM_LEGACY ? NULL : (CUstream)(uintptr_t)key;
    return c && ask(c->handle, handle, origin == CS_STREAM_PER_THREAD, &id) ? id : 0;
}

static struct cs_stream *stream_new(struct cs_thread *thread, cs_u64 key, cs_ref context, enum cs_stream_origin origin, cs_u64 ticks)
{
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    if (!stream) return NULL;
    cs_store(&stream->key, key);
    cs_store_rel(&stream->context, context);
    stream->device = device_of(context);
    stream->gpu_id = gpu_id_of(key, context, origin);
    stream->lane = cs_stream_lane(stream->device, stream->gpu_id, origin == CS_STREAM_LEGACY);
    cs_store(&stream->origin, origin);
    stream->tid = thread->tid;
    stream->created = ticks;
    return stream;
}

static cs_u64 green_context_of(CUstream handle)
{
    CUgreenCtx green = NULL;
    if ((void *)cs_real.cuStreamGetGreenCtx == (void *)cs_real_missing) return 0; /* a driver from before them */
    return cs_real.cuStreamGetGreenCtx(handle, &green) == CUDA_SUCCESS ? (uintptr_t)green : 0;
}

void cs_stream_ask_priority(struct cs_stream *stream, CUstream handle)
{
    int priority = cs_load(&stream->priority);
    cs_real.cuStreamGetPriority(handle, &priority);
    cs_store(&stream->priority, priority);
}

cs_ref cs_stream_created(struct cs_thread *thread, CUstream handle, unsigned flags, int priority_asked, cs_u16 call, const void *caller, cs_u64 ticks)
{
    CS_KEEP_ERRNO;
    CUcontext context = NULL; /* of a green context's stream it is not the current one */
    bool known = cs_real.cuStreamGetCtx(handle, &context) == CUDA_SUCCESS && context;
    struct cs_stream *stream =
        stream_new(thread, (uintptr_t)handle, known ? cs_context_of(context, -1) : cs_context_current(thread), CS_STREAM_CREATED, ticks);
    if (!stream) return 0;
    stream->flags = stream->flags_asked = flags;
    stream->priority_asked = priority_asked;
    cs_store(&stream->priority, priority_asked);
    if (priority_asked) cs_stream_ask_priority(stream, handle);
    stream->call = call;
    stream->library = cs_creator_of(caller);
    stream->green = green_context_of(handle);
    return enter(stream, false);
}

static void end_now(struct cs_stream *stream, cs_u64 key, cs_ref ref, cs_u64 now)
{
    struct cs_map_slot *slot = cs_map_slot(&cs_stream_handles, key, false);
    cs_u64 value = ref;
    if (slot) atomic_compare_exchange_strong(&slot->value, &value, ref | CS_MAP_DEAD);
    captures(stream, 0);
    cs_store_rel(&stream->ended, now);
    cs_pool_end(&cs_streams, &stream->object);
}

/* The default stream that lives under the key; 0: none. One of the context that had this place before was made by a call that was under way when that context
 * ended. It ends now. */
static cs_ref default_known(cs_u64 key, cs_ref context)
{
    const cs_u64 value = cs_map_get(&cs_stream_handles, key);
    struct cs_stream *stream = value & CS_MAP_DEAD ? NULL : cs_pool_get(&cs_streams, (cs_ref)value);
    if (!stream || cs_load(&stream->context) == context) return value & CS_MAP_DEAD ? 0 : (cs_ref)value;
    if (!cs_load(&stream->object.ended)) end_now(stream, key, (cs_ref)value, cs_ticks());
    return 0;
}

static cs_ref default_stream(struct cs_thread *thread, bool per_thread, cs_u64 begin)
{
    cs_ref context = cs_context_current(thread);
    if (!context) return 0;
    if (thread->default_stream[per_thread]) return thread->default_stream[per_thread];
    if (!cs_pool_get(&cs_contexts, context)) return 0;
    const cs_u64 key = default_key(context, thread, per_thread);
    cs_ref ref = default_known(key, context);
    if (!ref) {
        struct cs_stream *stream = stream_new(thread, key, context, per_thread ? CS_STREAM_PER_THREAD : CS_STREAM_LEGACY, begin ? begin : cs_ticks());
        if (stream && per_thread) {
            prctl(PR_GET_NAME, stream->owner);
            thread->own_keys[thread->own_count++ % CS_COUNT(thread->own_keys)] = key;
        }
        ref = stream ? enter(stream, true) : 0;
    }
    return thread->default_stream[per_thread] = ref;
}

static void ask_flags(struct cs_stream *stream, CUstream handle)
{
    cs_real.cuStreamGetFlags(handle, &stream->flags);
    stream->flags_asked = stream->flags;
}

bool cs_stream_is_capturing(CUstream handle, bool per_thread)
{
    CS_KEEP_ERRNO;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return cs_real.cuStreamIsCapturing(!handle && per_thread ? CU_STREAM_PER_THREAD : handle, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static cs_ref adopt(struct cs_thread *thread, CUstream handle, cs_u64 begin)
{
    CUcontext context = NULL;
    cs_real.cuStreamGetCtx(handle, &context);
    struct cs_stream *stream =
        stream_new(thread, (uintptr_t)handle, context ? cs_context_of(context, -1) : cs_context_current(thread), CS_STREAM_ADOPTED, begin);
    if (!stream) {
        atomic_fetch_sub(&cs_streams.refused, 1); /* counted when it was created, or never told of; not at each use */
        return 0;
    }
    if (cs_stream_is_capturing(handle, false)) cs_store(&stream->unasked, true); /* CUDA would break the capture */
    else ask_flags(stream, handle);
    cs_stream_ask_priority(stream, handle);
    stream->priority_asked = cs_load(&stream->priority);
    stream->green = green_context_of(handle);
    return enter(stream, true);
}

/* The object that a dead handle stood for, NULL if it was given back; its slot may be another stream's by then, whose reference is the same in time. */
static struct cs_stream *dead_of(cs_u64 key, cs_u64 value)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, (cs_ref)value);
    return stream && cs_load(&stream->key) == key ? stream : NULL;
}

cs_ref cs_stream_of(struct cs_thread *thread, CUstream handle, bool per_thread, bool accepted, cs_u64 begin)
{
    CS_KEEP_ERRNO;
    cs_u64 key = (uintptr_t)handle;
    if (key <= (uintptr_t)CU_STREAM_PER_THREAD) return default_stream(thread, key == (uintptr_t)CU_STREAM_PER_THREAD || (!key && per_thread), begin);
    cs_u64 value = cs_map_get(&cs_stream_handles, key);
    if (value && !(value & CS_MAP_DEAD)) return (cs_ref)value;
    if (value) {
        struct cs_stream *dead = dead_of(key, value);
        cs_u64 ended = dead ? cs_load_acq(&dead->ended) : 0;
        /* The call was under way when the stream was destroyed, or the driver refused it: it meant the dead one. The driver must not be asked about its
         * handle any more, also when it is so long dead that its object is gone. */
        if (dead && (!accepted || !ended || begin <= ended)) return (cs_ref)value;
        if (!dead && begin <= cs_load_acq(&cs_streams.released)) return 0;
    }
    return accepted ? adopt(thread, handle, begin) : 0;
}

cs_ref cs_stream_destroying(struct cs_thread *thread, CUstream handle, bool per_thread)
{
    cs_u64 key = (uintptr_t)handle;
    if (key <= (uintptr_t)CU_STREAM_PER_THREAD) return cs_stream_of(thread, handle, per_thread, false, 0);
    struct cs_map_slot *slot = cs_map_slot(&cs_stream_handles, key, true); /* one that was never seen: calls under way must not adopt it */
    cs_u64 value = slot ? cs_load_acq(&slot->value) : 0;
    while (slot && !(value & CS_MAP_DEAD) && !atomic_compare_exchange_weak(&slot->value, &value, value | CS_MAP_DEAD)) {}
    return dead_of(key, value) ? (cs_ref)value : 0;
}

void cs_stream_destroyed(cs_ref ref, bool done, cs_u64 ticks)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    if (!ref && done) cs_store(&cs_streams.released, cs_ticks());
    if (!stream || cs_load(&stream->origin) >= CS_STREAM_LEGACY || cs_load(&stream->object.ended)) return;
    struct cs_map_slot *slot = cs_map_slot(&cs_stream_handles, stream->key, false);
    cs_u64 alive = ref, dead = ref | CS_MAP_DEAD;
    if (done) {
        captures(stream, 0);
        cs_store_rel(&stream->ended, ticks);
        cs_pool_end(&cs_streams, &stream->object);
    } else if (!slot || !atomic_compare_exchange_strong(&slot->value, &dead, alive) || !atomic_load(&stream->object.ended)) {
        return;
    }
    dead = ref | CS_MAP_DEAD; /* of two destroys at once the refused one had taken the mark off */
    if (slot) atomic_compare_exchange_strong(&slot->value, &alive, dead);
}

void cs_streams_end_with_thread(struct cs_thread *thread)
{
    cs_u64 now = cs_ticks();
    for (cs_u32 i = 0; i < thread->own_count && i < CS_COUNT(thread->own_keys); i++) {
        cs_u64 value = cs_map_get(&cs_stream_handles, thread->own_keys[i]);
        struct cs_stream *stream = value & CS_MAP_DEAD ? NULL : cs_pool_get(&cs_streams, (cs_ref)value);
        if (stream && !cs_load(&stream->object.ended)) end_now(stream, thread->own_keys[i], (cs_ref)value, now);
    }
    cs_u32 high = thread->own_count > CS_COUNT(thread->own_keys) ? cs_load_acq(&cs_streams.high) : 0; /* more than it has kept in mind */
    for (cs_u32 i = 0; i < high && i < cs_streams.capacity; i++) {
        struct cs_stream *stream = (struct cs_stream *)cs_pool_slot(&cs_streams, i);
        cs_ref ref = cs_load_acq(&stream->object.ref);
        if (!ref || !cs_load_acq(&stream->filled) || cs_load(&stream->object.ended) || cs_load(&stream->object.ref) != ref) continue;
        cs_u64 key = cs_load(&stream->key);
        if (key == default_key(cs_load(&stream->context), thread, true)) end_now(stream, key, ref, now);
    }
    thread->own_count = 0;
}

void cs_streams_end_with(cs_ref context)
{
    cs_u32 high = cs_load_acq(&cs_streams.high);
    cs_u64 now = cs_ticks();
    for (cs_u32 i = 0; i < high && i < cs_streams.capacity; i++) {
        struct cs_stream *stream = (struct cs_stream *)cs_pool_slot(&cs_streams, i);
        cs_ref ref = cs_load_acq(&stream->object.ref);
        if (!ref || cs_load_acq(&stream->context) != context || cs_load(&stream->object.ended) || cs_load(&stream->object.ref) != ref) continue;
        end_now(stream, stream->key, ref, now);
    }
}

cs_u64 cs_stream_captures(cs_ref ref)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    return stream ? cs_load(&stream->capture_began) : 0;
}

void cs_stream_capture(cs_ref ref, cs_u64 began)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    if (!stream) return;
    captures(stream, began);
    if (began || !cs_load(&stream->unasked)) return;
    ask_flags(stream, (CUstream)(uintptr_t)cs_load(&stream->key));
    cs_store_rel(&stream->unasked, false);
}

void cs_stream_named(struct cs_thread *thread, CUstream handle, cs_name name)
{
    if (!thread && (uintptr_t)handle <= (uintptr_t)CU_STREAM_PER_THREAD) return;
    struct cs_stream *stream = cs_pool_get(&cs_streams, cs_stream_of(thread, handle, false, false, 0));
    if (stream && !cs_load(&stream->object.ended)) cs_store_rel(&stream->name, name);
}

bool cs_capture_is_over(CUresult of_end)
{
    return of_end == CUDA_SUCCESS ||
           (of_end >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && of_end <= CUDA_ERROR_STREAM_CAPTURE_IMPLICIT && of_end != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
}
