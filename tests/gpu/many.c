/*
 * many KERNELS: that many launches of an empty kernel, a thousand at a time with a wait between, so
 * that the launch queue never fills. Prints how long it took. The waits are not counted: kernels
 * launched is the number given.
 */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";

#define MUST(call) \
    do { \
        CUresult rc_ = (call); \
        if (rc_ != CUDA_SUCCESS) fprintf(stderr, "many: %s gave %d\n", #call, (int)rc_), exit(1); \
    } while (0)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    enum { STREAMS = 4, BATCH = 1000 };
    long count = argc > 1 ? atol(argv[1]) : 1000000, waits = 0;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUstream streams[STREAMS];
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&kernel, module, "nothing"));
    for (int s = 0; s < STREAMS; s++) MUST(cuStreamCreate(&streams[s], CU_STREAM_NON_BLOCKING));
    double begin = now();
    for (long i = 0; i < count; i++) {
        MUST(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, streams[i % STREAMS], NULL, NULL));
        if (i % BATCH < BATCH - 1) continue;
        MUST(cuCtxSynchronize());
        waits++;
    }
    MUST(cuCtxSynchronize());
    double seconds = now() - begin;
    printf("{\"kernels\":%ld,\"waits\":%ld,\"seconds\":%.3f,\"ns_per_kernel\":%.1f}\n", count,
        waits + 1, seconds, seconds / (double)(count ? count : 1) * 1e9);
    return 0;
}
