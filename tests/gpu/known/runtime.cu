// known.h by the CUDA runtime.
#include "known.h"

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

static __device__ void spin(unsigned us) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - start < us * 1000ull);
}

extern "C" __global__ void sleep_a(unsigned us) { spin(us); }

template <int N>
__global__ void sleep_of(unsigned us) {
    spin(us);
}

#define MUST(call)                                                                                                                                   \
    do {                                                                                                                                             \
        cudaError_t rc_ = (call);                                                                                                                    \
        if (rc_ != cudaSuccess) fprintf(stderr, "known: %s gave %d\n", #call, (int)rc_), exit(1);                                                    \
    } while (0)

static cudaStream_t stream_of(known_stream stream) { return static_cast<cudaStream_t>(stream); }
static cudaEvent_t event_of(known_event event) { return static_cast<cudaEvent_t>(event); }
static const cudaMemcpyKind ways[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};

void known_begin(void) { MUST(cudaFree(nullptr)); }
void known_thread(void) { MUST(cudaSetDevice(0)); }

known_stream known_stream_create(int nonblocking, int priority) {
    cudaStream_t stream;
    MUST(cudaStreamCreateWithPriority(&stream, nonblocking ? cudaStreamNonBlocking : cudaStreamDefault, priority));
    return stream;
}

known_event known_event_create(int timing) {
    cudaEvent_t event;
    MUST(cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming));
    return event;
}

void known_record(known_event event, known_stream stream) { MUST(cudaEventRecord(event_of(event), stream_of(stream))); }
void known_wait(known_stream stream, known_event event) { MUST(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0)); }

double known_elapsed_ms(known_event from, known_event to) {
    float ms = 0;
    MUST(cudaEventElapsedTime(&ms, event_of(from), event_of(to)));
    return ms;
}

void known_launch(int which, unsigned grid, unsigned us, known_stream stream) {
    if (which) sleep_of<3><<<grid, 32, 0, stream_of(stream)>>>(us);
    else sleep_a<<<grid, 32, 0, stream_of(stream)>>>(us);
    MUST(cudaGetLastError());
}

const char *known_kernel(int which) { return which ? "sleep_of" : "sleep_a"; }

void *known_device_memory(size_t bytes) {
    void *at;
    MUST(cudaMalloc(&at, bytes));
    return at;
}

void *known_pinned_memory(size_t bytes) {
    void *at;
    MUST(cudaMallocHost(&at, bytes));
    return at;
}

void known_copy(enum known_way way, void *to, const void *from, size_t bytes, known_stream stream) {
    MUST(cudaMemcpyAsync(to, from, bytes, ways[way], stream_of(stream)));
}

void known_copy_and_wait(enum known_way way, void *to, const void *from, size_t bytes) { MUST(cudaMemcpy(to, from, bytes, ways[way])); }
void known_set(void *at, unsigned char value, size_t bytes, known_stream stream) { MUST(cudaMemsetAsync(at, value, bytes, stream_of(stream))); }
void known_capture(known_stream stream) { MUST(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeGlobal)); }

known_graph known_captured(known_stream stream) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaStreamEndCapture(stream_of(stream), &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

void known_graph_launch(known_graph graph, known_stream stream) { MUST(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(stream))); }
void known_sync_stream(known_stream stream) { MUST(cudaStreamSynchronize(stream_of(stream))); }
void known_sync_all(void) { MUST(cudaDeviceSynchronize()); }
