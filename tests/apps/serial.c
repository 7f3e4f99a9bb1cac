/*
 * serial WHAT: programs that tell whether their streams run in the order in which work was issued,
 * and whether all that they asked for still holds. What they print is the same without a policy
 * where it says so in the case (tests/cases/test_sharing.py).
 *
 * A gate holds back a stream; where everything runs on one stream, it holds back what was issued
 * after it.
 */
#include "tests/apps/app.h"

#include <stdbool.h>

static CUstream a, b, c;
static unsigned char *memory; /* pinned: the host looks at it too */
#define AT(i) ((CUdeviceptr)(size_t)(memory + (i)))
static CUfunction empty, sleeps;

static void streams(unsigned flags)
{
    OK(cuStreamCreate, &a, flags);
    OK(cuStreamCreateWithPriority, &b, CU_STREAM_NON_BLOCKING, -3);
    OK(cuStreamCreate, &c, CU_STREAM_NON_BLOCKING);
}

static void open_gate(volatile unsigned *gate) { *gate = 1; }

/* --- what is in the program's order --- */

static void issue(void)
{
    streams(CU_STREAM_NON_BLOCKING);
    volatile unsigned *gate = app_gate(a);
    OK(cuMemsetD8Async, AT(0), 7, 1, a);
    OK(cuMemcpyAsync, AT(1), AT(0), 1, b);
    SAY(cuStreamQuery, a);
    SAY(cuStreamQuery, b);
    SAY(cuStreamQuery, c);
    SAY(cuStreamQuery, NULL);
    OK(cuMemcpyAsync, AT(2), AT(1), 1, c);
    OK(cuMemcpyAsync_ptsz, AT(3), AT(2), 1, NULL);
    OK(cuMemcpyAsync, AT(4), AT(3), 1, CU_STREAM_PER_THREAD);
    OK(cuMemcpyAsync, AT(5), AT(4), 1, NULL);
    OK(cuMemcpyAsync, AT(6), AT(5), 1, b);
    SAY(cuStreamQuery, CU_STREAM_PER_THREAD);
    SAY(cuStreamQuery_ptsz, NULL);
    open_gate(gate);
    OK(cuMemcpyDtoH_v2_ptds, memory + 8, AT(6),
        1); /* a call without a stream, of the thread's own */
    printf("straight after %d\n", memory[8]);
    OK(cuCtxSynchronize);
    printf("values %d %d %d %d %d %d %d\n", memory[0], memory[1], memory[2], memory[3], memory[4],
        memory[5], memory[6]);
}

/* Destroying a stream neither waits for its work nor ends it. */
static void destroyed(void)
{
    streams(CU_STREAM_DEFAULT);
    volatile unsigned *gate = app_gate(a);
    OK(cuMemsetD8Async, AT(0), 9, 1, a);
    SAY(cuStreamDestroy_v2, a);
    CUstream again;
    OK(cuStreamCreate, &again, CU_STREAM_DEFAULT);
    printf("before the gate %d, handle given out again %d\n", memory[0], again == a);
    open_gate(gate);
    OK(cuCtxSynchronize);
    printf("after it %d\n", memory[0]);
    SAY(cuStreamSynchronize, again);
    SAY(cuStreamDestroy_v2, again);
    SAY(cuMemsetD8Async, AT(0), 1, 1, again); /* refused: nobody's handle */
}

