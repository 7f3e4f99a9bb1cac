/* Captures of streams. */
#include "shim/api/graph.h"
#include "shim/api/stream.h"

#include <stdlib.h>

static void captures_drop(struct api_thread *thread)
{
    for (struct api_capture *c; (c = thread->captures);) {
        thread->captures = c->next;
        api_capture_drop(c);
        free(c);
    }
}

/* Of default streams: of the context that is current. */
static status capture_of(custream_t stream, struct api_capture **out)
{
    struct api_capture *c, *idle = NULL;
    struct api_home here;
    if (stream->kind != API_PER_THREAD) return *out = &stream->capture, CUSTREAM_SUCCESS;
    struct api_thread *thread = api_thread();
    CHECK(thread, CUSTREAM_NO_MEMORY);
    api_home_now(&here);
    for (c = thread->captures; c && !api_home_is(&c->home, &here); c = c->next)
        if (!cs_load(&c->on)) idle = c;
    if (c) return *out = c, CUSTREAM_SUCCESS;
    if (!idle) {
        CHECK(idle = calloc(1, sizeof *idle), CUSTREAM_NO_MEMORY);
        idle->next = thread->captures;
        thread->captures = idle;
        thread->captures_end = captures_drop;
    }
    idle->home = here;
    return *out = idle, CUSTREAM_SUCCESS;
}

_Static_assert((int)CUSTREAM_CAPTURE_GLOBAL == CU_STREAM_CAPTURE_MODE_GLOBAL && (int)CUSTREAM_CAPTURE_THREAD_LOCAL == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
               (int)CUSTREAM_CAPTURE_RELAXED == CU_STREAM_CAPTURE_MODE_RELAXED, "CUDA's modes");
static CUstreamCaptureMode mode_of(custream_capture_mode_t mode) { return (CUstreamCaptureMode)mode; }

/* A capture that was begun here may have been ended, and another one begun, past this library. CUDA tells no id of one that is broken. */
static bool is_ours(struct api_capture *c, CUstreamCaptureStatus now, cs_u64 id)
{
    if (!cs_load(&c->on) || cs_load(&c->paused)) return false;
    if (now == CU_STREAM_CAPTURE_STATUS_INVALIDATED || (now == CU_STREAM_CAPTURE_STATUS_ACTIVE && id == cs_load(&c->id))) return true;
    cs_store(&c->on, false);
    return false;
}

static void make_ours(struct api_capture *c, custream_capture_mode_t mode, cs_u64 id)
{
    c->mode = mode;
    cs_store(&c->id, id);
    cs_store_rel(&c->on, true);
}

