/* What is captured. */
#include "shim/api/api.h"

cs_u64 api_capture_id(custream_t stream)
{
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    if (stream->kind == API_LEGACY || api_driver.cuStreamGetCaptureInfo_v2(stream->handle, &now, &id, NULL, NULL, NULL) != CUDA_SUCCESS) return 0;
    return now == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
}

/* The legacy stream cannot, and CUDA says so of the question too while another stream captures. */
bool api_is_capturing(custream_t stream)
{
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    if (stream->kind == API_LEGACY) return false;
    return api_driver.cuStreamIsCapturing(stream->handle, &now) == CUDA_SUCCESS && now != CU_STREAM_CAPTURE_STATUS_NONE;
}
