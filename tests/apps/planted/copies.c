/* Copies: one after the other, on one engine, of pageable memory, and those that the host waits
 * for. */
#include "tests/apps/planted/device.h"

#include <string.h>

/* Two streams copy in the same direction, for which there is one engine. The twin's second stream
 * copies the other way. All is enqueued ahead. */
void copies(bool mended)
{
    CUstream first = free_stream(), second = free_stream();
    CUdeviceptr one = device_memory(), other = device_memory();
    void *from = pinned_memory(), *to = pinned_memory();
    struct gate gate = gate_new();
    gate_wait(gate, first);
    gate_wait(gate, second);
    launch(FIRST, WORK_US / 4, first);
    launch(SECOND, WORK_US / 4, second);
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuMemcpyHtoDAsync(one, from, copy_bytes, first));
        if (mended) MUST(cuMemcpyDtoHAsync(to, other, copy_bytes, second));
        else MUST(cuMemcpyHtoDAsync(other, from, copy_bytes, second));
    }
    gate_open(gate);
    device_done();
}

/* Copies to the device and back that could run side by side, on one stream. */
void one_engine(bool mended)
{
    CUstream first = free_stream(), second = mended ? free_stream() : first;
    CUdeviceptr one = device_memory(), other = device_memory();
    void *from = pinned_memory(), *to = pinned_memory();
    struct gate gate = gate_new();
    gate_wait(gate, first);
    if (mended) gate_wait(gate, second);
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuMemcpyHtoDAsync(one, from, copy_bytes, first));
        MUST(cuMemcpyDtoHAsync(to, other, copy_bytes, second));
    }
    gate_open(gate);
    device_done();
}

/* A kernel and a copy of its result by turns. The call that copies blocks the host, which then
 * needs its time before it launches the next. */
void synchronous_copies(bool mended)
{
    CUstream stream = mended ? free_stream() : blocking_stream();
    CUdeviceptr memory = device_memory();
    void *result = pinned_memory();
    struct gate gate = gate_new();
    if (mended) gate_wait(gate, stream);
    for (int i = 0; i < ROUNDS; i++) {
        launch(FIRST, WORK_US, stream);
        if (mended) {
            MUST(cuMemcpyDtoHAsync(result, memory, copy_bytes, stream));
            continue;
        }
        MUST(cuMemcpyDtoH(result, memory, copy_bytes));
        if (i < ROUNDS - 1) measured.idle_ns += rest(PAUSE_US);
    }
    gate_open(gate);
    device_done();
    measured.cost_ns = measured.idle_ns;
}

/* Results come back into pageable memory: the call waits for that, so the next kernel is not
 * enqueued when it could run. */
void pageable_copies(bool mended)
{
    CUstream stream = free_stream();
    CUdeviceptr memory = device_memory();
    void *result = mended ? pinned_memory() : malloc(copy_bytes);
    memset(result, 0, copy_bytes); /* so that no copy has to wait for the system's pages */
    struct gate gate = gate_new();
    if (mended) gate_wait(gate, stream);
    for (int i = 0; i < ROUNDS; i++) {
        launch(FIRST, WORK_US, stream);
        MUST(cuMemcpyDtoHAsync(result, memory, copy_bytes, stream));
        if (!mended && i < ROUNDS - 1) measured.idle_ns += rest(PAUSE_US);
    }
    gate_open(gate);
    device_done();
    measured.cost_ns = measured.idle_ns;
}
