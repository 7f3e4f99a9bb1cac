#include "shim/api/captured.h"

#include <stdlib.h>

/* A capture was met: before that nothing is asked at a record. */
static _Atomic bool met;

bool api_capture_met(void) { return cs_load(&met); }

static void meet(CUstreamCaptureStatus now)
{
    if (now != CU_STREAM_CAPTURE_STATUS_NONE && !cs_load(&met)) cs_store(&met, true);
}

/* The legacy stream cannot capture, and CUDA says so of the question too while another stream captures. */
status api_capture_info(CUstream stream, CUstreamCaptureStatus *now, cs_u64 *id)
{
    cuuint64_t number = 0;
    *now = CU_STREAM_CAPTURE_STATUS_NONE;
    *id = 0;
    if (stream == CU_STREAM_LEGACY) return CUSTREAM_SUCCESS;
    TRY(CUDA(cuStreamGetCaptureInfo_v2, stream, now, &number, NULL, NULL, NULL));
    meet(*now);
    if (*now == CU_STREAM_CAPTURE_STATUS_ACTIVE) *id = number;
    return CUSTREAM_SUCCESS;
}

cs_u64 api_capture_id(CUstream stream)
{
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    if (stream == CU_STREAM_LEGACY || api_driver.cuStreamGetCaptureInfo_v2(stream, &now, &id, NULL, NULL, NULL) != CUDA_SUCCESS) return 0;
    meet(now);
    return now == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
}

bool api_is_capturing(CUstream stream)
{
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    if (stream == CU_STREAM_LEGACY || api_driver.cuStreamIsCapturing(stream, &now) != CUDA_SUCCESS) return false;
    meet(now);
    return now != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool api_stream_is_captured(CUstream stream)
{
    CUstreamCaptureStatus now;
    return stream == CU_STREAM_LEGACY ? api_driver.cuStreamIsCapturing(stream, &now) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : api_is_capturing(stream);
}

void api_capture_drop(struct api_capture *c)
{
    struct api_paused *paused = atomic_exchange(&c->paused, NULL);
    if (paused && !api_forked()) api_driver.cuGraphDestroy(paused->graph);
    free(paused);
}
