// Copies: one after the other, on one engine, of pageable memory, and those that the host waits for.
#include "tests/gpu/planted/device.cuh"

#include <cstring>

static void copy_up(char *to, const char *from, cudaStream_t stream) {
    MUST(cudaMemcpyAsync(to, from, copy_bytes, cudaMemcpyHostToDevice, stream));
}
static void copy_down(char *to, const char *from, cudaStream_t stream) {
    MUST(cudaMemcpyAsync(to, from, copy_bytes, cudaMemcpyDeviceToHost, stream));
}

// Two streams copy in the same direction, for which there is one engine. The twin's second stream copies the other way. All is enqueued ahead.
void copies(bool mended) {
    cudaStream_t first = free_stream(), second = free_stream();
    char *one = device_memory(), *other = device_memory(), *from = pinned_memory(), *to = pinned_memory();
    enqueued_ahead({first, second}, [=] {
        launch(FIRST, WORK_US / 4, first);
        launch(SECOND, WORK_US / 4, second);
        for (int i = 0; i < ROUNDS; i++) {
            copy_up(one, from, first);
            if (mended) copy_down(to, other, second);
            else copy_up(other, from, second);
        }
    });
}

// Copies to the device and back that could run side by side, on one stream.
void one_engine(bool mended) {
    cudaStream_t first = free_stream(), second = mended ? free_stream() : first;
    char *one = device_memory(), *other = device_memory(), *from = pinned_memory(), *to = pinned_memory();
    enqueued_ahead({first, second}, [=] {
        for (int i = 0; i < ROUNDS; i++) {
            copy_up(one, from, first);
            copy_down(to, other, second);
        }
    });
}

// A kernel and a copy of its result by turns, enqueued ahead: what the twins of the next two do.
static void kernels_and_copies() {
    cudaStream_t stream = free_stream();
    char *memory = device_memory(), *result = pinned_memory();
    enqueued_ahead({stream}, [=] {
        for (int i = 0; i < ROUNDS; i++) {
            launch(FIRST, WORK_US, stream);
            copy_down(result, memory, stream);
        }
    });
}

// The call that copies blocks the host, which then needs its time before it launches the next.
void synchronous_copies(bool mended) {
    if (mended) return kernels_and_copies();
    cudaStream_t stream = blocking_stream();
    char *memory = device_memory(), *result = pinned_memory();
    for (int i = 0; i < ROUNDS; i++) {
        launch(FIRST, WORK_US, stream);
        MUST(cudaMemcpy(result, memory, copy_bytes, cudaMemcpyDeviceToHost));
        if (i < ROUNDS - 1) measured.idle_ns += rest(PAUSE_US);
    }
    MUST(cudaDeviceSynchronize());
    measured.cost_ns = measured.idle_ns;
}

// Results come back into pageable memory: the call waits for that, so the next kernel is not enqueued when it could run.
void pageable_copies(bool mended) {
    if (mended) return kernels_and_copies();
    cudaStream_t stream = free_stream();
    char *memory = device_memory(), *result = static_cast<char *>(malloc(copy_bytes));
    memset(result, 0, copy_bytes); // so that no copy has to wait for the system's pages
    for (int i = 0; i < ROUNDS; i++) {
        launch(FIRST, WORK_US, stream);
        copy_down(result, memory, stream);
        if (i < ROUNDS - 1) measured.idle_ns += rest(PAUSE_US);
    }
    MUST(cudaDeviceSynchronize());
    measured.cost_ns = measured.idle_ns;
}
