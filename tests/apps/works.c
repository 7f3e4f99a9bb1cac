/*
 * Work on streams of every sort, for the cases of GPU times. A case knows what each part does;
 * where a stream's work stands is asked of CUPTI itself, and given as lines "note id_KEY NUMBER"
 * beside the handles.
 *
 * works streams      launches, copies and sets on created, legacy and per-thread streams, by
 * several threads works threads N    N threads one after another, which share a pthread id, each
 * with work on its per-thread stream and a common one works contexts     two contexts of one
 * device, each with its default stream and another works peers        copies between two devices,
 * both ways, beside work of each works green        streams of a green context, made in both ways,
 * and one that is not works ends         streams destroyed with work pending, their handles given
 * to others at once; a context destroyed with work outstanding works graphs       graphs from
 * captures on two streams, and one by hand, launched on a third works captures     graphs captured
 * over two streams, by one thread and by two, and what may be done with them; launched on a third
 * works depth        gates: how much waits on each stream is known at every moment
 * works waits        waits of every kind that work releases, and waits for what has ended
 * works meanwhile    a wait of one thread, and work that another thread enqueues behind it
 * meanwhile works many N       N kernels on one stream works beside N     a kernel of two seconds,
 * and N short ones on another stream meanwhile works leave HOW    ends with kernels running:
 * return, exit, thread, _exit, kill, exec works fork         uses the GPU, then forks a child that
 * does what it can
 */
#include "tests/apps/app.h"

#include <cupti_activity.h>
#include <signal.h>

static CUfunction empty, sleeper;
static CUdeviceptr memory;
static __typeof__(&cuptiGetStreamIdEx) stream_id;

static CUstream new_stream(const char *key, unsigned flags, int priority)
{
    CUstream stream;
    if (priority) OK(cuStreamCreateWithPriority, &stream, flags, priority);
    else OK(cuStreamCreate, &stream, flags);
    NOTE(key, "%p", (void *)stream);
    return stream;
}

/* CUPTI's number of a stream. */
static void note_id(const char *key, CUcontext context, CUstream stream, int per_thread)
{
    uint32_t id = 0;
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW);
    stream_id = cupti ? (__typeof__(stream_id))dlsym(cupti, "cuptiGetStreamIdEx") : NULL;
    if (stream_id && stream_id(context, stream, (uint8_t)per_thread, &id) == CUPTI_SUCCESS)
        fprintf(stderr, "note id_%s %u\n", key, id);
}

static CUfunction sleep_us(int us)
{
    char name[32];
    snprintf(name, sizeof name, "sleep_us_%d", us);
    return app_kernel(name);
}

static void device_begins(int device)
{
    app_start(device);
    empty = app_kernel("empty_kernel");
    sleeper = sleep_us(200);
    OK(cuMemAlloc_v2, &memory, 1 << 16);
}

/* --- streams --- */

static void *streams_worker(void *shared)
{
    CUstream common = shared;
    pthread_setname_np(pthread_self(), "worker");
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; i < 5; i++) {
        OK(cuLaunchKernel_ptsz, empty, 1, 2, 3, 64, 1, 1, 0, NULL, NULL, NULL);
        LAUNCH(empty, CU_STREAM_PER_THREAD);
        LAUNCH(empty, common);
        LAUNCH(empty, NULL);
    }
    note_id("worker", app_context, NULL, 1);
    OK(cuStreamSynchronize, CU_STREAM_PER_THREAD);
    return NULL;
}

