/*
 * What the audit of the default stream has to tell apart: one part each, where a case knows what is
 * to be found.
 *
 * audit_streams legacy       the legacy stream by its own handle
 * audit_streams own          a thread's per-thread stream beside handle 0, by one thread and by two
 * audit_streams capture      captured work, and launches of its graph
 * audit_streams contexts     work in two contexts, apart but for one pair
 * audit_streams copies       copies of different and of the same memory
 * audit_streams host         waits of the host by the default stream
 * audit_streams early        a synchronous copy to the device, then work on another stream
 * audit_streams marker       an event on the default stream that stands for another stream's work
 * audit_streams turns T N    T threads that take turns on the default stream, each ordered by an
 * event: N turns each audit_streams many N       N launches on a blocking stream and the default
 * stream by turns audit_streams none         nothing on the default stream audit_streams times
 * waits of known lengths audit_streams blocked      a thread in a long synchronous copy while
 * another enqueues audit_streams unneeded     copies and sets of different memory, one behind the
 * other
 */
#include "tests/apps/app.h"

static CUfunction kernel_a, kernel_b, kernel_c;
static CUdeviceptr memory;
static CUstream a, b;

static CUstream stream_new(const char *key, unsigned flags)
{
    CUstream stream;
    OK(cuStreamCreate, &stream, flags);
    NOTE(key, "%p", (void *)stream);
    return stream;
}

static void *run_there(void *part)
{
    OK(cuCtxSetCurrent, app_context);
    ((void (*)(void))part)();
    return NULL;
}

/* On another thread, to its end. */
static void elsewhere(void (*part)(void))
{
    pthread_t thread;
    THREAD(&thread, run_there, (void *)part);
    pthread_join(thread, NULL);
}

/* --- handles --- */

static void legacy(void)
{
    LAUNCH(kernel_a, CU_STREAM_LEGACY);
    LAUNCH(kernel_b, a);
    LAUNCH(kernel_c, CU_STREAM_LEGACY);
    OK(cuMemsetD8Async, memory, 1, 64, CU_STREAM_LEGACY);
    LAUNCH(kernel_a, CU_STREAM_PER_THREAD);
}

static void own_of_another(void) { LAUNCH(kernel_c, NULL); }

