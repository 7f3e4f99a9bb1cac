/* Events. */
#include "shim/api/event.h"
#include "shim/api/link.h"
#include "shim/api/sized.h"

#include <string.h>

enum { FLAGS = CUSTREAM_EXTERNAL | CUSTREAM_EXTERNAL_IF_CAPTURING };

/* As of a stream. */
static cs_u64 link_of(custream_event_t e)
{
    cs_u64 link = cs_load(&e->link);
    if (link) return link;
    const cs_u64 found = api_link->event(cs_load_acq(&e->handle));
    return !found || atomic_compare_exchange_strong(&e->link, &link, found) ? found : link;
}
static bool has_ended(custream_event_t e) { return !api_forked() && api_link->event_ended(link_of(e)); }

status api_event_usable(custream_event_t e)
{
    TRY(api_object_usable(e, API_EVENT));
    return has_ended(e) ? CUSTREAM_INVALID_HANDLE : CUSTREAM_SUCCESS;
}

static status destroy(custream_event_t e)
{
    CUevent handle = cs_load_acq(&e->handle);
    bool lives = e->owned && handle && !api_forked() && !has_ended(e) && api_home_lives(&e->home);
    if (e->owned) return lives ? CUDA_ENDS(cuEventDestroy_v2, handle) : CUSTREAM_SUCCESS;
    if (e->release) e->release(e->owner);
    e->release = NULL;
    return CUSTREAM_SUCCESS;
}

static status end(void *event)
{
    custream_event_t e = event;
    status result = atomic_exchange(&e->object.closed, true) ? CUSTREAM_SUCCESS : destroy(e);
    api_object_free(e);
    return result;
}

static status event_new(custream_event_t *out, CUevent handle, int device)
{
    custream_event_t e = api_object_new(API_EVENT, sizeof *e, end);
    CHECK(e, CUSTREAM_NO_MEMORY);
    cs_store(&e->handle, handle);
    e->object.device = device;
    link_of(e);
    *out = e;
    return CUSTREAM_SUCCESS;
}

