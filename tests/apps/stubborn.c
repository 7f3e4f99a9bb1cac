/* Goes on whatever the driver answers, and prints every answer: for failures on demand
 * (CUSTREAM_FAKE_FAIL), older drivers and missing devices. */
#include "tests/apps/app.h"
#include "tests/patience.h"

static int ran, accepted;
static void CUDA_CB host(void *unused) { (void)unused, ran++; }
static void CUDA_CB callback(CUstream stream, CUresult status, void *unused)
{
    (void)stream, (void)status, (void)unused, ran++;
}

/* Every host function that was accepted runs, whether or not the driver lets us wait for it. */
static void say_ran(void)
{
    for (unsigned ms = patience(10) * 1000;
        ms && __atomic_load_n(&ran, __ATOMIC_ACQUIRE) < accepted; ms--)
        app_sleep_ms(1);
    printf("accepted %d ran %d\n", accepted, ran);
}

#define SAY_HOST(symbol, ...) \
    do { \
        int result_ = (int)CU(symbol, __VA_ARGS__); \
        accepted += result_ == 0; \
        printf("%s %d\n", #symbol, result_); \
    } while (0)

int main(void)
{
    CUcontext context = NULL, created = NULL;
    CUstream stream = NULL, urgent = NULL;
    CUevent event = NULL;
    CUdeviceptr memory = 0;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUfunction empty = NULL;
    char host_bytes[64];
    int version = 0;
    SAY(cuDriverGetVersion, &version);
    SAY(cuInit, 0);
    SAY(cuDevicePrimaryCtxRetain, &context, 0);
    SAY(cuCtxSetCurrent, context);
    SAY(cuCtxCreate_v2, &created, 0, 0);
    SAY(cuCtxPopCurrent_v2, NULL);
    SAY(cuModuleLoadData, &app_module, "");
    SAY(cuModuleGetFunction, &empty, app_module, "empty_kernel");
    SAY(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    SAY(cuStreamCreateWithPriority, &urgent, 0, -4);
    SAY(cuEventCreate, &event, 0);
    SAY(cuMemAlloc_v2, &memory, 64);
    for (int i = 0; i < 3; i++) {
        SAY(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
        SAY(cuMemcpyHtoDAsync_v2, memory, host_bytes, 64, stream);
        SAY(cuMemsetD8Async, memory, 0, 64, urgent);
        SAY(cuMemcpyDtoH_v2, host_bytes, memory, 64);
        SAY(cuEventRecord, event, stream);
        SAY(cuStreamWaitEvent, urgent, event, 0);
        SAY(cuEventSynchronize, event);
        SAY_HOST(cuLaunchHostFunc, stream, host, NULL);
        SAY_HOST(cuStreamAddCallback, stream, callback, NULL, 0);
        SAY(cuStreamSynchronize, stream);
        SAY(cuStreamSynchronize, urgent);
    }
    say_ran();
    CUresult began = CU(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    printf("cuStreamBeginCapture_v2 %d\n", (int)began);
    int in_graph = CU(cuLaunchHostFunc, stream, host, NULL) == CUDA_SUCCESS;
    SAY(cuStreamEndCapture, stream, &graph);
    SAY(cuGraphInstantiateWithFlags, &exec, graph, 0);
    if (began != CUDA_SUCCESS) accepted += in_graph; /* nothing captured it */
    if (CU(cuGraphLaunch, exec, stream) == CUDA_SUCCESS) accepted += in_graph;
    SAY(cuCtxSynchronize);
    say_ran();
    SAY(cuGraphExecDestroy, exec);
    SAY(cuEventDestroy_v2, event);
    SAY(cuStreamDestroy_v2, stream);
    SAY(cuStreamDestroy_v2, urgent);
    SAY(cuMemFree_v2, memory);
    SAY(cuModuleUnload, app_module);
    SAY(cuCtxDestroy_v2, created);
    SAY(cuDevicePrimaryCtxRelease_v2, 0);
    app_report();
    return 0;
}
