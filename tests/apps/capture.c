/* Streams captured into graphs: two captures that end well, one that the program breaks, graph
 * launches, and a stream that joins by an event. */
#include "tests/apps/app.h"

static CUstream a, b;
static CUfunction empty;

static CUgraphExec finish(CUstream stream, size_t *nodes)
{
    CUgraph graph;
    CUgraphExec exec;
    OK(cuStreamEndCapture, stream, &graph);
    OK(cuGraphGetNodes, graph, NULL, nodes);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    OK(cuGraphDestroy, graph);
    return exec;
}

int main(void)
{
    size_t first_nodes = 0, second_nodes = 0;
    CUevent fork_event, join_event;
    CUgraph broken = NULL;
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &a, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &b, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &fork_event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &join_event, CU_EVENT_DISABLE_TIMING);
    NOTE("a", "%p", (void *)a);
    NOTE("b", "%p", (void *)b);

    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    LAUNCH(empty, a);
    OK(cuEventRecord, fork_event, a);
    OK(cuStreamWaitEvent, b, fork_event, 0);
    LAUNCH(empty, b);
    OK(cuEventRecord, join_event, b);
    OK(cuStreamWaitEvent, a, join_event, 0);
    LAUNCH(empty, a);
    CUgraphExec first = finish(a, &first_nodes);

    OK(cuStreamBeginCapture_v2_ptsz, b, CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH(empty, b);
    CUgraphExec second = finish(b, &second_nodes);

    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_GLOBAL);
    LAUNCH(empty, a);
    SAY(cuStreamSynchronize, a); /* not permitted while capturing; breaks the capture */
    SAY(cuStreamEndCapture, a, &broken);

    for (int i = 0; i < 7; i++) OK(cuGraphLaunch, first, a);
    for (int i = 0; i < 4; i++) OK(cuGraphLaunch, second, b);
    OK(cuCtxSynchronize);
    printf("nodes %zu %zu broken %d\n", first_nodes, second_nodes, broken != NULL);
    OK(cuGraphExecDestroy, first);
    OK(cuGraphExecDestroy, second);
    OK(cuEventDestroy_v2, fork_event);
    OK(cuEventDestroy_v2, join_event);
    OK(cuStreamDestroy_v2, a);
    OK(cuStreamDestroy_v2, b);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    app_report();
    return 0;
}
