/*
 * Work that comes late, or never.
 *
 * afterwards kernel | graph | copy | set   seven of them in a handler of atexit() that was
 * registered before the first call of CUDA, so that it runs when most has ended afterwards window
 * [closed]               the same with launches, and cuProfilerStart() before them;
 * cuProfilerStop() behind them afterwards pending                       seven launches behind a
 * gate that nobody opens, and the end
 */
#include "app.h"

CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

static const char *what;
static int closes;
static CUstream stream;
static CUfunction kernel;
static CUgraphExec exec;
static CUdeviceptr memory;

static void enqueue(void)
{
    static char bytes[4096];
    if (!strcmp(what, "window")) OK(cuProfilerStart);
    for (int i = 0; i < 7; i++) {
        if (!strcmp(what, "kernel") || !strcmp(what, "window")) LAUNCH(kernel, stream);
        if (!strcmp(what, "graph")) OK(cuGraphLaunch, exec, stream);
        if (!strcmp(what, "copy")) OK(cuMemcpyHtoDAsync_v2, memory, bytes, sizeof bytes, stream);
        if (!strcmp(what, "set")) OK(cuMemsetD8Async, memory, 1, sizeof bytes, stream);
    }
    if (strcmp(what, "pending")) OK(cuStreamSynchronize, stream);
    if (closes) OK(cuProfilerStop);
}

int main(int argc, char **argv)
{
    CUgraph graph;
    what = argc > 1 ? argv[1] : "kernel";
    closes = argc > 2;
    atexit(enqueue);
    app_start(0);
    kernel = app_kernel("k");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuMemAlloc_v2, &memory, 4096);
    OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH(kernel, stream);
    OK(cuStreamEndCapture, stream, &graph);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    LAUNCH(kernel, stream);
    OK(cuStreamSynchronize, stream);
    if (strcmp(what, "pending")) return 0;
    app_gate(stream);
    for (int i = 0; i < 7; i++) LAUNCH(kernel, stream);
    return 0;
}
