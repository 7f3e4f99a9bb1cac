/*
 * null_stream: what calls on the legacy default stream wait for that put no work on it, which the
 * audit of the default stream builds on. A kernel is under way on a stream that is blocking, or
 * not; a call is made; has the kernel ended by the time that what comes after the call has? The
 * table below has the answers of an H200 (docs/measurements.md); exits with 1 where one differs.
 *
 *     null_stream [gates]    gates: where the answer is no the kernel stands behind a gate that
 * opens only then, so no machine's speed decides, and a wait where there should be none hangs until
 * the alarm. Not on a real GPU, whose cuMemsetD8 waits for such a gate on any stream
 */
#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/patience.h"

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
        if (rc_ != CUDA_SUCCESS) fprintf(stderr, "null_stream: %s gave %d\n", #call, (int)rc_), \
        exit(1); \
    } while (0)

static CUfunction sleep_a;
static CUstream kernel_on, blocking,
    apart; /* the kernel's; another blocking one; one that waits for nobody */
static CUevent event;
static CUdeviceptr memory;
static volatile unsigned *gate;
static bool gates;

static void launch(CUstream stream, unsigned us)
{
    void *arguments[] = {&us};
    MUST(cuLaunchKernel(sleep_a, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

/* --- the host waits --- */

static void synchronize(void) { MUST(cuStreamSynchronize(CU_STREAM_LEGACY)); }
static void query(void)
{
    while (cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY) continue;
}
static void record(void)
{
    MUST(cuEventRecord(event, CU_STREAM_LEGACY));
    MUST(cuEventSynchronize(event));
}
static void per_thread(void) { MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD)); }

/* --- work on another stream waits: of what the call on the default stream waits for --- */

static void record_before_blocking(void)
{
    MUST(cuEventRecord(event, CU_STREAM_LEGACY));
    launch(blocking, 1);
    MUST(cuStreamSynchronize(blocking));
}
static void query_before_blocking(void)
{
    cuStreamQuery(CU_STREAM_LEGACY);
    launch(blocking, 1);
    MUST(cuStreamSynchronize(blocking));
}
static void record_for_apart(void)
{
    MUST(cuEventRecord(event, CU_STREAM_LEGACY));
    MUST(cuStreamWaitEvent(apart, event, 0));
    launch(apart, 1);
    MUST(cuStreamSynchronize(apart));
}
static void wait_before_blocking(void)
{
    MUST(cuEventRecord(event, kernel_on));
    MUST(cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0));
    launch(blocking, 1);
    MUST(cuStreamSynchronize(blocking));
}
static void wait_before_work_and_blocking(void)
{
    MUST(cuEventRecord(event, kernel_on));
    MUST(cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0));
    launch(CU_STREAM_LEGACY, 1);
    launch(blocking, 1);
    MUST(cuStreamSynchronize(blocking));
}
static void wait_before_synchronize(void)
{
    MUST(cuEventRecord(event, kernel_on));
    MUST(cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0));
    MUST(cuStreamSynchronize(CU_STREAM_LEGACY));
}
static void wait_of_blocking_before_default(void)
{
    MUST(cuEventRecord(event, kernel_on));
    MUST(cuStreamWaitEvent(blocking, event, 0));
    launch(CU_STREAM_LEGACY, 1);
    MUST(cuEventRecord(event, CU_STREAM_LEGACY));
    MUST(cuEventSynchronize(event));
}
static void work(void)
{
    launch(CU_STREAM_LEGACY, 1);
    launch(blocking, 1);
    MUST(cuStreamSynchronize(blocking));
}
static void set(void)
{ /* of device memory: asynchronous to the host, but on the default stream */
    MUST(cuMemsetD8(memory, 1, 64));
    MUST(cuStreamSynchronize(CU_STREAM_LEGACY));
}
static void nothing(void)
{
    launch(blocking, 1);
    MUST(cuStreamSynchronize(blocking));
}

static const struct {
    const char *name;
    void (*run)(void);
    bool waits[2]; /* for a kernel on a non-blocking stream, on a blocking one */
} cases[] = {
    {"nothing", nothing, {false, false}},
    {"work, then work on a blocking stream", work, {false, true}},
    {"cuStreamSynchronize", synchronize, {false, true}},
    {"cuStreamQuery until ready", query, {false, true}},
    {"cuStreamSynchronize of the per-thread stream", per_thread, {false, false}},
    {"cuMemsetD8", set, {false, true}},
    {"cuEventRecord, then the host waits for it", record, {false, true}},
    {"cuEventRecord, then work on a blocking stream", record_before_blocking, {false, true}},
    {"cuStreamQuery, then work on a blocking stream", query_before_blocking, {false, false}},
    {"cuEventRecord, then a non-blocking stream waits for it", record_for_apart, {false, true}},
    {"cuStreamWaitEvent, then work on a blocking stream", wait_before_blocking, {true, true}},
    {"cuStreamWaitEvent, work, then work on a blocking stream", wait_before_work_and_blocking,
        {true, true}},
    {"cuStreamWaitEvent, then cuStreamSynchronize", wait_before_synchronize, {true, true}},
    {"cuStreamWaitEvent of a blocking stream, then work", wait_of_blocking_before_default,
        {true, true}},
};

static bool waits(void (*body)(void), bool on_blocking, bool expected)
{
    MUST(cuStreamCreate(&kernel_on, on_blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    MUST(cuCtxSynchronize());
    *gate = expected;
    if (gates)
        MUST(cuStreamWaitValue32(
            kernel_on, (CUdeviceptr)(uintptr_t)gate, 1, CU_STREAM_WAIT_VALUE_GEQ));
    launch(kernel_on, 200000);
    body();
    CUresult ended = cuStreamQuery(kernel_on);
    *gate = 1;
    MUST(cuCtxSynchronize());
    MUST(cuStreamDestroy(kernel_on));
    return ended == CUDA_SUCCESS;
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    int wrong = 0;
    gates = argc > 1 && !strcmp(argv[1], "gates");
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&sleep_a, module, "sleep_a"));
    MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    MUST(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemAlloc(&memory, 64));
    MUST(cuMemAllocHost((void **)&gate, 64));
    alarm(patience(60));
    launch(blocking, 1);
    launch(CU_STREAM_LEGACY, 1);
    MUST(cuCtxSynchronize());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int on = 0; on < 2; on++) {
            printf("%s, the kernel on a %sblocking stream: %s\n", cases[i].name, on ? "" : "non-",
                cases[i].waits[on] ? "waits" : "does not wait");
            fflush(stdout);
            if (waits(cases[i].run, on, cases[i].waits[on]) == cases[i].waits[on]) continue;
            printf("  no\n");
            wrong++;
        }
    }
    printf("%zu cases, %d wrong\n", sizeof cases / sizeof *cases, wrong);
    return wrong != 0;
}
