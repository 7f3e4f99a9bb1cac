/*
 * runtime
 * [plain|first|ranges|many|keeps|driver|windows|early|blocked|behind|subscriber|subscribed|leaves|stays|finalizes]:
 * a program of the runtime. It says of each function of the runtime how often it called it.
 *
 * plain works with streams, events, copies, launches and graphs on two threads; first makes one
 * call; keeps shows that errno stays; driver calls the driver alone; ranges has ranges of NVTX open
 * around its first calls, and between others. windows works three times, the first and the last in
 * a window of the profiler, with a while between them, and counts those calls alone; early is the
 * same with the first window before there is a context; blocked has a thread in a call when a
 * window closes, and for a while; behind launches kernels in a short time without a window, which
 * run in the next one. subscriber works twice, and takes CUPTI's callbacks for its own before the
 * second time; subscribed before the first; leaves does the same as subscriber, gives them back and
 * works, twice over; stays has a window of the profiler's around the first, finalizes ends CUPTI
 * after it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <cupti_callbacks.h>
#include <cupti_runtime_cbid.h>
#include <nvtx3/nvToolsExt.h>

#define EACH(E) \
    E(cudaStreamCreateWithFlags) E(cudaStreamCreateWithPriority) E(cudaStreamDestroy) \
    E(cudaStreamSynchronize) E(cudaStreamSynchronize_ptsz) \
    E(cudaStreamQuery) E(cudaStreamWaitEvent) E(cudaStreamWaitEvent_ptsz) E(cudaEventCreate) \
    E(cudaEventDestroy) E(cudaEventRecord) \
    E(cudaEventRecord_ptsz) E(cudaEventSynchronize) E(cudaEventElapsedTime) E(cudaMemcpy) \
    E(cudaMemcpy_ptds) E(cudaMemcpyAsync) \
    E(cudaMemcpyAsync_ptsz) E(cudaMemset) E(cudaMemsetAsync) E(cudaMemsetAsync_ptsz) \
    E(cudaLaunchKernel) E(cudaLaunchKernel_ptsz) \
    E(__cudaLaunchKernel) E(cudaStreamBeginCapture) E(cudaStreamEndCapture) \
    E(cudaGraphInstantiate) E(cudaGraphLaunch) E(cudaGraphExecDestroy) \
    E(cudaGraphDestroy) E(cudaDeviceSynchronize) E(cudaStreamCreate) E(cudaMallocAsync) \
    E(cudaFreeAsync)

enum {
#define E(name) N_##name,
    EACH(E)
#undef E
        COUNT
};
static const char *const names[] = {
#define E(name) #name,
    EACH(E)
#undef E
};
static _Atomic int counts[COUNT];
static void counted(int which) { atomic_fetch_add(&counts[which], 1); }
#define R(name, ...) (counted(N_##name), name(__VA_ARGS__))

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t);
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t, cudaEvent_t, unsigned);
cudaError_t cudaEventRecord_ptsz(cudaEvent_t, cudaStream_t);
cudaError_t cudaMemcpy_ptds(void *, const void *, size_t, enum cudaMemcpyKind);
cudaError_t cudaMemcpyAsync_ptsz(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemsetAsync_ptsz(void *, int, size_t, cudaStream_t);
cudaError_t cudaLaunchKernel_ptsz(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaRegisterFunction(
    void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);

static void fill(void) { abort(); } /* the host's side of a kernel */

