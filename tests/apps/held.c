/*
 * Calls that are no row of the call table's, and those that make objects, while the loader's lock
 * is held (held.h); tests/siblings.c makes the others.
 *
 *   held first|execs|nvtx|runtime|cupti LIBRARY
 */
#include "tests/apps/app.h"
#include "tests/apps/held.h"

#include <cuda_runtime_api.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>

/* All that makes an object, from a place that nobody has called from before. */
static void make_objects(void)
{
    CUstream stream;
    CUevent event;
    CUcontext made;
    CUdevice device = 0;
    held_at = "cuStreamCreate";
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuStreamDestroy_v2, stream);
    held_at = "cuStreamCreateWithPriority";
    OK(cuStreamCreateWithPriority, &stream, CU_STREAM_DEFAULT, 0);
    held_at = "cuEventCreate";
    OK(cuEventCreate, &event, CU_EVENT_DEFAULT);
    OK(cuEventRecord, event, stream);
    held_at = "cuStreamSynchronize";
    OK(cuStreamSynchronize, stream);
    OK(cuEventSynchronize, event);
    held_at = "cuCtxCreate_v2";
    OK(cuCtxCreate_v2, &made, 0, device);
    held_at = "cuStreamCreate in another context";
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    held_at = "cuCtxDestroy_v2";
    OK(cuCtxDestroy_v2, made);
}

static void first(void)
{
    void *found;
    CUdriverProcAddressQueryResult status;
    app_start(0);
    held_at = "cuGetProcAddress";
    OK(cuGetProcAddress, "cuLaunchKernel", &found, 12000, 0);
    OK(cuGetProcAddress_v2, "cuStreamCreate", &found, 12000, 0, &status);
    held_at = "a launch";
    CUfunction kernel = app_kernel("empty");
    LAUNCH(kernel, NULL);
    held_at = "what it has looked up";
    CUstream stream;
    if (((__typeof__(&cuStreamCreate))found)(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        exit(9);
    make_objects();
}

/* Each failure would have all records written before. */
static void execs(void)
{
    app_start(0);
    held_at = "execv";
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSynchronize);
        execv("/nonexistent", (char *[]){NULL});
    }
}

static void nvtx(void)
{
    CUstream stream;
    held_at = "nvtxRangePush";
    nvtxRangePushA("before CUDA");
    app_start(0);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    held_at = "nvtxNameCuStream";
    nvtxNameCuStreamA(stream, "named");
    nvtxMarkA("a mark");
    nvtxRangePop();
}

static void runtime(void)
{
    cudaStream_t stream;
    cudaEvent_t event;
    held_at = "cudaStreamCreate";
    if (cudaStreamCreate(&stream)) exit(9);
    held_at = "cudaEventCreate";
    if (cudaEventCreate(&event) || cudaEventRecord(event, stream)) exit(9);
    held_at = "cudaStreamSynchronize";
    if (cudaStreamSynchronize(stream) || cudaStreamDestroy(stream)) exit(9);
    make_objects();
}

static void CUPTIAPI called(
    void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    (void)unused, (void)domain, (void)id, (void)data;
}
static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *records)
{
    *size = 1 << 16, *records = 0, *buffer = malloc(*size);
}
static void CUPTIAPI complete(
    CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream, (void)size, (void)valid;
    free(buffer);
}

/* A client that has been through its look-ups. */
static void cupti_ready(void)
{
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

static void cupti(void)
{
    CUpti_SubscriberHandle subscriber;
    app_start(0);
    held_at = "cuptiActivityRegisterCallbacks";
    cuptiActivityRegisterCallbacks(request, complete);
    held_at = "cuptiActivityEnable";
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    held_at = "cuptiSubscribe";
    if (cuptiSubscribe(&subscriber, called, NULL) == CUPTI_SUCCESS) cuptiUnsubscribe(subscriber);
    CUfunction kernel = app_kernel("empty");
    LAUNCH(kernel, NULL);
    OK(cuCtxSynchronize);
    held_at = "cuptiActivityFlushAll";
    cuptiActivityFlushAll(0);
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    const char *how = argv[1];
    if (!strcmp(how, "first")) return held_run(argv[2], first);
    if (!strcmp(how, "execs")) return held_run(argv[2], execs);
    if (!strcmp(how, "nvtx")) return nvtxInitialize(NULL), held_run(argv[2], nvtx);
    if (!strcmp(how, "runtime")) return cudaFree(NULL), held_run(argv[2], runtime);
    if (!strcmp(how, "cupti")) return cupti_ready(), held_run(argv[2], cupti);
    return 2;
}
