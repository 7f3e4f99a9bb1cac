/* Stream objects: making, wrapping, ending. */
#include "shim/api/api.h"
#include "shim/api/link.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

bool api_stream_is_default(custream_t s) { return s->kind == API_LEGACY || s->kind == API_PER_THREAD; }

/* The recorder meets some streams later than we do: those that a hook made, and those of before it began to keep anything. */
cs_u64 api_stream_link(custream_t s)
{
    cs_u64 link = cs_load(&s->link);
    if (link || api_stream_is_default(s)) return link;
    const cs_u64 found = api_link_stream(s->handle);
    return !found || atomic_compare_exchange_strong(&s->link, &link, found) ? found : link;
}

/* What the recorder knew before a fork is the parent's. */
static bool has_ended(custream_t s) { return !api_forked() && api_link_stream_ended(api_stream_link(s)); }

status api_stream_usable(custream_t s)
{
    TRY(api_object_usable(s, API_STREAM));
    return has_ended(s) ? CUSTREAM_INVALID_HANDLE : CUSTREAM_SUCCESS;
}

status api_stream_enter(custream_t s)
{
    struct api_scope scope;
    int device = -1;
    return api_stream_is_default(s) ? api_enter(&device, &scope) : CUSTREAM_SUCCESS; /* with -1 nothing is pushed */
}

status api_stream_new(custream_t *out, enum api_stream_kind kind, CUstream handle, int device)
{
    custream_t s = api_object_new(API_STREAM);
    CHECK(s, CUSTREAM_NO_MEMORY);
    s->kind = kind;
    s->object.sort = (int)kind;
    s->handle = handle;
    s->object.device = device;
    api_stream_link(s);
    *out = s;
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

CS_EXPORT status custream_create(custream_t *stream, const custream_options_t *options)
{
    custream_options_t chosen = api_stream_defaults;
    int priority;
    NEED(stream);
    TRY(api_take(&chosen, options));
    CHECK(!(chosen.flags & ~(unsigned)CUSTREAM_NON_BLOCKING), CUSTREAM_INVALID_VALUE);
    TRY(api_ready());
    api_postponed_end();
    TRY(api_clamp(chosen.device, chosen.priority_policy, chosen.band_least, chosen.band_greatest, chosen.priority, &priority));
    if (chosen.pooled) {
        CHECK(chosen.flags == CUSTREAM_NON_BLOCKING && !(chosen.name && *chosen.name), CUSTREAM_INVALID_VALUE);
        return custream_create_from_pool(stream, chosen.device, priority, 0);
    }
    return api_stream_make(stream, API_OWNED, chosen.device, chosen.flags, chosen.priority, priority, chosen.name);
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
    if (!api_is_capturing(s)) { /* CUDA would break the capture */
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
    api_link_requested(s->handle, api_stream_link(s), &s->requested);
    s->passed = s->requested;
    return CUSTREAM_SUCCESS;
}

/* The object that has the handle, if it is still the same stream. */
static custream_t known(void *handle)
{
    custream_t s = api_object_find(API_STREAM, handle);
    if (!s || !has_ended(s)) return s;
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
        if (release) release(owner);
        return CUSTREAM_SUCCESS;
    }
    if ((s = known(handle))) {
        if (device != -1 && s->object.device != device) return custream_release(s), CUSTREAM_DEVICE_MISMATCH;
        *stream = s;
        if (release) release(owner);
        return CUSTREAM_SUCCESS;
    }
    TRY(api_stream_new(&s, API_WRAPPED, handle, device));
    status result = ask_of(s, device);
    if (result != CUSTREAM_SUCCESS) return api_object_free(s), result;
    s->release = release;
    s->owner = owner;
    custream_t other = api_object_list_once(&s->object, handle);
    if (other) {
        api_object_free(s);
        *stream = other;
        if (release) release(owner);
        return CUSTREAM_SUCCESS;
    }
    *stream = s;
    return CUSTREAM_SUCCESS;
}

/* --- the end --- */

status api_stream_destroy(custream_t s)
{
    custream_event_t cached = atomic_exchange(&s->cached, NULL);
    if (cached) custream_event_release(cached);
    api_capture_drop(&s->capture);
    if (s->kind == API_WRAPPED) {
        if (s->release) s->release(s->owner);
        s->release = NULL;
    } else if (!api_stream_is_default(s) && !api_forked() && !has_ended(s) && api_home_lives(&s->home)) {
        return CUDA_ENDS(cuStreamDestroy_v2, s->handle);
    }
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_close(custream_t stream)
{
    TRY(api_object_check(stream, API_STREAM));
    CHECK(stream->kind == API_OWNED || stream->kind == API_WRAPPED, CUSTREAM_INVALID_VALUE);
    if (atomic_exchange(&stream->object.closed, true)) return CUSTREAM_SUCCESS;
    api_object_unlist(&stream->object); /* before its handle can come again */
    return api_stream_destroy(stream);
}

CS_EXPORT status custream_retain(custream_t stream) { return api_retain(stream, API_STREAM); }

/* Streams whose last reference went in a function that CUDA called, where it may not be called: they end on a thread of their own, or where there can be none
 * with the next that goes elsewhere. */
static _Atomic(custream_t) postponed;

static status end(custream_t s)
{
    status result = atomic_exchange(&s->object.closed, true) ? CUSTREAM_SUCCESS : api_stream_destroy(s);
    custream_event_t cached = atomic_exchange(&s->cached, NULL); /* made while another thread closed it */
    if (cached) custream_event_release(cached);
    free(s->name);
    api_object_free(s);
    return result;
}

void api_postponed_end(void)
{
    if (CS_LIKELY(!cs_load(&postponed)) || api_thread_is_cudas()) return;
    for (custream_t next, s = atomic_exchange(&postponed, NULL); s; s = next) {
        next = s->next_joined;
        end(s);
    }
}

static void *end_elsewhere(void *unused) { return api_postponed_end(), unused; }

static void postpone(custream_t s)
{
    pthread_t thread;
    sigset_t all, before;
    s->next_joined = cs_load(&postponed);
    while (!atomic_compare_exchange_weak(&postponed, &s->next_joined, s)) continue;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals go to its own threads */
    if (!pthread_create(&thread, NULL, end_elsewhere, NULL)) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

CS_EXPORT status custream_release(custream_t stream)
{
    TRY(api_object_check(stream, API_STREAM));
    api_postponed_end();
    if (api_stream_is_default(stream)) return api_unretain(stream), CUSTREAM_SUCCESS;
    if (!api_release(stream)) return CUSTREAM_SUCCESS;
    if (api_thread_is_cudas()) return postpone(stream), CUSTREAM_SUCCESS;
    status result = end(stream);
    api_joined_end();
    return result;
}
