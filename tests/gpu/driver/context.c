/* Contexts of every kind, libraries, look-ups by name, IPC handles, unusual arguments, the 32-bit
 * calls of CUDA 3. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { N = 1024 };

/* A little work in the current context, so that each has streams and memory of its own. */
static void use_current(const char *what)
{
    CUmodule mod = NULL;
    CUfunction add = NULL;
    CUstream s = NULL;
    CUdeviceptr p = 0;
    fprintf(out, " %s\n", what);
    if (RUN(cuModuleLoadData, &mod, kernels_ptx) || RUN(cuModuleGetFunction, &add, mod, "raise"))
        return;
    RUN(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    if (RUN(cuMemAlloc_v2, &p, N * 4)) return;
    RUN(cuMemsetD32Async, p, 8, N, s);
    RUN(cuLaunchKernel, add, N / 256, 1, 1, 256, 1, 1, 0, s, ADD_ARGS(p, N, 3), NULL);
    RUN(cuStreamSynchronize, s);
    RUN(cuLaunchKernel, add, N / 256, 1, 1, 256, 1, 1, 0, NULL, ADD_ARGS(p, N, 3), NULL);
    print_sum("used", p, N);
    RUN(cuCtxSynchronize);
    RUN(cuStreamDestroy_v2, s);
    RUN(cuMemFree_v2, p);
    RUN(cuModuleUnload, mod);
}

static void library(void)
{
    CUlibrary lib = NULL;
    CUkernel kernel = NULL;
    CUdeviceptr p = 0;
    fprintf(out, " library\n");
    if (FOUND(cuLibraryLoadData, &lib, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0)) return;
    RUN(cuMemAlloc_v2, &p, N * 4);
    RUN(cuMemsetD32_v2, p, 8, N);
    /* A CUkernel may stand where a CUfunction is asked for. */
    if (FOUND(cuLibraryGetKernel, &kernel, lib, "raise") == CUDA_SUCCESS)
        RUN(cuLaunchKernel, (CUfunction)kernel, N / 256, 1, 1, 256, 1, 1, 0, NULL,
            ADD_ARGS(p, N, 3), NULL);
    print_sum("library", p, N);
    RUN(cuMemFree_v2, p);
    FOUND(cuLibraryUnload, lib);
}

void section_context(struct gpu *g)
{
    CUcontext ctx[4] = {0}, popped = NULL, attached = NULL;
    CUevent e;
    CUmodule gone = NULL;
    CUfunction f = NULL;
    use_current("primary");
    RUN(cuModuleGetFunction, &f, g->mod, "no_such_kernel");
    RUN(cuModuleLoadData, &gone, "this is no PTX");
    library();

    RUN(cuCtxCreate_v2, &ctx[0], 0, g->dev);
    use_current("second");
    RUN(cuCtxPushCurrent_v2, g->ctx);
    RUN(cuCtxPopCurrent_v2, &popped);
    fprintf(out, "  popped %s\n", popped == g->ctx ? "the primary" : "another");
    FOUND(cuCtxAttach, &attached, 0);
    if (attached) FOUND(cuCtxDetach, attached);
    RUN(cuCtxCreate_v3, &ctx[1], NULL, 0, CU_CTX_SCHED_YIELD, g->dev);
    use_current("third");
    RUN(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
    FOUND(cuCtxRecordEvent, ctx[1], e);
    FOUND(cuCtxWaitEvent, ctx[1], e);
    FOUND(cuCtxSynchronize_v2, ctx[1]);
    FOUND(cuCtxSynchronize_v2, ctx[0]);
    RUN(cuEventDestroy_v2, e);
    FOUND(cuCtxCreate_v4, &ctx[2], NULL, 0, g->dev);
    if (ctx[2]) use_current("fourth");
    RUN(cuCtxCreate_v2, &ctx[3], 0, 4711); /* no such device */
    RUN(cuCtxSetCurrent, NULL); /* takes the top of the thread's stack of contexts away */
    RUN(cuStreamSynchronize, NULL);
    if (ctx[2]) RUN(cuCtxDestroy_v2, ctx[2]);
    RUN(cuCtxDestroy_v2, ctx[1]);
    RUN(cuCtxPushCurrent, ctx[0]); /* the first versions of push, pop and destroy */
    RUN(cuCtxPopCurrent, &popped);
    RUN(cuCtxDestroy, ctx[0]);
    RUN(cuCtxSetCurrent, g->ctx);
    RUN(cuCtxPopCurrent_v2, &popped);
    RUN(cuCtxPopCurrent_v2, &popped);
    RUN(cuCtxPopCurrent_v2, &popped); /* by now there is none left */
    RUN(cuStreamSynchronize, NULL);
    RUN(cuStreamCreate, &(CUstream){NULL}, 0);
    RUN(cuCtxSynchronize);
    RUN(cuCtxSetCurrent, g->ctx);
    fprintf(out, " reset\n");
    RUN(cuDevicePrimaryCtxReset_v2, g->dev);
    RUN(cuCtxSetCurrent, NULL);
    RUN(cuDevicePrimaryCtxRelease, g->dev);
    RUN(cuDevicePrimaryCtxReset, g->dev);
    if (RUN(cuDevicePrimaryCtxRetain, &g->ctx, g->dev) || RUN(cuCtxSetCurrent, g->ctx)) return;
    if (load_kernels(g)) return;
    use_current("after the reset");
}

void section_green(struct gpu *g)
{
    CUdevResource all, part[1], rest;
    CUdevResourceDesc desc = NULL;
    CUgreenCtx green = NULL, of = NULL;
    CUcontext ctx = NULL;
    CUstream s = NULL;
    CUevent e;
    unsigned groups = 1;
    memset(&all, 0, sizeof all);
    if (FOUND(cuDeviceGetDevResource, g->dev, &all, CU_DEV_RESOURCE_TYPE_SM)) return;
    if (FOUND(cuDevSmResourceSplitByCount, part, &groups, &all, &rest, 0, 16)) return;
    fprintf(out, "  groups %u\n", groups);
    if (FOUND(cuDevResourceGenerateDesc, &desc, part, 1)) return;
    FOUND(cuGreenCtxCreate, &green, desc, g->dev, 0); /* the flag is required */
    if (FOUND(cuGreenCtxCreate, &green, desc, g->dev, CU_GREEN_CTX_DEFAULT_STREAM)) return;
    FOUND(cuCtxFromGreenCtx, &ctx, green);
    RUN(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
    FOUND(cuGreenCtxStreamCreate, &s, green, CU_STREAM_NON_BLOCKING, -2);
    if (s) {
        int priority = 99;
        CUdeviceptr p = 0;
        FOUND(cuStreamGetGreenCtx, s, &of);
        RUN(cuStreamGetPriority, s, &priority);
        fprintf(out, "  green %s priority %d\n", of == green ? "same" : "other", priority);
        RUN(cuMemAlloc_v2, &p, N * 4);
        RUN(cuMemsetD32_v2, p, 1, N);
        RUN(cuCtxSynchronize);
        LAUNCH_ADD(g, p, N, 2, s);
        FOUND(cuGreenCtxRecordEvent, green, e);
        FOUND(cuGreenCtxWaitEvent, green, e);
        RUN(cuStreamSynchronize, s);
        print_sum("green", p, N);
        RUN(cuMemFree_v2, p);
        RUN(cuStreamDestroy_v2, s);
    }
    FOUND(
        cuGreenCtxStreamCreate, &s, green, CU_STREAM_DEFAULT, 0); /* a blocking stream is refused */
    if (ctx) {
        RUN(cuCtxPushCurrent_v2, ctx);
        use_current("green context");
        RUN(cuCtxPopCurrent_v2, &ctx);
    }
    RUN(cuEventDestroy_v2, e);
    FOUND(cuGreenCtxDestroy, green);
}

/* Every way to ask for a call; what comes back must work and be recorded under its exact name. */
void section_lookup(struct gpu *g)
{
    enum {
        LEGACY = CU_GET_PROC_ADDRESS_LEGACY_STREAM,
        PER_THREAD = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
    };
    CUstream s = NULL;
    CUdeviceptr p = 0;
    uint32_t host[N] = {0};
    RUN(cuMemAlloc_v2, &p, sizeof host);
    ASKED(cuStreamCreate, "cuStreamCreate", 2000, 0, &s, CU_STREAM_NON_BLOCKING);
    ASKED(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020, LEGACY, p, host, sizeof host);
    ASKED(cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", 7000, PER_THREAD, p, host, sizeof host);
    ASKED(cuMemsetD32Async, "cuMemsetD32Async", 3020, 0, p, 3, N, s);
    RUN(cuStreamSynchronize, s);
    ASKED(cuMemsetD32Async_ptsz, "cuMemsetD32Async", 12000, PER_THREAD, p, 4, N, NULL);
    RUN(cuCtxSynchronize);
    ASKED(cuLaunchKernel, "cuLaunchKernel", 4000, 0, g->add, 1, 1, 1, 256, 1, 1, 0, s,
        ADD_ARGS(p, 256, 1), NULL);
    RUN(cuStreamSynchronize, s);
    ASKED(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, PER_THREAD, g->add, 1, 1, 1, 256, 1, 1, 0,
        NULL, ADD_ARGS(p, 256, 1), NULL);
    ask("cuLaunchKernelEx", 99999, 0); /* no such version yet */
    ASKED(cuStreamSynchronize, "cuStreamSynchronize", 2000, PER_THREAD,
        s); /* per-thread did not exist then: NULL */
    ASKED(cuStreamSynchronize_ptsz, "cuStreamSynchronize", 7000, PER_THREAD, NULL);
    ASKED(cuStreamSynchronize, "cuStreamSynchronize", 2000, LEGACY, s);
    ASKED(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 13000, 0, host, p, sizeof host);
    ASKED(cuCtxSynchronize, "cuCtxSynchronize", 2000, 0);
    ASKED(cuCtxSynchronize_v2, "cuCtxSynchronize", 13000, 0, g->ctx);
    ask("cuNoSuchCall", 13000, 0);
    ask("cuLaunchKernel", 2000, 0);
    ask("cuStreamDestroy_v2", 13000, 0); /* version suffixes belong to symbols, not to names */
    ASKED(cuStreamDestroy, "cuStreamDestroy", 2000, 0, s);

    /* The look-up's own first version, with four arguments, found through itself. */
    __typeof__(&cuGetProcAddress_v2) second = NULL;
    CUresult (*first)(const char *, void **, int, cuuint64_t) = NULL;
    second = (__typeof__(second))ask("cuGetProcAddress", 12000, 0);
    first = (__typeof__(first))ask("cuGetProcAddress", 11030, 0);
    __typeof__(&cuStreamCreate) create = NULL;
    if (first) step("cuGetProcAddress", first("cuStreamCreate", (void **)&create, 2000, 0));
    if (create) step("cuStreamCreate", create(&s, 0));
    __typeof__(&cuStreamDestroy_v2) destroy = NULL;
    if (second)
        step("cuGetProcAddress_v2", second("cuStreamDestroy", (void **)&destroy, 4000, 0, NULL));
    if (create && destroy) step("cuStreamDestroy_v2", destroy(s));
    FOUND(cuMemsetD8_v2_ptds, p, 1, 16);
    RUN(cuCtxSynchronize);
    FOUND(cuStreamQuery_ptsz, CU_STREAM_LEGACY);
    find("cuNoSuchCall");
    RUN(cuCtxSynchronize);
    print_sum("looked up", p, N);
    RUN(cuMemFree_v2, p);
}

/* Arguments that programs pass by mistake, and calls with nothing to do. */
void section_odd(struct gpu *g)
{
    CUevent e = NULL, opened = NULL;
    CUstream s = NULL;
    CUipcEventHandle handle;
    size_t index = 0;
    (void)g;
    RUN(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    RUN(cuEventCreate, &e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    memset(&handle, 0, sizeof handle);
    RUN(cuIpcGetEventHandle, &handle, e);
    RUN(cuIpcOpenEventHandle, &opened, handle); /* in the same process: refused */
    RUN(cuEventDestroy_v2, e);
    RUN(cuEventCreate, &e, CU_EVENT_INTERPROCESS); /* needs DISABLE_TIMING: refused */
    RUN(cuGraphicsMapResources, 0, NULL, s);
    RUN(cuGraphicsUnmapResources, 0, NULL, s);
    RUN(cuSignalExternalSemaphoresAsync, NULL, NULL, 0, s);
    RUN(cuWaitExternalSemaphoresAsync, NULL, NULL, 0, s);
    RUN(cuStreamBatchMemOp_v2, s, 0, NULL, 0);
    RUN(cuMemMapArrayAsync, NULL, 0, s);
    FOUND(cuMemBatchDecompressAsync, NULL, 0, 0, &index, s);
    FOUND(cuLaunchCooperativeKernelMultiDevice, NULL, 0, 0);
    RUN(cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
    RUN(cuMemFree_v2, 0);
    RUN(cuStreamSynchronize, s);
    RUN(cuStreamDestroy_v2, s);
}

static void legacy_arrays(CUdeviceptr_v1 p, uint32_t *host, CUstream s)
{
    CUarray a = NULL;
    CUDA_ARRAY_DESCRIPTOR_v1 line = {N, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
    CUDA_ARRAY_DESCRIPTOR line_v2 = {N, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
    if (FOUND(cuArrayCreate, &a, &line) && FOUND(cuArrayCreate_v2, &a, &line_v2)) return;
    FOUND(cuMemcpyHtoA, a, 0, host, 4096);
    FOUND(cuMemcpyAtoA, a, 2048, a, 0, 2048);
    FOUND(cuMemcpyAtoD, p, a, 0, 4096);
    FOUND(cuMemcpyDtoA, a, 0, p, 4096);
    FOUND(cuMemcpyAtoH, host, a, 0, 4096);
    FOUND(cuMemcpyHtoAAsync, a, 0, host, 4096, s);
    FOUND(cuMemcpyAtoHAsync, host, a, 0, 4096, s);
    RUN(cuStreamSynchronize, s);
    FOUND(cuArrayDestroy, a);
}

/* The calls of CUDA 3 with 32-bit device addresses: they need a context of that time and memory
 * below 4 GiB. */
static void legacy_calls(uint32_t *low)
{
    CUdeviceptr_v1 p = (CUdeviceptr_v1)(uintptr_t)low, q = p + 4096;
    uint32_t host[N];
    CUstream s = NULL;
    CUmodule mod = NULL;
    CUfunction empty = NULL;
    for (int i = 0; i < N; i++) host[i] = (uint32_t)i;
    RUN(cuStreamCreate, &s, 0);
    FOUND(cuMemcpyHtoD, p, host, 4096);
    FOUND(cuMemcpyDtoD, q, p, 4096);
    FOUND(cuMemcpyDtoH, host, q, 4096);
    FOUND(cuMemcpyHtoDAsync, p, host, 4096, s);
    FOUND(cuMemcpyDtoDAsync, q, p, 4096, s);
    FOUND(cuMemcpyDtoHAsync, host, q, 4096, s);
    FOUND(cuMemsetD8, p, 1, 64);
    FOUND(cuMemsetD16, p, 2, 64);
    FOUND(cuMemsetD32, p, 3, 64);
    FOUND(cuMemsetD2D8, p, 128, 1, 64, 8);
    FOUND(cuMemsetD2D16, p, 128, 1, 32, 8);
    FOUND(cuMemsetD2D32, p, 128, 1, 16, 8);
    CUDA_MEMCPY2D_v1 c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = host;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = p;
    c.srcPitch = c.dstPitch = 128;
    c.WidthInBytes = 64;
    c.Height = 8;
    FOUND(cuMemcpy2D, &c);
    FOUND(cuMemcpy2DUnaligned, &c);
    FOUND(cuMemcpy2DAsync, &c, s);
    CUDA_MEMCPY3D_v1 c3;
    memset(&c3, 0, sizeof c3);
    c3.srcMemoryType = CU_MEMORYTYPE_HOST;
    c3.srcHost = host;
    c3.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c3.dstDevice = p;
    c3.srcPitch = c3.dstPitch = 128;
    c3.srcHeight = c3.dstHeight = 8;
    c3.WidthInBytes = 64;
    c3.Height = 4;
    c3.Depth = 2;
    FOUND(cuMemcpy3D, &c3);
    FOUND(cuMemcpy3DAsync, &c3, s);
    RUN(cuStreamSynchronize, s);
    legacy_arrays(p, host, s);
    RUN(cuCtxSynchronize);
    uint32_t sum = 0;
    for (int i = 0; i < N; i++) sum = sum * 31 + host[i];
    fprintf(out, "  host sum %08x\n", sum);
    if (RUN(cuModuleLoadData, &mod, kernels_ptx) == CUDA_SUCCESS &&
        RUN(cuModuleGetFunction, &empty, mod, "empty") == CUDA_SUCCESS) {
        FOUND(cuFuncSetBlockShape, empty, 32, 1, 1);
        FOUND(cuLaunch, empty);
        FOUND(cuLaunchGrid, empty, 2, 2);
        FOUND(cuLaunchGridAsync, empty, 2, 2, s);
        RUN(cuStreamSynchronize, s);
    }
    RUN(cuStreamDestroy, s);
}

void section_legacy(struct gpu *g)
{
    CUcontext ctx = NULL;
    void *low =
        mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED) {
        fprintf(out, "  no memory below 4 GiB\n");
        return;
    }
    if (FOUND(cuCtxCreate, &ctx, 0, g->dev))
        ctx = NULL; /* refused by today's drivers: then the codes of a context of today */
    memset(low, 0, 1 << 16);
    /* Registered host memory has a device address equal to its own, so this one fits 32 bits. */
    CUresult rc = FOUND(cuMemHostRegister_v2, low, 1 << 16, CU_MEMHOSTREGISTER_PORTABLE);
    legacy_calls(
        low); /* refused memory gives codes, not crashes: the addresses are this process's own */
    if (rc == CUDA_SUCCESS) FOUND(cuMemHostUnregister, low);
    FOUND(cuMemFree, 0);
    if (ctx) RUN(cuCtxDestroy, ctx);
    RUN(cuCtxSetCurrent, g->ctx);
}
