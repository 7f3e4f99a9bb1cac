/*
 * Makes every call of the call table that has a _ptds or _ptsz sibling, once, on the default
 * stream: with handle 0, or without a stream where it has none.
 *
 *   siblings base|sibling [LIBRARY]   which of the two it calls; "NAME RESULT" for each, by the
 * name of the base. With a library: while the loader's lock is held (held.h)
 *
 * Each argument is made from its type and, where that does not tell, its name, so that the driver
 * accepts as many calls as possible. A row that is added to the table needs nothing here unless it
 * brings a type that the list in ARGUMENT lacks, which does not compile.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "shim/calls/cuda_api.h"

#include <stdbool.h>
#include <stdint.h>

#include "tests/apps/app.h"
#include "tests/apps/held.h"

enum { BYTES = 1 << 16 };
static CUdeviceptr memory;
static char *pinned;
static CUarray array;
static CUfunction kernel;
static CUevent event;
static CUgraph graph;
static CUgraphExec exec;
static CUmemoryPool memory_pool;
static const char *row; /* the call that is being made */

/* What lies behind pointers, as new for each call. */
static _Alignas(16) char scratch[4096];
static CUdeviceptr addresses[2];
static size_t lengths[2];
static CUDA_MEMCPY2D copy2d;
static CUDA_MEMCPY3D copy3d;
static CUDA_MEMCPY3D_PEER copy_peer;
static CUlaunchConfig launch_config;
static CUstreamBatchMemOpParams write_value;
static CUDA_GRAPH_INSTANTIATE_PARAMS instantiation;

static void CUDA_CB host_called(void *unused) { (void)unused; }
static void CUDA_CB stream_called(CUstream stream, CUresult status, void *unused)
{
    (void)stream, (void)status, (void)unused;
}

static bool is(const char *name, const char *one) { return !strcmp(name, one); }

/* unsigned int and the enumerations. */
static unsigned unsigned_for(const char *name)
{
    if (is(name, "attr")) return CU_LAUNCH_ATTRIBUTE_PRIORITY;
    if (is(name, "mode")) return CU_STREAM_CAPTURE_MODE_RELAXED;
    return is(name, "count") || is(name, "numExtSems") || strstr(name, "Dim");
}

/* size_t, and values that a stream waits for: 0 is there. */
static size_t size_for(const char *name)
{
    if (is(name, "N") || is(name, "Width") || is(name, "Height") || is(name, "count") ||
        is(name, "numOps"))
        return 1;
    return is(name, "ByteCount") || is(name, "bytesize") || is(name, "size") || is(name, "dstPitch")
               ? 4
               : 0;
}

/* CUdeviceptr and unsigned long long. */
static unsigned long long wide_for(const char *name)
{
    CUdeviceptr freed;
    if (is(name, "flags")) return 0;
    if (is(name, "addr")) return (uintptr_t)pinned;
    if (!is(row, "cuMemFreeAsync")) return strstr(name, "src") ? memory + 4096 : memory;
    OK(cuMemAlloc_v2, &freed, 64);
    return freed;
}

