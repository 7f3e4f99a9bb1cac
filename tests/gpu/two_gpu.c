/*
 * two_gpu: kernels on two devices, and copies between them both ways, first without and then with
 * peer access. Prints what it did as JSON lines: a kernel is known by its device and grid, a copy
 * by its bytes.
 */
#include <cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry sleep_a(.param .u32 us)\n{\n"
    ".reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %t<4>;\n"
    "ld.param.u32 %r, [us];\nmul.wide.u32 %t0, %r, 1000;\nmov.u64 %t1, %globaltimer;\n"
    "again:\nmov.u64 %t2, %globaltimer;\nsub.u64 %t3, %t2, %t1;\nsetp.lt.u64 %p, %t3, %t0;\n@%p "
    "bra again;\nret;\n}\n";

#define MUST(call) \
    do { \
        CUresult rc_ = (call); \
        if (rc_ != CUDA_SUCCESS) fprintf(stderr, "two_gpu: %s gave %d\n", #call, (int)rc_), \
        exit(1); \
    } while (0)

enum { DEVICES = 2, ROOM = 16 << 20, COPY = 8 << 20 };

static struct {
    CUcontext context;
    CUfunction kernel;
    CUstream stream;
    CUdeviceptr memory;
} gpus[DEVICES];

static void gpu_begin(int d)
{
    CUdevice device;
    CUmodule module;
    MUST(cuDeviceGet(&device, d));
    MUST(cuDevicePrimaryCtxRetain(&gpus[d].context, device));
    MUST(cuCtxSetCurrent(gpus[d].context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&gpus[d].kernel, module, "sleep_a"));
    MUST(cuStreamCreate(&gpus[d].stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&gpus[d].memory, ROOM));
    printf("{\"what\":\"stream\",\"device\":%d,\"handle\":\"%p\"}\n", d, (void *)gpus[d].stream);
}

static void kernel(int d, unsigned grid, unsigned us)
{
    void *arguments[] = {&us};
    MUST(cuCtxSetCurrent(gpus[d].context));
    MUST(cuLaunchKernel(gpus[d].kernel, grid, 1, 1, 32, 1, 1, 0, gpus[d].stream, arguments, NULL));
    printf("{\"what\":\"kernel\",\"device\":%d,\"grid\":%u,\"us\":%u}\n", d, grid, us);
}

/* On the stream of the source's device, or of the target's. */
static void copy(int from, int to, int on, size_t bytes, int peer)
{
    MUST(cuCtxSetCurrent(gpus[on].context));
    MUST(cuMemcpyPeerAsync(gpus[to].memory, gpus[to].context, gpus[from].memory, gpus[from].context,
        bytes, gpus[on].stream));
    MUST(cuStreamSynchronize(gpus[on].stream));
    printf("{\"what\":\"copy\",\"from\":%d,\"to\":%d,\"on\":%d,\"bytes\":%zu,\"peer access\":%s}\n",
        from, to, on, bytes, peer ? "true" : "false");
}

int main(void)
{
    int can = 0;
    MUST(cuInit(0));
    for (int d = 0; d < DEVICES; d++) gpu_begin(d);
    for (int d = 0; d < DEVICES; d++) kernel(d, 1 + (unsigned)d, 300);
    copy(0, 1, 0, COPY + 256, 0);
    copy(1, 0, 1, COPY + 512, 0);
    copy(0, 1, 1, COPY + 768, 0);
    MUST(cuDeviceCanAccessPeer(&can, 0, 1));
    for (int d = 0; can && d < DEVICES; d++) {
        MUST(cuCtxSetCurrent(gpus[d].context));
        MUST(cuCtxEnablePeerAccess(gpus[1 - d].context, 0));
    }
    if (can) {
        copy(0, 1, 0, COPY + 1024, 1);
        copy(1, 0, 1, COPY + 1280, 1);
        copy(0, 1, 1, COPY + 1536, 1);
    }
    for (int d = 0; d < DEVICES; d++) kernel(d, 11 + (unsigned)d, 300);
    for (int d = 0; d < DEVICES; d++) {
        MUST(cuCtxSetCurrent(gpus[d].context));
        MUST(cuCtxSynchronize());
    }
    return 0;
}
