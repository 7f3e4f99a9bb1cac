/*
 * Host functions and stream callbacks: run once each with their own data, one behind a gate, one
 * that calls the driver, and some captured into a graph, where the program must find its own
 * function.
 */
#include "tests/apps/app.h"

static CUstream stream;
static CUevent event;
static int ran[8], in_graph, right_stream, right_data, nested = -1;
static long callback_tid;

static void CUDA_CB host(void *slot)
{
    callback_tid = app_tid();
    ++*(int *)slot;
}

static void CUDA_CB after(CUstream given, CUresult status, void *slot)
{
    right_stream += given == stream && status == CUDA_SUCCESS;
    right_data += slot == &ran[1];
    ++*(int *)slot;
}

static void CUDA_CB calls_driver(void *unused)
{
    (void)unused;
    nested = (int)CU(cuEventQuery, event); /* a real driver forbids it; the shim must not mind */
}

static void CUDA_CB graph_host(void *slot) { ++*(int *)slot; }

static void captured(void)
{
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[4];
    CUDA_HOST_NODE_PARAMS params;
    size_t count = 4;
    OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    OK(cuLaunchHostFunc, stream, graph_host, &in_graph);
    OK(cuLaunchHostFunc, stream, graph_host, &in_graph);
    OK(cuStreamEndCapture, stream, &graph);
    OK(cuGraphGetNodes, graph, nodes, &count);
    for (size_t i = 0; i < count; i++) {
        OK(cuGraphHostNodeGetParams, nodes[i], &params);
        printf("node %zu own function %d own data %d\n", i, params.fn == graph_host,
            params.userData == &in_graph);
    }
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    for (int i = 0; i < 3; i++) OK(cuGraphLaunch, exec, stream);
    OK(cuStreamSynchronize, stream);
    OK(cuGraphExecDestroy, exec);
    OK(cuGraphDestroy, graph);
    printf("in graph %d\n", in_graph);
}

int main(void)
{
    app_start(0);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < 5; i++) OK(cuLaunchHostFunc, stream, host, &ran[0]);
    for (int i = 0; i < 3; i++) OK(cuStreamAddCallback, stream, after, &ran[1], 0);
    OK(cuStreamSynchronize, stream);

    volatile unsigned *gate = app_gate(stream);
    OK(cuLaunchHostFunc_ptsz, stream, host, &ran[2]);
    app_sleep_ms(20);
    printf("behind the gate %d\n", ran[2]);
    *gate = 1;
    OK(cuStreamSynchronize, stream);
    OK(cuLaunchHostFunc, stream, calls_driver, NULL);
    OK(cuStreamSynchronize, stream);
    SAY(cuLaunchHostFunc, stream, NULL, NULL);
    SAY(cuStreamAddCallback, stream, after, &ran[3], 1); /* flags must be 0 */
    SAY(cuLaunchHostFunc, (CUstream)(size_t)0xdeadbeef0, host, &ran[3]);
    captured();

    printf("ran %d %d %d %d, right stream %d, right data %d, nested %d\n", ran[0], ran[1], ran[2],
        ran[3], right_stream, right_data, nested);
    NOTE("callbacks", "%ld", callback_tid);
    OK(cuMemFreeHost, (void *)gate);
    OK(cuEventDestroy_v2, event);
    OK(cuStreamDestroy_v2, stream);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    app_report();
    return 0;
}
