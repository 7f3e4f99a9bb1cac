// The runtime-API program. One source, built four ways (module.mk): static or shared cudart, legacy or per-thread default stream; the driver
// symbols it ends up calling differ each time. Output is deterministic: names, codes and checksums.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <cooperative_groups.h>
#include <cuda_runtime.h>

static constexpr int N = 1 << 14;

__global__ void add(uint32_t *p, int n, uint32_t k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += k;
}

__global__ void scale(uint32_t *p, int n, uint32_t k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= k;
}

// First launched while a stream captures.
__global__ void late(uint32_t *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += 9;
}

__global__ void grid_sync(uint32_t *p, int n) {
    auto grid = cooperative_groups::this_grid();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += 1;
    grid.sync();
    if (i < n / 2) p[i] += p[n - 1 - i];
}

__global__ void spin(long long ns) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while ((long long)(now - start) < ns);
}

static thread_local std::string *lines; // where a thread prints; main prints the threads' lines in a fixed order

static void say(const std::string &s) {
    if (lines) *lines += s + "\n";
    else puts(s.c_str());
}

static cudaError_t step(const char *what, cudaError_t rc) {
    cudaGetLastError(); // a refused call must not show up again in a later check
    say(std::string("  ") + what + " " + std::to_string((int)rc));
    return rc;
}
#define RUN(call) step(#call, call)

static uint32_t sum_of(const uint32_t *p, int n) {
    uint32_t sum = 0;
    for (int i = 0; i < n; i++) sum = sum * 31 + p[i];
    return sum;
}

static void say_sum(const char *what, const uint32_t *p, int n) {
    char text[80];
    snprintf(text, sizeof text, "  %s sum %08x", what, sum_of(p, n));
    say(text);
}

static void launch(cudaStream_t s, uint32_t *p, uint32_t k) {
    add<<<N / 256, 256, 0, s>>>(p, N, k);
    step("add<<<>>>", cudaGetLastError());
}

struct Buffers {
    uint32_t *device = nullptr, *device2 = nullptr, *pinned = nullptr;
    std::vector<uint32_t> pageable = std::vector<uint32_t>(N);
    Buffers() {
        cudaMalloc(&device, N * 4);
        cudaMalloc(&device2, N * 4);
        cudaMallocHost(&pinned, N * 4);
        for (int i = 0; i < N; i++) pinned[i] = pageable[i] = i * 2654435761u;
    }
    ~Buffers() {
        cudaFree(device);
        cudaFree(device2);
        cudaFreeHost(pinned);
    }
};

static void default_stream(Buffers &b) {
    say("default stream");
    RUN(cudaMemcpy(b.device, b.pageable.data(), N * 4, cudaMemcpyHostToDevice));
    launch(0, b.device, 1);
    RUN(cudaMemset(b.device, 7, 256));
    RUN(cudaMemcpy(b.device2, b.device, N * 4, cudaMemcpyDeviceToDevice));
    RUN(cudaMemcpy2D(b.device2, 512, b.device, 512, 256, 8, cudaMemcpyDeviceToDevice));
    RUN(cudaMemset2D(b.device2, 512, 3, 128, 4));
    RUN(cudaStreamSynchronize(0));
    RUN(cudaMemcpy(b.pageable.data(), b.device2, N * 4, cudaMemcpyDeviceToHost));
    say_sum("copied", b.pageable.data(), N);
    launch(cudaStreamLegacy, b.device, 2);
    RUN(cudaStreamSynchronize(cudaStreamLegacy));
    launch(cudaStreamPerThread, b.device, 3);
    RUN(cudaStreamSynchronize(cudaStreamPerThread));
    RUN(cudaStreamQuery(0));
    RUN(cudaDeviceSynchronize());
}

