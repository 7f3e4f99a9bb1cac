// The programs of tests/apps/planted as a CUDA C++ program has them: the runtime API, kernels by <<<>>>. Each says in its twin there what it plants.
//
//     planted-runtime [NAME [mended] [BYTES]]
//
// Here is what they share. CUDA_DEVICE_MAX_CONNECTIONS must be unset, or 8.
#pragma once

#include "tests/apps/planted/planted.h"

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include <cuda.h>
#include <cuda_runtime.h>

// A call of the runtime or of the driver: both say 0 where all is well.
#define MUST(call)                                                                                                                                   \
    do {                                                                                                                                             \
        int rc_ = static_cast<int>(call);                                                                                                            \
        if (rc_) fprintf(stderr, "planted: %s gave %d\n", #call, rc_), exit(1);                                                                      \
    } while (0)

void launch(kernel which, unsigned us, cudaStream_t stream, unsigned grid = 1, unsigned block = 32);
cudaStream_t blocking_stream(); // ordered with the legacy default stream, which is stream 0
cudaStream_t free_stream();     // cudaStreamNonBlocking
cudaEvent_t event_new();
char *device_memory(); // of copy_bytes
char *pinned_memory();
void pause_on(cudaStream_t stream); // pause_now() as a host function

// Streams wait for the gate until it opens. The runtime has no such call, so it is the driver's.
class Gate {
    volatile uint32_t *word;

public:
    Gate();
    void wait(cudaStream_t stream) const {
        MUST(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_GEQ));
    }
    void open() const { *word = 1; }
};

// All work is enqueued on these streams before any of it begins, however slow the host is; and then waited for.
template <class Work> void enqueued_ahead(std::initializer_list<cudaStream_t> streams, Work work) {
    Gate gate;
    for (cudaStream_t stream : streams) gate.wait(stream);
    work();
    gate.open();
    MUST(cudaDeviceSynchronize());
}
