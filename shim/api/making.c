/* Making and wrapping streams. */
#include "shim/api/making.h"
#include "shim/api/link.h"

#include <stdlib.h>
#include <string.h>

/* --- CUDA's default streams --- */

static _Atomic(custream_t) singles[2];

static status single(int which, enum api_stream_kind kind, CUstream handle, custream_t *stream)
{
    custream_t s, none = NULL;
    NEED(stream);
    if (!cs_load_acq(&singles[which])) {
        TRY(api_stream_new(&s, kind, handle, -1));
        if (atomic_compare_exchange_strong(&singles[which], &none, s)) api_object_list(&s->object, handle);
        else api_object_free(s);
    }
    *stream = cs_load_acq(&singles[which]);
    return custream_retain(*stream);
}

CS_EXPORT status custream_legacy_default(custream_t *stream) { return single(0, API_LEGACY, CU_STREAM_LEGACY, stream); }
CS_EXPORT status custream_per_thread_default(custream_t *stream) { return single(1, API_PER_THREAD, CU_STREAM_PER_THREAD, stream); }

CS_EXPORT status custream_set_name(custream_t stream, const char *name)
{
    char *copy = NULL;
    USABLE_STREAM(stream);
    if (name && *name) CHECK(copy = strdup(name), CUSTREAM_NO_MEMORY);
    cs_lock_take(&api_lock);
    char *before = stream->name;
    stream->name = copy;
    cs_lock_drop(&api_lock);
    free(before);
    if (!api_forked()) api_link->named(stream->handle, name);
    return CUSTREAM_SUCCESS;
}

/* --- owned --- */

status api_stream_make(custream_t *out, enum api_stream_kind kind, int device, unsigned flags, int requested, int priority, const char *name)
{
    struct api_scope scope;
    CUstream handle;
    custream_t s = NULL;
    TRY(api_enter(&device, &scope));
    status result = CUDA(cuStreamCreateWithPriority, &handle, flags, priority);
    if (result == CUSTREAM_SUCCESS && (result = api_stream_new(&s, kind, handle, device)) != CUSTREAM_SUCCESS) api_driver.cuStreamDestroy_v2(handle);
    if (result == CUSTREAM_SUCCESS) {
        api_home_now(&s->home);
        s->requested = requested;
        s->passed = priority;
        /* A policy may have had its say. */
        api_driver.cuStreamGetFlags(handle, &flags);
        cs_store(&s->flags, flags);
        cs_store(&s->flags_known, true);
        if (api_driver.cuStreamGetPriority(handle, &s->priority) != CUDA_SUCCESS) s->priority = priority;
    }
    api_leave(&scope);
    if (result != CUSTREAM_SUCCESS) return result;
    api_object_list(&s->object, handle);
    if (name && *name) custream_set_name(s, name);
    *out = s;
    return CUSTREAM_SUCCESS;
}

/* --- wrapped --- */

static status ask_of(custream_t s, int device)
{
    CUdevice found = device;
    CUcontext context = NULL;
    unsigned flags;
    int current = -1;
    struct api_scope scope;
    TRY(api_enter(&current, &scope));
    if (!api_is_capturing(s->handle)) { /* CUDA would break the capture */
        TRY(CUDA(cuStreamGetFlags, s->handle, &flags));
        cs_store(&s->flags, flags);
        cs_store(&s->flags_known, true);
    }
    TRY(CUDA(cuStreamGetPriority, s->handle, &s->priority));
    if (CUDA(cuStreamGetCtx, s->handle, &context) == CUSTREAM_SUCCESS && CUDA(cuCtxPushCurrent_v2, context) == CUSTREAM_SUCCESS) {
        api_driver.cuCtxGetDevice(&found);
        api_driver.cuCtxPopCurrent_v2(&context);
    }
    CHECK(found >= 0 && found < API_DEVICES, CUSTREAM_INVALID_HANDLE);
    CHECK(device == -1 || found == device, CUSTREAM_DEVICE_MISMATCH);
    s->object.device = found;
    s->requested = s->priority;
    api_link->requested(s->handle, api_stream_link(s), &s->requested);
    s->passed = s->requested;
    return CUSTREAM_SUCCESS;
}

/* The object that has the handle, if it is still the same stream. */
static custream_t known(void *handle)
{
    custream_t s = api_object_find(API_STREAM, handle);
    if (!s || !api_stream_has_ended(s)) return s;
    api_object_unlist(&s->object);
    custream_close(s); /* somebody has destroyed the stream, and CUDA made another of that address */
    custream_release(s);
    return NULL;
}

CS_EXPORT status custream_wrap(custream_t *stream, void *handle, int device, void (*release)(void *owner), void *owner)
{
    custream_t s;
    NEED(stream);
    TRY(api_ready());
    TRY(api_device_check(device));
    if ((uintptr_t)handle <= (uintptr_t)CU_STREAM_PER_THREAD) {
        TRY(handle == CU_STREAM_PER_THREAD ? custream_per_thread_default(stream) : custream_legacy_default(stream));
    } else if ((s = known(handle))) {
        if (device != -1 && s->object.device != device) return custream_release(s), CUSTREAM_DEVICE_MISMATCH;
        *stream = s;
    } else {
        TRY(api_stream_new(&s, API_WRAPPED, handle, device));
        status result = ask_of(s, device);
        if (result != CUSTREAM_SUCCESS) return api_object_free(s), result;
        s->release = release;
        s->owner = owner;
        custream_t other = api_object_list_once(&s->object, handle);
        *stream = other ? other : s;
        if (!other) return CUSTREAM_SUCCESS;
        api_object_free(s);
    }
    if (release) release(owner); /* the object is another's, or nobody's */
    return CUSTREAM_SUCCESS;
}