static void kernels_register(void)
{
    static int image[4];
    void **binary = __cudaRegisterFatBinary(image);
    __cudaRegisterFunction(
        binary, (const char *)fill, NULL, "fill", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(binary);
}

static unsigned sum; /* of all results and of what was computed */
static pthread_mutex_t sum_lock = PTHREAD_MUTEX_INITIALIZER;
static void add(unsigned value)
{
    pthread_mutex_lock(&sum_lock);
    sum += value;
    pthread_mutex_unlock(&sum_lock);
}
#define OK(...) add(1000u * (unsigned)(__VA_ARGS__))

static void *work(void *unused)
{
    enum { N = 64 };
    (void)unused;
    cudaStream_t a, b, bad = (cudaStream_t)(intptr_t)0x1234560;
    cudaEvent_t begin, end;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaKernel_t kernel;
    void *memory, *other;
    unsigned host[N], value = 7, count = N;
    float ms;
    OK(R(cudaStreamCreateWithFlags, &a, cudaStreamNonBlocking));
    OK(R(cudaStreamCreateWithPriority, &b, cudaStreamNonBlocking, -1));
    OK(R(cudaEventCreate, &begin)), OK(R(cudaEventCreate, &end));
    OK(cudaMalloc(&memory, sizeof host));
    OK(R(cudaMallocAsync, &other, 64, a)), OK(R(cudaFreeAsync, other, a));
    OK(R(cudaEventRecord, begin, a));
    void *arguments[] = {&memory, &value, &count};
    for (int i = 0; i < 3; i++)
        OK(R(cudaLaunchKernel, (const void *)fill, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0,
            a));
    OK(R(cudaLaunchKernel_ptsz, (const void *)fill, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0,
        0));
    OK(__cudaGetKernel(&kernel, (const void *)fill));
    OK(R(__cudaLaunchKernel, kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, a));
    OK(R(cudaEventRecord, end, a)), OK(R(cudaStreamWaitEvent, b, end, 0)),
        OK(R(cudaStreamWaitEvent_ptsz, NULL, end, 0));
    OK(R(cudaEventSynchronize, end)), OK(R(cudaEventElapsedTime, &ms, begin, end));
    OK(R(cudaMemcpyAsync, host, memory, sizeof host, cudaMemcpyDeviceToHost, b)),
        OK(R(cudaStreamSynchronize, b));
    for (int i = 0; i < N; i++) add(host[i]);
    OK(R(cudaMemsetAsync, memory, 1, sizeof host, b)),
        OK(R(cudaMemsetAsync_ptsz, memory, 1, sizeof host, NULL)),
        OK(R(cudaMemset, memory, 1, sizeof host));
    OK(R(cudaEventRecord_ptsz, begin, NULL)), OK(R(cudaStreamSynchronize_ptsz, NULL));
    OK(R(cudaMemcpyAsync_ptsz, host, memory, sizeof host, cudaMemcpyDeviceToHost, NULL));
    OK(R(cudaMemcpy, host, memory, sizeof host, cudaMemcpyDeviceToHost)),
        OK(R(cudaMemcpy_ptds, memory, host, sizeof host, cudaMemcpyHostToDevice));
    OK(R(cudaStreamBeginCapture, a, cudaStreamCaptureModeThreadLocal)),
        OK(R(cudaMemsetAsync, memory, 2, sizeof host, a));
    OK(R(cudaStreamEndCapture, a, &graph)), OK(R(cudaGraphInstantiate, &exec, graph, 0)),
        OK(R(cudaGraphLaunch, exec, a));
    OK(R(cudaGraphExecDestroy, exec)), OK(R(cudaGraphDestroy, graph));
    OK(R(cudaStreamSynchronize, a));
    /* Errors come back, and stand in the runtime until they are asked for. */
    OK(R(cudaStreamQuery, bad)), OK(R(cudaLaunchKernel, (const void *)work, (dim3){1, 1, 1},
                                     (dim3){1, 1, 1}, arguments, 0, a));
    OK(cudaPeekAtLastError()), OK(cudaGetLastError()), OK(cudaGetLastError());
    OK(R(cudaEventDestroy, begin)), OK(R(cudaEventDestroy, end)), OK(R(cudaStreamDestroy, a)),
        OK(R(cudaStreamDestroy, b)), OK(cudaFree(memory));
    return NULL;
}

static void plain(void)
{
    pthread_t thread;
    kernels_register();
    for (int i = 0; i < 3; i++) work(NULL);
    pthread_create(&thread, NULL, work, NULL);
    work(NULL);
    pthread_join(thread, NULL);
    OK(R(cudaDeviceSynchronize));
}

static void ranges(void)
{
    cudaStream_t stream;
    nvtxRangePush("outer");
    nvtxRangePush("inner");
    OK(R(cudaStreamCreate, &stream));
    OK(R(cudaStreamSynchronize, stream));
    nvtxRangePop();
    for (int i = 0; i < 100; i++) {
        nvtxRangePush("one");
        OK(R(cudaStreamSynchronize, stream));
        nvtxMark("mark");
        OK(R(cudaStreamSynchronize, stream));
        nvtxRangePop();
    }
    OK(R(cudaStreamDestroy, stream));
    nvtxRangePop();
}

static void many(void)
{
    cudaStream_t stream;
    OK(R(cudaStreamCreate, &stream));
    for (int i = 0; i < 20000; i++) {
        if (i % 16 == 0) nvtxRangePush("sixteen");
        OK(R(cudaStreamSynchronize, stream)), OK(R(cudaDeviceSynchronize));
        if (i % 16 == 15) nvtxRangePop();
    }
}

static int (*profiler_start)(void), (*profiler_stop)(void);
static void profiler_find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    profiler_start = (int (*)(void))dlsym(library, "cuProfilerStart");
    profiler_stop = (int (*)(void))dlsym(library, "cuProfilerStop");
    OK(((int (*)(unsigned))dlsym(library, "cuInit"))(0));
}