static void own(void)
{
    LAUNCH(kernel_a, CU_STREAM_PER_THREAD);
    LAUNCH(kernel_b, NULL);
    OK(cuLaunchKernel_ptsz, kernel_a, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    LAUNCH(kernel_b, NULL);
    LAUNCH(kernel_b, CU_STREAM_LEGACY);
    LAUNCH(kernel_b, NULL);
    elsewhere(own_of_another); /* the one that is not kept */
}

/* --- capture --- */

static void capture(void)
{
    CUgraph graph;
    CUgraphExec exec;
    CUevent event;
    CUstream origin = stream_new("origin", CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuStreamBeginCapture_v2, origin, CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH(kernel_a, origin);
    OK(cuEventRecord, event, origin);
    OK(cuStreamWaitEvent, b, event, 0);
    LAUNCH(kernel_a, b);
    OK(cuEventRecord, event, b);
    OK(cuStreamWaitEvent, origin, event, 0);
    OK(cuStreamEndCapture, origin, &graph);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    LAUNCH(kernel_b, NULL); /* waits for nothing: b has only captured */
    OK(cuCtxSynchronize);
    OK(cuGraphLaunch, exec, a);
    LAUNCH(kernel_b, NULL); /* waits for the graph */
    OK(cuCtxSynchronize);
    OK(cuGraphLaunch, exec, NULL);
    LAUNCH(kernel_c, a); /* and this for the next */
}

/* --- contexts --- */

static void contexts(void)
{
    CUcontext other;
    CUmodule module;
    CUfunction kernel;
    CUstream there;
    OK(cuCtxCreate_v2, &other, 0, 0);
    OK(cuModuleLoadData, &module, ".version 7.0\n");
    OK(cuModuleGetFunction, &kernel, module, "kernel_there");
    OK(cuStreamCreate, &there, CU_STREAM_DEFAULT);
    LAUNCH(kernel, there);
    OK(cuCtxSetCurrent, app_context);
    LAUNCH(kernel_a, NULL); /* another context's */
    OK(cuCtxSetCurrent, other);
    OK(cuCtxSynchronize);
    LAUNCH(kernel, there);
    OK(cuCtxSetCurrent, app_context);
    OK(cuCtxSynchronize); /* of this context alone */
    LAUNCH(kernel_b, NULL);
    OK(cuCtxSetCurrent, other);
    LAUNCH(kernel, NULL); /* waits for the launch on `there` */
    OK(cuCtxSynchronize);
    OK(cuCtxSetCurrent, app_context);
    OK(cuCtxDestroy_v2, other);
}

/* --- memory --- */

static void copies(void)
{
    OK(cuMemsetD8_v2, memory, 1, 1024);
    OK(cuMemcpyDtoDAsync_v2, memory + 4096, memory + 8192, 1024, a); /* of other memory */
    OK(cuCtxSynchronize);
    OK(cuMemsetD8_v2, memory, 2, 1024);
    OK(cuMemsetD8_v2, memory + 2048, 2, 1024);
    OK(cuMemcpyDtoDAsync_v2, memory + 4096, memory + 512, 1024, a); /* of what the first has set */
    OK(cuCtxSynchronize);
    OK(cuMemsetD8Async, memory, 3, 1024, a);
    OK(cuMemsetD8_v2, memory + 1024, 3, 1024);
    LAUNCH(kernel_a, NULL); /* may depend on the first set */
}

/* --- the host --- */

static void host(void)
{
    LAUNCH(kernel_a, a);
    OK(cuStreamSynchronize, NULL);
    OK(cuCtxSynchronize);
    LAUNCH(kernel_b, a);
    while (CU(cuStreamQuery, NULL) == CUDA_ERROR_NOT_READY) {}
    OK(cuCtxSynchronize);
    LAUNCH(kernel_c, a);
    OK(cuStreamSynchronize, CU_STREAM_LEGACY); /* as it would be too */
}

static void early(void)
{
    char data[64] = "";
    OK(cuMemcpyHtoD_v2, memory, data, sizeof data);
    LAUNCH(kernel_a, a);
    OK(cuMemcpyDtoH_v2, data, memory, sizeof data); /* waits for the kernel: a pair */
    LAUNCH(kernel_b, a);
}

static void marker(void)
{
    CUevent event;
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    LAUNCH(kernel_a, a);
    OK(cuEventRecord, event, NULL);
    LAUNCH(kernel_b, b); /* behind the event, and so behind the first */
    OK(cuCtxSynchronize);
    LAUNCH(kernel_a, a);
    OK(cuEventRecord, event, NULL);
    OK(cuEventSynchronize, event);
}

/* --- threads --- */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static CUevent last;
static int turns;

static void *take_turns(void *unused)
{
    CUevent mine;
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; i < turns; i++) {
        OK(cuEventCreate, &mine, CU_EVENT_DISABLE_TIMING);
        pthread_mutex_lock(&turn);
        if (last) OK(cuStreamWaitEvent, NULL, last, 0);
        LAUNCH(kernel_a, NULL);
        OK(cuEventRecord, mine, NULL);
        if (last) OK(cuEventDestroy_v2, last);
        last = mine;
        pthread_mutex_unlock(&turn);
    }
    return unused;
}

static void threads(int count)
{
    pthread_t thread[64];
    for (int i = 0; i < count && i < 64; i++) THREAD(&thread[i], take_turns, NULL);
    for (int i = 0; i < count && i < 64; i++) pthread_join(thread[i], NULL);
}

static void many(int count)
{
    for (int i = 0; i < count; i++) {
        LAUNCH(kernel_a, a);
        LAUNCH(kernel_b, NULL);
    }
}

static _Atomic long copier; /* the thread that is about to copy */

static void *enqueue_meanwhile(void *gate)
{
    OK(cuCtxSetCurrent, app_context);
    while (!copier || !app_sleeps(copier)) app_sleep_ms(1);
    LAUNCH(kernel_b, b);
    *(volatile unsigned *)gate = 1;
    return NULL;
}

/* The copy waits for the gate, which is opened after the other thread's launch: which all the same
 * comes after the copy. */
static void blocked(void)
{
    pthread_t thread;
    char data[64];
    volatile unsigned *gate = app_gate(CU_STREAM_LEGACY);
    THREAD(&thread, enqueue_meanwhile, (void *)gate);
    copier = app_tid();
    OK(cuMemcpyDtoH_v2, data, memory, sizeof data);
    pthread_join(thread, NULL);
}

static void times(void)
{
    CUfunction slow = app_kernel("sleep_us_100000"), slower = app_kernel("sleep_us_250000");
    CUevent event;
    CUstream beside = stream_new("beside", CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    LAUNCH(slow, a); /* 100 ms */
    LAUNCH(kernel_a, NULL);
    OK(cuCtxSynchronize);
    LAUNCH(slower, a); /* 250 ms, of which 100 go by for the event's sake */
    LAUNCH(slow, beside);
    OK(cuEventRecord, event, beside);
    OK(cuStreamWaitEvent, NULL, event, 0);
    LAUNCH(kernel_b, NULL);
    OK(cuCtxSynchronize);
    LAUNCH(slow, a); /* the longer of two has the time */
    LAUNCH(slower, b);
    LAUNCH(kernel_c, NULL);
}

static void unneeded(void)
{
    for (int i = 0; i < 10; i++) {
        OK(cuMemsetD8Async, memory, i, 64, a);
        OK(cuMemsetD8_v2, memory + 64, i, 64);
        OK(cuCtxSynchronize);
    }
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    turns = argc > 3 ? atoi(argv[3]) : 1;
    app_start(0);
    kernel_a = app_kernel("kernel_a");
    kernel_b = app_kernel("kernel_b");
    kernel_c = app_kernel("kernel_c");
    OK(cuMemAlloc_v2, &memory, 1 << 16);
    a = stream_new("a", CU_STREAM_DEFAULT);
    b = stream_new("b", CU_STREAM_DEFAULT);
    if (!strcmp(part, "legacy")) legacy();
    else if (!strcmp(part, "own")) own();
    else if (!strcmp(part, "capture")) capture();
    else if (!strcmp(part, "contexts")) contexts();
    else if (!strcmp(part, "copies")) copies();
    else if (!strcmp(part, "host")) host();
    else if (!strcmp(part, "early")) early();
    else if (!strcmp(part, "marker")) marker();
    else if (!strcmp(part, "turns")) threads(argc > 2 ? atoi(argv[2]) : 1);
    else if (!strcmp(part, "many")) many(argc > 2 ? atoi(argv[2]) : 1);
    else if (!strcmp(part, "none")) LAUNCH(kernel_a, a);
    else if (!strcmp(part, "times")) times();
    else if (!strcmp(part, "blocked")) blocked();
    else if (!strcmp(part, "unneeded")) unneeded();
    else return 2;
    OK(cuCtxSynchronize);
    app_report();
    return 0;
}
