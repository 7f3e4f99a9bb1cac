/* What policies change: default streams, priorities, capture. test_fakecuda.py compares the journal
 * of these calls, line by line. */
#include "shim/calls/cuda_api.h"

#include "device.h"

#include <pthread.h>

static CUdeviceptr cell;

static void test_priorities(CUstream normal, CUstream high)
{
    CUstreamAttrValue value = {.priority = -2};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value = {.priority = -3}};
    CUlaunchConfig config = {.gridDimX = 2,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 4,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = normal,
        .attrs = &attribute,
        .numAttrs = 1};
    int least, greatest, priority;

    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK(least == 0 && greatest == -5);
    OK(cuStreamGetPriority(high, &priority));
    CHECK_IS(priority, -5); /* as near to what was asked as there is */
    OK(cuStreamSetAttribute(normal, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    OK(cuStreamGetPriority(normal, &priority));
    CHECK_IS(priority, -2);
    value.priority = 0;
    OK(cuStreamGetAttribute(normal, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    CHECK_IS(value.priority, -2);
    value.priority = 9;
    OK(cuStreamSetAttribute(normal, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    OK(cuStreamGetPriority(normal, &priority));
    CHECK_IS(priority, 0);
    OK(cuLaunchKernelEx(&config, empty, NULL, NULL));
    OK(cuProfilerStart());
    OK(cuProfilerStop());
}

static void step(CUstream stream, unsigned k)
{
    static CUfunction step31;
    unsigned us = 100;
    void *parameters[] = {&cell, &k, &us};

    if (!step31) OK(cuModuleGetFunction(&step31, module, "step31"));
    OK(cuLaunchKernel_ptsz(step31, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static void test_capture(CUstream high)
{
    CUlaunchAttributeValue value = {.priority = 7};
    CUgraph graph = NULL;
    CUgraphNode node;
    size_t count = 1;

    CHECK_IS(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_IS(cuStreamBeginCapture_v2_ptsz(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED),
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(cuStreamBeginCapture_v2_ptsz(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    step(CU_STREAM_PER_THREAD, 1);
    step(NULL, 2);
    OK(cuStreamEndCapture_ptsz(NULL, &graph));
    OK(cuGraphGetNodes(graph, NULL, &count));
    CHECK_IS(count, 2);
    OK(cuGraphDestroy(graph));
    OK(cuStreamBeginCapture_v2(high, CU_STREAM_CAPTURE_MODE_RELAXED));
    step(high, 1);
    OK(cuStreamEndCapture(high, &graph));
    count = 1;
    OK(cuGraphGetNodes(graph, &node, &count));
    OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    CHECK_IS(value.priority, -5); /* the stream's */
    value.priority = -1;
    OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    OK(cuGraphDestroy(graph));
}

static void *test_thread(void *shared)
{
    CUevent event;

    OK(cuCtxSetCurrent(context));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuMemsetD32Async_ptsz(cell, 5, 1, NULL));
    OK(cuMemsetD32_v2(cell, 7, 1)); /* behind it: the legacy stream waits for blocking ones */
    step(CU_STREAM_PER_THREAD, 3);
    OK(cuEventRecord_ptsz(event, NULL));
    OK(cuStreamWaitEvent(shared, event, 0));
    OK(cuStreamDestroy_v2(shared));
    OK(cuEventSynchronize(event));
    OK(cuEventDestroy_v2(event));
    CHECK_IS(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    return NULL;
}

int main(void)
{
    CUstream normal, high;
    CUcontext other;
    pthread_t thread;
    unsigned value = 0;

    set_up();
    OK(cuMemAlloc_v2(&cell, 4));
    OK(cuMemsetD32_v2(cell, 0, 1));
    OK(cuStreamCreate(&normal, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreateWithPriority(&high, 0, -8));
    test_priorities(normal, high);
    test_capture(high);
    CHECK(pthread_create(&thread, NULL, test_thread, normal) == 0);
    pthread_join(thread, NULL);
    OK(cuMemcpyDtoH_v2_ptds(&value, cell, 4));
    CHECK_IS(value, 7 * 31 + 3);
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuStreamSynchronize(NULL));
    OK(cuStreamQuery(high)); /* of the first context */
    OK(cuCtxDestroy_v2(other));
    FINISH();
}