static void streams(void)
{
    pthread_t thread[3];
    char host[4096] = "";
    CUstream plain = new_stream("plain", CU_STREAM_DEFAULT, 0),
             urgent = new_stream("urgent", CU_STREAM_NON_BLOCKING, -3);
    CUlaunchConfig config = {.gridDimX = 5,
        .gridDimY = 4,
        .gridDimZ = 3,
        .blockDimX = 32,
        .blockDimY = 2,
        .blockDimZ = 1,
        .sharedMemBytes = 512,
        .hStream = urgent};
    note_id("plain", app_context, plain, 0);
    note_id("urgent", app_context, urgent, 0);
    note_id("legacy", app_context, NULL, 0);
    note_id("main", app_context, NULL, 1);
    OK(cuLaunchKernel, empty, 2, 3, 4, 32, 2, 1, 256, plain, NULL, NULL);
    OK(cuLaunchKernelEx, &config, empty, NULL, NULL);
    OK(cuMemcpyHtoDAsync_v2, memory, host, 4096, plain);
    OK(cuMemcpyDtoHAsync_v2, host, memory, 1000, urgent);
    OK(cuMemcpyDtoDAsync_v2, memory, memory + 8192, 77, plain);
    OK(cuMemsetD8Async, memory, 7, 64, urgent);
    OK(cuMemsetD32Async, memory, 9, 16, plain);
    OK(cuMemcpyHtoD_v2, memory, host, 123);
    OK(cuMemcpyDtoH_v2_ptds, host, memory, 456);
    OK(cuMemsetD8_v2, memory, 0, 32);
    LAUNCH(empty, CU_STREAM_LEGACY);
    SAY(cuLaunchKernel, empty, 0, 1, 1, 1, 1, 1, 0, plain, NULL, NULL); /* refused */
    for (int i = 0; i < 3; i++) THREAD(&thread[i], streams_worker, plain);
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    OK(cuCtxSynchronize);
    OK(cuStreamDestroy_v2, plain);
    OK(cuStreamDestroy_v2, urgent);
}

/* --- threads --- */

static void *thread_worker(void *common)
{
    OK(cuCtxSetCurrent, app_context);
    OK(cuLaunchKernel_ptsz, empty, 2, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    LAUNCH(empty, common);
    OK(cuStreamSynchronize_ptsz, NULL);
    return (void *)pthread_self();
}

static void threads(int count)
{
    CUstream common = new_stream("common", CU_STREAM_NON_BLOCKING, 0);
    void *first = NULL, *id;
    int same = 0;
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        THREAD(&thread, thread_worker, common);
        pthread_join(thread, &id);
        if (!first) first = id;
        same += id == first;
    }
    NOTE("same", "%d", same);
    OK(cuCtxSynchronize);
}

/* --- contexts, devices --- */

static void contexts(void)
{
    CUcontext other;
    CUstream stream[2];
    OK(cuCtxCreate_v2, &other, 0, 0);
    OK(cuStreamCreate, &stream[1], CU_STREAM_NON_BLOCKING);
    OK(cuCtxSetCurrent, app_context);
    OK(cuStreamCreate, &stream[0], CU_STREAM_NON_BLOCKING);
    for (int c = 0; c < 2; c++) {
        CUcontext context = c ? other : app_context;
        CUmodule module;
        CUfunction kernel;
        char key[16];
        OK(cuCtxSetCurrent, context);
        OK(cuModuleLoadData, &module, ".version 7.0\n");
        OK(cuModuleGetFunction, &kernel, module, "empty_kernel");
        for (int i = 0; i < 3; i++) LAUNCH(kernel, stream[c]);
        for (int i = 0; i < 2 + c; i++) LAUNCH(kernel, NULL);
        snprintf(key, sizeof key, "s%d", c);
        NOTE(key, "%p", (void *)stream[c]);
        note_id(key, context, stream[c], 0);
        OK(cuCtxSynchronize);
    }
    OK(cuCtxDestroy_v2, other);
}

