/*
 * The program that `make demo` traces: an inference server in small.
 *
 * Three streams of different priority, pinned copies in and out, kernels of known length, a
 * consumer that waits for its producer's event, a host function, a graph captured once and launched
 * many times, and a second thread with work of its own. It reaches the driver by dlopen and dlsym
 * and knows nothing of custream. `demo --probe` only tells by its exit status whether a driver with
 * a device is there.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Spins for `us` microseconds. The simulated GPU knows a kernel of this name. */
static const char ptx[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry sleep(.param .u32 us)\n{\n"
    ".reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %t<4>;\n"
    "ld.param.u32 %r, [us];\nmul.wide.u32 %t0, %r, 1000;\nmov.u64 %t1, %globaltimer;\n"
    "again:\nmov.u64 %t2, %globaltimer;\nsub.u64 %t3, %t2, %t1;\nsetp.lt.u64 %p, %t3, %t0;\n@%p "
    "bra again;\nret;\n}\n";

#define DRIVER(X) \
    X(cuInit) X(cuDeviceGetCount) X(cuDeviceGetName) X(cuDevicePrimaryCtxRetain) \
    X(cuDevicePrimaryCtxRelease_v2) X(cuCtxSetCurrent) \
    X(cuModuleLoadData) X(cuModuleGetFunction) X(cuMemAlloc_v2) X(cuMemFree_v2) \
    X(cuMemAllocHost_v2) X(cuMemFreeHost) X(cuStreamCreateWithPriority) \
    X(cuStreamDestroy_v2) X(cuStreamSynchronize) X(cuStreamWaitEvent) X(cuEventCreate) \
    X(cuEventDestroy_v2) X(cuEventRecord) X(cuEventSynchronize) \
    X(cuMemcpyHtoDAsync_v2) X(cuMemcpyDtoHAsync_v2) X(cuMemsetD8Async) X(cuLaunchKernel) \
    X(cuLaunchHostFunc) X(cuStreamBeginCapture_v2) \
    X(cuStreamEndCapture) X(cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuGraphExecDestroy) \
    X(cuGraphDestroy) X(cuCtxSynchronize)

#define POINTER(name) static __typeof__(&name) p_##name;
DRIVER(POINTER)

static int driver_open(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return 0;
#define LOOK_UP(name) \
    if (!(p_##name = (__typeof__(&name))dlsym(driver, #name))) return 0;
    DRIVER(LOOK_UP)
    return 1;
}

#define CHECK(call) \
    do { \
        CUresult r_ = (call); \
        if (r_ != CUDA_SUCCESS) fprintf(stderr, "demo: %s gave CUDA error %d\n", #call, (int)r_), \
        exit(1); \
    } while (0)

enum { BYTES = 1 << 20, REQUESTS = 12 };
static CUcontext context;
static CUfunction sleep_kernel;

static void run_kernel(CUstream stream, unsigned us)
{
    void *arguments[] = {&us};
    CHECK(p_cuLaunchKernel(sleep_kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

static void CUDA_CB request_done(void *answered) { ++*(int *)answered; }

static CUgraphExec capture_postprocessing(CUstream stream)
{
    CUgraph graph;
    CUgraphExec exec;
    CHECK(p_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    run_kernel(stream, 60);
    run_kernel(stream, 40);
    CHECK(p_cuStreamEndCapture(stream, &graph));
    CHECK(p_cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(p_cuGraphDestroy(graph));
    return exec;
}

/* Copies come in on one stream, the model runs on the urgent one after them, results leave on a
 * third after that. */
static int serve(void)
{
    CUstream in, model, out;
    CUevent loaded, computed;
    CUdeviceptr device;
    void *host;
    int answered = 0;
    CHECK(p_cuStreamCreateWithPriority(&in, CU_STREAM_NON_BLOCKING, 0));
    CHECK(p_cuStreamCreateWithPriority(&model, CU_STREAM_NON_BLOCKING, -5));
    CHECK(p_cuStreamCreateWithPriority(&out, CU_STREAM_NON_BLOCKING, -1));
    CHECK(p_cuEventCreate(&loaded, CU_EVENT_DISABLE_TIMING));
    CHECK(p_cuEventCreate(&computed, CU_EVENT_DISABLE_TIMING));
    CHECK(p_cuMemAlloc_v2(&device, BYTES));
    CHECK(p_cuMemAllocHost_v2(&host, BYTES));
    memset(host, 1, BYTES);
    CUgraphExec postprocessing = capture_postprocessing(out);
    for (int i = 0; i < REQUESTS; i++) {
        CHECK(p_cuMemcpyHtoDAsync_v2(device, host, BYTES, in));
        CHECK(p_cuEventRecord(loaded, in));
        CHECK(p_cuStreamWaitEvent(model, loaded, 0));
        run_kernel(model, 300);
        CHECK(p_cuEventRecord(computed, model));
        CHECK(p_cuStreamWaitEvent(out, computed, 0));
        CHECK(p_cuGraphLaunch(postprocessing, out));
        CHECK(p_cuMemcpyDtoHAsync_v2(host, device, BYTES, out));
        CHECK(p_cuLaunchHostFunc(out, request_done, &answered));
        if (i % 4 == 3) CHECK(p_cuEventSynchronize(computed));
    }
    CHECK(p_cuStreamSynchronize(out));
    CHECK(p_cuGraphExecDestroy(postprocessing));
    CHECK(p_cuMemFreeHost(host));
    CHECK(p_cuMemFree_v2(device));
    CHECK(p_cuEventDestroy_v2(loaded));
    CHECK(p_cuEventDestroy_v2(computed));
    CHECK(p_cuStreamDestroy_v2(in));
    CHECK(p_cuStreamDestroy_v2(model));
    CHECK(p_cuStreamDestroy_v2(out));
    return answered;
}

/* A second thread that uses the default stream, as code that never thought of streams does. */
static void *housekeeping(void *unused)
{
    CUdeviceptr scratch;
    pthread_setname_np(pthread_self(), "housekeeping");
    CHECK(p_cuCtxSetCurrent(context));
    CHECK(p_cuMemAlloc_v2(&scratch, BYTES));
    for (int i = 0; i < 5; i++) {
        CHECK(p_cuMemsetD8Async(scratch, (unsigned char)i, BYTES, NULL));
        run_kernel(NULL, 200);
        CHECK(p_cuStreamSynchronize(NULL));
    }
    CHECK(p_cuMemFree_v2(scratch));
    return unused;
}

int main(int argc, char **argv)
{
    int devices = 0;
    char name[128];
    pthread_t second;
    CUmodule module;
    int there = driver_open() && p_cuInit(0) == CUDA_SUCCESS &&
                p_cuDeviceGetCount(&devices) == CUDA_SUCCESS && devices > 0;
    if (argc > 1 && !strcmp(argv[1], "--probe")) return !there;
    if (!there) return fprintf(stderr, "demo: no CUDA driver with a device\n"), 1;
    CHECK(p_cuDeviceGetName(name, sizeof name, 0));
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    CHECK(p_cuModuleLoadData(&module, ptx));
    CHECK(p_cuModuleGetFunction(&sleep_kernel, module, "sleep"));
    pthread_create(&second, NULL, housekeeping, NULL);
    int answered = serve();
    pthread_join(second, NULL);
    CHECK(p_cuCtxSynchronize());
    printf("demo: %d of %d requests answered on %s\n", answered, REQUESTS, name);
    return p_cuDevicePrimaryCtxRelease_v2(0) != CUDA_SUCCESS || answered != REQUESTS;
}
