/*
 * errno and dlerror stay as the program left them, whatever it calls: at the very first call, at
 * later ones, at failing ones. Linked to the driver, so that the program itself gives the loader
 * nothing to do in between.
 */
#include "tests/apps/app.h"

static int kept_errno, lost_errno, kept_error, lost_error;

static void before(void)
{
    dlerror();
    (void)!dlopen("/nowhere/libnothing.so", RTLD_NOW);
    errno = 77;
}

static void after(const char *call)
{
    const char *error;
    if (errno == 77) kept_errno++;
    else lost_errno++, printf("%s changed errno to %d\n", call, errno);
    error = dlerror();
    if (error && strstr(error, "/nowhere/libnothing.so")) kept_error++;
    else
        lost_error++, printf("%s took the loader's error away: %s\n", call, error ? error : "none");
}

#define KEEPS(symbol, ...) (before(), (void)!CU(symbol, ##__VA_ARGS__), after(#symbol))

int make_streams(int count, void **out);
int make_events(int count);

static void *thread_first(void *unused)
{
    KEEPS(cuStreamQuery, NULL); /* the first call of a thread, without a context */
    return unused;
}

int main(void)
{
    CUdevice device;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUfunction empty = NULL;
    CUdeviceptr memory = 0;
    pthread_t thread;
    KEEPS(cuDriverGetVersion, &(int){0});
    KEEPS(cuStreamCreate, &stream, 0); /* the first call of the process, before cuInit: refused */
    KEEPS(cuInit, 0);
    KEEPS(cuDeviceGet, &device, 0);
    KEEPS(cuDevicePrimaryCtxRetain, &app_context, 0);
    KEEPS(cuStreamQuery, NULL);
    KEEPS(cuCtxSetCurrent, app_context);
    KEEPS(cuModuleLoadData, &app_module, "");
    KEEPS(cuModuleGetFunction, &empty, app_module, "empty_kernel");
    KEEPS(cuStreamCreate, &stream, 0);
    KEEPS(cuStreamCreateWithPriority, &stream, 1, -2);
    KEEPS(cuStreamCreate, NULL, 0);
    KEEPS(cuEventCreate, &event, 0);
    KEEPS(cuEventRecord, event, stream);
    KEEPS(cuStreamWaitEvent, stream, event, 0);
    KEEPS(cuMemAlloc_v2, &memory, 64);
    KEEPS(cuMemsetD8Async, memory, 0, 64, stream);
    KEEPS(cuMemsetD8Async, memory, 0, 64, NULL);
    KEEPS(cuMemsetD8Async, memory, 0, 64, CU_STREAM_PER_THREAD);
    KEEPS(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    KEEPS(cuLaunchKernel, empty, 0, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    KEEPS(cuStreamSynchronize, (CUstream)(size_t)0xdeadbeef0);
    KEEPS(cuEventSynchronize, event);
    KEEPS(cuStreamDestroy_v2, stream);
    KEEPS(cuStreamDestroy_v2, stream);
    KEEPS(cuEventDestroy_v2, event);
    before();
    make_streams(1, NULL);
    after("a stream made by a library");
    before();
    make_events(1);
    after("an event made by a library");
    THREAD(&thread, thread_first, NULL);
    pthread_join(thread, NULL);
    KEEPS(cuDevicePrimaryCtxReset_v2, 0);
    printf("errno kept %d lost %d, dlerror kept %d lost %d\n", kept_errno, lost_errno, kept_error,
        lost_error);
    return lost_errno || lost_error;
}
