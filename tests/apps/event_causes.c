/*
 * event_causes NAME: waits whose event was recorded by no call that says so (a graph, a launch,
 * another process), and waits in captures, which wait for no work.
 *
 * What the trace and the report must say of each is in tests/cases/test_event_causes.py.
 */
#include "tests/apps/app.h"

enum { WIDE = 300 };

static CUstream a, b, c;
static CUevent event;
static CUfunction empty, slow;

static CUgraphExec captured(CUstream stream)
{
    CUgraph graph;
    CUgraphExec exec;
    OK(cuStreamEndCapture, stream, &graph);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    OK(cuGraphDestroy, graph);
    return exec;
}

static void waits(CUstream stream)
{
    OK(cuStreamWaitEvent, stream, event, 0);
    LAUNCH(empty, stream);
}

/* A record node leaves the event as it was: b waits for what c recorded, and joins nothing. */
static void node(void)
{
    CUstreamCaptureStatus status;
    LAUNCH(empty, c);
    OK(cuEventRecord, event, c);
    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH(empty, a);
    OK(cuEventRecordWithFlags, event, a, CU_EVENT_RECORD_EXTERNAL);
    waits(b);
    OK(cuStreamIsCapturing, b, &status);
    printf("b captures: %d\n", (int)status);
    captured(a);
    LAUNCH(empty, b);
}

/* Of an event that graphs record too a plain record in a capture is as sure as ever: b joins. */
static void node_and_fork(void)
{
    node();
    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuEventRecord, event, a);
    waits(b);
    OK(cuEventRecord, event, b);
    OK(cuStreamWaitEvent, a, event, 0);
    CUgraphExec exec = captured(a);
    OK(cuGraphLaunch, exec, c);
}

/* The event's last call that recorded it is on a; by the time of the wait a graph has recorded it
 * on b. */
static void launched(void)
{
    OK(cuStreamBeginCapture_v2, b, CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH(slow, b);
    OK(cuEventRecordWithFlags, event, b, CU_EVENT_RECORD_EXTERNAL);
    CUgraphExec exec = captured(b);
    LAUNCH(empty, a);
    OK(cuEventRecord, event, a);
    OK(cuGraphLaunch, exec, b);
    waits(c);
    OK(cuEventSynchronize, event);
}

/* The same with a graph made by hand, by a call for this kind of node, or for any. */
static void added_by(int any)
{
    CUgraph graph;
    CUgraphNode record;
    CUgraphExec exec;
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {.event = event}};
    OK(cuGraphCreate, &graph, 0);
    if (any) OK(cuGraphAddNode_v2, &record, graph, NULL, NULL, 0, &params);
    else OK(cuGraphAddEventRecordNode, &record, graph, NULL, 0, event);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    LAUNCH(slow, b);
    OK(cuGraphLaunch, exec, b);
    waits(c);
}

static void added(void) { added_by(0); }
static void params(void) { added_by(1); }

/* A launch records it. */
static void completion(void)
{
    CUlaunchAttribute at = {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
        .value = {.launchCompletionEvent = {.event = event}}};
    CUlaunchConfig config = {.gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = a,
        .attrs = &at,
        .numAttrs = 1};
    for (int i = 0; i < 4; i++) {
        OK(cuLaunchKernelEx, &config, empty, NULL, NULL);
        waits(b);
    }
}

/* Another process records it, as far as this one can tell. */
static void shared(void)
{
    CUevent theirs;
    CUipcEventHandle handle;
    OK(cuIpcGetEventHandle, &handle, event);
    OK(cuIpcOpenEventHandle, &theirs, handle);
    LAUNCH(empty, c);
    OK(cuEventRecord, event, c);
    LAUNCH(slow, a);
    OK(cuEventRecord, theirs, a);
    for (int i = 0; i < 4; i++) {
        waits(b);
        LAUNCH(empty, c);
    }
    OK(cuEventSynchronize, event);
    OK(cuEventDestroy_v2, theirs);
}

/* b joins a capture on a, on which work runs, and waits for none of that. Later its own work is
 * held up by a value, and by no event. */
static void fork_and_join(void)
{
    LAUNCH(slow, a);
    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuEventRecord, event, a);
    waits(b);
    OK(cuEventRecord, event, b);
    OK(cuStreamWaitEvent, a, event, 0);
    captured(a);
    volatile unsigned *gate = app_gate(b);
    LAUNCH(empty, b);
    OK(cuStreamSynchronize, a);
    *gate = 1;
}

/* More streams in one capture than a program has, as a rule. */
static void wide(void)
{
    CUstream streams[WIDE];
    CUevent joins;
    OK(cuEventCreate, &joins, CU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < WIDE; i++) OK(cuStreamCreate, &streams[i], CU_STREAM_NON_BLOCKING);
    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH(empty, a);
    OK(cuEventRecord, event, a);
    for (int i = 0; i < WIDE; i++) waits(streams[i]);
    for (int i = 0; i < WIDE; i++) {
        OK(cuEventRecord, joins, streams[i]);
        OK(cuStreamWaitEvent, a, joins, 0);
    }
    captured(a);
    for (int i = 0; i < WIDE; i++) LAUNCH(empty, streams[i]);
}

/* A capture that goes with its stream: what joined it works on. */
static void origin_goes(void)
{
    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuEventRecord, event, a);
    waits(b);
    OK(cuStreamDestroy_v2, a);
    LAUNCH(slow, b);
    OK(cuStreamSynchronize, b);
    LAUNCH(empty, b);
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {{"node", node}, {"node_and_fork", node_and_fork}, {"launched", launched},
    {"added", added}, {"params", params}, {"completion", completion}, {"shared", shared},
    {"fork_and_join", fork_and_join}, {"wide", wide}, {"origin_goes", origin_goes}};

int main(int argc, char **argv)
{
    app_start(0);
    empty = app_kernel("empty_kernel");
    slow = app_kernel("sleep_us_20000");
    OK(cuStreamCreate, &a, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &b, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &c, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
    for (size_t i = 0; argc == 2 && i < sizeof programs / sizeof *programs; i++)
        if (!strcmp(programs[i].name, argv[1])) programs[i].run();
    OK(cuCtxSynchronize);
    app_report();
    return 0;
}
