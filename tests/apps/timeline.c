/*
 * Calls of every kind with arguments that a case knows: launches, copies, memsets, events,
 * failures, default streams, priorities, a second thread. Built twice: with dlsym, and linked to
 * the driver.
 */
#include "tests/apps/app.h"

enum { BYTES = 4096 };

static CUstream plain, free_running, urgent, clamped;
static CUfunction empty;

static void *worker(void *unused)
{
    pthread_setname_np(pthread_self(), "worker");
    OK(cuCtxSetCurrent, app_context);
    NOTE("worker", "%ld", app_tid());
    for (int i = 0; i < 5; i++)
        OK(cuLaunchKernel_ptsz, empty, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL);
    for (int i = 0; i < 3; i++) LAUNCH(empty, plain);
    OK(cuStreamSynchronize_ptsz, NULL);
    app_flush(); /* the writer has met this thread, while its name is there to read */
    return unused;
}

static void launches(void)
{
    /* A name that would break a careless writer of JSON: a quote, a backslash, a control character,
     * a tab, UTF-8, and a byte that is none. */
    CUfunction odd = app_kernel("odd\"\\\x01\t\xc3\xa9\xff_kernel");
    OK(cuLaunchKernel, empty, 2, 3, 4, 32, 2, 1, 256, plain, NULL, NULL);
    OK(cuLaunchKernel, odd, 1, 1, 1, 1, 1, 1, 0, free_running, NULL, NULL);
    CUlaunchConfig config = {.gridDimX = 5,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 128,
        .blockDimY = 1,
        .blockDimZ = 2};
    config.sharedMemBytes = 48;
    config.hStream = urgent;
    OK(cuLaunchKernelEx, &config, empty, NULL, NULL);
    OK(cuLaunchCooperativeKernel, empty, 7, 1, 1, 8, 1, 1, 0, clamped, NULL);
    for (int i = 0; i < 10; i++) LAUNCH(empty, free_running);
}

static void copies(void)
{
    CUdeviceptr device, other;
    void *host;
    char *pageable = calloc(1, BYTES);
    OK(cuMemAlloc_v2, &device, BYTES);
    OK(cuMemAlloc_v2, &other, BYTES);
    OK(cuMemAllocHost_v2, &host, BYTES);
    OK(cuMemcpyHtoDAsync_v2, device, host, 4096, plain);
    OK(cuMemcpyDtoHAsync_v2, host, device, 1000, plain);
    OK(cuMemcpyDtoDAsync_v2, other, device, 77, plain);
    OK(cuMemcpyHtoD_v2, device, pageable, 123);
    OK(cuMemcpyAsync, other, device, 55, free_running);
    OK(cuMemsetD8Async, device, 7, 64, urgent);
    OK(cuMemsetD32Async, device, 9, 16, urgent);
    OK(cuMemsetD8_v2, device, 0, 32);
    OK(cuMemsetD8Async, device, 1, 8, CU_STREAM_LEGACY);
    OK(cuMemcpyHtoDAsync_v2_ptsz, device, host, 11, NULL);
    OK(cuMemsetD8Async, device, 1, 8, CU_STREAM_PER_THREAD);
    OK(cuStreamSynchronize, plain);
    OK(cuStreamSynchronize, urgent);
    OK(cuMemFreeHost, host);
    OK(cuMemFree_v2, device);
    OK(cuMemFree_v2, other);
    free(pageable);
}

static void events(void)
{
    CUevent first, second;
    float ms;
    OK(cuEventCreate, &first, CU_EVENT_DEFAULT);
    OK(cuEventCreate, &second, CU_EVENT_BLOCKING_SYNC);
    OK(cuEventRecord, first, plain);
    OK(cuEventRecord, second, plain);
    OK(cuEventSynchronize, second);
    OK(cuEventQuery, first);
    OK(cuEventElapsedTime, &ms, first, second);
    OK(cuEventDestroy_v2, first);
    OK(cuEventDestroy_v2, second);
}

static void failures(void)
{
    CUstream unused;
    volatile unsigned *gate = app_gate(urgent);
    SAY(cuStreamQuery, urgent); /* not ready: the gate is closed */
    *gate = 1;
    OK(cuStreamSynchronize, urgent);
    OK(cuMemFreeHost, (void *)gate);
    SAY(cuStreamSynchronize, (CUstream)(size_t)0xdeadbeef0);
    SAY(cuStreamCreate, &unused, 0xff00);
    SAY(cuEventRecord, (CUevent)(size_t)0xdeadbeef0, plain);
    SAY(cuLaunchKernel, empty, 0, 1, 1, 1, 1, 1, 0, plain, NULL, NULL);
}

int main(void)
{
    pthread_t thread;
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &plain, CU_STREAM_DEFAULT);
    OK(cuStreamCreate, &free_running, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreateWithPriority, &urgent, CU_STREAM_NON_BLOCKING, -3);
    OK(cuStreamCreateWithPriority, &clamped, CU_STREAM_DEFAULT, -100);
    NOTE("plain", "%p", (void *)plain);
    NOTE("free_running", "%p", (void *)free_running);
    NOTE("urgent", "%p", (void *)urgent);
    NOTE("clamped", "%p", (void *)clamped);
    NOTE("main", "%ld", app_tid());
    launches();
    copies();
    events();
    failures();
    THREAD(&thread, worker, NULL);
    pthread_join(thread, NULL);
    OK(cuCtxSynchronize);
    OK(cuStreamDestroy_v2, plain);
    OK(cuStreamDestroy_v2, free_running);
    OK(cuStreamDestroy_v2, urgent);
    OK(cuStreamDestroy_v2, clamped);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    app_report();
    return 0;
}