/* Long enough for whoever looks at calls to have let go; some seconds also to have gone. */
static void windows(bool early, unsigned closed_us)
{
    cudaStream_t stream;
    profiler_find();
    kernels_register();
    if (!early) OK(cudaStreamCreate(&stream));
    for (int turn = 0; turn < 3; turn++) {
        int before[COUNT];
        memcpy(before, counts, sizeof counts);
        if (turn != 1) profiler_start();
        work(NULL);
        if (turn != 1) profiler_stop();
        else usleep(closed_us), work(NULL), memcpy(counts, before, sizeof counts);
    }
}

static pthread_barrier_t turns;
static void CUDART_CB hold(void *us) { usleep(*(unsigned *)us); }
static void *waits(void *arg)
{
    static unsigned turn_us[] = {600000, 1000};
    cudaStream_t stream = arg;
    cudaEvent_t event;
    for (int turn = 0; turn < 2; turn++) {
        pthread_barrier_wait(&turns);
        if (turn) OK(R(cudaEventCreate, &event));
        OK(cudaLaunchHostFunc(stream, hold, &turn_us[turn]));
        OK(R(cudaStreamSynchronize, stream));
        pthread_barrier_wait(&turns);
    }
    return NULL;
}

/* The thread's calls in both windows: the first ends when that one is long closed. */
static void blocked(void)
{
    cudaStream_t stream;
    pthread_t thread;
    profiler_find();
    profiler_start();
    OK(R(cudaStreamCreate, &stream));
    pthread_barrier_init(&turns, NULL, 2);
    pthread_create(&thread, NULL, waits, stream);
    pthread_barrier_wait(&turns);
    usleep(50000);
    profiler_stop();
    pthread_barrier_wait(&turns);
    profiler_start();
    pthread_barrier_wait(&turns);
    pthread_barrier_wait(&turns);
    pthread_join(thread, NULL);
    OK(R(cudaDeviceSynchronize));
}

static _Atomic int told;
static void CUPTIAPI tell(
    void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *call)
{
    (void)call;
    if (data == &told && domain == CUPTI_CB_DOMAIN_RUNTIME_API &&
        id == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000)
        atomic_fetch_add(&told, 1);
}

static void behind(void)
{
    static unsigned held_us = 600000;
    cudaStream_t stream;
    void *memory;
    profiler_find();
    kernels_register();
    profiler_start();
    OK(R(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking));
    OK(cudaMalloc(&memory, 64)); /* and all that a first launch does is done */
    OK(R(cudaMemsetAsync, memory, 0, 64, stream)), OK(R(cudaStreamSynchronize, stream));
    OK(cudaLaunchHostFunc(stream, hold, &held_us));
    profiler_stop();
    for (int i = 0; i < 10; i++) OK(cudaMemsetAsync(memory, i, 64, stream));
    profiler_start();
    OK(R(cudaStreamSynchronize, stream));
    OK(R(cudaMemsetAsync, memory, 0, 64, stream)), OK(R(cudaStreamSynchronize, stream));
}

