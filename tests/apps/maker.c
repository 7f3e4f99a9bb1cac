/* A library that makes streams and events for its callers and forgets to destroy them, when asked
 * to: build/tests/libmaker.so. */
#include <cuda.h>
#include <stddef.h>

__attribute__((visibility("default"))) int make_streams(int count, void **out)
{
    for (int i = 0; i < count; i++) {
        CUstream stream;
        if (cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1) != CUDA_SUCCESS)
            return 1;
        if (out) out[i] = stream;
    }
    return 0;
}

__attribute__((visibility("default"))) int make_events(int count)
{
    for (int i = 0; i < count; i++) {
        CUevent event;
        if (cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return 1;
    }
    return 0;
}
