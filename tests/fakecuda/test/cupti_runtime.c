/*
 * The simulated CUPTI beside the runtime: which record of a call has the number of the work that it made, as cupti_modes.h has it.
 *
 *     cupti_runtime MODE      without one it names them
 */
#include <cuda_runtime_api.h>
#include <cupti_runtime_cbid.h>

#include "cupti_modes.h"
#include "records.h"

extern void **__cudaRegisterFatBinary(void *image);
extern void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);

static void fill(void) { puts("host stub"); }
static CUstream stream;
static CUdeviceptr memory;

static void single(bool on) {
    OK(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, on));
    OK(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, on));
}

static char called(uint32_t correlation) {
    for (size_t i = 0; i < record_count; i++)
        if (record_size(records[i].any.kind) == sizeof records[0].api && records[i].api.correlationId == correlation)
            return records[i].any.kind == CUPTI_ACTIVITY_KIND_RUNTIME ? 'R' : 'D';
    return '-';
}

static void work(const char *expected) {
    static const dim3 one = {1, 1, 1};
    CUdeviceptr at = memory;
    uint32_t value = 1, count = 4;
    void *arguments[] = {&at, &value, &count};
    char got[5] = "";

    forget_records();
    OK(cudaLaunchKernel((const void *)fill, one, one, arguments, 0, stream));
    OK(cudaMemsetAsync((void *)memory, 1, 64, stream));
    OK(launch(empty, stream, NULL));
    OK(cuMemsetD8Async(memory, 1, 64, stream));
    OK(cudaStreamSynchronize(stream));
    flush();
    for (size_t n = 0; n < 4; n++) got[n] = called(n % 2 ? NTH(MEMSET, n / 2)->set.correlationId : NTH(CONCURRENT_KERNEL, n / 2)->kernel.correlationId);
    if (expected && strcmp(got, expected) == 0) return;
    fprintf(stderr, "%s, not %s\n", got, expected);
    failures++;
}

static void make_context(void) {
    void **binary = __cudaRegisterFatBinary("any image");
    __cudaRegisterFunction(binary, (const char *)fill, (char *)"fill", "fill", -1, NULL, NULL, NULL, NULL, NULL);
    set_up();
    OK(cudaStreamCreate(&stream));
    OK(cuMemAlloc(&memory, 4096));
}

int main(int argc, char **argv) {
    const struct mode *mode = NULL;
    const char *const *expected;

    for (size_t i = 0; argc == 2 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].name, argv[1]) == 0) mode = &modes[i];
    if (argc == 1)
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) puts(modes[i].name);
    if (!mode) return argc != 1;
    expected = mode->expected;
    if (mode->when == LATE) make_context();
    OK(cuptiActivityRegisterCallbacks(ask_buffer, take_buffer));
    for (const enum step *step = mode->steps; *step; step++) {
        switch (*step) {
        case END: break;
        case SINGLE_ON: single(true); break;
        case SINGLE_OFF: single(false); break;
        case DRIVER_ON: enable(CUPTI_ACTIVITY_KIND_DRIVER); break;
        case DRIVER_OFF: disable(CUPTI_ACTIVITY_KIND_DRIVER); break;
        case RUNTIME_ON: enable(CUPTI_ACTIVITY_KIND_RUNTIME); break;
        case RUNTIME_OFF: disable(CUPTI_ACTIVITY_KIND_RUNTIME); break;
        case WORK:
            if (!stream) make_context();
            enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
            enable(CUPTI_ACTIVITY_KIND_MEMSET);
            work(*expected++);
        }
    }
    FINISH();
}
