/* The next work was enqueued, and something on the GPU held it. All is enqueued ahead, behind
 * gates, so that the host has no part in it. */
#include "tests/apps/planted/device.h"

extern CUresult CUDAAPI cuProfilerStart(void), CUDAAPI
    cuProfilerStop(void); /* of cudaProfiler.h, which not every package of headers has */

/* --- events --- */

enum { LONG_US = WORK_US + PAUSE_US };

/* Each kernel on device 0 waits for an event behind a longer one on device 1, by way of `between`
 * streams that only wait and record. */
static void by_event(bool mended, int between)
{
    struct gate gate = gate_new();
    CUstream stream = free_stream();
    device_use(1); /* which takes its time, before any stream waits */
    CUstream other = free_stream(), passing = free_stream();
    gate_wait(gate, other);
    device_use(0);
    gate_wait(gate, stream);
    device_use(1);
    for (int i = 0; i < ROUNDS; i++) {
        CUevent event = event_new();
        launch(SECOND, LONG_US, other);
        MUST(cuEventRecord(event, other));
        for (int j = 0; j < between; j++) {
            MUST(cuStreamWaitEvent(passing, event, 0));
            event = event_new();
            MUST(cuEventRecord(event, passing));
        }
        device_use(0);
        if (!mended) MUST(cuStreamWaitEvent(stream, event, 0));
        launch(FIRST, WORK_US, stream);
        device_use(1);
    }
    measured.idle_ns =
        (ROUNDS - 1) * PAUSE_US * 1000ll; /* before its first kernel device 0 was not in use yet */
    gate_open(gate);
    device_done();
    device_use(0);
    device_done();
}
void event_device(bool mended) { by_event(mended, 0); }
void event_chain(bool mended) { by_event(mended, 1); }

/* The event is recorded behind a wait for a value that the host writes late. */
void event_gate(bool mended)
{
    CUstream stream = free_stream(), other = free_stream();
    CUevent event = event_new();
    struct gate start = gate_new();
    if (mended) gate_wait(start, stream);
    launch(FIRST, WORK_US, stream);
    for (int i = 0; i < ROUNDS; i++) {
        struct gate gate = gate_new();
        if (!mended) MUST(cuStreamSynchronize(stream));
        gate_wait(gate, other);
        MUST(cuEventRecord(event, other));
        if (!mended) MUST(cuStreamWaitEvent(stream, event, 0));
        launch(FIRST, WORK_US, stream);
        measured.idle_ns += rest(PAUSE_US);
        gate_open(gate);
    }
    gate_open(start);
    device_done();
}

/* --- what holds the next work on the same device, or on its own stream --- */

/* Kernels by turns on two streams, which may be the same; between two of them `holder` pauses. */
static void by_pause(CUstream first, CUstream second, CUstream holder)
{
    struct gate gate = gate_new();
    gate_wait(gate, first);
    if (!holder && second != first) gate_wait(gate, second);
    for (int i = 0; i < ROUNDS; i++) {
        launch(FIRST, WORK_US, first);
        if (holder) pause_on(holder);
        launch(SECOND, WORK_US, second);
    }
    gate_open(gate);
    device_done();
}

void legacy_holds(bool mended)
{
    CUstream stream = mended ? free_stream() : CU_STREAM_LEGACY;
    by_pause(stream, mended ? free_stream() : blocking_stream(), mended ? NULL : stream);
}
void holds_legacy(bool mended)
{
    CUstream stream = mended ? free_stream() : blocking_stream();
    by_pause(stream, mended ? free_stream() : CU_STREAM_LEGACY, mended ? NULL : stream);
}
void host_function(bool mended)
{
    CUstream stream = free_stream();
    by_pause(stream, stream, mended ? NULL : stream);
}

/* The event is recorded behind a host function. */
void event_host(bool mended)
{
    CUstream stream = free_stream(), other = free_stream();
    CUevent event = event_new();
    struct gate gate = gate_new();
    gate_wait(gate, other);
    for (int i = 0; i < ROUNDS; i++) {
        launch(FIRST, WORK_US, other);
        if (!mended) pause_on(other);
        MUST(cuEventRecord(event, other));
        MUST(cuStreamWaitEvent(stream, event, 0));
        launch(SECOND, WORK_US, stream);
        MUST(cuEventRecord(event, stream));
        MUST(cuStreamWaitEvent(other, event, 0));
    }
    gate_open(gate);
    device_done();
}

/* One stream and nothing else: the device is never idle, and each kernel waits for the one before
 * it. */
void own_order(bool mended)
{
    CUstream streams[2] = {free_stream(), free_stream()};
    struct gate gate = gate_new();
    gate_wait(gate, streams[0]);
    gate_wait(gate, streams[1]);
    for (int i = 0; i < ROUNDS; i++)
        launch(i % 2 ? SECOND : FIRST, WORK_US, streams[mended && i % 2]);
    gate_open(gate);
    device_done();
}

/* With CUSTREAM_GRAPH=node: two kernels of a graph with a host function between them. */
void graph_edge(bool mended)
{
    CUstream stream = free_stream();
    CUgraph graph;
    CUgraphExec exec;
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(FIRST, WORK_US, stream);
    if (!mended) pause_on(stream);
    launch(SECOND, WORK_US, stream);
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < ROUNDS; i++)
        MUST(cuGraphLaunch(exec,
            stream)); /* without a gate: the driver may want one launch's end before another */
    device_done();
}

/* The stream waits for a value that the host writes late: by a call that the trace has, or not. */
static void by_value(bool mended, CUresult before(void), CUresult after(void))
{
    CUstream stream = free_stream();
    struct gate start = gate_new();
    if (mended) gate_wait(start, stream);
    launch(FIRST, WORK_US, stream);
    for (int i = 0; i < ROUNDS; i++) {
        struct gate gate = gate_new();
        if (!mended) {
            MUST(cuStreamSynchronize(stream));
            MUST(before());
            gate_wait(gate, stream);
            MUST(after());
        }
        launch(SECOND, WORK_US, stream);
        measured.idle_ns += rest(PAUSE_US);
        gate_open(gate);
    }
    gate_open(start);
    device_done();
}
static CUresult nothing(void) { return CUDA_SUCCESS; }
void memory_value(bool mended) { by_value(mended, nothing, nothing); }
/* With CUSTREAM_WINDOW=profiler. */
void unknown(bool mended)
{
    MUST(cuProfilerStart());
    by_value(mended, cuProfilerStop, cuProfilerStart);
}

/* --- what room there is --- */

/* Each kernel takes all threads of the device, so the other stream's has to wait; the twin's take
 * an eighth. Simulated: CUSTREAM_FAKE_FULL=1. */
void device_full(bool mended)
{
    enum { BLOCK = 1024 };
    CUstream streams[2] = {free_stream(), free_stream()};
    struct gate gate = gate_new();
    int processors, threads;
    MUST(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    MUST(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
    unsigned grid = (unsigned)(processors * (threads / BLOCK)), block = mended ? BLOCK / 8 : BLOCK;
    for (int i = 0; i < 2; i++) {
        gate_wait(gate, streams[i]);
        launch(THIRD, WORK_US / 100, streams[i]);
    }
    for (int i = 0; i < 2 * ROUNDS; i++)
        launch_blocks(i % 2 ? SECOND : FIRST, grid, block, WORK_US, streams[i % 2]);
    gate_open(gate);
    device_done();
    measured.cost_ns = ROUNDS * WORK_US * 1000ll;
}
