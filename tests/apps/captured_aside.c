/*
 * Ten captures on two streams: the second one joins by an event, and is used in captures alone.
 *
 * captured_aside chain              by way of a third one
 * captured_aside [record | wait]    recording starts in the middle of the first capture, half a
 * second before the second stream's launches: behind the record of the event, behind the wait for
 * it captured_aside within [again]     as `wait`, and recording stops before the capture ends; it
 * starts again behind the last one
 */
#include "app.h"

CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

static void start(void)
{
    OK(cuProfilerStart);
    app_sleep_ms(500);
}

int main(int argc, char **argv)
{
    const char *begins = argc > 1 ? argv[1] : "";
    CUstream a, b, between;
    CUevent out, on, back;
    app_start(0);
    CUfunction kernel = app_kernel("k");
    OK(cuStreamCreate, &a, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &b, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &out, CU_EVENT_DISABLE_TIMING);
    OK(cuStreamCreate, &between, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &on, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &back, CU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < 10; i++) {
        CUgraph graph;
        CUgraphExec exec;
        OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_RELAXED);
        LAUNCH(kernel, a);
        OK(cuEventRecord, out, a);
        if (!i && !strcmp(begins, "record")) start();
        if (!strcmp(begins, "chain")) {
            OK(cuStreamWaitEvent, between, out, 0);
            OK(cuEventRecord, on, between);
        }
        OK(cuStreamWaitEvent, b, strcmp(begins, "chain") ? out : on, 0);
        if (!i && (!strcmp(begins, "wait") || !strcmp(begins, "within"))) start();
        for (int k = 0; k < 5; k++) LAUNCH(kernel, b);
        if (!i && !strcmp(begins, "within")) OK(cuProfilerStop);
        OK(cuEventRecord, back, b);
        OK(cuStreamWaitEvent, a, back, 0);
        OK(cuStreamEndCapture, a, &graph);
        OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
        OK(cuGraphLaunch, exec, a);
        OK(cuStreamSynchronize, a);
        OK(cuGraphExecDestroy, exec);
        OK(cuGraphDestroy, graph);
    }
    if (argc > 2) start();
    return 0;
}
