/*
 * policies LIBMAKER: makes streams in every way that a rule can tell apart, and prints what became
 * of each: "WHAT priority P flags F result R". Then work on the default streams of two threads, and
 * a stream that gets a name. With "names" behind it, four more get one, each on the thread that has
 * made it, and that thread has one too; with "more", calls that no policy can change.
 */
#include "tests/apps/app.h"

#include <nvtx3/nvToolsExtCuda.h>
#include <sys/syscall.h>

typedef int make_streams_fn(int count, void **out);
static make_streams_fn *make_streams;
static int names, more;

static void tell(const char *what, CUresult result, CUstream stream)
{
    int priority = 99;
    unsigned flags = 99;
    if (result == CUDA_SUCCESS) {
        OK(cuStreamGetPriority, stream, &priority);
        OK(cuStreamGetFlags, stream, &flags);
        NOTE(what, "%p", (void *)stream);
    }
    printf("%s priority %d flags %u result %d\n", what, priority, flags, (int)result);
}

static CUstream made(const char *what, unsigned flags, int priority)
{
    CUstream stream = NULL;
    CUresult result = CU(cuStreamCreateWithPriority, &stream, flags, priority);
    tell(what, result, stream);
    return stream;
}

static void name(const char *what, CUstream stream, const char *given)
{
    if (!names || !stream) return;
    nvtxNameCuStreamA(stream, given);
    tell(what, CUDA_SUCCESS, stream);
}

static void plain(void)
{
    CUstream stream = NULL;
    CUresult result = CU(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
    tell("plain", result, stream);
    name("plain", stream, "the first");
}

static void in_library(void)
{
    void *stream = NULL;
    int failed = make_streams(1, &stream);
    tell("library", failed ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, stream);
    name("library", stream, "the library's");
}

static void *in_thread(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "worker-1");
    OK(cuCtxSetCurrent, app_context);
    if (names) nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "communicates");
    name("thread", made("thread", CU_STREAM_DEFAULT, -1), "the worker's");
    OK(cuMemsetD8Async, 0, 0, 0, NULL);
    OK(cuMemsetD8_v2, 0, 0, 0);
    OK(cuMemsetD8Async, 0, 0, 0, CU_STREAM_LEGACY);
    OK(cuMemsetD8Async, 0, 0, 0, CU_STREAM_PER_THREAD);
    OK(cuMemsetD8Async_ptsz, 0, 0, 0, NULL);
    return NULL;
}

static void elsewhere(void)
{
    CUcontext second;
    int devices = 0;
    OK(cuDeviceGetCount, &devices);
    OK(cuCtxCreate_v2, &second, 0, devices > 1 ? 1 : 0);
    name("context", made("context", CU_STREAM_DEFAULT, -1), "the other device's");
    OK(cuCtxSetCurrent, app_context);
}

static void attribute(CUstream stream)
{
    CUstreamAttrValue value = {.priority = -5};
    CUresult result = CU(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
    printf("attribute %d asked %d\n", (int)result, value.priority);
    tell("attribute", CUDA_SUCCESS, stream);
}

static void launch(CUstream stream)
{
    CUlaunchAttribute attributes[] = {
        {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 0},
        {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -5}};
    const CUfunction kernel = app_kernel("empty");
    CUlaunchConfig config = {.gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = stream,
        .attrs = attributes,
        .numAttrs = 2};
    OK(cuLaunchKernelEx, &config, kernel, NULL, NULL);
    printf("launch asked %d on %s\n", attributes[1].value.priority,
        config.hStream == stream ? "its stream" : "another");
    config.hStream = NULL;
    OK(cuLaunchKernelEx, &config, kernel, NULL, NULL);
}

/* One that works on the default stream and has one form only; a launch with more attributes than
 * are looked at, 33. */
static void unchanged(CUstream stream)
{
    unsigned (*old)(unsigned, unsigned char, unsigned) =
        (unsigned (*)(unsigned, unsigned char, unsigned))dlsym(app_driver, "cuMemsetD8");
    CUlaunchAttribute attributes[33] = {{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1}};
    const CUfunction kernel = app_kernel("empty");
    CUlaunchConfig config = {.gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = stream,
        .attrs = attributes,
        .numAttrs = 33};
    for (int i = 0; i < 2; i++) {
        old(0, 0, 0);
        OK(cuLaunchKernelEx, &config, kernel, NULL, NULL);
    }
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int least = 99, greatest = 99;
    pthread_t thread;
    if (!library || !(make_streams = (make_streams_fn *)dlsym(library, "make_streams")))
        return puts(dlerror()), 2;
    names = argc > 2 && !strcmp(argv[2], "names");
    more = argc > 2 && !strcmp(argv[2], "more");
    app_start(0);
    OK(cuCtxGetStreamPriorityRange, &least, &greatest);
    OK(cuCtxGetStreamPriorityRange, NULL, NULL);
    printf("range %d %d\n", least, greatest);
    plain();
    CUstream second = made("second", CU_STREAM_NON_BLOCKING, -2);
    made("lowest", CU_STREAM_DEFAULT, -100);
    made("above", CU_STREAM_DEFAULT, 7);
    in_library();
    THREAD(&thread, in_thread, NULL);
    pthread_join(thread, NULL);
    elsewhere();
    attribute(second);
    launch(second);
    if (more) unchanged(second);
    OK(cuMemsetD8Async, 0, 0, 0, NULL);
    CUstream named = made("named", CU_STREAM_DEFAULT, 0);
    nvtxNameCuStreamA(named, "comm 0");
    tell("named", CUDA_SUCCESS, named);
    OK(cuMemsetD8Async, 0, 0, 0, named);
    return 0;
}
