/* Stream capture in all its forms, and graphs. */
#include "driver.h"

#include <string.h>

enum { N = 4096 };

static int called;

static void host_func(void *arg)
{
    (void)arg;
    __atomic_fetch_add(&called, 1, __ATOMIC_SEQ_CST);
}

static void launch_graph(CUgraph graph, CUstream s)
{
    CUgraphExec exec = NULL;
    if (RUN(cuGraphInstantiateWithFlags, &exec, graph, 0)) return;
    RUN(cuGraphUpload, exec, s);
    RUN(cuGraphLaunch, exec, s);
    RUN(cuGraphLaunch, exec, s);
    RUN(cuStreamSynchronize, s);
    RUN(cuGraphExecDestroy, exec);
}

static void capture_modes(struct gpu *g, CUdeviceptr p, CUstream s)
{
    for (int mode = 0; mode < 4; mode++) { /* 3 is no mode: refused */
        CUgraph graph = NULL;
        CUstreamCaptureStatus status = 9;
        fprintf(out, " mode %d\n", mode);
        if (RUN(cuStreamBeginCapture_v2, s, (CUstreamCaptureMode)mode)) continue;
        LAUNCH_ADD(g, p, N, 1, s);
        RUN(cuMemsetD32Async, p, 4, 16, s);
        RUN(cuLaunchHostFunc, s, host_func, NULL);
        RUN(cuStreamIsCapturing, s, &status);
        fprintf(out, "  status %d\n", (int)status);
        RUN(cuStreamEndCapture, s, &graph);
        RUN(cuStreamIsCapturing, s, &status);
        fprintf(out, "  status %d\n", (int)status);
        if (graph) launch_graph(graph, s), FOUND(cuGraphDestroy, graph);
    }
    fprintf(out, "  called %d\n", called);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    RUN(cuThreadExchangeStreamCaptureMode, &mode);
    fprintf(out, "  mode was %d\n", (int)mode);
    RUN(cuThreadExchangeStreamCaptureMode, &mode);
}

