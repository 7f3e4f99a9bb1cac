/* known.h by the driver API. The names of the kernels are such that the simulated GPU knows them
 * too. */
#include "known.h"

#include <cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SPIN(name) \
    ".visible .entry " name "(.param .u32 us)\n{\n" \
    ".reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %t<4>;\n" \
    "ld.param.u32 %r, [us];\nmul.wide.u32 %t0, %r, 1000;\nmov.u64 %t1, %globaltimer;\n" \
    "again:\nmov.u64 %t2, %globaltimer;\nsub.u64 %t3, %t2, %t1;\nsetp.lt.u64 %p, %t3, %t0;\n@%p bra again;\nret;\n}\n"

static const char *const names[] = {"sleep_a", "sleep_b"};
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n" SPIN("sleep_a") SPIN("sleep_b");

static CUcontext context;
static CUfunction kernels[2];

#define MUST(call) \
    do { \
        CUresult rc_ = (call); \
        if (rc_ != CUDA_SUCCESS) fprintf(stderr, "known: %s gave %d\n", #call, (int)rc_), exit(1); \
    } while (0)

void known_begin(void)
{
    CUdevice device;
    CUmodule module;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    for (int i = 0; i < 2; i++) MUST(cuModuleGetFunction(&kernels[i], module, names[i]));
}

void known_thread(void) { MUST(cuCtxSetCurrent(context)); }

known_stream known_stream_create(int nonblocking, int priority)
{
    CUstream stream;
    MUST(cuStreamCreateWithPriority(
        &stream, nonblocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT, priority));
    return stream;
}

known_event known_event_create(int timing)
{
    CUevent event;
    MUST(cuEventCreate(&event, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING));
    return event;
}

void known_record(known_event event, known_stream stream) { MUST(cuEventRecord(event, stream)); }
void known_wait(known_stream stream, known_event event)
{
    MUST(cuStreamWaitEvent(stream, event, 0));
}

double known_elapsed_ms(known_event from, known_event to)
{
    float ms = 0;
    MUST(cuEventElapsedTime(&ms, from, to));
    return ms;
}

void known_launch(int which, unsigned grid, unsigned us, known_stream stream)
{
    void *arguments[] = {&us};
    MUST(cuLaunchKernel(kernels[which], grid, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

const char *known_kernel(int which) { return names[which]; }

void *known_device_memory(size_t bytes)
{
    CUdeviceptr at;
    MUST(cuMemAlloc(&at, bytes));
    return (void *)(uintptr_t)at;
}

void *known_pinned_memory(size_t bytes)
{
    void *at;
    MUST(cuMemAllocHost(&at, bytes));
    return at;
}

static CUdeviceptr device(const void *at) { return (CUdeviceptr)(uintptr_t)at; }

void known_copy(enum known_way way, void *to, const void *from, size_t bytes, known_stream stream)
{
    switch (way) {
    case KNOWN_HTOD: MUST(cuMemcpyHtoDAsync(device(to), from, bytes, stream)); break;
    case KNOWN_DTOH: MUST(cuMemcpyDtoHAsync(to, device(from), bytes, stream)); break;
    case KNOWN_DTOD: MUST(cuMemcpyDtoDAsync(device(to), device(from), bytes, stream)); break;
    }
}

void known_copy_and_wait(enum known_way way, void *to, const void *from, size_t bytes)
{
    if (way == KNOWN_HTOD) MUST(cuMemcpyHtoD(device(to), from, bytes));
    else MUST(cuMemcpyDtoH(to, device(from), bytes));
}

void known_set(void *at, unsigned char value, size_t bytes, known_stream stream)
{
    MUST(cuMemsetD8Async(device(at), value, bytes, stream));
}

void known_capture(known_stream stream)
{
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

known_graph known_captured(known_stream stream)
{
    CUgraph graph;
    CUgraphExec exec;
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

void known_graph_launch(known_graph graph, known_stream stream)
{
    MUST(cuGraphLaunch(graph, stream));
}
void known_sync_stream(known_stream stream) { MUST(cuStreamSynchronize(stream)); }
void known_sync_all(void) { MUST(cuCtxSynchronize()); }
