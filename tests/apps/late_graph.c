/*
 * late_graph [ROUNDS [MS [SECONDS]]]: graphs that were instantiated before cuProfilerStart, or
 * while it was not in force, are launched after it. Says whether each result was right. MS: how
 * long it waits with a context before the first graph, so that whoever watches has come to rest.
 * SECONDS: for so long from its begin on it goes on with rounds, however many that are.
 *
 * Correct by CUDA's rules, and broken where CUPTI is asked for GRAPH_TRACE when there is a graph
 * already (docs/measurements.md).
 */
#include <cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fill(.param .u64 out, .param .u32 value, .param .u32 count)\n{\n"
    ".reg .pred %p;\n.reg .b32 %r<3>;\n.reg .b64 %a<3>;\n"
    "ld.param.u64 %a0, [out];\nld.param.u32 %r0, [value];\nld.param.u32 %r1, [count];\nmov.u32 "
    "%r2, %tid.x;\n"
    "setp.ge.u32 %p, %r2, %r1;\n@%p bra done;\nmul.wide.u32 %a1, %r2, 4;\nadd.u64 %a2, %a0, "
    "%a1;\nst.global.u32 [%a2], %r0;\n"
    "done:\nret;\n}\n";

#define MUST(call) \
    do { \
        CUresult rc_ = (call); \
        if (rc_ != CUDA_SUCCESS) printf("%s gave %d\n", #call, (int)rc_), exit(1); \
    } while (0)

enum { GRAPHS = 4, LAUNCHES = 5, WORDS = 64, BYTES = WORDS * 4 };

static CUfunction fill;
static CUstream stream;
static CUdeviceptr memory[3];

/* Fills the first memory with its number and copies it to the second, again and again, and on a
 * branch beside it fills the third. */
static CUgraphExec graph_new(uint32_t number)
{
    CUgraph graph;
    CUgraphExec exec;
    CUstream branch;
    CUevent forks, joins;
    uint32_t count = WORDS;
    void *arguments[] = {&memory[0], &number, &count}, *of_branch[] = {&memory[2], &number, &count};
    MUST(cuStreamCreate(&branch, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&forks, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&joins, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuEventRecord(forks, stream));
    MUST(cuStreamWaitEvent(branch, forks, 0));
    for (uint32_t i = 0; i < number; i++) {
        MUST(cuLaunchKernel(fill, 1, 1, 1, WORDS, 1, 1, 0, stream, arguments, NULL));
        MUST(cuMemcpyDtoDAsync(memory[1], memory[0], BYTES, stream));
        MUST(cuMemsetD32Async(memory[2], 7, WORDS, branch));
        MUST(cuLaunchKernel(fill, 1, 1, 1, WORDS, 1, 1, 0, branch, of_branch, NULL));
    }
    MUST(cuEventRecord(joins, branch));
    MUST(cuStreamWaitEvent(stream, joins, 0));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphDestroy(graph));
    MUST(cuStreamDestroy(branch));
    MUST(cuEventDestroy(forks));
    MUST(cuEventDestroy(joins));
    return exec;
}

static void launch_all(const CUgraphExec *graphs)
{
    for (uint32_t i = 0; i < GRAPHS; i++) {
        uint32_t found[2][WORDS] = {{0}};
        for (int n = 0; n < LAUNCHES; n++) MUST(cuGraphLaunch(graphs[i], stream));
        MUST(cuMemcpyDtoHAsync(found[0], memory[1], BYTES, stream));
        MUST(cuMemcpyDtoHAsync(found[1], memory[2], BYTES, stream));
        MUST(cuStreamSynchronize(stream));
        for (int word = 0; word < WORDS; word++)
            if (found[0][word] != i + 1 || found[1][word] != i + 1)
                printf("graph %u: word %d is %u, and %u\n", i + 1, word, found[0][word],
                    found[1][word]),
                    exit(1);
    }
}

/* Another in the place of one that goes. */
static void renew(CUgraphExec *graphs, int round)
{
    const uint32_t i = (uint32_t)round % GRAPHS;
    MUST(cuGraphExecDestroy(graphs[i]));
    graphs[i] = graph_new(i + 1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const double until = now() + (argc > 3 ? atof(argv[3]) : 0);
    const int rounds = argc > 1 ? atoi(argv[1]) : 10;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUgraphExec graphs[GRAPHS];
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&fill, module, "fill"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 3; i++) MUST(cuMemAlloc(&memory[i], BYTES));
    if (argc > 2) usleep((useconds_t)atoi(argv[2]) * 1000);
    for (uint32_t i = 0; i < GRAPHS; i++) graphs[i] = graph_new(i + 1);
    launch_all(graphs);
    for (int round = 0; round < rounds || now() < until; round++) {
        MUST(cuProfilerStart());
        launch_all(graphs);
        renew(graphs, round);
        launch_all(graphs);
        MUST(cuProfilerStop());
        launch_all(graphs);
        renew(graphs, round + 1);
        launch_all(graphs);
    }
    printf("all right\n");
    return 0;
}
