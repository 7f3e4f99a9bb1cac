/* Completion, and order between streams. */
#include "shim/api/api.h"
#include "shim/api/link.h"

CS_EXPORT status custream_query(custream_t stream)
{
    USABLE_STREAM(stream);
    TRY(api_ready());
    TRY(api_stream_enter(stream));
    CHECK(!api_stream_is_captured(stream), CUSTREAM_CAPTURE_UNSUPPORTED); /* asked first: CUDA would break the capture */
    return CUDA(cuStreamQuery, stream->handle);
}

CS_EXPORT status custream_synchronize(custream_t stream)
{
    USABLE_STREAM(stream);
    CHECK(!api_link_in_hook(), CUSTREAM_NOT_SUPPORTED);
    TRY(api_ready());
    TRY(api_stream_enter(stream));
    CHECK(!api_stream_is_captured(stream), CUSTREAM_CAPTURE_UNSUPPORTED);
    return CUDA(cuStreamSynchronize, stream->handle);
}

CS_EXPORT status custream_device_synchronize(int device)
{
    struct api_scope scope;
    CHECK(!api_link_in_hook(), CUSTREAM_NOT_SUPPORTED);
    TRY(api_ready());
    TRY(api_enter(&device, &scope));
    status result = api_context_is_captured(device) ? CUSTREAM_CAPTURE_UNSUPPORTED : CUDA(cuCtxSynchronize);
    api_leave(&scope);
    return result;
}

CS_EXPORT status custream_record(custream_t stream, custream_event_t event, unsigned flags)
{
    USABLE_STREAM(stream);
    USABLE_EVENT(event);
    TRY(api_ready());
    return api_event_record(event, stream, flags);
}

/* An event in the stream's own context, where alone it can be recorded on it. */
static status event_of(custream_t stream, const custream_event_options_t *options, custream_event_t *event)
{
    custream_event_options_t here = *options;
    struct api_scope scope;
    here.device = -1;
    TRY(api_enter_of(stream, &scope));
    status result = custream_event_create(event, &here);
    api_leave(&scope);
    return result;
}

CS_EXPORT status custream_record_new(custream_t stream, const custream_event_options_t *options, custream_event_t *out)
{
    custream_event_options_t chosen = api_event_defaults;
    custream_event_t event;
    NEED(out);
    USABLE_STREAM(stream);
    TRY(api_ready());
    TRY(api_take(&chosen, options));
    bool here = chosen.device == -1 || chosen.device == stream->object.device;
    status result = here ? event_of(stream, &chosen, &event) : custream_event_create(&event, &chosen);
    if (result != CUSTREAM_SUCCESS) return result;
    result = api_event_record(event, stream, 0);
    if (result != CUSTREAM_SUCCESS) return custream_event_release(event), result;
    *out = event;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_wait_event(custream_t stream, custream_event_t event, unsigned flags)
{
    USABLE_STREAM(stream);
    USABLE_EVENT(event);
    TRY(api_ready());
    return api_event_wait(event, stream, flags);
}

CS_EXPORT status custream_cached_event(custream_t stream, custream_event_t *event)
{
    custream_event_t made, none = NULL;
    NEED(event);
    USABLE_STREAM(stream);
    TRY(api_ready());
    if (api_stream_is_default(stream)) return api_default_event(stream, event);
    custream_event_t before = cs_load_acq(&stream->cached);
    if (before && cs_load(&before->object.closed) && atomic_compare_exchange_strong(&stream->cached, &before, NULL)) custream_event_release(before);
    if (!cs_load_acq(&stream->cached)) {
        TRY(event_of(stream, &api_event_defaults, &made));
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
    if (!api_stream_is_default(other)) return custream_cached_event(other, event);
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

CS_EXPORT status custream_wait_handle(custream_t stream, void *foreign_stream)
{
    custream_t other;
    USABLE_STREAM(stream);
    TRY(custream_wrap(&other, foreign_stream, -1, NULL, NULL));
    status result = custream_wait_stream(stream, other, NULL, 0);
    custream_release(other);
    return result;
}
