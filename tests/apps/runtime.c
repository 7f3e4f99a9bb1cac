/*
 * runtime [plain|first|ranges|many|keeps|driver]: a program linked to a shared runtime. It says of each function of the runtime how often it called it.
 *
 * plain works with streams, events, copies, launches and graphs on two threads; first makes one call; keeps shows that errno stays; driver calls the driver
 * alone; ranges has ranges of NVTX open around its first calls, and between others.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#define EACH(E)                                                                                                                                      \
    E(cudaStreamCreateWithFlags) E(cudaStreamCreateWithPriority) E(cudaStreamDestroy) E(cudaStreamSynchronize) E(cudaStreamSynchronize_ptsz)          \
    E(cudaStreamQuery) E(cudaStreamWaitEvent) E(cudaStreamWaitEvent_ptsz) E(cudaEventCreate) E(cudaEventDestroy) E(cudaEventRecord)                   \
    E(cudaEventRecord_ptsz) E(cudaEventSynchronize) E(cudaEventElapsedTime) E(cudaMemcpy) E(cudaMemcpy_ptds) E(cudaMemcpyAsync)                       \
    E(cudaMemcpyAsync_ptsz) E(cudaMemset) E(cudaMemsetAsync) E(cudaMemsetAsync_ptsz) E(cudaLaunchKernel) E(cudaLaunchKernel_ptsz)                     \
    E(__cudaLaunchKernel) E(cudaStreamBeginCapture) E(cudaStreamEndCapture) E(cudaGraphInstantiate) E(cudaGraphLaunch) E(cudaGraphExecDestroy)        \
    E(cudaGraphDestroy) E(cudaDeviceSynchronize) E(cudaStreamCreate) E(cudaMallocAsync) E(cudaFreeAsync)

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
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);

static void fill(void) { abort(); } /* the host's side of a kernel */

static void kernels_register(void)
{
    static int image[4];
    void **binary = __cudaRegisterFatBinary(image);
    __cudaRegisterFunction(binary, (const char *)fill, NULL, "fill", -1, NULL, NULL, NULL, NULL, NULL);
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
    for (int i = 0; i < 3; i++) OK(R(cudaLaunchKernel, (const void *)fill, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, a));
    OK(R(cudaLaunchKernel_ptsz, (const void *)fill, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, 0));
    OK(__cudaGetKernel(&kernel, (const void *)fill));
    OK(R(__cudaLaunchKernel, kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, a));
    OK(R(cudaEventRecord, end, a)), OK(R(cudaStreamWaitEvent, b, end, 0)), OK(R(cudaStreamWaitEvent_ptsz, NULL, end, 0));
    OK(R(cudaEventSynchronize, end)), OK(R(cudaEventElapsedTime, &ms, begin, end));
    OK(R(cudaMemcpyAsync, host, memory, sizeof host, cudaMemcpyDeviceToHost, b)), OK(R(cudaStreamSynchronize, b));
    for (int i = 0; i < N; i++) add(host[i]);
    OK(R(cudaMemsetAsync, memory, 1, sizeof host, b)), OK(R(cudaMemsetAsync_ptsz, memory, 1, sizeof host, NULL)), OK(R(cudaMemset, memory, 1, sizeof host));
    OK(R(cudaEventRecord_ptsz, begin, NULL)), OK(R(cudaStreamSynchronize_ptsz, NULL));
    OK(R(cudaMemcpyAsync_ptsz, host, memory, sizeof host, cudaMemcpyDeviceToHost, NULL));
    OK(R(cudaMemcpy, host, memory, sizeof host, cudaMemcpyDeviceToHost)), OK(R(cudaMemcpy_ptds, memory, host, sizeof host, cudaMemcpyHostToDevice));
    OK(R(cudaStreamBeginCapture, a, cudaStreamCaptureModeThreadLocal)), OK(R(cudaMemsetAsync, memory, 2, sizeof host, a));
    OK(R(cudaStreamEndCapture, a, &graph)), OK(R(cudaGraphInstantiate, &exec, graph, 0)), OK(R(cudaGraphLaunch, exec, a));
    OK(R(cudaGraphExecDestroy, exec)), OK(R(cudaGraphDestroy, graph));
    OK(R(cudaStreamSynchronize, a));
    /* Errors come back, and stand in the runtime until they are asked for. */
    OK(R(cudaStreamQuery, bad)), OK(R(cudaLaunchKernel, (const void *)work, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, a));
    OK(cudaPeekAtLastError()), OK(cudaGetLastError()), OK(cudaGetLastError());
    OK(R(cudaEventDestroy, begin)), OK(R(cudaEventDestroy, end)), OK(R(cudaStreamDestroy, a)), OK(R(cudaStreamDestroy, b)), OK(cudaFree(memory));
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

static void keeps(void)
{
    int kept = 0;
    cudaStream_t stream;
    (void)!dlopen("/nowhere/libnothing.so", RTLD_NOW); /* its error has to wait until somebody asks */
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
    else if (!strcmp(what, "driver")) driver();
    else if (!strcmp(what, "first")) OK(R(cudaStreamCreate, &stream));
    for (int i = 0; i < COUNT; i++)
        if (counts[i]) printf("runtime %s %d\n", names[i], counts[i]);
    printf("sum %u\n", sum);
    return 0;
}
