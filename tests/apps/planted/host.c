/* The host had not enqueued the next work: what its thread did meanwhile. */
#include "tests/apps/planted/planted.h"

/* The same kernels, enqueued before the first of them begins. */
static void enqueued_ahead(CUstream stream) {
    struct gate gate = gate_new();
    gate_wait(gate, stream);
    for (int i = 0; i <= ROUNDS; i++) launch(FIRST, WORK_US, stream);
    gate_open(gate);
}

void own_code(bool mended) {
    CUstream stream = free_stream();
    if (mended) enqueued_ahead(stream);
    else launch(FIRST, WORK_US, stream);
    for (int i = 0; i < ROUNDS; i++) {
        if (!mended) MUST(cuStreamSynchronize(stream));
        measured.idle_ns += rest(PAUSE_US);
        if (!mended) launch(FIRST, WORK_US, stream);
    }
    device_done();
}

/* The thread is blocked in a call that waits for another stream, on which nothing runs but a host function. */
static void blocked(bool mended, void wait(CUstream other)) {
    CUstream stream = free_stream(), other = free_stream();
    if (mended) enqueued_ahead(stream);
    else launch(FIRST, WORK_US, stream);
    for (int i = 0; i < ROUNDS; i++) {
        if (!mended) MUST(cuStreamSynchronize(stream));
        pause_on(other);
        wait(other);
        if (!mended) launch(FIRST, WORK_US, stream);
    }
    device_done();
}

static void wait_for_stream(CUstream other) { MUST(cuStreamSynchronize(other)); }
static void wait_for_context(CUstream other) {
    (void)other;
    MUST(cuCtxSynchronize());
}
static void wait_for_event(CUstream other) {
    CUevent event = event_new();
    MUST(cuEventRecord(event, other));
    MUST(cuEventSynchronize(event));
    MUST(cuEventDestroy(event));
}
/* It frees what the device no longer uses; the driver waits until it has nothing to do. */
static void free_memory(CUstream other) {
    CUdeviceptr memory = device_memory();
    (void)other;
    MUST(cuMemFree(memory));
}

void blocked_stream(bool mended) { blocked(mended, wait_for_stream); }
void blocked_context(bool mended) { blocked(mended, wait_for_context); }
void blocked_event(bool mended) { blocked(mended, wait_for_event); }
void frees(bool mended) {
    if (!mended) blocked(false, free_memory);
    else blocked(true, wait_for_stream);
}

/* Device 0 idles while the thread that feeds it copies from device 1, which takes its time. */
void blocked_copy(bool mended) {
    CUstream stream = free_stream();
    char *host = pinned_memory();
    device_use(1);
    CUdeviceptr memory = device_memory();
    device_use(0);
    if (mended) enqueued_ahead(stream);
    else launch(FIRST, WORK_US, stream);
    for (int i = 0; i < ROUNDS; i++) {
        if (!mended) MUST(cuStreamSynchronize(stream));
        device_use(1);
        int64_t begin = now_ns();
        MUST(cuMemcpyDtoH(host, memory, copy_bytes));
        measured.idle_ns += now_ns() - begin;
        device_use(0);
        if (!mended) launch(FIRST, WORK_US, stream);
    }
    device_done();
}

/* Kernels that are shorter than what it takes to launch one, on the simulated GPU some nanoseconds; the twin puts them all into a graph. */
void launch_bound(bool mended) {
    enum { SHORT_KERNELS = 5000, SHORT_NS = 20 };
    CUstream stream = free_stream();
    CUgraph graph;
    CUgraphExec exec;
    int64_t begin = 0, last = 0;
    if (mended) MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (int i = 0; i < SHORT_KERNELS; i++) {
        last = now_ns();
        launch(FIRST, 0, stream);
        if (!i) begin = now_ns();
    }
    if (mended) {
        MUST(cuStreamEndCapture(stream, &graph));
        MUST(cuGraphInstantiate(&exec, graph, 0));
        MUST(cuGraphLaunch(exec, stream));
    }
    measured.idle_ns = last - begin - SHORT_KERNELS * SHORT_NS;
    device_done();
}
