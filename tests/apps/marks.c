/*
 * Work whose times are known, for the event backend. Kernels stand behind a gate where their times
 * matter: once it opens they follow each other without a gap, however slow this process is.
 *
 * marks chain             8 kernels of 300 us on one stream, then one that waits for them on
 * another, then the legacy stream's, then a blocking stream's marks kinds             one call of
 * each kind, by plain and per-thread symbols, with a structure for an argument, and one that fails
 * marks captures          captures in every mode, also with work of other threads at the time; says
 * what the graphs hold marks contexts          two contexts side by side, one destroyed with its
 * work done, one with work outstanding, a reset, and all again marks churn N M         N threads, M
 * times each: a context, work in it, and its end. Each is to be cancelled, and the first launch is
 * no place for it marks streams N         N streams, each destroyed with work pending marks threads
 * N M       N threads with M launches each on a stream of their own, a shared one and their default
 * stream marks flood N           N kernels behind a gate on one stream, then a few one by one marks
 * leave MS          ends while a kernel of MS milliseconds runs marks quiet             enqueues
 * nothing
 */
#include "tests/apps/app.h"

#include <stdbool.h>

static CUfunction empty, sleeper;

static CUfunction sleep_us(int us)
{
    char name[32];
    snprintf(name, sizeof name, "sleep_us_%d", us);
    return app_kernel(name);
}

static CUstream new_stream(unsigned flags)
{
    CUstream stream;
    OK(cuStreamCreate, &stream, flags);
    return stream;
}

static void chain(void)
{
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING),
             c = new_stream(CU_STREAM_DEFAULT), d = new_stream(CU_STREAM_DEFAULT);
    CUfunction kernel = sleep_us(300);
    CUevent event;
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    volatile unsigned *gate = app_gate(a), *gate2 = app_gate(c);
    for (int i = 0; i < 8; i++) LAUNCH(kernel, a);
    OK(cuEventRecord, event, a);
    OK(cuStreamWaitEvent, b, event, 0);
    LAUNCH(kernel, b);
    LAUNCH(kernel, c);
    LAUNCH(kernel, NULL); /* waits for c */
    LAUNCH(kernel, d);    /* waits for the legacy stream */
    NOTE("a", "%p", (void *)a);
    NOTE("b", "%p", (void *)b);
    NOTE("c", "%p", (void *)c);
    NOTE("d", "%p", (void *)d);
    OK(cuStreamQuery, CU_STREAM_PER_THREAD); /* its place in time: before anything can run */
    *gate = *gate2 = 1;
    OK(cuCtxSynchronize);
    OK(cuEventDestroy_v2, event);
}

