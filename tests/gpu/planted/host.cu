// The host had not enqueued the next work: what its thread did meanwhile.
#include "tests/gpu/planted/device.cuh"

// Kernels, and between two of them something that the host does. Planted, the next one is enqueued behind that; the twin's are enqueued before.
template <class Between> static void kernels_around(bool mended, Between between) {
    cudaStream_t stream = free_stream();
    Gate gate;
    if (mended) gate.wait(stream);
    for (int i = 0; i <= (mended ? ROUNDS : 0); i++) launch(FIRST, WORK_US, stream);
    gate.open();
    for (int i = 0; i < ROUNDS; i++) {
        if (!mended) MUST(cudaStreamSynchronize(stream));
        between();
        if (!mended) launch(FIRST, WORK_US, stream);
    }
    MUST(cudaDeviceSynchronize());
}

void own_code(bool mended) {
    kernels_around(mended, [] { measured.idle_ns += rest(PAUSE_US); });
}

// The thread is blocked in a call that waits for another stream, on which nothing runs but a host function.
void blocked_stream(bool mended) {
    cudaStream_t other = free_stream();
    kernels_around(mended, [=] {
        pause_on(other);
        MUST(cudaStreamSynchronize(other));
    });
}
void blocked_context(bool mended) {
    cudaStream_t other = free_stream();
    kernels_around(mended, [=] {
        pause_on(other);
        MUST(cudaDeviceSynchronize());
    });
}
void blocked_event(bool mended) {
    cudaStream_t other = free_stream();
    kernels_around(mended, [=] {
        cudaEvent_t event = event_new();
        pause_on(other);
        MUST(cudaEventRecord(event, other));
        MUST(cudaEventSynchronize(event));
        MUST(cudaEventDestroy(event));
    });
}

// Device 0 idles while the thread that feeds it copies from device 1, which takes its time. The twin's copies wait for nothing.
void blocked_copy(bool mended) {
    char *host = pinned_memory();
    device_use(1);
    char *memory = device_memory();
    device_use(0);
    kernels_around(mended, [=] {
        device_use(1);
        int64_t begin = now_ns();
        if (mended) MUST(cudaMemcpyAsync(host, memory, copy_bytes, cudaMemcpyDeviceToHost, nullptr));
        else MUST(cudaMemcpy(host, memory, copy_bytes, cudaMemcpyDeviceToHost));
        measured.idle_ns += now_ns() - begin;
        device_use(0);
    });
    device_use(1);
    MUST(cudaDeviceSynchronize());
    device_use(0);
}

// Memory is freed between two kernels. The driver waits until the device has nothing to do, no host function either. The twin takes a pool's.
void frees(bool mended) {
    cudaStream_t stream = free_stream(), other = free_stream();
    if (mended) {
        enqueued_ahead({stream}, [=] {
            for (int i = 0; i < ROUNDS; i++) {
                void *memory;
                MUST(cudaMallocAsync(&memory, copy_bytes, stream));
                launch(FIRST, WORK_US, stream);
                MUST(cudaFreeAsync(memory, stream));
            }
        });
        return;
    }
    launch(FIRST, WORK_US, stream);
    for (int i = 0; i < ROUNDS; i++) {
        char *memory = device_memory();
        MUST(cudaStreamSynchronize(stream));
        pause_on(other);
        int64_t begin = now_ns();
        MUST(cudaFree(memory));
        measured.cost_ns += now_ns() - begin;
        launch(FIRST, WORK_US, stream);
    }
    MUST(cudaDeviceSynchronize());
    measured.idle_ns = measured.cost_ns; // not the host functions' time, in case that the driver does not wait for those
}

// Kernels that are shorter than the host's time between two launches, as in a framework; the twin puts them all into a graph.
void launch_bound(bool mended) {
    cudaStream_t stream = free_stream();
    if (mended) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        for (int i = 0; i < LAUNCHES; i++) launch(FIRST, 0, stream);
        MUST(cudaStreamEndCapture(stream, &graph));
        MUST(cudaGraphInstantiate(&exec, graph, 0));
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaDeviceSynchronize());
        return;
    }
    int64_t begin = 0, last = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        spin(BETWEEN_US);
        last = now_ns();
        launch(FIRST, 0, stream);
        if (!i) begin = now_ns();
    }
    MUST(cudaDeviceSynchronize());
    measured.idle_ns = last - begin - LAUNCHES * SHORT_US * 1000ll;
}
