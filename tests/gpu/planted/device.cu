// What the planted programs share: kernels, streams, events, memory, gates.
#include "tests/gpu/planted/device.cuh"

#include <cstring>

// One warp of each block looks at the clock; the others wait for it.
static __device__ void sleep_for(unsigned us) {
    if (threadIdx.x < 32) {
        unsigned long long start, now;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
        do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
        while (now - start < us * 1000ull);
    }
    __syncthreads();
}
__global__ void sleep_first(unsigned us) { sleep_for(us); }
__global__ void sleep_second(unsigned us) { sleep_for(us); }
__global__ void sleep_third(unsigned us) { sleep_for(us); }

static void (*const kernels[KERNELS])(unsigned) = {sleep_first, sleep_second, sleep_third};

enum { DEVICES = 2, GATES = 64 };
static bool used[DEVICES];
static volatile uint32_t *gates; // pinned; memory that is asked for while streams wait at a gate may itself wait for them
static int gates_used;

static void device_begin(int ordinal) {
    int count = 0;
    MUST(cudaGetDeviceCount(&count));
    if (ordinal >= count) {
        fprintf(stderr, "planted: this program needs %d devices, and there are %d\n", ordinal + 1, count);
        exit(5);
    }
    MUST(cudaSetDevice(ordinal));
    for (auto kernel : kernels) { // each is loaded now: its first launch would do it, and may wait for all that runs
        cudaFuncAttributes attributes;
        MUST(cudaFuncGetAttributes(&attributes, kernel));
    }
    used[ordinal] = true;
    if (gates) return;
    void *memory;
    MUST(cudaMallocHost(&memory, GATES * sizeof *gates));
    gates = static_cast<uint32_t *>(memset(memory, 0, GATES * sizeof *gates));
}

void device_use(int ordinal) {
    if (!used[ordinal]) device_begin(ordinal);
    MUST(cudaSetDevice(ordinal));
}

void launch(kernel which, unsigned us, cudaStream_t stream, unsigned grid, unsigned block) {
    kernels[which]<<<grid, block, 0, stream>>>(us);
    MUST(cudaGetLastError());
}

cudaStream_t blocking_stream() {
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    return stream;
}
cudaStream_t free_stream() {
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

cudaEvent_t event_new() {
    cudaEvent_t event;
    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

char *device_memory() {
    char *memory;
    MUST(cudaMalloc(&memory, copy_bytes));
    return memory;
}
char *pinned_memory() {
    char *memory;
    MUST(cudaMallocHost(&memory, copy_bytes));
    return memory;
}

void pause_on(cudaStream_t stream) { MUST(cudaLaunchHostFunc(stream, pause_now, nullptr)); }

Gate::Gate() {
    if (gates_used == GATES) fprintf(stderr, "planted: there are %d gates\n", GATES), exit(1);
    word = &gates[gates_used++];
}