static void kinds(void)
{
    CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr memory;
    CUlaunchConfig config = {.gridDimX = 3,
        .gridDimY = 2,
        .gridDimZ = 1,
        .blockDimX = 64,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = s};
    CUgraph graph;
    CUgraphExec exec;
    char host[4096] = "x";
    OK(cuMemAlloc_v2, &memory, 1 << 16);
    OK(cuLaunchKernel, empty, 5, 4, 3, 32, 2, 1, 0, s, NULL, NULL);
    OK(cuLaunchKernelEx, &config, empty, NULL, NULL);
    OK(cuLaunchKernel_ptsz, empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    config.hStream = NULL;
    OK(cuLaunchKernelEx_ptsz, &config, empty, NULL, NULL);
    OK(cuMemcpyHtoDAsync_v2, memory, host, 4096, s);
    OK(cuMemcpyDtoHAsync_v2, host, memory, 100, s);
    OK(cuMemcpyDtoDAsync_v2, memory, memory + 8192, 8192, s);
    OK(cuMemcpyHtoD_v2, memory, host, 64);
    OK(cuStreamQuery, NULL); /* done when it returned, and still so */
    OK(cuMemcpyDtoH_v2_ptds, host, memory, 64);
    OK(cuStreamQuery, CU_STREAM_PER_THREAD);
    OK(cuMemcpyAsync, memory, memory + 4096, 77, s);
    OK(cuMemsetD32Async, memory, 7, 16, s);
    OK(cuMemsetD8_v2, memory, 1, 32);
    OK(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH(empty, s);
    OK(cuStreamEndCapture, s, &graph);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    OK(cuGraphLaunch, exec, s);
    SAY(cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
    SAY(cuLaunchKernelEx, NULL, empty, NULL, NULL);
    OK(cuCtxSynchronize);
    NOTE("s", "%p", (void *)s);
}

static int running;
static void *works_on(void *stream)
{
    OK(cuCtxSetCurrent, app_context);
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
        LAUNCH(empty, (CUstream)stream);
        app_sleep_ms(1);
    }
    return NULL;
}

static void say_graph(CUgraph graph)
{
    CUgraphNode nodes[16];
    size_t count = 16, edges = 0;
    OK(cuGraphGetNodes, graph, nodes, &count);
    OK(cuGraphGetEdges, graph, NULL, NULL, &edges);
    printf("nodes %zu edges %zu types", count, edges);
    for (size_t i = 0; i < count; i++) {
        CUgraphNodeType type;
        OK(cuGraphNodeGetType, nodes[i], &type);
        printf(" %d", (int)type);
    }
    printf("\n");
    OK(cuGraphDestroy, graph);
}

static void captures(void)
{
    CUstream a = new_stream(CU_STREAM_DEFAULT), b = new_stream(CU_STREAM_NON_BLOCKING),
             other = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent fork_event, join_event;
    CUdeviceptr memory;
    CUgraph graph;
    CUgraphExec exec;
    pthread_t thread;
    OK(cuEventCreate, &fork_event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &join_event, CU_EVENT_DISABLE_TIMING);
    OK(cuMemAlloc_v2, &memory, 4096);
    __atomic_store_n(&running, 1, __ATOMIC_RELEASE);
    THREAD(&thread, works_on, other);
    for (int mode = 0; mode < 3; mode++) {
        OK(cuStreamBeginCapture_v2, a, (CUstreamCaptureMode)mode);
        LAUNCH(empty, a);
        OK(cuEventRecord, fork_event, a);
        OK(cuStreamWaitEvent, b, fork_event, 0);
        LAUNCH(empty, b);
        OK(cuMemsetD8Async, memory, 0, 16, b);
        OK(cuEventRecord, join_event, b);
        OK(cuStreamWaitEvent, a, join_event, 0);
        OK(cuMemcpyDtoDAsync_v2, memory, memory + 64, 16, a);
        app_sleep_ms(30); /* the other thread's work comes and goes meanwhile */
        OK(cuStreamEndCapture, a, &graph);
        OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
        OK(cuGraphLaunch, exec, a);
        say_graph(graph);
        OK(cuStreamBeginCapture_v2, b, (CUstreamCaptureMode)mode);
        OK(cuGraphLaunch, exec, b); /* becomes a child */
        OK(cuStreamEndCapture, b, &graph);
        say_graph(graph);
        OK(cuGraphExecDestroy, exec);
    }
    __atomic_store_n(&running, 0, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH(empty, a);
    LAUNCH(empty, b); /* does not capture */
    SAY(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL,
        NULL); /* would have to wait for a */
    SAY(cuStreamEndCapture, a, &graph);
    OK(cuCtxSynchronize);
}

static __thread bool doomed; /* to be cancelled, which a launch must not be the place for */
static void first_launch(CUfunction kernel, CUstream s)
{
    if (doomed) pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    LAUNCH(kernel, s);
    if (doomed) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

static void use(CUcontext context, int launches, int us)
{
    OK(cuCtxSetCurrent, context);
    CUfunction kernel;
    CUmodule module;
    char name[32];
    snprintf(name, sizeof name, "sleep_us_%d", us);
    OK(cuModuleLoadData, &module, ".version 7.0\n.target sm_52\n.address_size 64\n");
    OK(cuModuleGetFunction, &kernel, module, name);
    CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
    first_launch(kernel, s);
    for (int i = 1; i < launches; i++) LAUNCH(kernel, s);
    LAUNCH(kernel, NULL);
}

static void contexts(void)
{
    CUcontext one, two;
    for (int round = 0; round < 2; round++) {
        OK(cuCtxCreate_v2, &one, 0, 0);
        OK(cuCtxCreate_v2, &two, 0, 0);
        use(app_context, 2, 10);
        use(one, 3, 20);
        use(two, 4, 100000);
        use(one, 3, 20);
        OK(cuCtxSynchronize);
        OK(cuCtxDestroy_v2, one);
        OK(cuCtxSetCurrent, two);
        OK(cuCtxDestroy_v2, two); /* at work */
        OK(cuCtxSetCurrent, app_context);
        OK(cuCtxSynchronize);
        OK(cuDevicePrimaryCtxReset_v2, 0);
        OK(cuDevicePrimaryCtxRetain, &app_context, 0);
        OK(cuCtxSetCurrent, app_context);
    }
    use(app_context, 2, 10);
    OK(cuCtxSynchronize);
}

static void *churns(void *times)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
    doomed = true;
    for (long i = 0; i < (long)times; i++) {
        CUcontext context;
        OK(cuCtxCreate_v2, &context, 0, 0);
        use(context, 3, 20);
        OK(cuCtxSynchronize);
        OK(cuCtxDestroy_v2, context);
    }
    return NULL;
}

static void churn(int n, long times)
{
    pthread_t thread[64];
    for (int i = 0; i < n && i < 64; i++) THREAD(&thread[i], churns, (void *)times);
    for (int i = 0; i < n && i < 64; i++) {
        void *end;
        pthread_join(thread[i], &end);
        if (end == PTHREAD_CANCELED) printf("cancelled in a launch\n"), exit(6);
    }
}

static void streams(int n)
{
    volatile unsigned **gates = calloc((size_t)n, sizeof *gates);
    for (int i = 0; i < n; i++) {
        CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
        gates[i] = app_gate(s);
        LAUNCH(sleeper, s);
        LAUNCH(sleeper, s);
        OK(cuStreamDestroy_v2, s);
    }
    app_sleep_ms(20);
    for (int i = 0; i < n; i++) *gates[i] = 1;
    OK(cuCtxSynchronize);
    free(gates);
}

static CUstream shared;
static void *launches(void *count)
{
    OK(cuCtxSetCurrent, app_context);
    CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
    for (long i = 0; i < (long)count; i++) {
        LAUNCH(sleeper, s);
        LAUNCH(sleeper, shared);
        OK(cuLaunchKernel_ptsz, sleeper, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    }
    OK(cuCtxSynchronize);
    OK(cuStreamDestroy_v2, s);
    return NULL;
}

static void threads(int n, long count)
{
    pthread_t thread[64];
    shared = new_stream(CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < n && i < 64; i++) THREAD(&thread[i], launches, (void *)count);
    for (int i = 0; i < n && i < 64; i++) pthread_join(thread[i], NULL);
    OK(cuCtxSynchronize);
}

static void flood(int n)
{
    CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
    volatile unsigned *gate = app_gate(s);
    for (int i = 0; i < n; i++) LAUNCH(empty, s);
    *gate = 1;
    OK(cuCtxSynchronize);
    for (int i = 0; i < 10; i++) {
        app_sleep_ms(20);
        LAUNCH(sleeper, s);
        OK(cuCtxSynchronize);
    }
}

int main(int argc, char **argv)
{
    setenv("CUSTREAM_FAKE_DEPTH", "0",
        0); /* a flood has more behind its gate than a queue takes; before the driver is opened */
    const char *what = argc > 1 ? argv[1] : "";
    int n = argc > 2 ? atoi(argv[2]) : 0, m = argc > 3 ? atoi(argv[3]) : 0;
    app_start(0);
    empty = app_kernel("empty_kernel");
    sleeper = app_kernel("sleep_us_50");
    if (!strcmp(what, "chain")) chain();
    else if (!strcmp(what, "kinds")) kinds();
    else if (!strcmp(what, "captures")) captures();
    else if (!strcmp(what, "contexts")) contexts();
    else if (!strcmp(what, "churn")) churn(n, m);
    else if (!strcmp(what, "streams")) streams(n);
    else if (!strcmp(what, "threads")) threads(n, m);
    else if (!strcmp(what, "flood")) flood(n);
    else if (!strcmp(what, "leave")) LAUNCH(sleep_us(n * 1000), new_stream(CU_STREAM_NON_BLOCKING));
    else if (strcmp(what, "quiet")) return 2;
    if (strcmp(what, "captures"))
        app_report(); /* there, a thread works for as long as the captures take */
    return 0;
}