static void fork_and_join(struct gpu *g, CUdeviceptr p, CUstream *s)
{
    CUevent fork, join, outside;
    CUgraph graph = NULL, graph2 = NULL;
    CUstreamCaptureStatus status = 9;
    cuuint64_t id = 0;
    const CUgraphNode *deps = NULL;
    const CUgraphEdgeData *edges = NULL;
    size_t count = 99;
    fprintf(out, " fork and join\n");
    RUN(cuEventCreate, &fork, CU_EVENT_DISABLE_TIMING);
    RUN(cuEventCreate, &join, CU_EVENT_DISABLE_TIMING);
    RUN(cuEventCreate, &outside, CU_EVENT_DISABLE_TIMING);
    RUN(cuStreamBeginCapture_v2, s[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    LAUNCH_ADD(g, p, N, 1, s[0]);
    RUN(cuEventRecord, fork, s[0]);
    RUN(cuStreamWaitEvent, s[1], fork, 0);
    LAUNCH_ADD(g, p + N * 2, N / 2, 2, s[1]);
    RUN(cuEventRecordWithFlags, outside, s[1], CU_EVENT_RECORD_EXTERNAL);
    RUN(cuEventRecord, join, s[1]);
    LAUNCH_ADD(g, p, N / 2, 3, s[0]);
    RUN(cuStreamWaitEvent, s[0], join, 0);
    RUN(cuStreamGetCaptureInfo, s[0], &status, &id);
    RUN(cuStreamGetCaptureInfo_v2, s[0], &status, &id, &graph2, &deps, &count);
    fprintf(out, "  status %d dependencies %zu\n", (int)status, count);
    FOUND(cuStreamGetCaptureInfo_v3, s[0], &status, &id, &graph2, &deps, &edges, &count);
    if (count == 2) {
        CUgraphNode nodes[2] = {deps[0], deps[1]};
        RUN(cuStreamUpdateCaptureDependencies, s[0], nodes, 2, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
        FOUND(cuStreamUpdateCaptureDependencies_v2, s[0], nodes, NULL, 2,
            CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    }
    LAUNCH_ADD(g, p, N, 4, s[0]);
    RUN(cuStreamEndCapture, s[0], &graph);
    if (graph) {
        launch_graph(graph, s[0]);
        RUN(cuEventQuery, outside);
        count = 0;
        FOUND(cuGraphGetNodes, graph, NULL, &count);
        fprintf(out, "  nodes %zu\n", count);
        FOUND(cuGraphDestroy, graph);
    }
    print_sum("captured", p, N);
    RUN(cuEventDestroy_v2, fork);
    RUN(cuEventDestroy_v2, join);
    RUN(cuEventDestroy_v2, outside);
}

/* What a capture does not allow: each ends it, and the codes say so. */
static void broken(struct gpu *g, CUdeviceptr p, CUstream *s)
{
    CUgraph graph = NULL;
    fprintf(out, " broken\n");
    RUN(cuStreamEndCapture, s[0], &graph);
    RUN(cuStreamBeginCapture_v2, CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL);
    RUN(cuStreamBeginCapture_v2, s[0], CU_STREAM_CAPTURE_MODE_GLOBAL);
    RUN(cuStreamBeginCapture_v2, s[0], CU_STREAM_CAPTURE_MODE_GLOBAL);
    RUN(cuStreamSynchronize, s[0]);
    LAUNCH_ADD(g, p, N, 1, s[0]);
    RUN(cuStreamEndCapture, s[0], &graph);
    RUN(cuStreamBeginCapture_v2, s[0], CU_STREAM_CAPTURE_MODE_GLOBAL);
    RUN(cuStreamQuery, s[0]);
    RUN(cuStreamEndCapture, s[0], &graph);
    RUN(cuStreamBeginCapture_v2, s[0], CU_STREAM_CAPTURE_MODE_GLOBAL);
    RUN(cuMemcpyHtoD_v2, p, &(int){1}, 4); /* the legacy stream, while a blocking stream captures */
    RUN(cuStreamEndCapture, s[0], &graph);
    RUN(cuStreamBeginCapture_v2, s[0], CU_STREAM_CAPTURE_MODE_RELAXED);
    RUN(cuMemcpyHtoDAsync_v2, p, NULL, 4, s[0]);
    RUN(cuStreamEndCapture, s[0], &graph);
    RUN(cuStreamSynchronize, s[0]);
}

void section_capture(struct gpu *g)
{
    CUdeviceptr p = 0;
    CUstream s[2];
    CUgraph graph = NULL;
    RUN(cuMemAlloc_v2, &p, N * 4);
    RUN(cuStreamCreate, &s[0], CU_STREAM_DEFAULT);
    RUN(cuStreamCreate, &s[1], CU_STREAM_NON_BLOCKING);
    RUN(cuMemsetD32_v2, p, 0, N);
    RUN(cuCtxSynchronize);
    capture_modes(g, p, s[1]);
    fork_and_join(g, p, s);

    fprintf(out, " into a graph\n");
    if (FOUND(cuGraphCreate, &graph, 0) == CUDA_SUCCESS) {
        if (FOUND(cuStreamBeginCaptureToGraph, s[1], graph, NULL, NULL, 0,
                CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS) {
            LAUNCH_ADD(g, p, N, 9, s[1]);
            RUN(cuStreamEndCapture, s[1], &graph);
            launch_graph(graph, s[1]);
        }
        FOUND(cuGraphDestroy, graph);
    }
    fprintf(out, " first version, per-thread symbols\n");
    graph = NULL;
    if (FOUND(cuStreamBeginCapture, s[1]) == CUDA_SUCCESS) RUN(cuStreamEndCapture, s[1], &graph);
    if (graph) FOUND(cuGraphDestroy, graph);
    graph = NULL;
    if (RUN(cuStreamBeginCapture_v2_ptsz, NULL, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS) {
        RUN(cuLaunchKernel_ptsz, g->add, 1, 1, 1, 256, 1, 1, 0, NULL, ADD_ARGS(p, 256, 1), NULL);
        RUN(cuStreamEndCapture_ptsz, NULL, &graph);
        if (graph) launch_graph(graph, CU_STREAM_PER_THREAD), FOUND(cuGraphDestroy, graph);
    }
    print_sum("captured", p, N);
    broken(g, p, s);
    RUN(cuStreamDestroy_v2, s[0]);
    RUN(cuStreamDestroy_v2, s[1]);
    RUN(cuMemFree_v2, p);
}

static void instantiate_all_ways(CUgraph graph, CUstream s)
{
    CUgraphExec exec = NULL;
    CUgraphNode bad = NULL;
    char log[64] = "";
    if (FOUND(cuGraphInstantiate, &exec, graph, &bad, log, sizeof log) == CUDA_SUCCESS)
        RUN(cuGraphLaunch, exec, s), RUN(cuGraphExecDestroy, exec);
    if (FOUND(cuGraphInstantiate_v2, &exec, graph, &bad, log, sizeof log) == CUDA_SUCCESS)
        RUN(cuGraphExecDestroy, exec);
    CUDA_GRAPH_INSTANTIATE_PARAMS params;
    memset(&params, 0, sizeof params);
    params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    params.hUploadStream = s;
    if (RUN(cuGraphInstantiateWithParams, &exec, graph, &params) == CUDA_SUCCESS) {
        fprintf(out, "  result %d\n", (int)params.result_out);
        RUN(cuGraphLaunch, exec, s);
        RUN(cuStreamSynchronize, s);
        RUN(cuGraphExecDestroy, exec);
    }
    RUN(cuGraphInstantiateWithFlags, &exec, graph, 0xff00);
}

void section_graph(struct gpu *g)
{
    CUdeviceptr p = 0;
    CUstream s;
    CUevent e[2], got = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode record, wait, kernel = NULL, node2 = NULL;
    RUN(cuMemAlloc_v2, &p, N * 4);
    RUN(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    RUN(cuEventCreate, &e[0], CU_EVENT_DEFAULT);
    RUN(cuEventCreate, &e[1], CU_EVENT_DISABLE_TIMING);
    RUN(cuMemsetD32_v2, p, 1, N);
    RUN(cuCtxSynchronize);
    if (FOUND(cuGraphCreate, &graph, 0)) return;
    RUN(cuGraphAddEventRecordNode, &record, graph, NULL, 0, e[0]);
    RUN(cuGraphAddEventWaitNode, &wait, graph, &record, 1, e[0]);
    RUN(cuGraphEventRecordNodeGetEvent, record, &got);
    fprintf(out, "  event %s\n", got == e[0] ? "same" : "other");
    RUN(cuGraphEventWaitNodeGetEvent, wait, &got);
    RUN(cuGraphEventRecordNodeSetEvent, record, e[1]);
    RUN(cuGraphEventWaitNodeSetEvent, wait, e[1]);

    CUgraphNodeParams params;
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    params.kernel.func = g->add;
    params.kernel.gridDimX = N / 256;
    params.kernel.gridDimY = params.kernel.gridDimZ = 1;
    params.kernel.blockDimX = 256;
    params.kernel.blockDimY = params.kernel.blockDimZ = 1;
    params.kernel.kernelParams = ADD_ARGS(p, N, 5);
    FOUND(cuGraphAddNode, &kernel, graph, &wait, 1, &params);
    FOUND(cuGraphAddNode_v2, &node2, graph, kernel ? &kernel : NULL, NULL, kernel ? 1 : 0, &params);
    CUDA_KERNEL_NODE_PARAMS_v1 old = {g->add, N / 256, 1, 1, 256, 1, 1, 0, ADD_ARGS(p, N, 7), NULL};
    if (!kernel) FOUND(cuGraphAddKernelNode, &kernel, graph, &wait, 1, &old);
    params.kernel.kernelParams = ADD_ARGS(p, N, 11);
    FOUND(cuGraphNodeSetParams, kernel, &params);
    CUkernelNodeAttrValue value;
    memset(&value, 0, sizeof value);
    RUN(cuGraphKernelNodeGetAttribute, kernel, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    fprintf(out, "  priority %d\n", value.priority);
    RUN(cuGraphKernelNodeSetAttribute, kernel, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    instantiate_all_ways(graph, s);

    if (RUN(cuGraphInstantiateWithFlags, &exec, graph, 0) == CUDA_SUCCESS) {
        CUgraphExecUpdateResultInfo info;
        CUgraphExecUpdateResult update = 99;
        CUgraphNode bad = NULL;
        memset(&info, 0, sizeof info);
        RUN(cuGraphExecEventRecordNodeSetEvent, exec, record, e[0]);
        RUN(cuGraphExecEventWaitNodeSetEvent, exec, wait, e[0]);
        params.kernel.kernelParams = ADD_ARGS(p, N, 13);
        FOUND(cuGraphExecNodeSetParams, exec, kernel, &params);
        RUN(cuGraphUpload, exec, s);
        RUN(cuGraphLaunch, exec, s);
        RUN(cuStreamSynchronize, s);
        RUN(cuEventQuery, e[0]);
        FOUND(cuGraphExecUpdate_v2, exec, graph, &info);
        FOUND(cuGraphExecUpdate, exec, graph, &bad, &update);
        fprintf(out, "  update %d %d\n", (int)info.result, (int)update);
        RUN(cuGraphLaunch_ptsz, exec, NULL);
        RUN(cuStreamSynchronize_ptsz, NULL);
        RUN(cuGraphLaunch, exec, NULL);
        RUN(cuStreamSynchronize, NULL);
        RUN(cuGraphExecDestroy, exec);
    }
    print_sum("graph", p, N);
    FOUND(cuGraphDestroy, graph);
    RUN(cuEventDestroy_v2, e[0]);
    RUN(cuEventDestroy_v2, e[1]);
    RUN(cuStreamDestroy_v2, s);
    RUN(cuMemFree_v2, p);
}
