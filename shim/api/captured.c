/* What is captured: asked before calls that would break a capture. */
#include "shim/api/api.h"

/* A capture was met: before that nothing is asked at a record. */
static _Atomic bool met;

static void meet(CUstreamCaptureStatus now)
{
    if (now != CU_STREAM_CAPTURE_STATUS_NONE && !cs_load(&met)) cs_store(&met, true);
}

/* --- of streams: CUDA knows --- */

/* The legacy stream cannot, and CUDA says so of the question too while another stream captures. */
status api_capture_info(custream_t stream, CUstreamCaptureStatus *now, cs_u64 *id)
{
    cuuint64_t number = 0;
    *now = CU_STREAM_CAPTURE_STATUS_NONE;
    *id = 0;
    if (stream->kind == API_LEGACY) return CUSTREAM_SUCCESS;
    TRY(CUDA(cuStreamGetCaptureInfo_v2, stream->handle, now, &number, NULL, NULL, NULL));
    meet(*now);
    if (*now == CU_STREAM_CAPTURE_STATUS_ACTIVE) *id = number;
    return CUSTREAM_SUCCESS;
}

cs_u64 api_capture_id(custream_t stream)
{
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    if (stream->kind == API_LEGACY || api_driver.cuStreamGetCaptureInfo_v2(stream->handle, &now, &id, NULL, NULL, NULL) != CUDA_SUCCESS) return 0;
    meet(now);
    return now == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
}

bool api_is_capturing(custream_t stream)
{
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    if (stream->kind == API_LEGACY || api_driver.cuStreamIsCapturing(stream->handle, &now) != CUDA_SUCCESS) return false;
    meet(now);
    return now != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* A blocking stream of the current context captures. */
static bool legacy_is_captured(void)
{
    CUstreamCaptureStatus now;
    return api_driver.cuStreamIsCapturing(CU_STREAM_LEGACY, &now) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

bool api_stream_is_captured(custream_t stream) { return stream->kind == API_LEGACY ? legacy_is_captured() : api_is_capturing(stream); }

/* --- of events --- */

void api_event_was_recorded(custream_event_t event, custream_t stream, bool external)
{
    cs_u64 capture = cs_load(&met) && !external ? api_capture_id(stream) : 0;
    if (capture) cs_store(&event->captured_on, stream->object.id);
    cs_store_rel(&event->captured, capture);
    cs_store_rel(&event->recorded, true);
}

bool api_event_is_captured(custream_event_t event)
{
    cs_u64 capture = cs_load_acq(&event->captured), on = cs_load(&event->captured_on);
    if (!capture) return false;
    custream_t stream = api_object_of_id(API_STREAM, on);
    bool captured = stream && api_stream_usable(stream) == CUSTREAM_SUCCESS && api_capture_id(stream) == capture;
    if (stream) custream_release(stream);
    if (captured) return true;
    api_joined_end();
    return api_joined_in(capture, NULL);
}

/* --- of contexts --- */

/* Handles that others destroy are asked for only where the capture is this library's. */
static bool belongs(custream_t stream, int device, const struct api_home *here)
{
    if (stream->kind == API_PER_THREAD) return true;
    if (stream->kind == API_WRAPPED && !cs_load(&stream->capture.on)) return false;
    return stream->home.context ? api_home_is(&stream->home, here) : stream->object.device == device;
}

bool api_context_is_captured(int device)
{
    struct api_home here;
    bool captured = legacy_is_captured();
    struct api_walk walk;
    if (captured || !cs_load(&met)) return captured;
    api_home_now(&here);
    api_walk_begin(&walk);
    for (custream_t s; !captured && (s = api_walk_next(&walk));)
        captured = belongs(s, device, &here) && api_stream_usable(s) == CUSTREAM_SUCCESS && api_is_capturing(s);
    api_walk_end(&walk);
    api_joined_end();
    return captured || api_joined_in(0, &here);
}
