/* Capture: modes, fork and join, what breaks it and with which error; graphs by hand: nodes,
 * dependencies, events, updates, launches. */
#include "device.h"

#include <pthread.h>

static CUstream s, t;

static CUstreamCaptureStatus status_of(CUstream stream)
{
    CUstreamCaptureStatus status = 99;
    OK(cuStreamIsCapturing(stream, &status));
    return status;
}

static size_t nodes_of(CUgraph graph)
{
    size_t count = 0;
    OK(cuGraphGetNodes(graph, NULL, &count));
    return count;
}

static void test_fork_join(void)
{
    CUgraph graph, second;
    CUgraphExec exec;
    CUevent fork, back, passed;
    size_t edges = 0;
    double begin_ms;

    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&passed, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_IS(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK_IS(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    OK(launch(empty, s, NULL));
    OK(cuEventRecord(fork, s));
    OK(cuStreamWaitEvent(t, fork, 0));
    CHECK_IS(status_of(t), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(close_gate(s));
    OK(sleep_on(t, 20000));
    OK(cuEventRecordWithFlags(passed, t, CU_EVENT_RECORD_EXTERNAL));
    OK(cuEventRecord(back, t));
    OK(cuStreamWaitEvent(s, back, 0));
    OK(launch(empty, s, NULL));
    OK(cuStreamEndCapture(s, &graph));
    CHECK_IS(status_of(t), CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK_IS(nodes_of(graph), 5);
    OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &edges));
    CHECK_IS(edges, 5);
    OK(cuGraphInstantiate(&exec, graph, 0));
    begin_ms = milliseconds();
    OK(cuGraphLaunch(exec, s));
    OK(cuEventSynchronize(passed)); /* one branch ends, while the other one has not begun */
    CHECK(milliseconds() - begin_ms >= 19.5);
    CHECK_IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    gate_is_open = 1;
    OK(cuStreamSynchronize(s));
    begin_ms = milliseconds();
    OK(cuGraphLaunch(exec, s));
    OK(cuGraphLaunch(exec, t)); /* launches of one exec do not */
    OK(cuGraphExecDestroy(exec));
    OK(cuStreamSynchronize(t));
    CHECK(milliseconds() - begin_ms >= 39);
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamEndCapture(s, &second));
    CHECK_IS(nodes_of(second), 0);
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(second));
    OK(cuEventDestroy(fork));
    OK(cuEventDestroy(passed));
    OK(cuEventDestroy(back));
}

/* Each breaks a fresh capture of `s`; ending it then gives 901 and no graph. */
static void broken(CUresult given, CUresult expected, int line)
{
    CUgraph graph = (CUgraph)1;

    if (given != expected)
        fprintf(stderr, "line %d: %d, not %d\n", line, given, expected), failures++;
    CHECK_IS(status_of(s), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK_IS(launch(empty, s, NULL), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_IS(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == NULL);
}
#define BREAKS(call, expected) \
    do { \
        OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL)); \
        broken(call, expected, __LINE__); \
    } while (0)

static CUresult recorded_query(CUevent e)
{
    OK(cuEventRecord(e, s));
    return cuEventQuery(e);
}

static CUresult merge(CUevent e)
{
    CUresult result;
    CUgraph graph;

    OK(cuEventRecord(e, s));
    OK(cuStreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_GLOBAL));
    result = cuStreamWaitEvent(t, e, 0);
    CHECK_IS(cuStreamEndCapture(t, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    return result;
}

static void *from_elsewhere(void *mode)
{
    CUgraph graph;
    CUevent e;

    OK(cuCtxSetCurrent(context));
    OK(cuEventCreate(&e, 0));
    if (!mode) return (void *)(uintptr_t)cuEventQuery(e);
    OK(cuThreadExchangeStreamCaptureMode(mode));
    OK(cuEventQuery(e));
    OK(cuEventDestroy(e));
    return (void *)(uintptr_t)cuStreamEndCapture(s, &graph);
}

static CUresult elsewhere(CUstreamCaptureMode *mode)
{
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, from_elsewhere, mode);
    pthread_join(thread, &result);
    return (CUresult)(uintptr_t)result;
}

