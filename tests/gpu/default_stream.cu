// Work on the default stream by a program that knows nothing of per-thread ones: a kernel that spins, copies and a memset that wait, in one thread and
// then in four at once.
//
//     default_stream [THREADS [KERNEL_US [ROUNDS]]]
//
// Prints JSON lines: of each round how long one thread took and how long all together, and whether the results were right. The kernels of the single
// thread have a grid of 1 block, those of thread n of several 2 + n. Built four ways (module.mk); see shared cudart in docs/check-gpu.md.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <pthread.h>

static constexpr int N = 1 << 16;

// The simulated GPU knows both by their names.
extern "C" __global__ void sleep_for(uint32_t us) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - start < us * 1000ull);
}

extern "C" __global__ void add(uint32_t *out, const uint32_t *a, const uint32_t *b, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = a[i] + b[i];
}

#define MUST(call)                                                                                                                                   \
    do {                                                                                                                                             \
        cudaError_t rc_ = (call);                                                                                                                    \
        if (rc_ != cudaSuccess) fprintf(stderr, "default_stream: %s gave %d\n", #call, (int)rc_), exit(1);                                           \
    } while (0)

struct Job {
    uint32_t *a, *b, *out;
    std::vector<uint32_t> up = std::vector<uint32_t>(N), down = std::vector<uint32_t>(N), set = std::vector<uint32_t>(N);
    unsigned grid;
    bool right = true;

    explicit Job(unsigned grid_) : grid(grid_) {
        MUST(cudaMalloc(&a, N * 4));
        MUST(cudaMalloc(&b, N * 4));
        MUST(cudaMalloc(&out, N * 4));
        for (int i = 0; i < N; i++) up[i] = i * 2654435761u + grid;
    }
    ~Job() {
        cudaFree(a);
        cudaFree(b);
        cudaFree(out);
    }

    // out = up + 0x07070707..., with the kernel that spins in the middle of it.
    void work(uint32_t us) {
        MUST(cudaMemset(b, 7, N * 4));
        MUST(cudaMemcpy(a, up.data(), N * 4, cudaMemcpyHostToDevice));
        sleep_for<<<grid, 32>>>(us);
        MUST(cudaGetLastError());
        add<<<N / 256, 256>>>(out, a, b, N);
        MUST(cudaGetLastError());
        MUST(cudaMemcpy(down.data(), out, N * 4, cudaMemcpyDeviceToHost));
        MUST(cudaMemset(out, 9, N * 4));
        MUST(cudaMemcpy(set.data(), out, N * 4, cudaMemcpyDeviceToHost));
    }

    void check() {
        for (int i = 0; i < N; i++) right &= down[i] == up[i] + 0x07070707u && set[i] == 0x09090909u;
    }
};

// Milliseconds from the moment when all threads begin until the last has ended.
static double together(Job **jobs, int count, uint32_t us) {
    pthread_barrier_t barrier;
    std::vector<std::thread> threads;
    pthread_barrier_init(&barrier, nullptr, count + 1);
    for (int n = 0; n < count; n++)
        threads.emplace_back([&barrier, job = jobs[n], us] {
            MUST(cudaSetDevice(0));
            job->work(1); // a thread's first calls take longer
            pthread_barrier_wait(&barrier);
            job->work(us);
        });
    pthread_barrier_wait(&barrier);
    auto begin = std::chrono::steady_clock::now();
    for (auto &thread : threads) thread.join();
    double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    pthread_barrier_destroy(&barrier);
    for (int n = 0; n < count; n++) jobs[n]->check();
    return ms;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 4, rounds = argc > 3 ? atoi(argv[3]) : 3;
    uint32_t us = argc > 2 ? atoi(argv[2]) : 50000;
    {
        Job single(1), *one[] = {&single};
        std::vector<Job *> all;
        for (int n = 0; n < count; n++) all.push_back(new Job(2 + n));
        single.work(1); // kernels are loaded
        for (int round = 0; round < rounds; round++) {
            double alone = together(one, 1, us), ms = together(all.data(), count, us);
            printf("{\"what\":\"round\",\"threads\":%d,\"kernel_ms\":%.3f,\"one_ms\":%.3f,\"all_ms\":%.3f}\n", count, us / 1000.0, alone, ms);
        }
        bool right = single.right;
        for (auto job : all) {
            right &= job->right;
            delete job;
        }
        printf("{\"what\":\"result\",\"right\":%s}\n", right ? "true" : "false");
    }
    return 0;
}
