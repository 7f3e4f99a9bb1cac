/* What a stream is: its properties, names, and comparing. */
#include "shim/api/sized.h"
#include "shim/api/stream.h"
#include "shim/api/link.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

CS_EXPORT status custream_get_handle(custream_t stream, void **handle)
{
    NEED(handle);
    USABLE_STREAM(stream);
    *handle = stream->handle;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_get_id(custream_t stream, uint64_t *id)
{
    NEED(id);
    TRY(api_object_check(stream, API_STREAM));
    *id = stream->object.id;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_get_device(custream_t stream, int *device)
{
    NEED(device);
    USABLE_STREAM(stream);
    TRY(api_ready());
    if (api_stream_is_default(stream)) return api_current_device(device);
    *device = stream->object.device;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_get_context(custream_t stream, void **context)
{
    CUcontext found;
    NEED(context);
    READY_STREAM(stream);
    TRY(CUDA(cuStreamGetCtx, stream->handle, &found));
    *context = found;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_get_flags(custream_t stream, unsigned *flags)
{
    unsigned found;
    NEED(flags);
    READY_STREAM(stream);
    const bool captured = api_stream_is_captured(stream->handle); /* then CUDA's question would break the capture */
    CHECK(!captured || cs_load_acq(&stream->flags_known), CUSTREAM_CAPTURE_UNSUPPORTED);
    if (!captured) {
        TRY(CUDA(cuStreamGetFlags, stream->handle, &found));
        cs_store(&stream->flags, found);
        cs_store_rel(&stream->flags_known, true);
    }
    *flags = cs_load(&stream->flags);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_is_nonblocking(custream_t stream, int *nonblocking)
{
    unsigned flags;
    NEED(nonblocking);
    TRY(custream_get_flags(stream, &flags));
    *nonblocking = (flags & CUSTREAM_NON_BLOCKING) != 0;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_is_owned(custream_t stream, int *owned)
{
    NEED(owned);
    USABLE_STREAM(stream);
    *owned = stream->kind == API_OWNED;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_get_priority(custream_t stream, int *priority)
{
    NEED(priority);
    READY_STREAM(stream);
    return CUDA(cuStreamGetPriority, stream->handle, priority);
}

CS_EXPORT status custream_get_requested_priority(custream_t stream, int *priority)
{
    NEED(priority);
    USABLE_STREAM(stream);
    *priority = stream->requested;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_protocol(custream_t stream, int *version, uintptr_t *handle)
{
    USABLE_STREAM(stream);
    if (version) *version = 0;
    if (handle) *handle = (uintptr_t)stream->handle;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_history(custream_t stream, custream_history_t *history)
{
    TRY(api_size_check(history));
    USABLE_STREAM(stream);
    CHECK(!api_forked() && api_link->history(stream->handle, api_stream_link(stream), history), CUSTREAM_NOT_SUPPORTED);
    return CUSTREAM_SUCCESS;
}

/* --- names --- */

static status give_text(const char *text, char *to, size_t size, size_t *length)
{
    size_t full = strlen(text), part = size && full >= size ? size - 1 : full;
    CHECK(to || !size, CUSTREAM_INVALID_VALUE);
    if (size) memcpy(to, text, part), to[part] = 0;
    if (length) *length = full;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_get_name(custream_t stream, char *name, size_t size, size_t *length)
{
    USABLE_STREAM(stream);
    cs_lock_take(&api_lock);
    status result = give_text(stream->name ? stream->name : "", name, size, length);
    cs_lock_drop(&api_lock);
    return result;
}

static const char *blocking(custream_t stream)
{
    if (!cs_load_acq(&stream->flags_known)) return "";
    return cs_load(&stream->flags) & CUSTREAM_NON_BLOCKING ? "non-blocking, " : "blocking, ";
}

CS_EXPORT status custream_format(custream_t stream, char *text, size_t size, size_t *length)
{
    static const char *const kinds[] = {"stream", "stream of another owner", "stream of the pool", "legacy default stream", "per-thread default stream", "default stream"};
    char handle[32], place[96] = "";
    TRY(api_object_check(stream, API_STREAM));
    CHECK(text || !size, CUSTREAM_INVALID_VALUE);
    snprintf(handle, sizeof handle, "%p", (void *)stream->handle);
    if (!api_stream_is_default(stream))
        snprintf(place, sizeof place, " on device %d, %spriority %d", stream->object.device, blocking(stream), stream->priority);
    cs_lock_take(&api_lock);
    int full = snprintf(text, size < INT_MAX ? size : INT_MAX, "custream %llu: %s %s%s%s%s%s%s", (unsigned long long)stream->object.id, kinds[stream->kind], handle, place,
                        stream->name ? ", \"" : "", stream->name ? stream->name : "", stream->name ? "\"" : "", cs_load(&stream->object.closed) ? ", closed" : "");
    cs_lock_drop(&api_lock);
    CHECK(full >= 0, CUSTREAM_NO_MEMORY);
    if (length) *length = (size_t)full;
    return CUSTREAM_SUCCESS;
}

/* --- comparing --- */

CS_EXPORT status custream_compare(custream_t a, custream_t b, int *order)
{
    NEED(order);
    TRY(api_object_check(a, API_STREAM));
    TRY(api_object_check(b, API_STREAM));
    uintptr_t x = (uintptr_t)a->handle, y = (uintptr_t)b->handle;
    int device = (a->object.device > b->object.device) - (a->object.device < b->object.device);
    *order = device ? device : (x > y) - (x < y);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT int custream_equal(custream_t a, custream_t b)
{
    int order;
    if (!a || !b) return a == b;
    return custream_compare(a, b, &order) == CUSTREAM_SUCCESS && !order;
}

CS_EXPORT uint64_t custream_hash(custream_t stream)
{
    if (api_object_check(stream, API_STREAM) != CUSTREAM_SUCCESS) return 0;
    uint64_t hash = (uintptr_t)stream->handle ^ (uint64_t)(unsigned)stream->object.device << 52;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    return (hash ^ hash >> 29) | 1; /* 0 is NULL's */
}
