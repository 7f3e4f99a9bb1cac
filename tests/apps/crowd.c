/*
 * crowd THREADS LAUNCHES [STACK_MIB]: as many threads at once, each with a stream, a kernel each 10
 * ms, and stacks of that size (8). From 4 GiB of stacks on, threads have the same low half of
 * pthread_self().
 */
#include <cuda.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST(call) \
    do { \
        CUresult rc_ = (call); \
        if (rc_ != CUDA_SUCCESS) printf("%s gave %d\n", #call, (int)rc_), exit(1); \
    } while (0)

static CUcontext context;
static CUfunction kernel;
static int launches;

static void *work(void *arg)
{
    CUstream stream;
    (void)arg;
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < launches; i++) {
        MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
        usleep(10000);
    }
    MUST(cuStreamSynchronize(stream));
    return NULL;
}

int main(int argc, char **argv)
{
    enum { MOST = 4096 };
    static pthread_t threads[MOST];
    const int count = argc > 1 ? atoi(argv[1]) : 0;
    pthread_attr_t attr;
    CUdevice device;
    CUmodule module;
    launches = argc > 2 ? atoi(argv[2]) : 0;
    if (count < 1 || count > MOST || launches < 1) return 2;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module,
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"));
    MUST(cuModuleGetFunction(&kernel, module, "k"));
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t)(argc > 3 ? atoi(argv[3]) : 8) << 20);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attr, work, NULL)) return printf("no thread\n"), 1;
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    printf("all right\n");
    return 0;
}