#define ARGUMENT(x) \
    x = _Generic((x), \
        CUstream: NULL, CUevent: event, CUfunction: kernel, CUgraph: graph, CUgraphExec: exec, \
        CUarray: array, CUcontext: app_context, \
        CUmemoryPool: memory_pool, CUmemLocation: (CUmemLocation){.type = \
        CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, \
        unsigned char: 7, unsigned short: 7, int: 0, unsigned: unsigned_for(#x), size_t: \
        size_for(#x), unsigned long long: wide_for(#x), \
        CUhostFn: host_called, CUstreamCallback: stream_called, void **: NULL, CUdeviceptr *: \
        addresses, size_t *: lengths, \
        const CUDA_MEMCPY2D *: &copy2d, const CUDA_MEMCPY3D *: &copy3d, const CUDA_MEMCPY3D_PEER \
        *: &copy_peer, \
        const CUlaunchConfig *: &launch_config, CUstreamBatchMemOpParams *: &write_value, \
        CUDA_GRAPH_INSTANTIATE_PARAMS *: &instantiation, default: (void *)scratch);

static void fresh(void)
{
    memset(scratch, 0, sizeof scratch);
    memset(pinned, 0, BYTES);
    addresses[0] = memory, addresses[1] = memory + 4096;
    lengths[0] = lengths[1] = 4;
    copy3d = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = memory + 4096,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = memory,
        .WidthInBytes = 4,
        .Height = 1,
        .Depth = 1};
    copy2d = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = memory + 4096,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = memory,
        .WidthInBytes = 4,
        .Height = 1};
    copy_peer = (CUDA_MEMCPY3D_PEER){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = memory + 4096,
        .srcContext = app_context,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = memory,
        .dstContext = app_context,
        .WidthInBytes = 4,
        .Height = 1,
        .Depth = 1};
    launch_config = (CUlaunchConfig){.gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1};
    write_value =
        (CUstreamBatchMemOpParams){.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                       .address = (uintptr_t)pinned,
                                       .value = 3}};
    instantiation = (CUDA_GRAPH_INSTANTIATE_PARAMS){.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
}

/* As it was: nothing captures, nothing is under way. Explicit handles mean the same whatever the
 * policy. */
static void settle(void)
{
    CUstreamCaptureStatus status;
    CUgraph captured = NULL;
    OK(cuStreamIsCapturing, CU_STREAM_PER_THREAD, &status);
    if (status != CU_STREAM_CAPTURE_STATUS_NONE)
        OK(cuStreamEndCapture, CU_STREAM_PER_THREAD, &captured);
    OK(cuCtxSynchronize);
}

/* For each row a function with its parameters, which it sets itself and then hands on. */
#define EACH(m, ...) \
    EACH_(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)(m, __VA_ARGS__)
#define EACH_(a, b, c, d, e, f, g, h, i, j, k, l, n, ...)           EACH_##n
#define EACH_1(m, a)       m(a)
#define EACH_2(m, a, ...)  m(a) EACH_1(m, __VA_ARGS__)
#define EACH_3(m, a, ...)  m(a) EACH_2(m, __VA_ARGS__)
#define EACH_4(m, a, ...)  m(a) EACH_3(m, __VA_ARGS__)
#define EACH_5(m, a, ...)  m(a) EACH_4(m, __VA_ARGS__)
#define EACH_6(m, a, ...)  m(a) EACH_5(m, __VA_ARGS__)
#define EACH_7(m, a, ...)  m(a) EACH_6(m, __VA_ARGS__)
#define EACH_8(m, a, ...)  m(a) EACH_7(m, __VA_ARGS__)
#define EACH_9(m, a, ...)  m(a) EACH_8(m, __VA_ARGS__)
#define EACH_10(m, a, ...) m(a) EACH_9(m, __VA_ARGS__)
#define EACH_11(m, a, ...) m(a) EACH_10(m, __VA_ARGS__)
#define EACH_12(m, a, ...) m(a) EACH_11(m, __VA_ARGS__)
#define ARGUMENTS(...)     EACH(ARGUMENT, __VA_ARGS__)
#define PASS(...)          __VA_ARGS__

#define FUNCTION_ONE(name, parameters, arguments)
#define FUNCTION_PTDS(name, parameters, arguments) FUNCTION(name, name##_ptds, parameters, \
    arguments)
#define FUNCTION_PTSZ(name, parameters, arguments) FUNCTION(name, name##_ptsz, parameters, \
    arguments)
#define FUNCTION(name, sibling, parameters, arguments) \
    static CUresult of_sibling_##name parameters \
    { \
        ARGUMENTS arguments \
        return CALLED(sibling, PASS arguments); \
    } \
    static CUresult of_base_##name parameters \
    { \
        ARGUMENTS arguments \
        return CALLED(name, PASS arguments); \
    }
#define CALLED(...)        CALLED_(__VA_ARGS__)
#define CALLED_(name, ...) CU(name, __VA_ARGS__)
#define CALL(name, sibling, kind, how, stream, effect, parameters, arguments, ...) \
    FUNCTION_##sibling(name, parameters, arguments)
#include "shim/calls/calls.def"
#undef CALL

/* The functions overwrite all that they are given, so any numbers will do for it: at least as many
 * as a row has parameters. */
typedef CUresult any_function(
    long, long, long, long, long, long, long, long, long, long, long, long);

static bool sibling;

static void make_all(void)
{
    static const struct {
        const char *name;
        void *base, *sibling;
    } rows[] = {
#define ROW_ONE(name)
#define ROW_PTDS(name) {#name, (void *)of_base_##name, (void *)of_sibling_##name},
#define ROW_PTSZ(name) ROW_PTDS(name)
#define CALL(name, sibling, ...) ROW_##sibling(name)
#include "shim/calls/calls.def"
#undef CALL
    };
    void *made;
    app_start(0);
    kernel = app_kernel("empty");
    OK(cuMemAlloc_v2, &memory, BYTES);
    OK(cuMemAllocHost_v2, &made, BYTES);
    pinned = made;
    OK(cuArrayCreate_v2, &array,
        &(CUDA_ARRAY_DESCRIPTOR){
            .Width = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1});
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventRecord, event, CU_STREAM_PER_THREAD);
    OK(cuGraphCreate, &graph, 0);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    OK(cuDeviceGetDefaultMemPool, &memory_pool, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        row = rows[i].name;
        held_at = row;
        fresh();
        any_function *call = (any_function *)(sibling ? rows[i].sibling : rows[i].base);
        printf("%s %d\n", row, (int)call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
        settle();
    }
}

int main(int argc, char **argv)
{
    sibling = argc > 1 && is(argv[1], "sibling");
    if (argc > 2) return held_run(argv[2], make_all);
    make_all();
    return 0;
}
