/* Completion, and order between streams. */
#include "shim/api/current.h"
#include "shim/api/default.h"
#include "shim/api/graph.h"
#include "shim/api/link.h"
#include "shim/api/sized.h"

CS_EXPORT status custream_query(custream_t stream)
{
    READY_STREAM(stream);
    CHECK(!api_stream_is_captured(stream->handle), CUSTREAM_CAPTURE_UNSUPPORTED); /* asked first: CUDA would break the capture */
    return CUDA(cuStreamQuery, stream->handle);
}

CS_EXPORT status custream_synchronize(custream_t stream)
{
    USABLE_STREAM(stream);
    CHECK(!api_link->in_hook(), CUSTREAM_NOT_SUPPORTED);
    TRY(api_ready());
    TRY(api_stream_enter(stream));
    CHECK(!api_stream_is_captured(stream->handle), CUSTREAM_CAPTURE_UNSUPPORTED);
    return CUDA(cuStreamSynchronize, stream->handle);
}

/* Handles that others destroy are asked for only where the capture is this library's. */
static bool belongs(custream_t stream, int device, const struct api_home *here)
{
    if (stream->kind == API_PER_THREAD) return true;
    if (stream->kind == API_WRAPPED && !cs_load(&stream->capture.on)) return false;
    return stream->home.context ? api_home_is(&stream->home, here) : stream->object.device == device;
}

static bool context_is_captured(int device)
{
    struct api_home here;
    bool captured = api_stream_is_captured(CU_STREAM_LEGACY);
    struct api_walk walk;
    if (captured || !api_capture_met()) return captured;
    api_home_now(&here);
    api_walk_begin(&walk, API_STREAM);
    for (custream_t s; !captured && (s = api_walk_next(&walk));)
        captured = belongs(s, device, &here) && api_stream_usable(s) == CUSTREAM_SUCCESS && api_is_capturing(s->handle);
    api_walk_end(&walk);
    api_joined_end();
    return captured || api_joined_in(0, &here);
}

CS_EXPORT status custream_device_synchronize(int device)
{
    struct api_scope scope;
    CHECK(!api_link->in_hook(), CUSTREAM_NOT_SUPPORTED);
    TRY(api_ready());
    TRY(api_enter(&device, &scope));
    status result = context_is_captured(device) ? CUSTREAM_CAPTURE_UNSUPPORTED : CUDA(cuCtxSynchronize);
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

CS_EXPORT status custream_record_new(custream_t stream, const custream_event_options_t *options, custream_event_t *out)
{
    custream_event_options_t chosen = api_event_defaults;
    custream_event_t event;
    NEED(out);
    USABLE_STREAM(stream);
    TRY(api_ready());
    TRY(api_take(&chosen, options));
    bool here = chosen.device == -1 || chosen.device == stream->object.device;
    status result = here ? api_event_in(stream, &chosen, &event) : custream_event_create(&event, &chosen);
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
    NEED(event);
    USABLE_STREAM(stream);
    TRY(api_ready());
    return api_stream_is_default(stream) ? api_default_event(stream, event) : api_event_cached(stream, event);
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

/* --- NULL: the current stream --- */

typedef status on_stream(void *object, custream_t stream);

static status on(void *object, enum api_mark mark, custream_t stream, on_stream *what)
{
    status result;
    TRY(mark == API_EVENT ? api_event_usable(object) : api_object_usable(object, mark));
    if (stream) USABLE_STREAM(stream);
    TRY(api_ready());
    if (mark == API_GRAPH) TRY(custream_graph_instantiate(object));
    custream_t chosen = api_current_or(stream, &result);
    if (!chosen) return result;
    result = what(object, chosen);
    if (!stream) custream_release(chosen);
    return result;
}

static status record(void *event, custream_t stream) { return api_event_record(event, stream, 0); }
static status wait(void *event, custream_t stream) { return api_event_wait(event, stream, 0); }

static status launch(void *graph, custream_t stream)
{
    TRY(api_stream_enter(stream));
    return CUDA(cuGraphLaunch, cs_load_acq(&((custream_graph_t)graph)->exec), stream->handle);
}
static status upload(void *graph, custream_t stream)
{
    TRY(api_stream_enter(stream));
    return CUDA(cuGraphUpload, cs_load_acq(&((custream_graph_t)graph)->exec), stream->handle);
}

CS_EXPORT status custream_event_record(custream_event_t event, custream_t stream) { return on(event, API_EVENT, stream, record); }
CS_EXPORT status custream_event_wait(custream_event_t event, custream_t stream) { return on(event, API_EVENT, stream, wait); }
CS_EXPORT status custream_graph_launch(custream_graph_t graph, custream_t stream) { return on(graph, API_GRAPH, stream, launch); }
CS_EXPORT status custream_graph_upload(custream_graph_t graph, custream_t stream) { return on(graph, API_GRAPH, stream, upload); }
