/* Kernels are PTX, so that no compiler of NVIDIA's is needed. */
#include "tests/apps/planted/device.h"

#include <string.h>

/* One warp of each block looks at the clock; the others wait for it. */
#define SPIN(name) \
    ".visible .entry " name "(.param .u32 us)\n{\n" \
    ".reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %t<4>;\n" \
    "mov.u32 %r, %tid.x;\nsetp.ge.u32 %p, %r, 32;\n@%p bra done;\n" \
    "ld.param.u32 %r, [us];\nmul.wide.u32 %t0, %r, 1000;\nmov.u64 %t1, %globaltimer;\n" \
    "again:\nmov.u64 %t2, %globaltimer;\nsub.u64 %t3, %t2, %t1;\nsetp.lt.u64 %p, %t3, %t0;\n@%p bra again;\n" \
    "done:\nbar.sync 0;\nret;\n}\n"

enum { DEVICES = 2, GATES = 64 };

static const char *const names[KERNELS] = {"sleep_first", "sleep_second", "sleep_third"};
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n" SPIN("sleep_first")
    SPIN("sleep_second") SPIN("sleep_third");

static CUcontext contexts[DEVICES];
static CUfunction kernels[DEVICES][KERNELS];
static int current;              /* the device in use */
static volatile uint32_t *gates; /* pinned; memory that is asked for while streams wait at a gate
                                    may itself wait for them */
static int gates_used;

static void device_begin(int ordinal)
{
    CUdevice device;
    CUmodule module;
    int count = 0;
    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&count));
    if (ordinal >= count) {
        fprintf(stderr, "planted: this program needs %d devices, and there are %d\n", ordinal + 1,
            count);
        exit(5);
    }
    MUST(cuDeviceGet(&device, ordinal));
    MUST(cuDevicePrimaryCtxRetain(&contexts[ordinal], device));
    MUST(cuCtxSetCurrent(contexts[ordinal]));
    MUST(cuModuleLoadData(&module, ptx));
    for (int i = 0; i < KERNELS; i++)
        MUST(cuModuleGetFunction(&kernels[ordinal][i], module, names[i])); /* loads it */
    if (gates) return;
    void *memory;
    MUST(cuMemAllocHost(&memory, GATES * sizeof *gates));
    gates = memset(memory, 0, GATES * sizeof *gates);
}

void device_use(int ordinal)
{
    if (!contexts[ordinal]) device_begin(ordinal);
    MUST(cuCtxSetCurrent(contexts[ordinal]));
    current = ordinal;
}

void device_done(void) { MUST(cuCtxSynchronize()); }

void launch_blocks(enum kernel kernel, unsigned grid, unsigned block, unsigned us, CUstream stream)
{
    void *arguments[] = {&us};
    MUST(cuLaunchKernel(
        kernels[current][kernel], grid, 1, 1, block, 1, 1, 0, stream, arguments, NULL));
}
void launch(enum kernel kernel, unsigned us, CUstream stream)
{
    launch_blocks(kernel, 1, 32, us, stream);
}

static CUstream stream_new(unsigned flags)
{
    CUstream stream;
    MUST(cuStreamCreate(&stream, flags));
    return stream;
}
CUstream blocking_stream(void) { return stream_new(CU_STREAM_DEFAULT); }
CUstream free_stream(void) { return stream_new(CU_STREAM_NON_BLOCKING); }

CUevent event_new(void)
{
    CUevent event;
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

CUdeviceptr device_memory(void)
{
    CUdeviceptr memory;
    MUST(cuMemAlloc(&memory, copy_bytes));
    return memory;
}

void *pinned_memory(void)
{
    void *memory;
    MUST(cuMemAllocHost(&memory, copy_bytes));
    return memory;
}

void pause_on(CUstream stream) { MUST(cuLaunchHostFunc(stream, pause_now, NULL)); }

struct gate gate_new(void)
{
    if (gates_used == GATES) fprintf(stderr, "planted: there are %d gates\n", GATES), exit(1);
    return (struct gate){&gates[gates_used++]};
}
void gate_wait(struct gate gate, CUstream stream)
{
    MUST(cuStreamWaitValue32(
        stream, (CUdeviceptr)(uintptr_t)gate.open, 1, CU_STREAM_WAIT_VALUE_GEQ));
}
void gate_open(struct gate gate) { *gate.open = 1; }
