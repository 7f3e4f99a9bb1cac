// The next work was enqueued, and something on the GPU held it. All is enqueued ahead, behind gates, so that the host has no part in it.
#include "tests/gpu/planted/device.cuh"

#include <cuda_profiler_api.h>

// --- events ---

enum { LONG_US = WORK_US + PAUSE_US };

// Each kernel on device 0 waits for an event behind a longer one on device 1, by way of `between` streams that only wait and record.
static void by_event(bool mended, int between) {
    Gate gate;
    cudaStream_t stream = free_stream();
    device_use(1); // which takes its time, before any stream waits
    cudaStream_t other = free_stream(), passing = free_stream();
    gate.wait(other);
    device_use(0);
    gate.wait(stream);
    for (int i = 0; i < ROUNDS; i++) {
        device_use(1);
        cudaEvent_t event = event_new();
        launch(SECOND, LONG_US, other);
        MUST(cudaEventRecord(event, other));
        for (int j = 0; j < between; j++) {
            MUST(cudaStreamWaitEvent(passing, event));
            event = event_new();
            MUST(cudaEventRecord(event, passing));
        }
        device_use(0);
        if (!mended) MUST(cudaStreamWaitEvent(stream, event));
        launch(FIRST, WORK_US, stream);
    }
    measured.idle_ns = (ROUNDS - 1) * PAUSE_US * 1000ll; // before its first kernel device 0 was not in use yet
    gate.open();
    MUST(cudaDeviceSynchronize());
    device_use(1);
    MUST(cudaDeviceSynchronize());
}
void event_device(bool mended) { by_event(mended, 0); }
void event_chain(bool mended) { by_event(mended, 1); }

// The event is recorded behind a wait for a value that the host writes late.
void event_gate(bool mended) {
    cudaStream_t stream = free_stream(), other = free_stream();
    cudaEvent_t event = event_new();
    Gate start;
    if (mended) start.wait(stream);
    launch(FIRST, WORK_US, stream);
    for (int i = 0; i < ROUNDS; i++) {
        Gate gate;
        if (!mended) MUST(cudaStreamSynchronize(stream));
        gate.wait(other);
        MUST(cudaEventRecord(event, other));
        if (!mended) MUST(cudaStreamWaitEvent(stream, event));
        launch(FIRST, WORK_US, stream);
        measured.idle_ns += rest(PAUSE_US);
        gate.open();
    }
    start.open();
    MUST(cudaDeviceSynchronize());
}

// The event is recorded behind a host function.
void event_host(bool mended) {
    cudaStream_t stream = free_stream(), other = free_stream();
    cudaEvent_t event = event_new();
    enqueued_ahead({other}, [=] {
        for (int i = 0; i < ROUNDS; i++) {
            launch(FIRST, WORK_US, other);
            if (!mended) pause_on(other);
            MUST(cudaEventRecord(event, other));
            MUST(cudaStreamWaitEvent(stream, event));
            launch(SECOND, WORK_US, stream);
            MUST(cudaEventRecord(event, stream));
            MUST(cudaStreamWaitEvent(other, event));
        }
    });
}

// --- what holds the next work on the same device, or on its own stream ---

// Kernels by turns on two streams, which may be the same; between two of them the first one's host function pauses.
static void by_pause(cudaStream_t first, cudaStream_t second) {
    enqueued_ahead({first}, [=] {
        for (int i = 0; i < ROUNDS; i++) {
            launch(FIRST, WORK_US, first);
            pause_on(first);
            launch(SECOND, WORK_US, second);
        }
    });
}
static void without_pause(cudaStream_t first, cudaStream_t second) {
    enqueued_ahead({first, second}, [=] {
        for (int i = 0; i < ROUNDS; i++) {
            launch(FIRST, WORK_US, first);
            launch(SECOND, WORK_US, second);
        }
    });
}

void legacy_holds(bool mended) {
    if (mended) without_pause(free_stream(), free_stream());
    else by_pause(0, blocking_stream());
}
void holds_legacy(bool mended) {
    if (mended) without_pause(free_stream(), free_stream());
    else by_pause(blocking_stream(), 0);
}
void host_function(bool mended) {
    cudaStream_t stream = free_stream();
    if (mended) without_pause(stream, stream);
    else by_pause(stream, stream);
}

// One stream and nothing else: the device is never idle, and each kernel waits for the one before it.
void own_order(bool mended) {
    cudaStream_t first = free_stream(), second = mended ? free_stream() : first;
    enqueued_ahead({first, second}, [=] {
        for (int i = 0; i < ROUNDS; i++) launch(i % 2 ? SECOND : FIRST, WORK_US, i % 2 ? second : first);
    });
}

// With CUSTREAM_GRAPH=node: two kernels of a graph with a host function between them.
void graph_edge(bool mended) {
    cudaStream_t stream = free_stream();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch(FIRST, WORK_US, stream);
    if (!mended) pause_on(stream);
    launch(SECOND, WORK_US, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < ROUNDS; i++) MUST(cudaGraphLaunch(exec, stream)); // without a gate: the driver may want one launch's end before another
    MUST(cudaDeviceSynchronize());
}

// The stream waits for a value that the host writes late: by a call that the trace has, or not.
template <class Before, class After> static void by_value(bool mended, Before before, After after) {
    cudaStream_t stream = free_stream();
    Gate start;
    if (mended) start.wait(stream);
    launch(FIRST, WORK_US, stream);
    for (int i = 0; i < ROUNDS; i++) {
        Gate gate;
        if (!mended) {
            MUST(cudaStreamSynchronize(stream));
            before();
            gate.wait(stream);
            after();
        }
        launch(SECOND, WORK_US, stream);
        measured.idle_ns += rest(PAUSE_US);
        gate.open();
    }
    start.open();
    MUST(cudaDeviceSynchronize());
}
void memory_value(bool mended) {
    by_value(mended, [] {}, [] {});
}
// With CUSTREAM_WINDOW=profiler.
void unknown(bool mended) {
    MUST(cudaProfilerStart());
    by_value(mended, [] { MUST(cudaProfilerStop()); }, [] { MUST(cudaProfilerStart()); });
}

// --- what room there is ---

// Each kernel takes all threads of the device, so the other stream's has to wait; the twin's take an eighth. Simulated: CUSTREAM_FAKE_FULL=1.
void device_full(bool mended) {
    constexpr int BLOCK = 1024;
    cudaStream_t first = free_stream(), second = free_stream();
    int processors, threads;
    MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    MUST(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
    unsigned grid = processors * (threads / BLOCK), block = mended ? BLOCK / 8 : BLOCK;
    enqueued_ahead({first, second}, [=] {
        launch(THIRD, WORK_US / 100, first);
        launch(THIRD, WORK_US / 100, second);
        for (int i = 0; i < ROUNDS; i++) {
            launch(FIRST, WORK_US, first, grid, block);
            launch(SECOND, WORK_US, second, grid, block);
        }
    });
    measured.cost_ns = ROUNDS * WORK_US * 1000ll;
}
