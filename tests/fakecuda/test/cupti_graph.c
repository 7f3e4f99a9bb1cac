/* The simulated CUPTI: launches of graphs, whole or node by node, and copies between devices. */
#include "records.h"

#define KIND(name) CUPTI_ACTIVITY_KIND_##name

static CUstream stream;
static CUdeviceptr memory;

/* set -> kernel -> child graph with a copy */
static CUgraphExec build(uint32_t *id)
{
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = memory, .value = 5, .elementSize = 1, .width = 100, .height = 1};
    unsigned microseconds = 2000;
    void *parameters[] = {&microseconds};
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = sleep_kernel,
        .gridDimX = 3,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1,
        .kernelParams = parameters};
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = memory,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = memory + 512,
        .WidthInBytes = 100,
        .Height = 1,
        .Depth = 1};
    CUgraph graph, child;
    CUgraphNode nodes[3], inner;
    CUgraphExec exec;
    uint64_t a, b;

    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &set, context));
    OK(cuGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &kernel));
    OK(cuGraphAddMemcpyNode(&inner, child, NULL, 0, &copy, context));
    OK(cuGraphAddChildGraphNode(&nodes[2], graph, &nodes[1], 1, child));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuptiGetGraphNodeId(nodes[0], &a));
    OK(cuptiGetGraphNodeId(nodes[1], &b));
    CHECK(a && b && a != b);
    OK(cuptiGetGraphId(graph, id));
    OK(cuptiGetGraphExecId(exec, id + 1));
    CHECK(id[0] && id[0] != id[1]);
    CHECK_IS(cuptiGetGraphId(NULL, id + 1), CUPTI_ERROR_INVALID_PARAMETER);
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(child));
    return exec;
}

static void test_nodes(CUgraphExec exec, uint32_t id)
{
    const CUpti_ActivityKernel10 *k;
    uint64_t node;

    forget_records();
    enable(KIND(CONCURRENT_KERNEL));
    enable(KIND(MEMSET));
    enable(KIND(MEMCPY));
    enable(KIND(DRIVER));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    flush();
    CHECK_IS(count_kind(KIND(CONCURRENT_KERNEL)), 2);
    CHECK_IS(count_kind(KIND(MEMSET)), 2);
    CHECK_IS(count_kind(KIND(MEMCPY)), 2);
    k = &NTH(CONCURRENT_KERNEL, 0)->kernel;
    node = k->graphNodeId;
    CHECK_IS(k->graphId, id);
    CHECK_IS(k->streamId, 13);
    CHECK_IS(k->gridX, 3);
    CHECK(k->end - k->start > 1900000);
    CHECK_IS(k->correlationId, NTH(DRIVER, 0)->api.correlationId);
    CHECK_IS(NTH(MEMSET, 0)->set.correlationId, k->correlationId);
    CHECK_IS(NTH(MEMCPY, 0)->copy.correlationId, k->correlationId);
    CHECK_IS(NTH(MEMCPY, 0)->copy.graphId, id);
    CHECK(node && NTH(MEMSET, 0)->set.graphNodeId && NTH(MEMCPY, 0)->copy.graphNodeId);
    CHECK(node != NTH(MEMSET, 0)->set.graphNodeId && node != NTH(MEMCPY, 0)->copy.graphNodeId);
    CHECK(NTH(MEMSET, 0)->set.end <= k->start && k->end <= NTH(MEMCPY, 0)->copy.start);
    k = &NTH(CONCURRENT_KERNEL, 1)->kernel;
    CHECK_IS(k->graphNodeId, node); /* the same node in each launch */
    CHECK_IS(k->correlationId, NTH(DRIVER, 1)->api.correlationId);
}

/* A graph from before GRAPH_TRACE was on must not be launched: the process would die. */
static void test_whole(void)
{
    const CUpti_ActivityGraphTrace2 *g;
    CUgraphExec exec;
    uint32_t id[2];

    forget_records();
    enable(KIND(GRAPH_TRACE));
    exec = build(id);
    OK(cuGraphLaunch(exec, stream));
    OK(launch(empty, stream, NULL));
    OK(cuStreamSynchronize(stream));
    flush();
    g = &NTH(GRAPH_TRACE, 0)->graph;
    CHECK_IS(count_kind(KIND(GRAPH_TRACE)), 1);
    CHECK_IS(count_kind(KIND(CONCURRENT_KERNEL)), 1); /* the plain launch */
    CHECK_IS(count_kind(KIND(MEMSET)) + count_kind(KIND(MEMCPY)), 0);
    CHECK_IS(g->graphId, id[1]);
    CHECK_IS(g->correlationId, CALL_RECORD(cuGraphLaunch)->correlationId);
    CHECK_IS(g->streamId, 13);
    CHECK_IS(g->contextId, 1);
    CHECK(g->end - g->start > 1900000 && g->end - g->start < 20000000);
    CHECK_IS(NTH(CONCURRENT_KERNEL, 0)->kernel.graphNodeId, 0);
    disable(KIND(GRAPH_TRACE));
    OK(cuGraphLaunch(exec, stream)); /* node by node again */
    OK(cuStreamSynchronize(stream));
    OK(cuGraphExecDestroy(exec));
    flush();
}

