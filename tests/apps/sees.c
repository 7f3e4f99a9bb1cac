/*
 * Asks all that tells a library whether a tool is in its process, and prints the answers: they are
 * the same with the shim. What is not is noted.
 *
 * sees           it subscribes to CUPTI's callbacks and asks for records itself, as profilers
 * within programs do sees profiler  it begins and ends the profiled range as well, as for a tool
 * that is to record that alone
 */
#include "tests/apps/app.h"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <nvtx3/nvToolsExt.h>

extern char **environ;
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

static void *cupti;
#define CUPTI(name, ...) printf(#name " %d\n", (int)((__typeof__(&name))dlsym(cupti, \
    #name))(__VA_ARGS__))

/* All but what the shim is started with. */
static void environment(const char *when)
{
    static const char *const names[] = {"CUDA_INJECTION64_PATH", "CUDA_DEBUGGER_ATTACHED",
        "NSYS_PROFILING_SESSION_ID", "NVPROF_INJECTION", "CUDA_LAUNCH_BLOCKING", "CUPTI_PATH"};
    for (char **v = environ; *v; v++)
        if (strncmp(*v, "LD_PRELOAD=", 11) && strncmp(*v, "CUSTREAM_", 9))
            printf("%s: %s\n", when, *v);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf("%s: %s is %s\n", when, names[i], getenv(names[i]) ?: "not set");
}

static int callbacks;
static void CUPTIAPI called_back(
    void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *call)
{
    (void)data, (void)domain, (void)id, (void)call;
    callbacks++;
}

static void CUPTIAPI ask(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(8, *size = 1 << 20), *most = 0;
}
static void CUPTIAPI take(
    CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t used)
{
    (void)context, (void)stream, (void)size, (void)used, free(buffer);
}

static void works(CUstream stream)
{
    LAUNCH(app_kernel("empty_kernel"), stream);
    OK(cuStreamSynchronize, stream);
}

/* One client of its callbacks, one of its records; each kind is on or off. */
static void client(CUstream stream)
{
    CUpti_SubscriberHandle first = NULL, second = NULL;
    size_t dropped = 0;
    for (int i = 0; i < 2; i++) {
        CUPTI(cuptiSubscribe, &first, called_back, NULL);
        CUPTI(cuptiSubscribe, &second, called_back, NULL);
        CUPTI(cuptiEnableCallback, 1, first, CUPTI_CB_DOMAIN_DRIVER_API,
            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
        works(stream);
        printf("called back %d\n", callbacks);
        CUPTI(cuptiEnableDomain, 0, first, CUPTI_CB_DOMAIN_DRIVER_API);
        CUPTI(cuptiUnsubscribe, first);
        CUPTI(cuptiUnsubscribe, first);
    }
    CUPTI(cuptiActivityRegisterCallbacks, ask, take);
    CUPTI(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    CUPTI(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    CUPTI(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_MEMCPY);
    CUPTI(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_RUNTIME);
    works(stream);
    CUPTI(cuptiActivityFlushAll, 0);
    CUPTI(cuptiActivityGetNumDroppedRecords, NULL, 0, &dropped);
    CUPTI(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_RUNTIME);
    CUPTI(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_MEMCPY);
    CUPTI(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    CUPTI(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    CUPTI(cuptiGetLastError);
}

int main(int argc, char **argv __attribute__((unused)))
{
    CUstream stream;
    environment("before");
    app_start(0);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    works(stream);
    NOTE("cupti", "%d", dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD) != NULL);
    NOTE("nvtx", "%d %d %d", getenv("NVTX_INJECTION64_PATH") != NULL,
        nvtxDomainCreateA("somebody's") != NULL, nvtxRangePushA("a range"));
    nvtxRangePop();
    cupti = dlopen("libcupti.so.13", RTLD_NOW);
    if (argc > 1) SAY(cuProfilerStop), SAY(cuProfilerStart), SAY(cuProfilerStart);
    client(stream);
    works(stream);
    if (argc > 1) SAY(cuProfilerStop), SAY(cuProfilerStop);
    environment("after");
    app_report();
    return 0;
}
