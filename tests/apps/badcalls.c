/* Calls that no driver accepts: handles that never were, NULL where a pointer belongs, sizes and
 * flags out of range. Prints every answer. */
#include "tests/apps/app.h"

#define NOBODY ((size_t)0xdeadbeef0)

int main(void)
{
    CUstream stream = NULL;
    CUevent event = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUcontext context = NULL;
    unsigned flags = 0;
    int priority = 0;
    float ms = 0;
    unsigned long long id = 0;
    CUstreamCaptureStatus status;
    SAY(cuStreamCreate, &stream, 0); /* before cuInit */
    SAY(cuStreamSynchronize, NULL);
    SAY(cuEventCreate, &event, 0);
    SAY(cuInit, 0);
    SAY(cuStreamCreate, &stream, 0); /* without a context */
    SAY(cuStreamSynchronize, NULL);
    SAY(cuStreamSynchronize, CU_STREAM_PER_THREAD);
    SAY(cuMemsetD8Async, 0, 0, 0, NULL);
    SAY(cuCtxSynchronize);
    SAY(cuDevicePrimaryCtxRetain, NULL, 0);
    SAY(cuDevicePrimaryCtxRetain, &context, 99);
    SAY(cuDevicePrimaryCtxRetain, &context, -1);
    SAY(cuCtxSetCurrent, (CUcontext)NOBODY);
    SAY(cuCtxPushCurrent_v2, (CUcontext)NOBODY);
    SAY(cuCtxPushCurrent_v2, NULL);
    SAY(cuCtxPopCurrent_v2, &context);
    SAY(cuCtxDestroy_v2, (CUcontext)NOBODY);
    SAY(cuCtxDestroy_v2, NULL);
    app_start(0);
    for (size_t i = 0; i < 4; i++) {
        const CUstream bad[] = {(CUstream)NOBODY, (CUstream)(size_t)3, (CUstream)(size_t)-1,
            (CUstream)(size_t)0x8000000000000000};
        printf("stream handle %zu\n", i);
        SAY(cuStreamSynchronize, bad[i]);
        SAY(cuStreamQuery, bad[i]);
        SAY(cuStreamQuery_ptsz, bad[i]);
        SAY(cuStreamDestroy_v2, bad[i]);
        SAY(cuStreamGetPriority, bad[i], &priority);
        SAY(cuStreamGetFlags, bad[i], &flags);
        SAY(cuStreamGetId, bad[i], &id);
        SAY(cuStreamGetCtx, bad[i], &context);
        SAY(cuStreamIsCapturing, bad[i], &status);
        SAY(cuStreamBeginCapture_v2, bad[i], CU_STREAM_CAPTURE_MODE_GLOBAL);
        SAY(cuStreamEndCapture, bad[i], &graph);
        SAY(cuMemsetD8Async, 0, 0, 0, bad[i]);
        SAY(cuMemcpyHtoDAsync_v2, 0, &flags, 0, bad[i]);
        SAY(cuGraphLaunch, (CUgraphExec)NOBODY, bad[i]);
        SAY(cuStreamWaitEvent, bad[i], (CUevent)NOBODY, 0);
        SAY(cuLaunchHostFunc, bad[i], NULL, NULL);
    }
    SAY(cuStreamCreate, NULL, 0);
    SAY(cuStreamCreate, &stream, ~0u);
    SAY(cuStreamCreateWithPriority, NULL, 0, 0);
    SAY(cuStreamCreateWithPriority, &stream, ~0u, -1);
    SAY(cuEventCreate, NULL, 0);
    SAY(cuEventCreate, &event, ~0u);
    SAY(cuEventRecord, NULL, NULL);
    SAY(cuEventRecord, (CUevent)NOBODY, NULL);
    SAY(cuEventRecordWithFlags, (CUevent)NOBODY, NULL, ~0u);
    SAY(cuEventQuery, NULL);
    SAY(cuEventQuery, (CUevent)NOBODY);
    SAY(cuEventSynchronize, NULL);
    SAY(cuEventSynchronize, (CUevent)(size_t)-1);
    SAY(cuEventDestroy_v2, NULL);
    SAY(cuEventDestroy_v2, (CUevent)NOBODY);
    SAY(cuEventElapsedTime, &ms, (CUevent)NOBODY, NULL);
    SAY(cuStreamWaitEvent, NULL, NULL, 0);
    SAY(cuStreamWaitEvent, NULL, (CUevent)NOBODY, 0);
    SAY(cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    SAY(cuLaunchKernel, (CUfunction)NOBODY, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    SAY(cuLaunchKernel, (CUfunction)NOBODY, 0, 0, 0, 0, 0, 0, 0, (CUstream)NOBODY, NULL, NULL);
    SAY(cuLaunchKernelEx, NULL, NULL, NULL, NULL);
    SAY(cuLaunchHostFunc, NULL, NULL, NULL);
    SAY(cuStreamAddCallback, NULL, NULL, NULL, 0);
    SAY(cuStreamAddCallback, NULL, NULL, NULL, 77);
    SAY(cuStreamEndCapture, NULL, &graph);
    SAY(cuStreamEndCapture, NULL, NULL);
    SAY(cuGraphLaunch, NULL, NULL);
    SAY(cuGraphInstantiateWithFlags, &exec, NULL, 0);
    SAY(cuGraphInstantiateWithFlags, NULL, (CUgraph)NOBODY, 0);
    SAY(cuGraphExecDestroy, NULL);
    SAY(cuGraphAddEventRecordNode, NULL, NULL, NULL, 0, NULL);
    SAY(cuModuleUnload, NULL);
    SAY(cuModuleGetFunction, NULL, NULL, NULL);
    SAY(cuModuleGetFunction, &(CUfunction){0}, app_module, "missing_kernel");
    SAY(cuDevicePrimaryCtxRelease_v2, 99);
    SAY(cuDevicePrimaryCtxReset_v2, -7);
    SAY(cuGetProcAddress_v2, NULL, NULL, 12000, 0, NULL);
    SAY(cuGetProcAddress_v2, "cuStreamCreate", NULL, 12000, 0, NULL);
    SAY(cuGetProcAddress_v2, NULL, &(void *){0}, 12000, 0, NULL);
    printf("outputs untouched %d\n", !graph && !exec);
    return 0;
}