/* What is captured runs later, and has no record of its own; the update of a graph keeps its ids.
 */
static void test_capture(void)
{
    CUgraphExecUpdateResultInfo outcome;
    CUgraph graph, again;
    CUgraphExec exec;
    uint32_t id, same;
    uint64_t node;

    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch(empty, stream, NULL));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuptiGetGraphExecId(exec, &id));
    flush();
    forget_records();
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphClone(&again, graph));
    OK(cuGraphExecUpdate(exec, again, &outcome));
    OK(cuptiGetGraphExecId(exec, &same));
    CHECK_IS(same, id);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    flush();
    CHECK_IS(count_kind(KIND(CONCURRENT_KERNEL)), 2);
    node = NTH(CONCURRENT_KERNEL, 0)->kernel.graphNodeId;
    CHECK_IS(NTH(CONCURRENT_KERNEL, 1)->kernel.graphNodeId, node);
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(again));
    OK(cuGraphExecDestroy(exec));
}

static void test_devices(void)
{
    const CUpti_ActivityMemcpyPtoP4 *peer;
    CUcontext second;
    CUdeviceptr there;
    uint32_t id;
    CUstream null_stream = NULL;

    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    OK(cuMemAlloc(&there, 256));
    OK(cuptiGetContextId(second, &id));
    CHECK_IS(id, 2);
    OK(cuptiGetDeviceId(second, &id));
    CHECK_IS(id, 1);
    OK(cuptiGetStreamIdEx(second, null_stream, 0, &id));
    CHECK_IS(id, 7); /* in each context */
    CHECK_IS(cuptiGetStreamIdEx(second, stream, 0, &id), CUPTI_ERROR_INVALID_STREAM);
    forget_records();
    OK(launch(empty, NULL, NULL));
    OK(cuCtxSetCurrent(context));
    OK(cuMemcpyPeerAsync(there, second, memory, context, 256, stream));
    OK(cuMemcpyDtoDAsync(memory, there, 100, stream));
    OK(cuMemcpyPeerAsync(
        memory, context, memory + 256, context, 100, stream)); /* no other device */
    OK(cuStreamSynchronize(stream));
    flush();
    CHECK_IS(NTH(CONCURRENT_KERNEL, 0)->kernel.deviceId, 1);
    CHECK_IS(NTH(CONCURRENT_KERNEL, 0)->kernel.contextId, 2);
    CHECK_IS(NTH(CONCURRENT_KERNEL, 0)->kernel.streamId, 7);
    CHECK_IS(count_kind(KIND(MEMCPY2)), 2);
    CHECK_IS(count_kind(KIND(MEMCPY)), 1);
    peer = &NTH(MEMCPY2, 0)->peer;
    CHECK_IS(peer->copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
    CHECK(peer->srcDeviceId == 0 && peer->dstDeviceId == 1 && peer->srcContextId == 1 &&
          peer->dstContextId == 2);
    CHECK_IS(peer->bytes, 256);
    CHECK_IS(peer->deviceId, 0);
    CHECK_IS(NTH(MEMCPY2, 1)->peer.srcDeviceId, 1);
    forget_records();
    disable(KIND(MEMCPY)); /* which brings both */
    enable(KIND(MEMCPY2));
    OK(cuMemcpyDtoDAsync(memory, there, 100, stream));
    OK(cuStreamSynchronize(stream));
    flush();
    disable(KIND(MEMCPY2));
    enable(KIND(MEMCPY));
    CHECK_IS(count_kind(KIND(MEMCPY2)), 0);
}

/* GRAPH_TRACE, MEMCPY2 and a flush without force; any two of them are harmless. The last test:
 * nothing works afterwards. */
static CUgraphExec copying_graph(void)
{
    CUgraph graph;
    CUgraphExec exec;

    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemcpyDtoDAsync(memory + 1024, memory, 256, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    return exec;
}

static void test_fault(void)
{
    static const CUpti_ActivityKind both[] = {KIND(GRAPH_TRACE), KIND(MEMCPY2)};
    CUgraphExec exec;

    for (int i = 0; i < 2; i++) {
        enable(both[i]);
        exec = copying_graph();
        OK(cuptiActivityFlushAll(0));
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        disable(both[i]);
    }
    for (int i = 0; i < 2; i++) enable(both[i]);
    exec = copying_graph();
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuptiActivityFlushAll(0));
    OK(cuGraphLaunch(exec, stream));
    CHECK_IS(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
    CHECK_IS(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

int main(void)
{
    CUgraphExec exec;
    uint32_t id[2];

    set_up();
    OK(cuptiActivityRegisterCallbacks(ask_buffer, take_buffer));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&memory, 4096));
    exec = build(id);
    test_nodes(exec, id[1]);
    test_whole();
    test_capture();
    test_devices();
    OK(cuGraphExecDestroy(exec));
    test_fault();
    FINISH();
}
