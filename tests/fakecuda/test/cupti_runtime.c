/*
 * The simulated CUPTI beside the runtime: which record of a call has the number of the work that it
 * made, as cupti_modes.h has it.
 *
 *     cupti_runtime MODE      without one it names them
 */
#include <cuda_runtime_api.h>
#include <cupti_callbacks.h>
#include <cupti_runtime_cbid.h>

#include "cupti_modes.h"
#include "records.h"

extern void **__cudaRegisterFatBinary(void *image);
extern void __cudaRegisterFunction(
    void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);

static void fill(void) { puts("host stub"); }
static CUstream stream;
static CUdeviceptr memory;

static void single(bool on)
{
    OK(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, on));
    OK(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, on));
}

static CUpti_SubscriberHandle subscriber;
static struct {
    uint32_t correlation;
    cudaError_t result;
} calls_back[64];
static size_t call_back_count;

static void CUPTIAPI called_back(
    void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *call)
{
    const CUpti_CallbackData *told = call;

    CHECK(data == &subscriber && domain == CUPTI_CB_DOMAIN_RUNTIME_API && id);
    if (told->callbackSite == CUPTI_API_ENTER) *told->correlationData = told->correlationId;
    if (told->callbackSite == CUPTI_API_ENTER || call_back_count == 64) return;
    CHECK(*told->correlationData == told->correlationId);
    calls_back[call_back_count].correlation = told->correlationId;
    calls_back[call_back_count++].result = *(cudaError_t *)told->functionReturnValue;
}

static void callback_of(CUpti_CallbackId call)
{
    OK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, call));
}

static void callbacks_on(bool others)
{
    OK(cuptiSubscribe(&subscriber, called_back, &subscriber));
    if (others) {
        callback_of(CUPTI_RUNTIME_TRACE_CBID_cudaEventCreate_v3020);
        return;
    }
    callback_of(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
    callback_of(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
    callback_of(CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
}

static char called(uint32_t correlation)
{
    for (size_t i = 0; i < record_count; i++)
        if (record_size(records[i].any.kind) == sizeof records[0].api &&
            records[i].api.correlationId == correlation)
            return records[i].any.kind == CUPTI_ACTIVITY_KIND_RUNTIME ? 'R' : 'D';
    for (size_t i = 0; i < call_back_count; i++)
        if (calls_back[i].correlation == correlation) return 'c';
    return '-';
}

static void work(const char *expected)
{
    static const dim3 one = {1, 1, 1};
    CUdeviceptr at = memory;
    uint32_t value = 1, count = 4;
    void *arguments[] = {&at, &value, &count};
    char got[5] = "";

    forget_records();
    call_back_count = 0;
    OK(cudaLaunchKernel((const void *)fill, one, one, arguments, 0, stream));
    OK(cudaMemsetAsync((void *)memory, 1, 64, stream));
    OK(launch(empty, stream, NULL));
    OK(cuMemsetD8Async(memory, 1, 64, stream));
    OK(cudaStreamSynchronize(stream));
    flush();
    for (size_t n = 0; n < 4; n++)
        got[n] = called(n % 2 ? NTH(MEMSET, n / 2)->set.correlationId
                              : NTH(CONCURRENT_KERNEL, n / 2)->kernel.correlationId);
    if (expected && strcmp(got, expected) == 0) return;
    fprintf(stderr, "%s, not %s\n", got, expected);
    failures++;
}

static void make_context(void)
{
    void **binary = __cudaRegisterFatBinary("any image");
    __cudaRegisterFunction(
        binary, (const char *)fill, (char *)"fill", "fill", -1, NULL, NULL, NULL, NULL, NULL);
    set_up();
    OK(cudaStreamCreate(&stream));
    OK(cuMemAlloc(&memory, 4096));
}

int main(int argc, char **argv)
{
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
        case CALLBACKS_ON: callbacks_on(false); break;
        case OTHER_CALLBACK_ON: callbacks_on(true); break;
        case CALLBACKS_OFF: OK(cuptiUnsubscribe(subscriber)); break;
        case WORK:
            if (!stream) make_context();
            enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
            enable(CUPTI_ACTIVITY_KIND_MEMSET);
            work(*expected++);
        }
    }
    FINISH();
}
