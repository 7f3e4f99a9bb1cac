/*
 * shared_work: a program that relies on what CUDA says of streams, for the policies that share,
 * serialise, delay or wait for their work. Prints JSON lines:
 *
 *   handles    how many different handles came of so many creations of one kind
 *   part       of each part whether its results were right
 *   launch     milliseconds that the call took which launches a kernel of 30 ms; `kernel_ms`
 *   overlap    milliseconds until two such kernels on two streams had ended
 */
#define _GNU_SOURCE
#include <cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry sleep_a(.param .u32 us)\n{\n"
    ".reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %t<4>;\n"
    "ld.param.u32 %r, [us];\nmul.wide.u32 %t0, %r, 1000;\nmov.u64 %t1, %globaltimer;\n"
    "again:\nmov.u64 %t2, %globaltimer;\nsub.u64 %t3, %t2, %t1;\nsetp.lt.u64 %p, %t3, %t0;\n@%p "
    "bra again;\nret;\n}\n";

#define MUST(call) \
    do { \
        CUresult rc_ = (call); \
        if (rc_ != CUDA_SUCCESS) fprintf(stderr, "shared_work: %s gave %d\n", #call, (int)rc_), \
        exit(1); \
    } while (0)

enum { BYTES = 1 << 20, ROUNDS = 40, KERNEL_US = 30000 };

static CUcontext context;
static CUfunction sleep_a;
static unsigned char back[BYTES];

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void launch(CUstream stream, unsigned us)
{
    void *arguments[] = {&us};
    MUST(cuLaunchKernel(sleep_a, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

static CUdeviceptr memory(void)
{
    CUdeviceptr at;
    MUST(cuMemAlloc(&at, BYTES));
    MUST(cuMemsetD8(at, 0, BYTES));
    MUST(cuCtxSynchronize());
    return at;
}

static CUevent event(void)
{
    CUevent e;
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    return e;
}

/* The bytes are all `value`, as a copy on the legacy default stream sees them. */
static int all_are(CUdeviceptr at, unsigned char value)
{
    memset(back, 0xee, BYTES);
    MUST(cuMemcpyDtoH(back, at, BYTES));
    for (int i = 0; i < BYTES; i++)
        if (back[i] != value) return 0;
    return 1;
}

static void part(const char *name, int right)
{
    printf("{\"what\":\"part\",\"name\":\"%s\",\"right\":%s}\n", name, right ? "true" : "false");
}

/* --- handles --- */

enum { MANY = 8 };

static void create(CUstream streams[MANY], const char *kind, unsigned flags, int priority)
{
    int different = 0;
    for (int i = 0; i < MANY; i++) {
        int earlier = 0, got;
        unsigned got_flags;
        MUST(cuStreamCreateWithPriority(&streams[i], flags, priority));
        MUST(cuStreamGetPriority(streams[i], &got));
        MUST(cuStreamGetFlags(streams[i], &got_flags));
        if (got != priority || got_flags != flags)
            fprintf(stderr, "shared_work: priority %d flags %u\n", got, got_flags), exit(1);
        for (int j = 0; j < i; j++) earlier |= streams[j] == streams[i];
        different += !earlier;
    }
    printf("{\"what\":\"handles\",\"kind\":\"%s\",\"created\":%d,\"different\":%d}\n", kind, MANY,
        different);
}

/* --- order --- */

/* Two streams hand a buffer to each other by events; each copies it on after a while. */
static void handed_on(CUstream a, CUstream b)
{
    CUdeviceptr x = memory(), y = memory();
    CUevent from_a = event(), from_b = event();
    int right = 1;
    for (int i = 1; i <= ROUNDS; i++) {
        launch(a, 100);
        MUST(cuMemsetD8Async(x, (unsigned char)i, BYTES, a));
        MUST(cuEventRecord(from_a, a));
        MUST(cuStreamWaitEvent(b, from_a, 0));
        launch(b, 50);
        MUST(cuMemcpyDtoDAsync(y, x, BYTES, b));
        MUST(cuEventRecord(from_b, b));
        MUST(cuStreamWaitEvent(a, from_b, 0));
        if (i % 10) continue;
        MUST(cuStreamSynchronize(b));
        right &= all_are(y, (unsigned char)i);
    }
    MUST(cuCtxSynchronize());
    part("handed on by events", right && all_are(x, ROUNDS));
    MUST(cuMemFree(x));
    MUST(cuMemFree(y));
}

/* What a blocking stream has been given comes before what the default stream is given then, and the
 * other way round. */
static void implicit(CUstream blocking)
{
    CUdeviceptr x = memory();
    launch(blocking, 3000);
    MUST(cuMemsetD8Async(x, 5, BYTES, blocking));
    int right = all_are(x, 5);
    launch(NULL, 3000);
    MUST(cuMemsetD8Async(x, 6, BYTES, NULL));
    MUST(cuMemcpyDtoHAsync(back, x, BYTES, blocking));
    MUST(cuStreamSynchronize(blocking));
    for (int i = 0; i < BYTES; i++) right &= back[i] == 6;
    part("implicit order", right);
    MUST(cuMemFree(x));
}

static int called;
static void CUDA_CB call(void *by) { called = called * 3 + (int)(intptr_t)by; }

static void host_functions(CUstream a, CUstream b)
{
    CUevent e = event();
    launch(a, 2000);
    MUST(cuLaunchHostFunc(a, call, (void *)1));
    MUST(cuEventRecord(e, a));
    MUST(cuStreamWaitEvent(b, e, 0));
    MUST(cuLaunchHostFunc(b, call, (void *)2));
    MUST(cuStreamSynchronize(b));
    part("host functions", called == 1 * 3 + 2);
}

/* One captures, another joins; launched three times. */
static void graphs(CUstream a, CUstream b)
{
    CUdeviceptr x = memory(), y = memory();
    CUevent fork = event(), join = event();
    CUgraph graph;
    CUgraphExec exec;
    MUST(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuMemsetD8Async(x, 11, BYTES, a));
    MUST(cuEventRecord(fork, a));
    MUST(cuStreamWaitEvent(b, fork, 0));
    launch(b, 500);
    MUST(cuMemcpyDtoDAsync(y, x, BYTES, b));
    MUST(cuEventRecord(join, b));
    MUST(cuStreamWaitEvent(a, join, 0));
    MUST(cuMemsetD8Async(x, 12, BYTES, a));
    MUST(cuStreamEndCapture(a, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    int right = all_are(x, 0);
    for (int i = 0; i < 3; i++) MUST(cuGraphLaunch(exec, a));
    MUST(cuStreamSynchronize(a));
    part("graphs", right && all_are(y, 11) && all_are(x, 12));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    MUST(cuMemFree(x));
    MUST(cuMemFree(y));
}

/* --- time --- */

static void times(CUstream a, CUstream b)
{
    MUST(cuCtxSynchronize());
    double begin = now_ms();
    launch(a, KERNEL_US);
    double launched = now_ms();
    launch(b, KERNEL_US);
    MUST(cuCtxSynchronize());
    double end = now_ms();
    printf("{\"what\":\"launch\",\"ms\":%.3f,\"kernel_ms\":%.3f}\n", launched - begin,
        KERNEL_US / 1e3);
    printf("{\"what\":\"overlap\",\"ms\":%.3f,\"kernel_ms\":%.3f}\n", end - begin, KERNEL_US / 1e3);
}

int main(void)
{
    CUstream plain[MANY], blocking[MANY], urgent[MANY];
    CUdevice device;
    CUmodule module;
    int least, greatest;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&sleep_a, module, "sleep_a"));
    MUST(cuCtxGetStreamPriorityRange(&least, &greatest));
    launch(NULL, 1);
    create(plain, "non-blocking", CU_STREAM_NON_BLOCKING, 0);
    create(blocking, "blocking", CU_STREAM_DEFAULT, 0);
    create(urgent, "non-blocking, greatest priority", CU_STREAM_NON_BLOCKING, greatest);
    handed_on(plain[0], plain[1]);
    handed_on(blocking[0], urgent[0]);
    implicit(blocking[2]);
    host_functions(plain[2], urgent[1]);
    graphs(plain[0], plain[1]);
    times(plain[0], plain[1]);
    CUstream *all[] = {plain, blocking, urgent};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < MANY; i++) MUST(cuStreamDestroy(all[k][i]));
    MUST(cuCtxSynchronize());
    return 0;
}