static void peers(void)
{
    CUcontext context[2];
    CUdeviceptr at[2];
    CUstream stream[2];
    OK(cuInit, 0);
    for (int d = 0; d < 2; d++) {
        OK(cuDevicePrimaryCtxRetain, &context[d], d);
        OK(cuCtxSetCurrent, context[d]);
        OK(cuMemAlloc_v2, &at[d], 1 << 16);
        stream[d] = new_stream(d ? "one" : "zero", CU_STREAM_NON_BLOCKING, 0);
        OK(cuMemsetD8Async, at[d], 0, 1024, stream[d]);
    }
    for (int i = 0; i < 3; i++)
        OK(cuMemcpyPeerAsync, at[0], context[0], at[1], context[1], 5000, stream[1]);
    OK(cuStreamSynchronize, stream[1]);
    OK(cuMemcpyPeerAsync, at[1], context[1], at[0], context[0], 6000, stream[0]);
    OK(cuMemcpyPeerAsync, at[0], context[0], at[1], context[1], 7000,
        stream[0]); /* by a stream of the other side */
    for (int d = 0; d < 2; d++) {
        OK(cuCtxSetCurrent, context[d]);
        OK(cuCtxSynchronize);
    }
}

static void green(void)
{
    CUdevResource resource;
    CUdevResourceDesc desc;
    CUgreenCtx made;
    CUcontext inside;
    CUstream direct, normal = new_stream("normal", CU_STREAM_NON_BLOCKING, 0);
    OK(cuDeviceGetDevResource, 0, &resource, CU_DEV_RESOURCE_TYPE_SM);
    OK(cuDevResourceGenerateDesc, &desc, &resource, 1);
    OK(cuGreenCtxCreate, &made, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    OK(cuGreenCtxStreamCreate, &direct, made, CU_STREAM_NON_BLOCKING, 0);
    OK(cuCtxFromGreenCtx, &inside, made);
    NOTE("green", "%p", (void *)made);
    NOTE("direct", "%p", (void *)direct);
    for (int i = 0; i < 2; i++) LAUNCH(empty, direct);
    for (int i = 0; i < 3; i++) LAUNCH(empty, normal);
    OK(cuStreamSynchronize, direct);
    OK(cuStreamSynchronize, normal);
    OK(cuStreamDestroy_v2, direct);
    OK(cuGreenCtxDestroy, made);
}

/* --- ends --- */

static void ends(void)
{
    CUcontext other;
    CUmodule module;
    CUfunction kernel;
    CUstream before = NULL;
    int reused = 0;
    for (int i = 0; i < 6; i++) {
        CUstream stream;
        OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        reused += stream == before;
        for (int k = 0; k < 3; k++) LAUNCH(sleeper, stream);
        OK(cuStreamDestroy_v2, stream);
        before = stream;
    }
    NOTE("reused", "%d", reused);
    OK(cuCtxCreate_v2, &other, 0, 0);
    OK(cuModuleLoadData, &module, ".version 7.0\n");
    OK(cuModuleGetFunction, &kernel, module, "sleep_us_500");
    OK(cuStreamCreate, &before, CU_STREAM_NON_BLOCKING);
    for (int k = 0; k < 3; k++) LAUNCH(kernel, before);
    OK(cuCtxDestroy_v2, other);
    OK(cuCtxSetCurrent, app_context);
    LAUNCH(empty, NULL);
    OK(cuCtxSynchronize);
}

/* --- graphs --- */

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec;
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    OK(cuGraphDestroy, graph);
    return exec;
}

