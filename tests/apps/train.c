/*
 * train STEPS: one rank of a training, in small. Each step, an NVTX range: the host waits for
 * nothing and computes a little, then a copy, kernels with an all-gather between them and an
 * all-reduce behind, by their names, an optimizer, and the host waits for that. tests/fleet.py
 * makes the ranks of a fleet of its trace.
 */
#include "tests/apps/app.h"

#include <nvtx3/nvToolsExt.h>

enum { KERNELS = 4, BYTES = 1 << 16 };

/* On another stream, and the first one waits for it. */
static void beside(
    CUfunction kernel, CUstream first, CUstream second, CUevent before, CUevent after)
{
    OK(cuEventRecord, before, first);
    OK(cuStreamWaitEvent, second, before, 0);
    LAUNCH(kernel, second);
    OK(cuEventRecord, after, second);
    OK(cuStreamWaitEvent, first, after, 0);
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 10;
    static const char *const names[KERNELS] = {
        "gemm_0_sleep_us_50", "gemm_1_sleep_us_50", "gemm_2_sleep_us_50", "gemm_3_sleep_us_50"};
    CUfunction gemm[KERNELS];
    CUstream copies, compute, gathers, reduces;
    CUevent copied, computed, gathered, reduced;
    CUdeviceptr device;
    void *host;
    app_start(0);
    for (int i = 0; i < KERNELS; i++) gemm[i] = app_kernel(names[i]);
    CUfunction all_gather = app_kernel("ncclDevKernel_AllGather_RING_LL_sleep_us_50");
    CUfunction all_reduce = app_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL_sleep_us_50"),
               adam = app_kernel("adam_sleep_us_50");
    OK(cuStreamCreate, &copies, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &compute, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &gathers, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &reduces, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &copied, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &computed, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &gathered, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &reduced, CU_EVENT_DISABLE_TIMING);
    OK(cuMemAlloc_v2, &device, BYTES);
    OK(cuMemAllocHost_v2, &host, BYTES);
    for (int step = 0; step < steps; step++) {
        nvtxRangePushA("step");
        OK(cuStreamSynchronize, copies);
        for (volatile int i = 0; i < 20000; i++) continue;
        OK(cuMemcpyHtoDAsync_v2, device, host, BYTES, copies);
        OK(cuEventRecord, copied, copies);
        OK(cuStreamWaitEvent, compute, copied, 0);
        for (int i = 0; i < KERNELS / 2; i++) LAUNCH(gemm[i], compute);
        beside(all_gather, compute, gathers, computed, gathered);
        for (int i = KERNELS / 2; i < KERNELS; i++) LAUNCH(gemm[i], compute);
        beside(all_reduce, compute, reduces, computed, reduced);
        LAUNCH(adam, compute);
        OK(cuStreamSynchronize, compute);
        nvtxRangePop();
    }
    return 0;
}
