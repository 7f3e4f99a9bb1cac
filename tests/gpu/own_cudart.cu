// A library with kernels of its own, and a copy of cudart of its own: under another name, as Python's packages bring one. For two_cudart.cu.
#include "own_cudart.h"

#define OWN extern "C" __attribute__((visibility("default")))

static __global__ void fill(unsigned *numbers, unsigned n, unsigned seed)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) numbers[i] = seed + i;
}

static __global__ void add_up(const unsigned *numbers, unsigned n, unsigned *sum)
{
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(sum, numbers[i]);
}

OWN int own_cudart_fill(unsigned *numbers, unsigned n, unsigned seed, cudaStream_t stream)
{
    fill<<<2, 128, 0, stream>>>(numbers, n, seed);
    return cudaGetLastError();
}

OWN int own_cudart_sum(const unsigned *numbers, unsigned n, cudaStream_t after, unsigned *sum)
{
    unsigned *result;
    cudaStream_t stream;
    cudaEvent_t ready;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    MUST(cudaMalloc(&result, sizeof *result));
    MUST(cudaEventRecord(ready, after));
    MUST(cudaStreamWaitEvent(stream, ready, 0));
    MUST(cudaMemsetAsync(result, 0, sizeof *result, stream));
    add_up<<<1, 128, 0, stream>>>(numbers, n, result);
    MUST(cudaGetLastError());
    MUST(cudaMemcpyAsync(sum, result, sizeof *sum, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(result));
    MUST(cudaEventDestroy(ready));
    return cudaStreamDestroy(stream);
}

OWN int own_cudart_error(int make)
{
    cudaStream_t none;
    return make ? cudaStreamCreateWithFlags(&none, 999) : cudaGetLastError();
}

OWN void *own_cudart_runtime() { return reinterpret_cast<void *>(cudaGetLastError); }
OWN const void *own_cudart_kernel() { return reinterpret_cast<const void *>(fill); }
