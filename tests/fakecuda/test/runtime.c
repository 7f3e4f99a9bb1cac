/* The stand-in runtime: streams, memory, registered kernels, capture, both families of default
 * streams. */
#include <cuda_runtime_api.h>

#include <unistd.h>

#include "check.h"

extern void **__cudaRegisterFatBinary(void *image);
extern void __cudaUnregisterFatBinary(void **handle);
extern void __cudaRegisterFunction(
    void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
extern cudaError_t cudaLaunchKernel_ptsz(const void *, dim3, dim3, void **, size_t, cudaStream_t);
extern cudaError_t cudaStreamGetId_ptsz(cudaStream_t, unsigned long long *);
extern cudaError_t cudaStreamQuery_ptsz(cudaStream_t);

static void fill(void) { puts("host stub"); }
static void sleeper(void) { puts("other host stub"); }
static void unknown(void) { puts("never registered"); }

static const dim3 one = {1, 1, 1};

static void test_memory(void)
{
    uint32_t *device, value = 0x01020304, count = 64, back[64] = {0};
    void *arguments[] = {&device, &value, &count};

    OK(cudaMalloc((void **)&device, sizeof back));
    OK(cudaMemset(device, 0x11, sizeof back));
    OK(cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost));
    CHECK_IS(back[63], 0x11111111);
    OK(cudaLaunchKernel((const void *)fill, one, one, arguments, 0, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(back, device, sizeof back, cudaMemcpyDefault));
    CHECK_IS(back[0], 0x01020304);
    CHECK_IS(back[63], 0x01020304);
    OK(cudaFree(device));
    CHECK_IS(cudaFree(device), cudaErrorInvalidValue);
    CHECK_IS(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaGetLastError());
    CHECK_IS(cudaLaunchKernel((const void *)unknown, one, one, NULL, 0, NULL),
        cudaErrorInvalidDeviceFunction);
    CHECK_IS(cudaPeekAtLastError(), cudaErrorInvalidDeviceFunction);
    cudaGetLastError();
}

static _Atomic int gate_is_open;
static void CUDART_CB gate(void *unused)
{
    (void)unused;
    while (!gate_is_open) usleep(200);
}

static void test_streams(void)
{
    cudaStream_t s;
    cudaEvent_t a, b;
    unsigned microseconds = 20000;
    void *arguments[] = {&microseconds};
    unsigned long long legacy, own;
    float ms;

    OK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -2));
    OK(cudaEventCreate(&a));
    OK(cudaEventCreate(&b));
    OK(cudaEventRecord(a, s));
    OK(cudaLaunchKernel((const void *)sleeper, one, one, arguments, 0, s));
    OK(cudaEventRecord(b, s));
    OK(cudaLaunchHostFunc(s, gate, NULL));
    CHECK_IS(cudaStreamQuery(s), cudaErrorNotReady);
    gate_is_open = 1;
    OK(cudaStreamSynchronize(s));
    OK(cudaEventElapsedTime(&ms, a, b));
    CHECK(ms >= 19.9f && ms < 19900); /* milliseconds; a busy machine may have been late */
    OK(cudaStreamGetId(NULL, &legacy));
    OK(cudaStreamGetId_ptsz(NULL, &own));
    CHECK(legacy == 7 && own > 7);
    OK(cudaLaunchKernel_ptsz((const void *)sleeper, one, one, arguments, 0, NULL));
    CHECK_IS(cudaStreamQuery_ptsz(NULL), cudaErrorNotReady);
    OK(cudaDeviceSynchronize());
    OK(cudaStreamDestroy(s));
    OK(cudaEventDestroy(a));
    OK(cudaEventDestroy(b));
}

static void test_capture(void)
{
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    unsigned char *device, back[16] = {0};
    size_t nodes;

    OK(cudaStreamCreate(&s));
    OK(cudaMallocAsync((void **)&device, 16, s));
    OK(cudaMemsetAsync(device, 1, 16, s));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    OK(cudaMemsetAsync(device, 7, 16, s));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphGetNodes(graph, NULL, &nodes));
    CHECK_IS(nodes, 1);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    OK(cudaMemcpyAsync(back, device, 16, cudaMemcpyDeviceToHost, s));
    CHECK_IS(back[15], 1);
    OK(cudaGraphLaunch(exec, s));
    OK(cudaMemcpyAsync(back, device, 16, cudaMemcpyDeviceToHost, s));
    OK(cudaStreamSynchronize(s));
    CHECK_IS(back[15], 7);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaFreeAsync(device, s));
    OK(cudaStreamDestroy(s));
}

int main(void)
{
    void **binary = __cudaRegisterFatBinary("any image");
    int device, count, version;
    void *pointer = NULL;
    enum cudaDriverEntryPointQueryResult status;

    begin();
    __cudaRegisterFunction(
        binary, (const char *)fill, NULL, "_Z4fillPjjj", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(
        binary, (const char *)sleeper, NULL, "_Z5sleepj", -1, NULL, NULL, NULL, NULL, NULL);
    OK(cudaGetDeviceCount(&count));
    CHECK(count >= 1);
    OK(cudaGetDevice(&device));
    CHECK_IS(device, 0);
    OK(cudaRuntimeGetVersion(&version));
    CHECK(version >= 13000);
    CHECK_IS(cudaSetDevice(99), cudaErrorInvalidDevice);
    cudaGetLastError();
    test_memory();
    test_streams();
    test_capture();
    OK(cudaGetDriverEntryPointByVersion(
        "cuStreamCreate", &pointer, 12000, cudaEnableDefault, &status));
    CHECK(pointer && status == cudaDriverEntryPointSuccess);
    __cudaUnregisterFatBinary(binary);
    FINISH();
}