CS_EXPORT status custream_capture_status(custream_t stream, custream_capture_status_t *out, uint64_t *id)
{
    CUstreamCaptureStatus now;
    cs_u64 number;
    NEED(out);
    READY_STREAM(stream);
    TRY(api_capture_info(stream->handle, &now, &number));
    *out = now == CU_STREAM_CAPTURE_STATUS_ACTIVE ? CUSTREAM_CAPTURE_ACTIVE : now == CU_STREAM_CAPTURE_STATUS_NONE ? CUSTREAM_CAPTURE_NONE : CUSTREAM_CAPTURE_BROKEN;
    if (id) *id = number;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_is_capturing(custream_t stream, int *capturing)
{
    custream_capture_status_t now;
    NEED(capturing);
    TRY(custream_capture_status(stream, &now, NULL));
    *capturing = now != CUSTREAM_CAPTURE_NONE;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_begin_capture(custream_t stream, custream_capture_mode_t mode)
{
    struct api_capture *c;
    custream_capture_status_t now;
    CHECK((unsigned)mode <= CUSTREAM_CAPTURE_RELAXED, CUSTREAM_INVALID_VALUE);
    USABLE_STREAM(stream);
    CHECK(stream->kind != API_LEGACY, CUSTREAM_CAPTURE_UNSUPPORTED);
    TRY(custream_capture_status(stream, &now, NULL));
    TRY(capture_of(stream, &c));
    CHECK(now == CUSTREAM_CAPTURE_NONE && !cs_load(&c->paused), CUSTREAM_CAPTURE_STATE);
    api_joined_end();
    TRY(CUDA(cuStreamBeginCapture_v2, stream->handle, mode_of(mode)));
    make_ours(c, mode, api_capture_id(stream->handle));
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_adopt_capture(custream_t stream)
{
    struct api_capture *c;
    CUstreamCaptureStatus now;
    cs_u64 id;
    READY_STREAM(stream);
    TRY(api_capture_info(stream->handle, &now, &id));
    CHECK(now != CU_STREAM_CAPTURE_STATUS_INVALIDATED, CUSTREAM_CAPTURE_INVALIDATED);
    TRY(capture_of(stream, &c));
    CHECK(now == CU_STREAM_CAPTURE_STATUS_ACTIVE && !cs_load(&c->paused) && !is_ours(c, now, id), CUSTREAM_CAPTURE_STATE);
    make_ours(c, CUSTREAM_CAPTURE_RELAXED, id); /* CUDA does not tell the mode */
    return CUSTREAM_SUCCESS;
}

/* After a call that may have ended it. */
static void over(custream_t stream, struct api_capture *c)
{
    if (api_is_capturing(stream->handle)) return;
    cs_store(&c->on, false);
    api_capture_drop(c);
}

CS_EXPORT status custream_end_capture(custream_t stream, custream_graph_t *graph)
{
    struct api_capture *c;
    CUstreamCaptureStatus now;
    CUgraph made = NULL;
    cs_u64 id;
    int device;
    NEED(graph);
    READY_STREAM(stream);
    TRY(api_capture_info(stream->handle, &now, &id));
    TRY(capture_of(stream, &c));
    CHECK(is_ours(c, now, id), CUSTREAM_CAPTURE_STATE);
    status result = CUDA(cuStreamEndCapture, stream->handle, &made);
    over(stream, c);
    api_joined_end();
    if (result != CUSTREAM_SUCCESS) return result;
    TRY(api_current_device(&device));
    result = api_graph_new(graph, made, api_stream_is_default(stream) ? device : stream->object.device);
    if (result != CUSTREAM_SUCCESS) api_driver.cuGraphDestroy(made);
    return result;
}

CS_EXPORT status custream_exchange_capture_mode(custream_capture_mode_t *mode)
{
    NEED(mode);
    CHECK((unsigned)*mode <= CUSTREAM_CAPTURE_RELAXED, CUSTREAM_INVALID_VALUE);
    TRY(api_ready());
    CUstreamCaptureMode exchanged = mode_of(*mode);
    TRY(CUDA(cuThreadExchangeStreamCaptureMode, &exchanged));
    *mode = (custream_capture_mode_t)exchanged;
    return CUSTREAM_SUCCESS;
}

/* --- pause and resume --- */

CS_EXPORT status custream_pause_capture(custream_t stream)
{
    struct api_capture *c;
    CUstreamCaptureStatus now;
    const CUgraphNode *after;
    size_t count;
    CUgraph graph;
    cuuint64_t id;
    READY_STREAM(stream);
    TRY(capture_of(stream, &c));
    CHECK(cs_load(&c->on) && !cs_load(&c->paused), CUSTREAM_CAPTURE_STATE);
    CHECK(api_driver.cuStreamBeginCaptureToGraph, CUSTREAM_NOT_SUPPORTED);
    TRY(CUDA(cuStreamGetCaptureInfo_v2, stream->handle, &now, &id, &graph, &after, &count));
    CHECK(is_ours(c, now, id), CUSTREAM_CAPTURE_STATE);
    CHECK(now == CU_STREAM_CAPTURE_STATUS_ACTIVE, CUSTREAM_CAPTURE_INVALIDATED);
    struct api_paused *paused = malloc(sizeof *paused + count * sizeof *after);
    CHECK(paused, CUSTREAM_NO_MEMORY);
    paused->count = count;
    for (size_t i = 0; i < count; i++) paused->after[i] = after[i]; /* CUDA's array is gone with the next call on the stream */
    status result = CUDA(cuStreamEndCapture, stream->handle, &paused->graph);
    if (result != CUSTREAM_SUCCESS) {
        over(stream, c);
        return free(paused), result;
    }
    cs_store_rel(&c->paused, paused);
    api_joined_end();
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_resume_capture(custream_t stream)
{
    struct api_capture *c;
    READY_STREAM(stream);
    TRY(capture_of(stream, &c));
    struct api_paused *paused = cs_load_acq(&c->paused);
    CHECK(paused, CUSTREAM_CAPTURE_STATE);
    TRY(CUDA(cuStreamBeginCaptureToGraph, stream->handle, paused->graph, paused->after, NULL, paused->count, mode_of(c->mode)));
    cs_store(&c->paused, NULL);
    make_ours(c, c->mode, api_capture_id(stream->handle));
    free(paused);
    return CUSTREAM_SUCCESS;
}
