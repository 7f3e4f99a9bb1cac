/*
 * Objects that come and go faster than is convenient. churn HOW:
 *
 *     events          two threads create and destroy events, whose handles the driver gives out
 * again at once refused N M     N events alive, the last M of them used three times each sync a
 * stream is destroyed while another thread waits for it, long enough for the shim to have forgotten
 * it contexts        a thread uses its default stream in 12 contexts; when it has ended, a second
 * one does the same defaults N      N contexts one after the other, in each of which both default
 * streams are used threads         short threads one after the other, each with few calls callbacks
 * N     200 host functions that make N calls each unload          a module is unloaded, and kernels
 * of another are launched again
 */
#include "tests/apps/app.h"

static CUfunction empty;
static CUstream stream;

static void *creates_events(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; i < 20000; i++) {
        CUevent event;
        OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
        OK(cuEventDestroy_v2, event);
    }
    return unused;
}

static void two_threads(void *(*run)(void *))
{
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) THREAD(&thread[i], run, NULL);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
}

static void refused(long n, long used)
{
    CUevent *events = calloc((size_t)n, sizeof *events);
    for (long i = 0; i < n; i++) OK(cuEventCreate, &events[i], CU_EVENT_DISABLE_TIMING);
    for (int round = 0; round < 3; round++)
        for (long i = n - used; i < n; i++) OK(cuEventRecord, events[i], stream);
}

static _Atomic long waiter;

static void *waits(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    waiter = app_tid();
    SAY(cuStreamSynchronize, stream);
    return unused;
}

static void sync_and_destroy(void)
{
    pthread_t thread;
    volatile unsigned *gate = app_gate(stream);
    LAUNCH(app_kernel("sleep_us_100000"), stream);
    THREAD(&thread, waits, NULL);
    while (!waiter || !app_sleeps(waiter)) app_sleep_ms(1);
    OK(cuStreamDestroy_v2, stream);
    *gate = 1;
    pthread_join(thread, NULL);
}

static CUcontext contexts[12];

static void *uses_all(void *name)
{
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 12; i++) {
        OK(cuCtxSetCurrent, contexts[i]);
        OK(cuStreamQuery, CU_STREAM_PER_THREAD);
    }
    return name;
}

static void one_after_the_other(void)
{
    pthread_t thread;
    for (int i = 0; i < 12; i++) OK(cuCtxCreate_v2, &contexts[i], 0, 0);
    THREAD(&thread, uses_all, "first");
    pthread_join(thread, NULL);
    app_flush(); /* the writer has seen that it ended */
    THREAD(&thread, uses_all, "second");
    pthread_join(thread, NULL);
}

static void both_defaults(long n)
{
    for (long i = 0; i < n; i++) {
        CUcontext own;
        OK(cuCtxCreate_v2, &own, 0, 0);
        OK(cuStreamQuery, NULL);
        OK(cuStreamQuery, CU_STREAM_PER_THREAD);
        OK(cuCtxDestroy_v2, own);
    }
    OK(cuCtxSetCurrent, app_context);
}

static void *few_calls(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; i < 50; i++) LAUNCH(empty, stream);
    return unused;
}

static void short_threads(void)
{
    pthread_t thread;
    for (int i = 0; i < 20; i++) {
        THREAD(&thread, few_calls, NULL);
        pthread_join(thread, NULL);
        app_flush();
    }
}

static void CUDA_CB calls_back(void *n)
{
    int priority;
    for (long i = 0; i < (long)n; i++) (void)!CU(cuStreamGetPriority, stream, &priority);
}

static void callbacks(long n)
{
    for (int i = 0; i < 200; i++) OK(cuLaunchHostFunc, stream, calls_back, (void *)n);
    OK(cuStreamSynchronize, stream);
}

static void unload(void)
{
    CUmodule other;
    CUfunction kernel = app_kernel("my_kernel");
    OK(cuModuleLoadData, &other, ".version 7.0\n.target sm_52\n.address_size 64\n");
    LAUNCH(kernel, stream);
    OK(cuModuleUnload, other);
    LAUNCH(kernel, stream);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? atol(argv[2]) : 0;
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    if (!strcmp(how, "events")) two_threads(creates_events);
    else if (!strcmp(how, "refused")) refused(n, argc > 3 ? atol(argv[3]) : 0);
    else if (!strcmp(how, "sync")) sync_and_destroy();
    else if (!strcmp(how, "contexts")) one_after_the_other();
    else if (!strcmp(how, "defaults")) both_defaults(n);
    else if (!strcmp(how, "threads")) short_threads();
    else if (!strcmp(how, "callbacks")) callbacks(n);
    else if (!strcmp(how, "unload")) unload();
    else return 2;
    app_report();
    return 0;
}