/* What is asked of a stream is asked of the program's own. */
static void getters(void)
{
    streams(CU_STREAM_DEFAULT);
    CUstream all[] = {a, b, c};
    unsigned long long ids[3];
    for (int i = 0; i < 3; i++) {
        unsigned flags;
        int priority;
        CUcontext context;
        OK(cuStreamGetFlags, all[i], &flags);
        OK(cuStreamGetPriority, all[i], &priority);
        OK(cuStreamGetCtx, all[i], &context);
        OK(cuStreamGetId, all[i], &ids[i]);
        printf("flags %u priority %d own context %d\n", flags, priority, context == app_context);
    }
    printf("ids differ %d\n", ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    CUstreamAttrValue value = {.priority = -4};
    OK(cuStreamSetAttribute, c, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
    int priority;
    OK(cuStreamGetPriority, c, &priority);
    printf("set %d\n", priority);
}

/* --- callbacks --- */

static CUstream told[4];
static int told_count, ran;
static void CUDA_CB callback(CUstream stream, CUresult status, void *data)
{
    told[told_count++] = status == CUDA_SUCCESS ? stream : NULL;
    ++*(int *)data;
}
static void CUDA_CB host(void *data) { ++*(int *)data; }

static void callbacks(void)
{
    streams(CU_STREAM_NON_BLOCKING);
    volatile unsigned *gate = app_gate(a);
    OK(cuStreamAddCallback, a, callback, &ran, 0);
    OK(cuStreamAddCallback, b, callback, &ran, 0);
    OK(cuStreamAddCallback_ptsz, c, callback, &ran, 0);
    OK(cuLaunchHostFunc, b, host, &ran);
    OK(cuStreamAddCallback, CU_STREAM_PER_THREAD, callback, &ran, 0);
    open_gate(gate);
    OK(cuStreamSynchronize, a);
    OK(cuStreamSynchronize, b);
    OK(cuStreamSynchronize, c);
    OK(cuStreamSynchronize, CU_STREAM_PER_THREAD);
    int known[4] = {0};
    for (int i = 0; i < told_count; i++) {
        const CUstream expected[] = {a, b, c, CU_STREAM_PER_THREAD};
        for (int k = 0; k < 4; k++) known[k] += told[i] == expected[k];
    }
    printf("ran %d, told %d %d %d, own %d\n", ran, known[0], known[1], known[2], known[3]);
    SAY(cuStreamAddCallback, a, callback, &ran, 1); /* flags must be 0 */
    SAY(cuStreamAddCallback, a, NULL, &ran, 0);
}

/* More callbacks at once than nodes for them: each still gets its stream, and its turn. */
static _Atomic int wrong, told_right, early;
static volatile unsigned *held;
static void CUDA_CB counts(CUstream stream, CUresult status, void *data)
{
    const bool right = stream == data && status == CUDA_SUCCESS;
    told_right += right;
    wrong += !right;
}
static void CUDA_CB after_the_gate(CUstream stream, CUresult status, void *data)
{
    early += !*held;
    counts(stream, status, data);
}
static void many_callbacks(void)
{
    streams(CU_STREAM_NON_BLOCKING);
    held = app_gate(a);
    for (int i = 0; i < 36000; i++) {
        OK(cuStreamAddCallback, b, counts, b, 0);
        OK(cuStreamAddCallback, c, counts, c, 0);
        if (i == 32800) OK(cuStreamAddCallback, a, after_the_gate, a, 0);
    }
    open_gate(held);
    OK(cuCtxSynchronize);
    printf("right %d, wrong %d, early %d\n", told_right, wrong, early);
}

/* --- events and graphs --- */

static void events(void)
{
    CUevent e[3];
    float ms = -1;
    streams(CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 3; i++) OK(cuEventCreate, &e[i], CU_EVENT_DEFAULT);
    unsigned us = 3000;
    void *parameters[] = {&us};
    OK(cuEventRecord, e[0], a);
    OK(cuLaunchKernel, sleeps, 1, 1, 1, 1, 1, 1, 0, a, parameters, NULL);
    OK(cuEventRecordWithFlags, e[1], a, 0);
    OK(cuStreamWaitEvent, b, e[1], 0);
    OK(cuMemsetD8Async, AT(0), 3, 1, b);
    OK(cuEventRecord, e[2], b);
    OK(cuStreamWaitEvent, c, e[2], 0);
    OK(cuMemcpyAsync, AT(1), AT(0), 1, c);
    OK(cuStreamSynchronize, c);
    printf("value %d\n", memory[1]);
    OK(cuEventSynchronize, e[2]);
    OK(cuEventElapsedTime, &ms, e[0], e[1]);
    printf("at least %d\n", ms >= 3);
    OK(cuEventElapsedTime, &ms, e[1], e[2]);
    printf("in order %d\n", ms >= 0);
    SAY(cuEventQuery, e[1]);
    CUlaunchConfig config = {.gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = b};
    OK(cuLaunchKernelEx, &config, empty, NULL, NULL);
    printf("its own stream %d\n", config.hStream == b);
}

/* Captured with a fork and a join; work that is not captured goes on meanwhile, on this thread. */
static CUgraphExec forked_graph(CUstream from, CUstream to, CUstream eager)
{
    CUevent fork_event, join_event;
    CUgraph graph;
    CUgraphExec exec;
    size_t nodes;
    OK(cuEventCreate, &fork_event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &join_event, CU_EVENT_DISABLE_TIMING);
    OK(cuStreamBeginCapture_v2, from, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuMemsetD8Async, AT(0), 1, 1, from);
    OK(cuEventRecord, fork_event, from);
    OK(cuStreamWaitEvent, to, fork_event, 0);
    OK(cuMemsetD8Async, AT(1), 2, 1, to);
    OK(cuMemsetD8Async, AT(2), 3, 1, eager);
    OK(cuStreamSynchronize, eager);
    OK(cuMemsetD8Async, AT(3), 4, 1, from);
    OK(cuEventRecord, join_event, to);
    OK(cuStreamWaitEvent, from, join_event, 0);
    CUstreamCaptureStatus status[3];
    OK(cuStreamIsCapturing, from, &status[0]);
    OK(cuStreamIsCapturing, to, &status[1]);
    OK(cuStreamIsCapturing, eager, &status[2]);
    printf("capturing %d %d %d\n", (int)status[0], (int)status[1], (int)status[2]);
    OK(cuStreamEndCapture, from, &graph);
    OK(cuGraphGetNodes, graph, NULL, &nodes);
    printf("nodes %zu, values %d %d %d %d\n", nodes, memory[0], memory[1], memory[2], memory[3]);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    SAY(cuStreamWaitEvent, eager, fork_event, 0); /* its capture is over */
    OK(cuGraphDestroy, graph);
    OK(cuEventDestroy_v2, fork_event);
    OK(cuEventDestroy_v2, join_event);
    return exec;
}

static void graphs(void)
{
    streams(CU_STREAM_DEFAULT);
    CUgraphExec exec = forked_graph(a, b, c);
    OK(cuGraphUpload, exec, c);
    OK(cuGraphLaunch, exec, c);
    OK(cuStreamSynchronize, c);
    printf("run %d %d %d\n", memory[0], memory[1], memory[3]);
    CUgraphExec other = forked_graph(c, a, b);
    OK(cuGraphLaunch, other, a);
    OK(cuMemcpyAsync, AT(5), AT(0), 1, a);
    OK(cuStreamSynchronize, a);
    printf("again %d\n", memory[5]);
    OK(cuGraphExecDestroy, exec);
    OK(cuGraphExecDestroy, other);

    CUgraph broken = NULL;
    OK(cuStreamBeginCapture_v2, b, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemsetD8Async, AT(0), 1, 1, b);
    SAY(cuStreamSynchronize, b);
    SAY(cuMemsetD8Async, AT(0), 1, 1, b);
    SAY(cuStreamEndCapture, b, &broken);
    OK(cuMemsetD8Async, AT(0), 8, 1, b);
    OK(cuStreamSynchronize, b);
    printf("afterwards %d\n", memory[0]);
}

/* Another thread captures a blocking stream, which forbids the legacy stream; this one goes on with
 * everything else. */
static pthread_barrier_t meet;
static void *captures(void *unused)
{
    CUgraph graph;
    size_t nodes;
    OK(cuCtxSetCurrent, app_context);
    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    OK(cuMemsetD8Async, AT(0), 1, 1, a);
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet);
    OK(cuMemsetD8Async, AT(1), 1, 1, a);
    OK(cuStreamEndCapture, a, &graph);
    OK(cuGraphGetNodes, graph, NULL, &nodes);
    printf("nodes %zu\n", nodes);
    return unused;
}

static void captured_elsewhere(void)
{
    pthread_t thread;
    streams(CU_STREAM_DEFAULT);
    pthread_barrier_init(&meet, NULL, 2);
    THREAD(&thread, captures, NULL);
    pthread_barrier_wait(&meet);
    CUevent event;
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuMemsetD8Async, AT(2), 5, 1, b);
    OK(cuEventRecord, event, b);
    OK(cuStreamWaitEvent, CU_STREAM_PER_THREAD, event, 0);
    OK(cuMemcpyAsync, AT(3), AT(2), 1, CU_STREAM_PER_THREAD);
    OK(cuMemcpyAsync_ptsz, AT(4), AT(3), 1, NULL);
    OK(cuMemcpyDtoD_v2_ptds, AT(5), AT(4), 1);
    OK(cuEventRecord_ptsz, event, NULL);
    OK(cuStreamWaitEvent, c, event, 0);
    OK(cuMemcpyAsync, AT(6), AT(5), 1, c);
    OK(cuStreamSynchronize, c);
    OK(cuStreamSynchronize_ptsz, NULL);
    printf("eager %d %d %d %d\n", memory[3], memory[4], memory[5], memory[6]);
    pthread_barrier_wait(&meet);
    pthread_join(thread, NULL);
}

