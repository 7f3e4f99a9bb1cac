/*
 * sampled THREADS LAUNCHES US: each thread launches a kernel of US microseconds so often, on a
 * stream of its own. Prints JSON lines:
 *
 *   sum    how often a kernel ran: each adds one to a number on the GPU
 *   mean   microseconds of a kernel, by two events around all of a thread's, the mean of all
 * threads
 */
#include <cuda.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry sleep_a(.param .u32 us, .param .u64 sum)\n{\n"
    ".reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %t<5>;\n"
    "ld.param.u32 %r, [us];\nmul.wide.u32 %t0, %r, 1000;\nmov.u64 %t1, %globaltimer;\n"
    "again:\nmov.u64 %t2, %globaltimer;\nsub.u64 %t3, %t2, %t1;\nsetp.lt.u64 %p, %t3, %t0;\n@%p "
    "bra again;\n"
    "ld.param.u64 %t4, [sum];\ncvta.to.global.u64 %t4, %t4;\nred.global.add.u32 [%t4], "
    "1;\nret;\n}\n";

#define MUST(call) \
    do { \
        CUresult rc_ = (call); \
        if (rc_ != CUDA_SUCCESS) fprintf(stderr, "sampled: %s gave %d\n", #call, (int)rc_), \
        exit(1); \
    } while (0)

enum { THREADS_MAX = 16 };
static CUcontext context;
static CUfunction kernel;
static CUdeviceptr sum;
static unsigned us;
static long launches;

static void *work(void *mean)
{
    CUstream stream;
    CUevent from, to;
    float ms;
    void *arguments[] = {&us, &sum};
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&from, CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&to, CU_EVENT_DEFAULT));
    MUST(cuEventRecord(from, stream));
    for (long i = 0; i < launches; i++)
        MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
    MUST(cuEventRecord(to, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuEventElapsedTime(&ms, from, to));
    *(double *)mean = (double)ms * 1e3 / (double)launches;
    MUST(cuStreamDestroy(stream));
    return NULL;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 0;
    double means[THREADS_MAX], all = 0;
    pthread_t thread[THREADS_MAX];
    CUdevice device;
    CUmodule module;
    unsigned ran = 0;
    launches = argc > 2 ? atol(argv[2]) : 0;
    us = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
    if (threads < 1 || threads > THREADS_MAX || launches < 1)
        return fprintf(stderr, "usage: sampled THREADS LAUNCHES US\n"), 2;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&kernel, module, "sleep_a"));
    MUST(cuMemAlloc(&sum, sizeof ran));
    MUST(cuMemcpyHtoD(sum, &ran, sizeof ran));
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, work, &means[i]);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL), all += means[i];
    MUST(cuMemcpyDtoH(&ran, sum, sizeof ran));
    printf("{\"what\":\"sum\",\"sum\":%u}\n{\"what\":\"mean\",\"us\":%.3f}\n", ran, all / threads);
    return 0;
}
