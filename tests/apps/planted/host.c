/* The host had not enqueued the next work: what its thread did meanwhile. */
#include "tests/apps/planted/device.h"

/* The same kernels, enqueued before the first of them begins. */
static void enqueued_ahead(CUstream stream)
{
    struct gate gate = gate_new();
    gate_wait(gate, stream);
    for (int i = 0; i <= ROUNDS; i++) launch(FIRST, WORK_US, stream);
    gate_open(gate);
}

void own_code(bool mended)
{
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

/* The thread is blocked in a call that waits for another stream, on which nothing runs but a host
 * function. */
static void blocked(bool mended, void wait(CUstream other))
{
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
static void wait_for_context(CUstream other)
{
    (void)other;
    MUST(cuCtxSynchronize());
}
static void wait_for_event(CUstream other)
{
    CUevent event = event_new();
    MUST(cuEventRecord(event, other));
    MUST(cuEventSynchronize(event));
    MUST(cuEventDestroy(event));
}
void blocked_stream(bool mended) { blocked(mended, wait_for_stream); }
void blocked_context(bool mended) { blocked(mended, wait_for_context); }
void blocked_event(bool mended) { blocked(mended, wait_for_event); }

/* Memory is freed between two kernels. The driver waits until the device has nothing to do, no host
 * function either. The twin takes a pool's. */
void frees(bool mended)
{
    CUstream stream = free_stream(), other = free_stream();
    struct gate gate = gate_new();
    if (mended) gate_wait(gate, stream);
    launch(FIRST, WORK_US, stream);
    for (int i = 0; i < ROUNDS; i++) {
        CUdeviceptr memory;
        if (mended) {
            MUST(cuMemAllocAsync(&memory, copy_bytes, stream));
            launch(FIRST, WORK_US, stream);
            MUST(cuMemFreeAsync(memory, stream));
            continue;
        }
        memory = device_memory();
        MUST(cuStreamSynchronize(stream));
        pause_on(other);
        int64_t begin = now_ns();
        MUST(cuMemFree(memory));
        measured.cost_ns += now_ns() - begin;
        launch(FIRST, WORK_US, stream);
    }
    gate_open(gate);
    device_done();
    measured.idle_ns = measured.cost_ns; /* not the host functions' time, in case that the driver
                                            does not wait for those */
}

/* Device 0 idles while the thread that feeds it copies from device 1, which takes its time. The
 * twin's copies wait for nothing. */
void blocked_copy(bool mended)
{
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
        if (mended) MUST(cuMemcpyDtoHAsync(host, memory, copy_bytes, NULL));
        else MUST(cuMemcpyDtoH(host, memory, copy_bytes));
        measured.idle_ns += now_ns() - begin;
        device_use(0);
        if (!mended) launch(FIRST, WORK_US, stream);
    }
    device_done();
    device_use(1);
    device_done();
    device_use(0);
}

/* Kernels that are shorter than the host's time between two launches, as in a framework; the twin
 * puts them all into a graph. */
void launch_bound(bool mended)
{
    CUstream stream = free_stream();
    CUgraph graph;
    CUgraphExec exec;
    int64_t begin = 0, last = 0;
    if (mended) MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (int i = 0; i < LAUNCHES; i++) {
        if (!mended) spin(BETWEEN_US);
        last = now_ns();
        launch(FIRST, 0, stream);
        if (!i) begin = now_ns();
    }
    if (mended) {
        MUST(cuStreamEndCapture(stream, &graph));
        MUST(cuGraphInstantiate(&exec, graph, 0));
        MUST(cuGraphLaunch(exec, stream));
    }
    measured.idle_ns = last - begin - LAUNCHES * SHORT_US * 1000ll;
    device_done();
}
