/*
 * Calls that reach the driver by way of a CUDA runtime: one in a library of its own, one that seems
 * to be linked into the program (nvcc's default, whose functions have such names), and what nvcc
 * makes of a launch. Each pair of operations is called from functions by whose names a case knows
 * them.
 */
#include "tests/apps/app.h"

#define PLACE __attribute__((noinline)) void

typedef int memset_fn(CUdeviceptr, int, size_t, CUstream);

static memset_fn *shared_set;
static CUfunction kernel;
static CUdeviceptr memory;
static CUstream stream;

PLACE shared_on_stream(void)
{
    if (shared_set(memory, 1, 64, stream)) exit(9);
}
PLACE shared_on_default(void)
{
    if (shared_set(memory, 2, 64, NULL)) exit(9);
}

/* Without a runtime, from a function whose name is made as the names of the runtime's are. */
PLACE likeThe_on_stream(void)
{
    OK(cuMemsetD8Async, memory, 1, 64, stream);
    __asm__ volatile("");
}
PLACE likeThe_on_default(void)
{
    OK(cuMemsetD8Async, memory, 2, 64, NULL);
    __asm__ volatile("");
}

/* A runtime inside the program. */
PLACE libcudart_static_00ff(CUdeviceptr at, CUstream on)
{
    OK(cuMemsetD8Async, at, 1, 64, on);
    __asm__ volatile(""); /* no tail calls */
}
PLACE cudaMemsetAsync(CUdeviceptr at, CUstream on)
{
    libcudart_static_00ff(at, on);
    __asm__ volatile("");
}
PLACE linked_on_stream(void)
{
    cudaMemsetAsync(memory, stream);
    __asm__ volatile("");
}
PLACE linked_on_default(void)
{
    cudaMemsetAsync(memory, NULL);
    __asm__ volatile("");
}

/* kernel<<<1, 1, 0, on>>>(), as it is compiled: a function that bears the kernel's name, a stub,
 * the runtime. */
PLACE libcudart_static_11ee(CUstream on)
{
    LAUNCH(kernel, on);
    __asm__ volatile("");
}
PLACE _Z21__device_stub__Z4fakePi(CUstream on)
{
    libcudart_static_11ee(on);
    __asm__ volatile("");
}
PLACE _Z4fakePi(CUstream on)
{
    _Z21__device_stub__Z4fakePi(on);
    __asm__ volatile("");
}
PLACE launch_on_stream(void)
{
    _Z4fakePi(stream);
    __asm__ volatile("");
}
PLACE launch_on_default(void)
{
    _Z21__device_stub__Z4fakePi(
        NULL); /* that function came to nothing, as it does when it is optimised */
    __asm__ volatile("");
}

int main(void)
{
    void *runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    app_start(0);
    if (!runtime || !(shared_set = (memset_fn *)dlsym(runtime, "cudaMemsetAsync"))) return 4;
    kernel = app_kernel("fake");
    OK(cuMemAlloc_v2, &memory, 4096);
    OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
    for (int i = 0; i < 2; i++) { /* a place is met for the first time, and again */
        shared_on_stream();
        shared_on_default();
        OK(cuCtxSynchronize);
        likeThe_on_stream();
        likeThe_on_default();
        OK(cuCtxSynchronize);
        linked_on_stream();
        linked_on_default();
        OK(cuCtxSynchronize);
        launch_on_stream();
        launch_on_default();
        OK(cuCtxSynchronize);
    }
    return 0;
}