static void graphs(void)
{
    CUstream a = new_stream("a", CU_STREAM_NON_BLOCKING, 0),
             b = new_stream("b", CU_STREAM_NON_BLOCKING, 0),
             c = new_stream("c", CU_STREAM_NON_BLOCKING, 0);
    CUevent fork_event, join_event;
    CUgraph graph;
    CUgraphNode node, second;
    CUDA_KERNEL_NODE_PARAMS_v2 launch = {.func = empty,
        .gridDimX = 9,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1};
    CUDA_MEMSET_NODE_PARAMS set = {.dst = memory, .elementSize = 1, .width = 99, .height = 1};
    OK(cuEventCreate, &fork_event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &join_event, CU_EVENT_DISABLE_TIMING);
    LAUNCH(empty, a);
    OK(cuStreamBeginCapture_v2, a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    OK(cuLaunchKernel, empty, 11, 1, 1, 1, 1, 1, 0, a, NULL, NULL);
    OK(cuEventRecord, fork_event, a);
    OK(cuStreamWaitEvent, b, fork_event, 0);
    OK(cuLaunchKernel, empty, 12, 1, 1, 1, 1, 1, 0, b, NULL, NULL);
    OK(cuMemsetD8Async, memory, 1, 640, b);
    OK(cuEventRecord, join_event, b);
    OK(cuStreamWaitEvent, a, join_event, 0);
    OK(cuLaunchKernel, empty, 13, 1, 1, 1, 1, 1, 0, a, NULL, NULL);
    OK(cuStreamEndCapture, a, &graph);
    CUgraphExec captured = instantiate(graph);
    OK(cuGraphCreate, &graph, 0);
    OK(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &launch);
    OK(cuGraphAddMemsetNode, &second, graph, &node, 1, &set, app_context);
    CUgraphExec by_hand = instantiate(graph);
    for (int i = 0; i < 4; i++) OK(cuGraphLaunch, captured, c);
    for (int i = 0; i < 3; i++) OK(cuGraphLaunch, by_hand, a);
    LAUNCH(empty, a);
    LAUNCH(empty, b);
    OK(cuCtxSynchronize);
}

/* --- captures: each kernel's grid is a number of its own --- */

struct part {
    CUstream stream;
    unsigned grid;
};

static void *captures_part(void *of)
{
    struct part *part = of;
    OK(cuCtxSetCurrent, app_context);
    OK(cuLaunchKernel, empty, part->grid, 1, 1, 1, 1, 1, 0, part->stream, NULL, NULL);
    OK(cuMemsetD8Async, memory, 1, part->grid, part->stream);
    return NULL;
}

/* first: `grid`; second: grid + 1 and a set, by a thread of its own if so asked; first: grid + 2.
 */
static CUgraph capture_two(CUstream first, CUstream second, unsigned grid, int threads)
{
    CUevent fork_event, join_event;
    CUgraph graph;
    pthread_t thread;
    struct part part = {second, grid + 1};
    OK(cuEventCreate, &fork_event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &join_event, CU_EVENT_DISABLE_TIMING);
    OK(cuStreamBeginCapture_v2, first, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuLaunchKernel, empty, grid, 1, 1, 1, 1, 1, 0, first, NULL, NULL);
    OK(cuEventRecord, fork_event, first);
    OK(cuStreamWaitEvent, second, fork_event, 0);
    if (threads) {
        pthread_create(&thread, NULL, captures_part, &part);
        pthread_join(thread, NULL);
    } else {
        captures_part(&part);
    }
    OK(cuLaunchKernel, empty, grid + 2, 1, 1, 1, 1, 1, 0, first, NULL, NULL);
    OK(cuEventRecord, join_event, second);
    OK(cuStreamWaitEvent, first, join_event, 0);
    OK(cuStreamEndCapture, first, &graph);
    return graph;
}

static void captures(void)
{
    CUstream a = new_stream("a", CU_STREAM_NON_BLOCKING, 0),
             b = new_stream("b", CU_STREAM_NON_BLOCKING, 0),
             c = new_stream("c", CU_STREAM_NON_BLOCKING, 0);
    CUgraphExec twice[2], by_hand, other, grown, updated, partly;
    CUgraphNode node, last;
    CUgraphExecUpdateResultInfo info;
    CUDA_KERNEL_NODE_PARAMS_v2 launch = {.func = empty,
        .gridDimX = 40,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1};
    CUDA_MEMSET_NODE_PARAMS set = {.dst = memory, .elementSize = 1, .width = 99, .height = 1};
    LAUNCH(empty, a);
    LAUNCH(empty, b);
    CUgraph graph = capture_two(a, b, 10, 0);
    for (int i = 0; i < 2; i++) OK(cuGraphInstantiateWithFlags, &twice[i], graph, 0);
    updated = instantiate(graph);
    other = instantiate(capture_two(b, a, 20, 1));
    graph = capture_two(a, b, 30, 0);
    OK(cuGraphAddMemsetNode, &last, graph, NULL, 0, &set, app_context);
    grown = instantiate(graph);
    OK(cuGraphCreate, &graph, 0);
    OK(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &launch);
    OK(cuGraphAddMemsetNode, &last, graph, &node, 1, &set, app_context);
    by_hand = instantiate(graph);
    OK(cuGraphCreate, &graph, 0);
    launch.gridDimX = 60;
    OK(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &launch);
    OK(cuStreamBeginCaptureToGraph, a, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuLaunchKernel, empty, 61, 1, 1, 1, 1, 1, 0, a, NULL, NULL);
    OK(cuStreamEndCapture, a, &graph);
    partly = instantiate(graph);
    OK(cuGraphExecUpdate_v2, updated, capture_two(b, a, 50, 0), &info);
    for (int i = 0; i < 4; i++) OK(cuGraphLaunch, twice[i % 2], c);
    for (int i = 0; i < 2; i++) OK(cuGraphLaunch, other, c);
    OK(cuGraphLaunch, grown, c);
    OK(cuGraphLaunch, by_hand, c);
    OK(cuGraphLaunch, updated, c);
    OK(cuGraphLaunch, partly, c);
    OK(cuCtxSynchronize);
}

/* --- depth, waits --- */

static void depth(void)
{
    CUstream a = new_stream("a", CU_STREAM_NON_BLOCKING, 0),
             b = new_stream("b", CU_STREAM_NON_BLOCKING, 0);
    CUfunction kernel = sleep_us(3000);
    volatile unsigned *gate[2] = {app_gate(a), app_gate(b)};
    for (int i = 0; i < 8; i++) LAUNCH(kernel, a);
    for (int i = 0; i < 3; i++) LAUNCH(kernel, b);
    app_sleep_ms(2);
    *gate[0] = *gate[1] = 1;
    OK(cuStreamSynchronize, a);
    OK(cuStreamSynchronize, b);
    for (int i = 0; i < 4; i++) {
        LAUNCH(kernel, a);
        OK(cuStreamSynchronize, a);
    }
}

/* A kernel of two seconds, and many short ones on another stream meanwhile. */
static void beside(int count)
{
    CUstream a, b;
    OK(cuStreamCreate, &a, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &b, CU_STREAM_NON_BLOCKING);
    LAUNCH(sleep_us(2000000), a);
    for (int i = 0; i < count; i++) LAUNCH(empty, b);
    OK(cuCtxSynchronize);
}

static void waits(void)
{
    CUstream a = new_stream("a", CU_STREAM_NON_BLOCKING, 0),
             b = new_stream("b", CU_STREAM_NON_BLOCKING, 0);
    CUfunction slow = sleep_us(20000), slower = sleep_us(40000);
    CUevent event;
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    LAUNCH(slow, a);
    OK(cuLaunchKernel, slow, 21, 1, 1, 1, 1, 1, 0, a, NULL,
        NULL); /* the last one, which the wait is for */
    OK(cuStreamSynchronize, a);
    OK(cuStreamSynchronize, a); /* nothing to wait for */
    OK(cuLaunchKernel, slow, 22, 1, 1, 1, 1, 1, 0, a, NULL, NULL);
    OK(cuEventRecord, event, a);
    LAUNCH(slower, a); /* after the event: it releases nobody */
    OK(cuStreamWaitEvent, b, event, 0);
    OK(cuEventSynchronize, event);
    OK(cuLaunchKernel, slower, 23, 1, 1, 1, 1, 1, 0, b, NULL, NULL); /* ends last of all */
    OK(cuCtxSynchronize);
    OK(cuCtxSynchronize);
    OK(cuEventSynchronize, event);
}

struct meanwhile {
    CUcontext context;
    CUstream stream;
    _Atomic long launched, waiter; /* the thread that is about to wait */
};

static void *launches_meanwhile(void *of)
{
    struct meanwhile *m = of;
    OK(cuCtxSetCurrent, m->context);
    CUfunction slow = sleep_us(20000);
    volatile unsigned *gate = app_gate(m->stream);
    OK(cuLaunchKernel, slow, 31, 1, 1, 1, 1, 1, 0, m->stream, NULL, NULL);
    m->launched = 1;
    while (!m->waiter || !app_sleeps(m->waiter)) app_sleep_ms(1);
    OK(cuLaunchKernel, slow, 32, 1, 1, 1, 1, 1, 0, m->stream, NULL, NULL);
    *gate = 1;
    return NULL;
}

static void meanwhile(void)
{
    struct meanwhile m = {.stream = new_stream("a", CU_STREAM_NON_BLOCKING, 0)};
    pthread_t thread;
    OK(cuCtxGetCurrent, &m.context);
    THREAD(&thread, launches_meanwhile, &m);
    while (!m.launched) app_sleep_ms(1);
    app_flush(); /* the writer has the launch before the wait */
    m.waiter = app_tid();
    OK(cuStreamSynchronize, m.stream);
    pthread_join(thread, NULL);
    OK(cuStreamSynchronize, m.stream);
}

/* --- much, and ends of the process --- */

static void many(long count)
{
    CUstream a = new_stream("a", CU_STREAM_NON_BLOCKING, 0);
    for (long i = 0; i < count; i++) LAUNCH(empty, a);
    OK(cuStreamSynchronize, a);
}

static void peak(void)
{
    char line[200];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM:", 6)) NOTE("peak_kb", "%ld", atol(line + 6));
    if (status) fclose(status);
}

static void *exits(void *unused)
{
    (void)unused;
    app_report();
    exit(0);
}

static void leave(const char *how)
{
    CUstream a = new_stream("a", CU_STREAM_NON_BLOCKING, 0);
    pthread_t thread;
    for (int i = 0; i < 10; i++) LAUNCH(empty, a);
    OK(cuStreamSynchronize, a);
    if (!strcmp(how, "kill")) app_flush();
    LAUNCH(sleep_us(300000), a);
    app_report();
    if (!strcmp(how, "_exit")) _exit(0);
    if (!strcmp(how, "exit")) exit(0);
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "exec")) execl("/bin/true", "true", NULL);
    if (strcmp(how, "thread")) return;
    THREAD(&thread, exits, NULL);
    pause();
}

