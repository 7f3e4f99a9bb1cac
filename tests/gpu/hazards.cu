// A program with three orders that only the legacy default stream gives, for CUSTREAM_DEFAULT_STREAM=audit, or, with `none`, with the same work in the
// same order by events.
//
//     hazards [none]
//
// Prints of each order, as JSON lines: the kernel that is waited for, the operation that waits, the function that calls it, and how long the kernel took
// by events, which is how long the operation waited but for the time between the two calls.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <cuda_runtime.h>

static __device__ void spin(unsigned us) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - start < us * 1000ull);
}

// Each writes what the operation behind it needs. The simulated GPU sleeps, going by the names.
extern "C" __global__ void sleep_makes(unsigned us, int *p) { spin(us), *p = 1; }
extern "C" __global__ void sleep_before(unsigned us, int *p) { spin(us), *p = 2; }
extern "C" __global__ void sleep_after(unsigned us, int *p) { spin(us), *p += 3; }
extern "C" __global__ void sleep_of_one(unsigned us, int *p) { spin(us), *p = 4; }

#define MUST(call)                                                                                                                                   \
    do {                                                                                                                                             \
        cudaError_t rc_ = (call);                                                                                                                    \
        if (rc_ != cudaSuccess) fprintf(stderr, "hazards: %s gave %d\n", #call, (int)rc_), exit(1);                                                  \
    } while (0)

enum { BYTES = 4096, FIRST_US = 20000, SECOND_US = 30000, THIRD_US = 40000 };

static bool by_events; // the orders are the program's own
static cudaStream_t blocking;
static int *made, *chained, *shared, *pinned;
static cudaEvent_t begin, end;

// By the function, not by <<<>>>: the call is then made here, and not in a function that the compiler makes for the kernel.
static void launch(const void *kernel, unsigned us, int *p, cudaStream_t stream) __attribute__((always_inline));
static inline void launch(const void *kernel, unsigned us, int *p, cudaStream_t stream) {
    void *arguments[] = {&us, &p};
    MUST(cudaLaunchKernel(kernel, dim3(1), dim3(1), arguments, 0, stream));
}

static void timed(const void *kernel, unsigned us, int *p, cudaStream_t stream) __attribute__((always_inline));
static inline void timed(const void *kernel, unsigned us, int *p, cudaStream_t stream) {
    MUST(cudaEventRecord(begin, stream));
    launch(kernel, us, p, stream);
    MUST(cudaEventRecord(end, stream));
}

static void say(const char *first, const char *second, const char *site) {
    float ms = 0;
    MUST(cudaDeviceSynchronize());
    MUST(cudaEventElapsedTime(&ms, begin, end));
    printf("{\"what\":\"order\",\"first\":\"%s\",\"second\":\"%s\",\"site\":\"%s\",\"ms\":%.4f}\n", first, second, site, ms);
}

extern "C" {
// The functions that the audit is to name; visible to the loader for that.
#define PLACE __attribute__((noinline, visibility("default"))) void

// A copy on the default stream of what a blocking stream makes.
PLACE copies_what_is_being_made() {
    timed((const void *)sleep_makes, FIRST_US, made, blocking);
    if (by_events) MUST(cudaStreamWaitEvent(0, end, 0));
    MUST(cudaMemcpy(pinned, made, BYTES, cudaMemcpyDeviceToHost));
}

// A blocking stream goes on with what the default stream makes.
PLACE goes_on_elsewhere() {
    timed((const void *)sleep_before, SECOND_US, chained, 0);
    if (by_events) MUST(cudaStreamWaitEvent(blocking, end, 0));
    launch((const void *)sleep_after, 1000, chained, blocking);
}

// Another thread's default stream sets what this one's makes.
PLACE sets_for_another() {
    if (by_events) MUST(cudaStreamWaitEvent(0, end, 0));
    MUST(cudaMemsetAsync(shared, 7, BYTES, 0));
}
PLACE makes_for_another() { timed((const void *)sleep_of_one, THIRD_US, shared, 0); }
}

// Kernels are loaded at their first launch: before anything is measured.
static void warm_up() {
    const void *kernels[] = {(const void *)sleep_makes, (const void *)sleep_before, (const void *)sleep_after, (const void *)sleep_of_one};
    for (auto kernel : kernels) {
        launch(kernel, 1, made, 0);
        MUST(cudaDeviceSynchronize());
    }
    MUST(cudaMemset(shared, 0, BYTES));
    MUST(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
    int seen[3] = {0, 0, 0};
    by_events = argc > 1 && !strcmp(argv[1], "none");
    MUST(cudaMalloc(&made, BYTES));
    MUST(cudaMalloc(&chained, BYTES));
    MUST(cudaMalloc(&shared, BYTES));
    MUST(cudaMallocHost(&pinned, BYTES));
    MUST(cudaStreamCreate(&blocking));
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&end));
    warm_up();

    copies_what_is_being_made();
    say("sleep_makes", "cuMemcpyDtoH", "copies_what_is_being_made");
    seen[0] = *pinned;

    goes_on_elsewhere();
    say("sleep_before", "cuLaunchKernel", "goes_on_elsewhere");
    MUST(cudaMemcpy(pinned, chained, BYTES, cudaMemcpyDeviceToHost));
    seen[1] = *pinned;

    std::atomic<int> step{0};
    std::thread other([&step] {
        cudaEvent_t event;
        MUST(cudaSetDevice(0));
        MUST(cudaEventCreate(&event)); // a thread's first call takes long
        MUST(cudaEventDestroy(event));
        for (step = 1; step < 2;) continue;
        sets_for_another();
    });
    while (step < 1) std::this_thread::yield();
    makes_for_another();
    step = 2;
    other.join();
    say("sleep_of_one", "cuMemsetD8Async", "sets_for_another");
    MUST(cudaMemcpy(pinned, shared, BYTES, cudaMemcpyDeviceToHost));
    seen[2] = *pinned;

    printf("{\"what\":\"result\",\"seen\":[%d,%d,%d]}\n", seen[0], seen[1], seen[2]);
    MUST(cudaStreamDestroy(blocking));
    MUST(cudaEventDestroy(begin));
    MUST(cudaEventDestroy(end));
    return 0;
}