static void test_broken(void)
{
    CUdeviceptr memory;
    CUevent e, outside;
    CUstream legacy_free;
    CUgraph graph;
    CUstreamCaptureStatus status;
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    OK(cuEventCreate(&e, 0));
    OK(cuEventCreate(&outside, 0));
    OK(cuEventRecord(outside, t));
    OK(cuStreamCreate(&legacy_free, CU_STREAM_NON_BLOCKING));
    CHECK_IS(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_IS(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_IS(cuStreamEndCapture(s, &graph), CUDA_ERROR_ILLEGAL_STATE);
    BREAKS(cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    BREAKS(cuStreamQuery(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    BREAKS(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    BREAKS(cuMemAlloc(&memory, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    BREAKS(cuEventQuery(outside), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    BREAKS(recorded_query(e), CUDA_ERROR_CAPTURED_EVENT);
    BREAKS(cuStreamWaitEvent(s, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    BREAKS(launch(empty, NULL, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    BREAKS(cuEventRecord(outside, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    BREAKS(merge(e), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    BREAKS(elsewhere(NULL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    BREAKS(elsewhere(&relaxed), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);

    /* Asking about the legacy stream is an error that breaks nothing. */
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_IS(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK_IS(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemAlloc(&memory, 16)); /* relaxed by this thread */
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphDestroy(graph));
    OK(cuMemFree(memory));

    /* A fork that is not joined, and ending on another stream. */
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(legacy_free, e, 0));
    OK(launch(empty, legacy_free, NULL));
    OK(launch(empty, NULL, NULL) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_UNKNOWN);
    CHECK_IS(cuStreamEndCapture(legacy_free, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK_IS(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(legacy_free, e, 0));
    OK(launch(empty, legacy_free, NULL));
    CHECK_IS(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    OK(launch(empty, legacy_free, NULL));
    OK(cuStreamSynchronize(legacy_free));
    OK(cuStreamDestroy(legacy_free));
    CHECK_IS(cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_EXTERNAL),
        CUDA_ERROR_ILLEGAL_STATE); /* in a capture only */
    CHECK_IS(cuStreamWaitEvent(s, e, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
    OK(cuEventDestroy(e));
    OK(cuEventDestroy(outside));
}

static volatile int host_ran;
static void CUDA_CB at_host(void *data) { host_ran += *(int *)data; }

static void test_by_hand(void)
{
    CUgraph graph, child;
    CUgraphNode nodes[6];
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    CUgraphNodeType type;
    CUdeviceptr memory;
    CUevent e;
    int five = 5;
    unsigned char bytes[16] = {0};
    CUDA_MEMSET_NODE_PARAMS set = {.value = 9, .elementSize = 1, .width = 16, .height = 1};
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = empty,
        .gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1};
    CUDA_HOST_NODE_PARAMS host = {at_host, &five};
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstMemoryType = CU_MEMORYTYPE_HOST,
        .dstHost = bytes,
        .WidthInBytes = 16,
        .Height = 1,
        .Depth = 1};

    OK(cuMemAlloc(&memory, 16));
    OK(cuEventCreate(&e, 0));
    set.dst = copy.srcDevice = memory;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddKernelNode(&nodes[0], child, NULL, 0, &kernel));
    OK(cuGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &set, context));
    OK(cuGraphAddChildGraphNode(&nodes[1], graph, &nodes[0], 1, child));
    OK(cuGraphAddMemcpyNode(&nodes[2], graph, &nodes[1], 1, &copy, context));
    OK(cuGraphAddHostNode(&nodes[3], graph, &nodes[2], 1, &host));
    OK(cuGraphAddEventRecordNode(&nodes[4], graph, &nodes[3], 1, e));
    OK(cuGraphAddEmptyNode(&nodes[5], graph, &nodes[4], 1));
    CHECK_IS(cuGraphAddEmptyNode(&nodes[5], graph, (CUgraphNode[]){(CUgraphNode)8}, 1),
        CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphNodeGetType(nodes[2], &type));
    CHECK_IS(type, CU_GRAPH_NODE_TYPE_MEMCPY);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphUpload(exec, s));
    OK(cuGraphLaunch(exec, s));
    OK(cuEventSynchronize(e));
    CHECK_IS(host_ran, 5);
    CHECK_IS(bytes[15], 9);
    OK(cuGraphExecUpdate(exec, graph, &info));
    CHECK_IS(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    CHECK_IS(cuGraphExecUpdate(exec, child, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    OK(cuGraphDestroyNode(nodes[5]));
    CHECK_IS(nodes_of(graph), 5);
    OK(cuStreamSynchronize(s));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(child));
    CHECK_IS(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventDestroy(e));
    OK(cuMemFree(memory));
}

int main(void)
{
    set_up();
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamCreate(&t, 0));
    test_fork_join();
    test_broken();
    test_by_hand();
    OK(cuStreamDestroy(s));
    OK(cuStreamDestroy(t));
    FINISH();
}