/* Says how many launches CUPTI told of: of the second work alone, or of both. */
static void subscriber(bool first, bool window, bool finalizes)
{
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    __typeof__(&cuptiSubscribe) subscribe = (__typeof__(subscribe))dlsym(library, "cuptiSubscribe");
    __typeof__(&cuptiEnableCallback) enable =
        (__typeof__(enable))dlsym(library, "cuptiEnableCallback");
    CUpti_SubscriberHandle handle = NULL;
    kernels_register();
    if (!first) work(NULL);
    OK(subscribe(&handle, tell, &told));
    OK(enable(
        1, handle, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
    if (window) profiler_find(), profiler_start();
    work(NULL);
    if (window) profiler_stop(), usleep(2500000);
    if (finalizes) OK(((CUptiResult(*)(void))dlsym(library, "cuptiFinalize"))());
    if (first) work(NULL);
    printf("told of %d\n", told / 2);
}

/* Works without, with and without CUPTI's callbacks, and once more. */
static void leaves(void)
{
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    __typeof__(&cuptiSubscribe) subscribe = (__typeof__(subscribe))dlsym(library, "cuptiSubscribe");
    __typeof__(&cuptiUnsubscribe) unsubscribe =
        (__typeof__(unsubscribe))dlsym(library, "cuptiUnsubscribe");
    __typeof__(&cuptiEnableCallback) enable =
        (__typeof__(enable))dlsym(library, "cuptiEnableCallback");
    int (*flush)(void) = (int (*)(void))dlsym(RTLD_DEFAULT,
        "custream_trace_flush"); /* when that is done so is what was left to be done */
    kernels_register();
    for (int i = 0; i < 2; i++) {
        CUpti_SubscriberHandle handle = NULL;
        work(NULL);
        OK(subscribe(&handle, tell, &told));
        OK(enable(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API,
            CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
        work(NULL);
        OK(unsubscribe(handle));
        if (flush) OK(flush());
    }
    work(NULL);
    printf("told of %d\n", told / 2);
}

static void keeps(void)
{
    int kept = 0;
    cudaStream_t stream;
    (void)!dlopen(
        "/nowhere/libnothing.so", RTLD_NOW); /* its error has to wait until somebody asks */
    errno = 1001;
    OK(R(cudaStreamCreate, &stream));
    printf("first errno %d\n", errno == 1001); /* the runtime itself may change it here */
    for (int i = 0; i < 10; i++) {
        errno = 1002 + i;
        OK(R(cudaStreamSynchronize, stream)), OK(R(cudaDeviceSynchronize));
        kept += errno == 1002 + i;
    }
    OK(R(cudaStreamDestroy, stream));
    printf("errno kept %d\n", kept);
}

static void driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context, *stream;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
    int (*current)(void *) = (int (*)(void *))dlsym(library, "cuCtxSetCurrent");
    int (*create)(void **, unsigned) = (int (*)(void **, unsigned))dlsym(library, "cuStreamCreate");
    OK(init(0)), OK(retain(&context, 0)), OK(current(context)), OK(create(&stream, 0));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "plain";
    cudaStream_t stream;
    if (!strcmp(what, "plain")) plain();
    else if (!strcmp(what, "ranges")) ranges();
    else if (!strcmp(what, "many")) many();
    else if (!strcmp(what, "keeps")) keeps();
    else if (!strcmp(what, "windows")) windows(false, argc > 2 ? (unsigned)atoi(argv[2]) : 0);
    else if (!strcmp(what, "early")) windows(true, argc > 2 ? (unsigned)atoi(argv[2]) : 0);
    else if (!strcmp(what, "blocked")) blocked();
    else if (!strcmp(what, "subscriber")) subscriber(false, false, false);
    else if (!strcmp(what, "subscribed")) subscriber(true, false, false);
    else if (!strcmp(what, "leaves")) leaves();
    else if (!strcmp(what, "stays")) subscriber(true, true, false);
    else if (!strcmp(what, "finalizes")) subscriber(true, false, true);
    else if (!strcmp(what, "behind")) behind();
    else if (!strcmp(what, "driver")) driver();
    else if (!strcmp(what, "first")) OK(R(cudaStreamCreate, &stream));
    for (int i = 0; i < COUNT; i++)
        if (counts[i]) printf("runtime %s %d\n", names[i], counts[i]);
    printf("sum %u\n", sum);
    return 0;
}
