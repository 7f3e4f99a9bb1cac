/* What the planted programs share: the device, its kernels, sleeps and gates. */
#include "tests/apps/planted/planted.h"

#include <errno.h>
#include <time.h>

#define SPIN(name)                                                                                                                                   \
    ".visible .entry " name "(.param .u32 us)\n{\n"                                                                                                  \
    ".reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %t<4>;\n"                                                                                              \
    "ld.param.u32 %r, [us];\nmul.wide.u32 %t0, %r, 1000;\nmov.u64 %t1, %globaltimer;\n"                                                              \
    "again:\nmov.u64 %t2, %globaltimer;\nsub.u64 %t3, %t2, %t1;\nsetp.lt.u64 %p, %t3, %t0;\n@%p bra again;\nret;\n}\n"

enum { DEVICES = 2 };

static const char *const names[KERNELS] = {"sleep_first", "sleep_second", "sleep_third"};
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n" SPIN("sleep_first") SPIN("sleep_second") SPIN("sleep_third");

static CUcontext contexts[DEVICES];
static CUfunction kernels[DEVICES][KERNELS];
static int current; /* the device in use */

struct measured measured;
size_t copy_bytes = 1 << 20;

int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int64_t rest(unsigned us) {
    int64_t begin = now_ns();
    struct timespec left = {us / 1000000, us % 1000000 * 1000l};
    while (nanosleep(&left, &left) && errno == EINTR) continue;
    return now_ns() - begin;
}

static void device_begin(int ordinal) {
    CUdevice device;
    CUmodule module;
    int count = 0;
    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&count));
    if (ordinal >= count) {
        fprintf(stderr, "planted: this program needs %d devices, and there are %d\n", ordinal + 1, count);
        exit(5);
    }
    MUST(cuDeviceGet(&device, ordinal));
    MUST(cuDevicePrimaryCtxRetain(&contexts[ordinal], device));
    MUST(cuCtxSetCurrent(contexts[ordinal]));
    MUST(cuModuleLoadData(&module, ptx));
    for (int i = 0; i < KERNELS; i++) MUST(cuModuleGetFunction(&kernels[ordinal][i], module, names[i]));
}

void device_use(int ordinal) {
    if (!contexts[ordinal]) device_begin(ordinal);
    MUST(cuCtxSetCurrent(contexts[ordinal]));
    current = ordinal;
}

void device_done(void) { MUST(cuCtxSynchronize()); }

void launch(enum kernel kernel, unsigned us, CUstream stream) {
    void *arguments[] = {&us};
    MUST(cuLaunchKernel(kernels[current][kernel], 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

static CUstream stream_new(unsigned flags) {
    CUstream stream;
    MUST(cuStreamCreate(&stream, flags));
    return stream;
}
CUstream blocking_stream(void) { return stream_new(CU_STREAM_DEFAULT); }
CUstream free_stream(void) { return stream_new(CU_STREAM_NON_BLOCKING); }

CUevent event_new(void) {
    CUevent event;
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

CUdeviceptr device_memory(void) {
    CUdeviceptr memory;
    MUST(cuMemAlloc(&memory, copy_bytes));
    return memory;
}

void *pinned_memory(void) {
    void *memory;
    MUST(cuMemAllocHost(&memory, copy_bytes));
    return memory;
}

static void CUDA_CB pause_now(void *unused) {
    (void)unused;
    __atomic_fetch_add(&measured.idle_ns, rest(PAUSE_US), __ATOMIC_RELAXED);
}
void pause_on(CUstream stream) { MUST(cuLaunchHostFunc(stream, pause_now, NULL)); }

struct gate gate_new(void) {
    void *memory;
    MUST(cuMemAllocHost(&memory, sizeof(uint32_t)));
    struct gate gate = {memory};
    *gate.open = 0;
    return gate;
}
void gate_wait(struct gate gate, CUstream stream) {
    MUST(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)gate.open, 1, CU_STREAM_WAIT_VALUE_GEQ));
}
void gate_open(struct gate gate) { *gate.open = 1; }