static void streams_and_events(Buffers &b) {
    int least, greatest, priority = 99;
    unsigned flags = 99;
    cudaStream_t s[4];
    cudaEvent_t e[3];
    float ms = -1;
    say("streams and events");
    RUN(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    say("  range " + std::to_string(least) + " " + std::to_string(greatest));
    RUN(cudaStreamCreate(&s[0]));
    RUN(cudaStreamCreateWithFlags(&s[1], cudaStreamNonBlocking));
    RUN(cudaStreamCreateWithPriority(&s[2], cudaStreamNonBlocking, greatest));
    RUN(cudaStreamCreateWithPriority(&s[3], cudaStreamDefault, -100));
    for (auto stream : s) {
        RUN(cudaStreamGetPriority(stream, &priority));
        RUN(cudaStreamGetFlags(stream, &flags));
        say("  priority " + std::to_string(priority) + " flags " + std::to_string(flags));
    }
    RUN(cudaEventCreate(&e[0]));
    RUN(cudaEventCreate(&e[1]));
    RUN(cudaEventCreateWithFlags(&e[2], cudaEventDisableTiming));
    RUN(cudaEventRecord(e[0], s[1]));
    RUN(cudaMemcpyAsync(b.device, b.pinned, N * 4, cudaMemcpyHostToDevice, s[1]));
    launch(s[1], b.device, 5);
    RUN(cudaEventRecord(e[2], s[1]));
    RUN(cudaStreamWaitEvent(s[2], e[2], 0));
    scale<<<N / 256, 256, 0, s[2]>>>(b.device, N, 3);
    RUN(cudaGetLastError());
    RUN(cudaMemsetAsync(b.device2, 1, N * 4, s[0]));
    RUN(cudaEventRecordWithFlags(e[1], s[2], cudaEventRecordDefault));
    RUN(cudaStreamWaitEvent(s[0], e[1], 0));
    RUN(cudaMemcpyAsync(b.device2, b.device, N * 2, cudaMemcpyDeviceToDevice, s[0]));
    RUN(cudaMemcpyAsync(b.pinned, b.device2, N * 4, cudaMemcpyDeviceToHost, s[0]));
    RUN(cudaStreamSynchronize(s[0]));
    RUN(cudaEventSynchronize(e[1]));
    RUN(cudaEventQuery(e[1]));
    RUN(cudaStreamQuery(s[0]));
    RUN(cudaEventElapsedTime(&ms, e[0], e[1]));
    say(ms >= 0 ? "  time given" : "  no time");
    RUN(cudaEventElapsedTime(&ms, e[0], e[2]));
    say_sum("joined", b.pinned, N);
    say("  spin on two streams");
    for (int i = 0; i < 4; i++) spin<<<1, 1, 0, s[1 + i % 2]>>>(300000);
    RUN(cudaDeviceSynchronize());
    for (auto stream : s) RUN(cudaStreamDestroy(stream));
    for (auto event : e) RUN(cudaEventDestroy(event));
}

static int called;
static void CUDART_CB host_func(void *arg) { __atomic_fetch_add(&called, (int)(intptr_t)arg, __ATOMIC_SEQ_CST); }
static void CUDART_CB callback(cudaStream_t, cudaError_t rc, void *arg) { host_func((void *)((intptr_t)arg + rc)); }

static void host_functions(Buffers &b) {
    cudaStream_t s;
    say("host functions");
    RUN(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    launch(s, b.device, 1);
    RUN(cudaLaunchHostFunc(s, host_func, (void *)1));
    RUN(cudaStreamAddCallback(s, callback, (void *)10, 0));
    RUN(cudaLaunchHostFunc(0, host_func, (void *)100));
    RUN(cudaStreamSynchronize(s));
    RUN(cudaStreamSynchronize(0));
    say("  called " + std::to_string(called));
    RUN(cudaStreamDestroy(s));
}

static void graphs(Buffers &b) {
    cudaStream_t s, side;
    cudaEvent_t fork, join;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamCaptureStatus status;
    say("graphs");
    RUN(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    RUN(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    RUN(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    RUN(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    for (int mode = 0; mode < 3; mode++) {
        RUN(cudaStreamBeginCapture(s, (cudaStreamCaptureMode)mode));
        launch(s, b.device, 2);
        RUN(cudaEventRecord(fork, s));
        RUN(cudaStreamWaitEvent(side, fork, 0));
        add<<<N / 256, 256, 0, side>>>(b.device2, N, 4);
        RUN(cudaEventRecord(join, side));
        RUN(cudaLaunchHostFunc(s, host_func, (void *)1000));
        RUN(cudaStreamWaitEvent(s, join, 0));
        RUN(cudaMemcpyAsync(b.pinned, b.device, N * 4, cudaMemcpyDeviceToHost, s));
        RUN(cudaStreamIsCapturing(s, &status));
        RUN(cudaStreamEndCapture(s, &graph));
        RUN(cudaGraphInstantiate(&exec, graph, 0));
        RUN(cudaGraphUpload(exec, s));
        for (int i = 0; i < 3; i++) RUN(cudaGraphLaunch(exec, s));
        RUN(cudaStreamSynchronize(s));
        say_sum("replayed", b.pinned, N);
        RUN(cudaGraphExecDestroy(exec));
        RUN(cudaGraphDestroy(graph));
    }
    say("  called " + std::to_string(called));
    RUN(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    RUN(cudaStreamSynchronize(s)); // not allowed while capturing
    RUN(cudaStreamEndCapture(s, &graph));
    RUN(cudaEventDestroy(fork));
    RUN(cudaEventDestroy(join));
    RUN(cudaStreamDestroy(s));
    RUN(cudaStreamDestroy(side));
}

// Objects and kernels that are met for the first time while a stream captures: nothing may ask the driver what a capture forbids.
static void first_met_in_a_capture(Buffers &b) {
    cudaStream_t s, inner = nullptr;
    cudaEvent_t event = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamCaptureStatus status;
    say("first met in a capture");
    RUN(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -2));
    RUN(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    late<<<N / 256, 256, 0, s>>>(b.device, N);
    RUN(cudaGetLastError());
    RUN(cudaStreamCreateWithPriority(&inner, cudaStreamNonBlocking, -1));
    RUN(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    RUN(cudaEventRecord(event, s));
    RUN(cudaStreamWaitEvent(inner, event, 0));
    launch(inner, b.device2, 3);
    RUN(cudaEventRecord(event, inner));
    RUN(cudaStreamWaitEvent(s, event, 0));
    std::thread other([&] {
        std::string text;
        lines = &text;
        launch(cudaStreamPerThread, b.device2, 1); // its per-thread stream and its first call
        launch(0, b.device2, 1);
        RUN(cudaLaunchHostFunc(cudaStreamPerThread, host_func, (void *)5));
        RUN(cudaStreamIsCapturing(s, &status));
        lines = nullptr;
        fputs(text.c_str(), stdout);
    });
    other.join();
    RUN(cudaStreamIsCapturing(s, &status));
    say("  status " + std::to_string((int)status));
    RUN(cudaStreamEndCapture(s, &graph));
    if (graph && RUN(cudaGraphInstantiate(&exec, graph, 0)) == cudaSuccess) {
        RUN(cudaGraphLaunch(exec, s));
        RUN(cudaStreamSynchronize(s));
        RUN(cudaGraphExecDestroy(exec));
    }
    if (graph) RUN(cudaGraphDestroy(graph));
    RUN(cudaDeviceSynchronize());
    RUN(cudaEventDestroy(event));
    RUN(cudaStreamDestroy(inner));
    RUN(cudaStreamDestroy(s));
}

static void allocation_in_stream_order() {
    cudaStream_t s;
    uint32_t *p = nullptr;
    std::vector<uint32_t> host(N);
    say("stream-ordered allocation");
    RUN(cudaStreamCreate(&s));
    for (int i = 0; i < 3; i++) {
        RUN(cudaMallocAsync(&p, N * 4, s));
        RUN(cudaMemsetAsync(p, i, N * 4, s));
        launch(s, p, i);
        RUN(cudaMemcpyAsync(host.data(), p, N * 4, cudaMemcpyDeviceToHost, s));
        RUN(cudaFreeAsync(p, s));
        RUN(cudaStreamSynchronize(s));
        say_sum("allocated", host.data(), N);
    }
    RUN(cudaMallocAsync(&p, (size_t)1 << 50, s));
    RUN(cudaStreamDestroy(s));
}

static void cooperative(Buffers &b) {
    uint32_t *p = b.device;
    int n = 1024;
    void *args[] = {&p, &n};
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attr[1] = {};
    say("launches by structure");
    RUN(cudaMemset(p, 1, N * 4));
    RUN(cudaLaunchCooperativeKernel((void *)grid_sync, dim3(4), dim3(256), args, 0, 0));
    config.gridDim = dim3(4);
    config.blockDim = dim3(256);
    attr[0].id = cudaLaunchAttributeCooperative;
    attr[0].val.cooperative = 1;
    config.attrs = attr;
    config.numAttrs = 1;
    RUN(cudaLaunchKernelEx(&config, grid_sync, p, n));
    RUN(cudaMemcpy(b.pageable.data(), p, N * 4, cudaMemcpyDeviceToHost));
    say_sum("cooperative", b.pageable.data(), n);
}

static void refused(Buffers &b) {
    cudaStream_t s;
    say("refused");
    add<<<1, 5000>>>(b.device, N, 1);
    RUN(cudaGetLastError());
    RUN(cudaStreamCreateWithFlags(&s, 0xff00));
    RUN(cudaEventRecord(nullptr, 0));
    RUN(cudaEventSynchronize(nullptr));
    RUN(cudaStreamWaitEvent(0, nullptr, 0));
    RUN(cudaMemcpy(b.device, nullptr, 4, cudaMemcpyHostToDevice));
    RUN(cudaMemcpy2D(b.device, 16, b.pageable.data(), 16, 32, 2, cudaMemcpyHostToDevice));
    RUN(cudaMemsetAsync(nullptr, 1, 4, 0));
    RUN(cudaSetDevice(4711));
}

static void worker(int number, std::string *text) {
    lines = text;
    cudaStream_t s;
    Buffers b;
    say(" thread " + std::to_string(number));
    RUN(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -number));
    RUN(cudaMemcpyAsync(b.device, b.pinned, N * 4, cudaMemcpyHostToDevice, s));
    for (int i = 0; i < 300; i++) add<<<N / 256, 256, 0, s>>>(b.device, N, number);
    RUN(cudaMemcpyAsync(b.pinned, b.device, N * 4, cudaMemcpyDeviceToHost, s));
    RUN(cudaStreamSynchronize(s));
    say_sum("stream", b.pinned, N);
    // The default stream of this build: legacy, or this thread's own.
    RUN(cudaMemcpy(b.device2, b.pageable.data(), N * 4, cudaMemcpyHostToDevice));
    for (int i = 0; i < 100; i++) scale<<<N / 256, 256>>>(b.device2, N, 3);
    RUN(cudaMemcpy(b.pageable.data(), b.device2, N * 4, cudaMemcpyDeviceToHost));
    say_sum("default", b.pageable.data(), N);
    RUN(cudaStreamDestroy(s));
}

static void threads() {
    std::vector<std::thread> all;
    std::string text[6];
    say("threads");
    for (int i = 0; i < 6; i++) all.emplace_back(worker, i, &text[i]);
    for (auto &t : all) t.join();
    for (auto &t : text) fputs(t.c_str(), stdout);
}

int main() {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    {
        Buffers b;
        default_stream(b);
        streams_and_events(b);
        host_functions(b);
        graphs(b);
        first_met_in_a_capture(b);
        allocation_in_stream_order();
        cooperative(b);
        refused(b);
    }
    threads();
    RUN(cudaDeviceSynchronize());
    return 0;
}