/* The order among the thread's own default stream and others, where nothing but serial makes it,
 * while another thread captures. */
static void own_meanwhile(void)
{
    pthread_t thread;
    streams(CU_STREAM_DEFAULT);
    pthread_barrier_init(&meet, NULL, 2);
    THREAD(&thread, captures, NULL);
    pthread_barrier_wait(&meet);
    volatile unsigned *gate = app_gate(b);
    OK(cuMemsetD8Async, AT(2), 6, 1, b);
    OK(cuMemcpyAsync, AT(3), AT(2), 1, CU_STREAM_PER_THREAD);
    OK(cuMemcpyAsync_ptsz, AT(4), AT(3), 1, NULL);
    OK(cuMemcpyAsync, AT(5), AT(4), 1, c);
    open_gate(gate);
    OK(cuStreamSynchronize, b);
    OK(cuStreamSynchronize, c);
    printf("values %d %d %d %d\n", memory[2], memory[3], memory[4], memory[5]);
    pthread_barrier_wait(&meet);
    pthread_join(thread, NULL);
}

/* The first streams of a context come while something captures: there is no carrier yet. */
static void late(void)
{
    CUgraph graph;
    size_t nodes;
    OK(cuStreamBeginCapture_v2, CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuMemsetD8Async, AT(0), 1, 1, CU_STREAM_PER_THREAD);
    streams(CU_STREAM_DEFAULT);
    volatile unsigned *gate = app_gate(a);
    OK(cuMemsetD8Async, AT(1), 1, 1, a);
    OK(cuStreamEndCapture, CU_STREAM_PER_THREAD, &graph);
    OK(cuGraphGetNodes, graph, NULL, &nodes);
    OK(cuMemcpyAsync, AT(2), AT(1), 1, a);
    printf("nodes %zu, before the gate %d %d\n", nodes, memory[1], memory[2]);
    OK(cuMemcpyAsync, AT(3), AT(2), 1, b);
    SAY(cuStreamQuery, b);
    open_gate(gate);
    OK(cuStreamSynchronize, a);
    OK(cuStreamSynchronize, b);
    printf("values %d %d %d\n", memory[1], memory[2], memory[3]);
}