/* The CUDA side, on the device; a lazy one's at its first record. */
static status make(custream_event_t e, int device, custream_t stream)
{
    struct api_scope scope;
    CUevent handle = NULL;
    if (stream) TRY(api_enter_of(stream, &scope));
    else TRY(api_enter(&device, &scope));
    struct api_home home;
    status result = CUDA(cuEventCreate, &handle, e->flags);
    api_home_now(&home);
    api_leave(&scope);
    if (result != CUSTREAM_SUCCESS) return result;
    cs_lock_take(&api_lock); /* of two threads that make a lazy one at once, one does; who sees the handle sees the rest too */
    const bool first = !cs_load(&e->handle);
    if (first) {
        e->object.device = device;
        e->home = home;
        cs_store_rel(&e->handle, handle);
    }
    cs_lock_drop(&api_lock);
    if (!first) api_driver.cuEventDestroy_v2(handle);
    link_of(e);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_event_create(custream_event_t *event, const custream_event_options_t *options)
{
    custream_event_options_t chosen = api_event_defaults;
    custream_event_t e;
    NEED(event);
    TRY(api_take(&chosen, options));
    CHECK(!(chosen.interprocess && chosen.timing), CUSTREAM_INVALID_VALUE);
    TRY(api_ready());
    TRY(api_device_check(chosen.device));
    TRY(event_new(&e, NULL, chosen.device));
    e->flags = (chosen.blocking_sync ? CUSTREAM_EVENT_BLOCKING_SYNC : 0u) | (chosen.timing ? 0u : CUSTREAM_EVENT_DISABLE_TIMING) |
               (chosen.interprocess ? CUSTREAM_EVENT_INTERPROCESS : 0u);
    e->owned = e->flags_known = true;
    e->external = chosen.external;
    e->lazy = chosen.lazy;
    e->once = chosen.single_export && chosen.interprocess;
    status result = chosen.lazy ? CUSTREAM_SUCCESS : make(e, chosen.device, NULL);
    if (result != CUSTREAM_SUCCESS) return api_object_free(e), result;
    api_object_list(&e->object, cs_load(&e->handle));
    *event = e;
    return CUSTREAM_SUCCESS;
}

/* The object that has the handle, if it is still the same event. */
static custream_event_t known(void *handle)
{
    custream_event_t e = api_object_find(API_EVENT, handle);
    if (!e || !has_ended(e)) return e;
    custream_event_close(e); /* CUDA made another of that address */
    custream_event_release(e);
    return NULL;
}

CS_EXPORT status custream_event_wrap(custream_event_t *event, void *handle, int device, void (*release)(void *owner), void *owner)
{
    custream_event_t e;
    NEED(event);
    NEED(handle);
    TRY(api_ready());
    TRY(api_device_check(device));
    if (!(e = known(handle))) {
        if (device == -1) TRY(api_current_device(&device));
        TRY(event_new(&e, handle, device));
        cs_store(&e->recorded, true); /* for all that is known */
        e->release = release;
        e->owner = owner;
        custream_event_t other = api_object_list_once(&e->object, handle);
        if (!other) return *event = e, CUSTREAM_SUCCESS;
        api_object_free(e);
        e = other;
    }
    *event = e;
    if (release) release(owner); /* the object is another's */
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_event_retain(custream_event_t event) { return api_retain(event, API_EVENT); }
CS_EXPORT status custream_event_release(custream_event_t event) { return api_release(event, API_EVENT); }

CS_EXPORT status custream_event_close(custream_event_t event)
{
    TRY(api_object_check(event, API_EVENT));
    if (atomic_exchange(&event->object.closed, true)) return CUSTREAM_SUCCESS;
    api_object_unlist(&event->object);
    return destroy(event);
}

CS_EXPORT status custream_event_get_handle(custream_event_t event, void **handle)
{
    NEED(handle);
    USABLE_EVENT(event);
    *handle = cs_load_acq(&event->handle);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_event_get_device(custream_event_t event, int *device)
{
    NEED(device);
    USABLE_EVENT(event);
    *device = event->imported || (event->lazy && !cs_load_acq(&event->handle)) ? -1 : event->object.device;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_event_get_flags(custream_event_t event, unsigned *flags)
{
    NEED(flags);
    USABLE_EVENT(event);
    *flags = event->flags;
    return CUSTREAM_SUCCESS;
}

/* --- record and wait --- */

static unsigned cuda_flags(custream_event_t e, custream_t stream, unsigned flags, unsigned external)
{
    bool capturing = (e->external || flags & CUSTREAM_EXTERNAL_IF_CAPTURING) && api_is_capturing(stream->handle);
    return capturing || flags & CUSTREAM_EXTERNAL ? external : 0;
}

/* A lazy event is made on the device of its first stream; others must be of it. */
static status belongs(custream_event_t e, custream_t stream, bool record)
{
    int device = stream->object.device;
    if (api_stream_is_default(stream)) TRY(api_current_device(&device));
    if (e->lazy && record && !cs_load_acq(&e->handle)) {
        TRY(make(e, device, stream));
        api_object_has_handle(&e->object, cs_load(&e->handle));
    }
    return !record || e->imported || e->object.device == device || e->object.device == -1 ? CUSTREAM_SUCCESS : CUSTREAM_DEVICE_MISMATCH;
}

static void was_recorded(custream_event_t event, custream_t stream, bool external)
{
    cs_u64 capture = api_capture_met() && !external ? api_capture_id(stream->handle) : 0;
    if (capture) cs_store(&event->captured_on, stream->object.id);
    cs_store_rel(&event->captured, capture);
    cs_store_rel(&event->recorded, true);
}

status api_event_record(custream_event_t e, custream_t stream, unsigned flags)
{
    CHECK(!(flags & ~(unsigned)FLAGS), CUSTREAM_INVALID_VALUE);
    CHECK(!cs_load_acq(&e->object.closed), CUSTREAM_CLOSED); /* a cached one, by whoever had asked for it */
    CHECK(!(e->once && cs_load(&e->recorded)), CUSTREAM_IPC);
    TRY(api_stream_enter(stream));
    TRY(belongs(e, stream, true));
    unsigned chosen = cuda_flags(e, stream, flags, CU_EVENT_RECORD_EXTERNAL);
    TRY(chosen ? CUDA(cuEventRecordWithFlags, cs_load_acq(&e->handle), stream->handle, chosen) : CUDA(cuEventRecord, cs_load_acq(&e->handle), stream->handle));
    was_recorded(e, stream, chosen);
    return CUSTREAM_SUCCESS;
}

status api_event_wait(custream_event_t e, custream_t stream, unsigned flags)
{
    CHECK(!(flags & ~(unsigned)FLAGS), CUSTREAM_INVALID_VALUE);
    if (!cs_load_acq(&e->handle)) return CUSTREAM_SUCCESS; /* lazy, and never recorded */
    TRY(api_stream_enter(stream));
    return CUDA(cuStreamWaitEvent, stream->handle, cs_load_acq(&e->handle), cuda_flags(e, stream, flags, CU_EVENT_WAIT_EXTERNAL));
}

/* An event in the stream's own context, where alone it can be recorded on it. */
status api_event_in(custream_t stream, const custream_event_options_t *options, custream_event_t *event)
{
    custream_event_options_t here = *options;
    struct api_scope scope;
    here.device = -1;
    TRY(api_enter_of(stream, &scope));
    status result = custream_event_create(event, &here);
    api_leave(&scope);
    return result;
}

status api_event_cached(custream_t stream, custream_event_t *event)
{
    custream_event_t made, none = NULL;
    custream_event_t before = cs_load_acq(&stream->cached);
    if (before && cs_load(&before->object.closed) && atomic_compare_exchange_strong(&stream->cached, &before, NULL)) custream_event_release(before);
    if (!cs_load_acq(&stream->cached)) {
        TRY(api_event_in(stream, &api_event_defaults, &made));
        if (!atomic_compare_exchange_strong(&stream->cached, &none, made)) custream_event_release(made);
    }
    custream_event_t cached = cs_load_acq(&stream->cached);
    CHECK(cached, CUSTREAM_CLOSED); /* by another thread, meanwhile */
    TRY(custream_event_retain(cached));
    *event = cached;
    return CUSTREAM_SUCCESS;
}

/* An event that nobody else records meanwhile: those of default streams are on whatever device is current. */
static status event_for(custream_t other, custream_event_t *event)
{
    if (!api_stream_is_default(other)) return api_event_cached(other, event);
    return custream_event_create(event, NULL);
}

CS_EXPORT status custream_wait_stream(custream_t stream, custream_t other, custream_event_t event, unsigned flags)
{
    custream_event_t used = event;
    USABLE_STREAM(stream);
    USABLE_STREAM(other);
    if (event) USABLE_EVENT(event);
    CHECK(!(flags & ~(unsigned)(CUSTREAM_EXTERNAL | CUSTREAM_EXTERNAL_IF_CAPTURING)), CUSTREAM_INVALID_VALUE);
    if (stream == other) return CUSTREAM_SUCCESS;
    TRY(api_ready());
    if (!event) TRY(event_for(other, &used));
    status result = api_event_record(used, other, flags);
    if (result == CUSTREAM_SUCCESS) result = api_event_wait(used, stream, flags);
    if (!event) custream_event_release(used);
    return result;
}

/* --- completion --- */

static bool is_captured(custream_event_t event)
{
    cs_u64 capture = cs_load_acq(&event->captured), on = cs_load(&event->captured_on);
    if (!capture) return false;
    custream_t stream = api_object_of_id(API_STREAM, on);
    bool captured = stream && api_stream_usable(stream) == CUSTREAM_SUCCESS && api_capture_id(stream->handle) == capture;
    if (stream) custream_release(stream);
    if (captured) return true;
    api_joined_end();
    return api_joined_in(capture, NULL);
}

CS_EXPORT status custream_event_query(custream_event_t event)
{
    USABLE_EVENT(event);
    TRY(api_ready());
    CHECK(!is_captured(event), CUSTREAM_CAPTURE_UNSUPPORTED);
    CUevent handle = cs_load_acq(&event->handle);
    return handle ? CUDA(cuEventQuery, handle) : CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_event_synchronize(custream_event_t event)
{
    USABLE_EVENT(event);
    CHECK(!api_link->in_hook(), CUSTREAM_NOT_SUPPORTED);
    TRY(api_ready());
    CHECK(!is_captured(event), CUSTREAM_CAPTURE_UNSUPPORTED);
    CUevent handle = cs_load_acq(&event->handle);
    return handle ? CUDA(cuEventSynchronize, handle) : CUSTREAM_SUCCESS;
}

static status is_timed(custream_event_t e)
{
    CHECK(!(e->flags & CUSTREAM_EVENT_DISABLE_TIMING), CUSTREAM_TIMING_DISABLED);
    CHECK(!is_captured(e), CUSTREAM_CAPTURE_UNSUPPORTED);
    return cs_load_acq(&e->handle) ? CUSTREAM_SUCCESS : CUSTREAM_NOT_RECORDED;
}

CS_EXPORT status custream_event_elapsed_ms(custream_event_t begin, custream_event_t end, int synchronize, float *ms)
{
    NEED(ms);
    USABLE_EVENT(begin);
    USABLE_EVENT(end);
    TRY(api_ready());
    TRY(is_timed(begin));
    TRY(is_timed(end));
    if (synchronize) TRY(custream_event_synchronize(begin));
    if (synchronize) TRY(custream_event_synchronize(end));
    status result = CUDA(cuEventElapsedTime, ms, cs_load_acq(&begin->handle), cs_load_acq(&end->handle));
    bool recorded = cs_load_acq(&begin->recorded) && cs_load_acq(&end->recorded);
    return result == CUSTREAM_INVALID_HANDLE && !recorded ? CUSTREAM_NOT_RECORDED : result; /* so CUDA calls an event that nobody has recorded */
}

/* --- between processes --- */

CS_EXPORT status custream_event_ipc_export(custream_event_t event, unsigned char handle[CUSTREAM_IPC_BYTES])
{
    CUipcEventHandle own;
    _Static_assert(sizeof own == CUSTREAM_IPC_BYTES, "CUDA's handle has 64 bytes");
    NEED(handle);
    USABLE_EVENT(event);
    TRY(api_ready());
    CHECK(!event->imported && (!event->flags_known || event->flags & CUSTREAM_EVENT_INTERPROCESS), CUSTREAM_IPC);
    if (!cs_load_acq(&event->handle)) TRY(make(event, event->object.device, NULL));
    TRY(CUDA(cuIpcGetEventHandle, &own, cs_load_acq(&event->handle)));
    memcpy(handle, &own, sizeof own);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_event_ipc_import(custream_event_t *event, const unsigned char handle[CUSTREAM_IPC_BYTES])
{
    CUipcEventHandle own;
    CUevent made;
    struct api_scope scope;
    custream_event_t e;
    int device = -1;
    NEED(event);
    NEED(handle);
    TRY(api_ready());
    TRY(api_enter(&device, &scope));
    memcpy(&own, handle, sizeof own);
    TRY(CUDA(cuIpcOpenEventHandle, &made, own));
    status result = event_new(&e, made, device); /* counted there; custream_event_get_device does not say so */
    if (result != CUSTREAM_SUCCESS) return api_driver.cuEventDestroy_v2(made), result;
    api_home_now(&e->home);
    e->owned = e->imported = e->flags_known = true;
    e->flags = CUSTREAM_EVENT_DISABLE_TIMING | CUSTREAM_EVENT_INTERPROCESS;
    cs_store(&e->recorded, true);
    api_object_list(&e->object, made);
    *event = e;
    return CUSTREAM_SUCCESS;
}
