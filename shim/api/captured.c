/* What is captured. */
#include "shim/api/api.h"

/* The legacy stream cannot, and CUDA says so of the question too while another stream captures. */
status api_capture_info(custream_t stream, CUstreamCaptureStatus *now, cs_u64 *id)
{
    cuuint64_t number = 0;
    *now = CU_STREAM_CAPTURE_STATUS_NONE;
    *id = 0;
    if (stream->kind == API_LEGACY) return CUSTREAM_SUCCESS;
    TRY(CUDA(cuStreamGetCaptureInfo_v2, stream->handle, now, &number, NULL, NULL, NULL));
    if (*now == CU_STREAM_CAPTURE_STATUS_ACTIVE) *id = number;
    return CUSTREAM_SUCCESS;
}

cs_u64 api_capture_id(custream_t stream)
{
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    if (stream->kind == API_LEGACY || api_driver.cuStreamGetCaptureInfo_v2(stream->handle, &now, &id, NULL, NULL, NULL) != CUDA_SUCCESS) return 0;
    return now == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
}

bool api_is_capturing(custream_t stream)
{
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    if (stream->kind == API_LEGACY) return false;
    return api_driver.cuStreamIsCapturing(stream->handle, &now) == CUDA_SUCCESS && now != CU_STREAM_CAPTURE_STATUS_NONE;
}
