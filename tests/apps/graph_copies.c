/*
 * graph_copies: graphs with copies inside one device, captured, replayed and thrown away for some
 * seconds. It says whether each result was right, and nothing else.
 *
 *     graph_copies SECONDS [DEVICES]    DEVICES 2: contexts on two devices, and copies between
 * them, in graphs as well
 *
 * Correct by CUDA's rules, and broken by CUPTI where GRAPH_TRACE and MEMCPY2 are on and somebody
 * flushes: error 719 (docs/measurements.md).
 */
#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fill(.param .u64 out, .param .u32 value, .param .u32 count)\n{\n"
    ".reg .pred %p;\n.reg .b32 %r<5>;\n.reg .b64 %a<3>;\n"
    "ld.param.u64 %a0, [out];\nld.param.u32 %r0, [value];\nld.param.u32 %r1, [count];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\nmad.lo.u32 %r2, %r2, "
    "%r3, %r4;\n"
    "setp.ge.u32 %p, %r2, %r1;\n@%p bra done;\nmul.wide.u32 %a1, %r2, 4;\nadd.u64 %a2, %a0, "
    "%a1;\nst.global.u32 [%a2], %r0;\n"
    "done:\nret;\n}\n";

#define MUST(call) \
    do { \
        CUresult rc_ = (call); \
        if (rc_ != CUDA_SUCCESS) printf("%s gave %d\n", #call, (int)rc_), exit(1); \
    } while (0)

enum { DEVICES = 2, WORDS = 1000000, BYTES = WORDS * 4, FILLED = 1024 };

static struct gpu {
    CUcontext context;
    CUfunction fill;
    CUstream stream, other;
    CUdeviceptr memory[3];
} gpus[DEVICES];
static uint32_t *host; /* pinned */
static int devices = 1;

static void gpu_begin(int d)
{
    struct gpu *g = &gpus[d];
    CUdevice device;
    CUmodule module;
    MUST(cuDeviceGet(&device, d));
    MUST(cuDevicePrimaryCtxRetain(&g->context, device));
    MUST(cuCtxSetCurrent(g->context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&g->fill, module, "fill"));
    MUST(cuStreamCreate(&g->stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&g->other, CU_STREAM_DEFAULT));
    for (int i = 0; i < 3; i++) MUST(cuMemAlloc(&g->memory[i], BYTES));
}

/* Memory of this round: what was there at the start, or new, or of the stream's pool. */
static CUdeviceptr memory_for(const struct gpu *g, int i, int kind)
{
    CUdeviceptr memory = g->memory[i];
    if (kind == 1) MUST(cuMemAlloc(&memory, BYTES));
    if (kind == 2) MUST(cuMemAllocAsync(&memory, BYTES, g->stream));
    return memory;
}

static void give_back(const struct gpu *g, CUdeviceptr memory, int kind)
{
    if (kind == 1) MUST(cuMemFree(memory));
    if (kind == 2) MUST(cuMemFreeAsync(memory, g->stream));
}

/* Copies from m[0] by m[1] to m[2]; longer: with a kernel and a set in between. */
static CUgraphExec capture(const struct gpu *g, CUstream stream, const CUdeviceptr *m,
    uint32_t value, bool longer, CUdeviceptr peer)
{
    CUgraph graph;
    CUgraphExec exec;
    uint32_t count = FILLED;
    void *arguments[] = {(void *)&m[0], &value, &count};
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (longer)
        MUST(cuLaunchKernel(g->fill, FILLED / 256, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
    MUST(cuMemcpyDtoDAsync(m[1], m[0], BYTES, stream));
    if (longer) MUST(cuMemsetD32Async(m[1] + BYTES / 2, value, 256, stream));
    MUST(cuMemcpyAsync(peer ? peer : m[2], m[1], BYTES, stream));
    if (peer) MUST(cuMemcpyAsync(m[2], peer, BYTES, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphDestroy(graph));
    return exec;
}

/* Half of the rounds make a stream of their own, and throw the graph away while it runs, as Warp's
 * tests do. */
static void round_once(uint32_t number)
{
    const struct gpu *g = &gpus[number % (uint32_t)devices];
    const int kind = (int)(number / 2 % 3);
    const bool longer = number / 2 % 2, peers = devices > 1 && number % 4 >= 2,
               own = number / 4 % 2;
    CUstream stream = g->stream;
    CUdeviceptr m[3];
    MUST(cuCtxSetCurrent(g->context));
    for (int i = 0; i < 3; i++) m[i] = memory_for(g, i, kind);
    MUST(cuMemsetD32Async(m[0], number, WORDS, g->stream));
    MUST(cuStreamSynchronize(g->stream));
    if (own) MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    CUgraphExec exec =
        capture(g, stream, m, number, longer, peers ? gpus[1 - number % 2].memory[2] : 0);
    CUstream on = own ? stream : number % 3 ? g->other : NULL;
    for (uint32_t i = 0; i < 1 + number % 3; i++) MUST(cuGraphLaunch(exec, on));
    if (own) MUST(cuGraphExecDestroy(exec));
    MUST(cuStreamSynchronize(on));
    MUST(cuMemcpyDtoHAsync(host, m[2], BYTES, g->stream));
    MUST(cuStreamSynchronize(g->stream));
    for (uint32_t i = 0; i < WORDS; i += 997)
        if (host[i] != number) printf("round %u: word %u is %u\n", number, i, host[i]), exit(1);
    if (own) MUST(cuStreamDestroy(stream));
    else MUST(cuGraphExecDestroy(exec));
    for (int i = 0; i < 3; i++) give_back(g, m[i], kind);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const double until = now() + (argc > 1 ? atof(argv[1]) : 3.0);
    uint32_t rounds = 0;
    devices = argc > 2 ? atoi(argv[2]) : 1;
    MUST(cuInit(0));
    for (int d = 0; d < devices; d++) gpu_begin(d);
    for (int d = 0; d < devices && devices > 1; d++) {
        MUST(cuCtxSetCurrent(gpus[d].context));
        MUST(cuCtxEnablePeerAccess(gpus[1 - d].context, 0));
    }
    MUST(cuMemAllocHost((void **)&host, BYTES));
    while (now() < until || rounds < 100) round_once(rounds++);
    MUST(cuCtxSynchronize());
    fprintf(stderr, "rounds %u\n", rounds);
    printf("all right\n");
    return 0;
}
