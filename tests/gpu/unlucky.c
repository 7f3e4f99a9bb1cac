/*
 * unlucky context|reset: what programs do that profilers do not like. Prints what of it can be
 * counted on, as JSON; see known/known.h for the kernels.
 *
 *   context  a context of its own is destroyed while kernels are at work and others wait; the
 * primary one goes on reset    the primary context is reset in the middle, and the program goes on
 * in the new one
 */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        if (rc_ != CUDA_SUCCESS) fprintf(stderr, "unlucky: %s gave %d\n", #call, (int)rc_), \
        exit(1); \
    } while (0)

enum { KERNELS = 20, US = 200 };

/* KERNELS kernels with grids from `grid` on, on a stream of the current context. */
static CUstream work(unsigned grid, unsigned us)
{
    CUmodule module;
    CUfunction kernel;
    CUstream stream;
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&kernel, module, "sleep_a"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < KERNELS; i++) {
        void *arguments[] = {&us};
        MUST(cuLaunchKernel(kernel, grid + i, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
    }
    return stream;
}

static void done(const char *part, unsigned grid, int complete)
{
    printf("{\"part\":\"%s\",\"first\":%u,\"kernels\":%d,\"complete\":%s}\n", part, grid, KERNELS,
        complete ? "true" : "false");
    fflush(stdout);
}

static void destroyed_context(CUdevice device)
{
    CUcontext context;
    MUST(cuCtxCreate(&context, NULL, 0, device));
    MUST(cuStreamSynchronize(work(101, US)));
    done("own context, waited for", 101, 1);
    work(201, 5 * US); /* 20 ms */
    printf("{\"destroyed\":%d}\n", (int)cuCtxDestroy(context));
    done("own context, destroyed under it", 201, 0);
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext primary;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    MUST(cuCtxSetCurrent(primary));
    MUST(cuStreamSynchronize(work(1, US)));
    done("before", 1, 1);
    if (argc > 1 && !strcmp(argv[1], "reset")) {
        MUST(cuDevicePrimaryCtxReset(device));
        MUST(cuDevicePrimaryCtxRetain(&primary, device));
    } else {
        destroyed_context(device);
    }
    MUST(cuCtxSetCurrent(primary));
    MUST(cuStreamSynchronize(work(301, US)));
    done("after", 301, 1);
    return 0;
}
