// A library with the shared cudart that others have and kernels of its own, beside one with its own copy of cudart and its own kernels (own_cudart.cu). What each
// says is right only where its calls went to its own copy. two_cudart(library) prints results, and which file each's runtime is. For a program that has no
// cudart and opens both on their own, as Python does: one that is linked to cudart would give its copy to all.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "own_cudart.h"

__global__ void square(unsigned *numbers, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) numbers[i] *= numbers[i];
}

static void *library;
template <class F> static F *function(const char *name)
{
    F *found = reinterpret_cast<F *>(dlsym(library, name));
    if (!found) fprintf(stderr, "two_cudart: %s\n", dlerror()), exit(2);
    return found;
}

static void sums(unsigned seed)
{
    enum { N = 1000 };
    unsigned host[N], *numbers, sum = 0;
    cudaStream_t stream;
    cudaEvent_t filled;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaEventCreate(&filled));
    MUST(cudaMalloc(&numbers, sizeof host));
    for (int round = 0; round < 10; round++) {
        MUST(function<own_fill>("own_cudart_fill")(numbers, N, seed, stream)); // its kernel, our stream
        MUST(cudaEventRecord(filled, stream));
        square<<<4, 64, 0, stream>>>(numbers, N);
        MUST(function<own_sum>("own_cudart_sum")(numbers, N, stream, &sum)); // on a stream of its own, after ours
        MUST(cudaMemcpyAsync(host, numbers, sizeof host, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
        for (unsigned i = 0; i < N; i++) sum -= host[i];
        if (sum) printf("wrong by %u\n", sum);
    }
    MUST(cudaFree(numbers));
    MUST(cudaEventDestroy(filled));
    MUST(cudaStreamDestroy(stream));
    printf("%u: done\n", seed);
}

static const char *file_of(void *address)
{
    Dl_info info;
    const char *slash = dladdr(address, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : nullptr;
    return slash ? slash + 1 : "?";
}

extern "C" int two_cudart(const char *path)
{
    if (!(library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) return fprintf(stderr, "two_cudart: %s\n", dlerror()), 2;
    printf("runtimes: %s, %s\n", file_of(reinterpret_cast<void *>(cudaGetLastError)), file_of(function<own_runtime>("own_cudart_runtime")()));
    sums(1);
    std::thread other(sums, 2);
    other.join();

    // An error stands in the copy that found it, and in no other.
    cudaStream_t none;
    int ours = cudaStreamCreateWithFlags(&none, 999), before = function<own_error>("own_cudart_error")(0);
    printf("ours %d, theirs %d, ours again %d\n", ours, before, cudaGetLastError());
    before = function<own_error>("own_cudart_error")(1);
    printf("theirs %d, ours %d, theirs again %d\n", before, cudaGetLastError(), function<own_error>("own_cudart_error")(0));

    // A kernel is known to the copy in which it was registered.
    cudaStream_t stream = nullptr;
    void *unknown[] = {nullptr};
    printf("their kernel by our runtime: %d\n", cudaLaunchKernel(function<own_kernel>("own_cudart_kernel")(), 1, 1, unknown, 0, stream));
    printf("and then %d\n", cudaGetLastError());
    return fflush(stdout);
}