static void forks(void)
{
    CUstream a = new_stream("a", CU_STREAM_NON_BLOCKING, 0);
    for (int i = 0; i < 4; i++) LAUNCH(empty, a);
    OK(cuStreamSynchronize, a);
    pid_t child = fork();
    if (!child) {
        printf("child %d\n", (int)CU(cuStreamQuery, a) != CUDA_SUCCESS);
        fflush(stdout);
        exit(0);
    }
    waitpid(child, NULL, 0);
    NOTE("child", "%d", (int)child);
    for (int i = 0; i < 3; i++) LAUNCH(empty, a);
    OK(cuStreamSynchronize, a);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long count = argc > 2 ? atol(argv[2]) : 0;
    if (!strcmp(what, "peers")) {
        peers();
        app_report();
        return 0;
    }
    device_begins(0);
    if (!strcmp(what, "streams")) streams();
    else if (!strcmp(what, "threads")) threads((int)count);
    else if (!strcmp(what, "contexts")) contexts();
    else if (!strcmp(what, "green")) green();
    else if (!strcmp(what, "ends")) ends();
    else if (!strcmp(what, "graphs")) graphs();
    else if (!strcmp(what, "captures")) captures();
    else if (!strcmp(what, "depth")) depth();
    else if (!strcmp(what, "beside")) beside(argc > 2 ? atoi(argv[2]) : 1);
    else if (!strcmp(what, "waits")) waits();
    else if (!strcmp(what, "meanwhile")) meanwhile();
    else if (!strcmp(what, "many")) many(count), peak();
    else if (!strcmp(what, "leave")) leave(argv[2]);
    else if (!strcmp(what, "fork")) forks();
    else return 2;
    if (strcmp(what, "leave")) app_report();
    return 0;
}