/* --- contexts and threads --- */

static void contexts(void)
{
    CUcontext other;
    CUstream d;
    streams(CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 3; i++) {
        OK(cuCtxCreate_v2, &other, 0, 0);
        OK(cuStreamCreate, &d, CU_STREAM_NON_BLOCKING);
        volatile unsigned *gate = app_gate(d);
        OK(cuMemsetD8Async, AT(0), 11 + (unsigned)i, 1, d);
        OK(cuCtxSetCurrent, app_context);
        OK(cuMemsetD8Async, AT(1), 5, 1, a); /* another context: not held back */
        OK(cuStreamSynchronize, b);
        OK(cuCtxSetCurrent, other);
        open_gate(gate);
        OK(cuStreamSynchronize, d);
        printf("values %d %d\n", memory[0], memory[1]);
        OK(cuCtxDestroy_v2, other);
        OK(cuCtxSetCurrent, app_context);
    }
    OK(cuDevicePrimaryCtxReset_v2, 0);
    OK(cuDevicePrimaryCtxRetain, &app_context, 0);
    OK(cuCtxSetCurrent, app_context);
    OK(cuMemAllocHost_v2, (void **)&memory, 64);
    streams(CU_STREAM_DEFAULT);
    OK(cuMemsetD8Async, AT(0), 21, 1, a);
    OK(cuMemcpyAsync, AT(1), AT(0), 1, a);
    OK(cuStreamSynchronize, a);
    printf("after reset %d\n", memory[1]);
}

static void *worker(void *slot)
{
    CUstream own;
    unsigned char *mine = memory + (size_t)slot * 2;
    int sum = 0;
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; i < 50; i++) {
        OK(cuStreamCreate, &own, CU_STREAM_NON_BLOCKING);
        OK(cuMemsetD8Async, (CUdeviceptr)(size_t)mine, (unsigned char)i, 1, own);
        OK(cuMemcpyAsync, (CUdeviceptr)(size_t)(mine + 1), (CUdeviceptr)(size_t)mine, 1, own);
        OK(cuStreamSynchronize, own);
        sum += mine[1] == i;
        OK(cuStreamDestroy_v2, own);
    }
    return (void *)(size_t)sum;
}

static void threads(void)
{
    pthread_t ids[8];
    size_t sum = 0;
    for (size_t i = 0; i < 8; i++) THREAD(&ids[i], worker, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(ids[i], &result);
        sum += (size_t)result;
    }
    printf("right %zu\n", sum);
}

/* --- sync --- */

/* Each operation is over when its call returns: nothing else waits for any. */
static void immediate(void)
{
    streams(CU_STREAM_NON_BLOCKING);
    unsigned us = 20000;
    void *parameters[] = {&us};
    CUevent event;
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuLaunchKernel, sleeps, 1, 1, 1, 1, 1, 1, 0, a, parameters, NULL);
    OK(cuMemsetD8Async, AT(0), 5, 1, a);
    printf("set %d\n", memory[0]);
    OK(cuLaunchKernel, sleeps, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    SAY(cuStreamQuery, NULL);
    OK(cuLaunchKernel_ptsz, sleeps, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    SAY(cuStreamQuery_ptsz, NULL);
    OK(cuLaunchKernel, sleeps, 1, 1, 1, 1, 1, 1, 0, b, parameters, NULL);
    OK(cuLaunchHostFunc, b, host, &ran);
    printf("ran %d\n", ran);
    OK(cuStreamAddCallback, b, callback, &ran, 0);
    printf("ran %d\n", ran);
    volatile unsigned *gate = app_gate(c); /* no wait for a value is waited for */
    OK(cuEventRecord, event, c);
    SAY(cuEventQuery, event);
    open_gate(gate);
    OK(cuStreamSynchronize, c);
    CUgraph graph;
    CUgraphExec exec;
    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuLaunchKernel, sleeps, 1, 1, 1, 1, 1, 1, 0, a, parameters, NULL);
    OK(cuMemsetD8Async, AT(1), 6, 1, a);
    OK(cuMemsetD8Async, AT(2), 7, 1,
        b); /* meanwhile: not waited for, which would break the capture */
    OK(cuStreamEndCapture, a, &graph);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    OK(cuGraphLaunch, exec, b);
    printf("graph %d\n", memory[1]);
    OK(cuCtxSynchronize);
}

/* The driver takes a callback, and then the wait for it fails. */
static void refused_callbacks(void)
{
    int refused = 0;
    streams(CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 100; i++) {
        refused += CU(cuStreamAddCallback, b, counts, b, 0) != CUDA_SUCCESS;
        refused += CU(cuLaunchHostFunc, b, host, &ran) != CUDA_SUCCESS;
    }
    while (CU(cuStreamQuery, b) == CUDA_ERROR_NOT_READY) app_sleep_ms(1);
    printf("refused %d\nran %d, wrong %d\n", refused, ran + told_right, wrong);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"issue", issue}, {"destroyed", destroyed}, {"getters", getters},
        {"callbacks", callbacks}, {"many_callbacks", many_callbacks}, {"events", events},
        {"graphs", graphs}, {"captured_elsewhere", captured_elsewhere},
        {"own_meanwhile", own_meanwhile}, {"late", late}, {"contexts", contexts},
        {"threads", threads}, {"immediate", immediate}, {"refused_callbacks", refused_callbacks}};
    setenv("CUSTREAM_FAKE_DEPTH", "0", 0); /* many_callbacks has more behind its gate than a queue
                                              takes; before the driver is opened */
    app_start(0);
    empty = app_kernel("empty");
    sleeps = app_kernel("sleep");
    OK(cuMemAllocHost_v2, (void **)&memory, 64);
    memset(memory, 0, 64);
    for (size_t i = 0; argc > 1 && i < sizeof all / sizeof *all; i++) {
        if (strcmp(argv[1], all[i].name)) continue;
        all[i].run();
        app_report();
        return 0;
    }
    return 2;
}
