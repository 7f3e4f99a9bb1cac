// cupti_calls MODE: which record of a call has the number of the work that it made, on a real GPU; exits with 1 where it is not as cupti_modes.h has it.
// cupti_calls costs: what calls of the runtime cost while CUPTI is asked for records or callbacks of them, in ns.
// Opens the libcupti that CUPTI_COUNT_LIB names, else the one by its name.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <vector>

#include "../fakecuda/test/cupti_modes.h"

static void *library;
template <class F> static F function(F, const char *name)
{
    return reinterpret_cast<F>(dlsym(library, name));
}
#define CUPTI(name) function(&name, #name)
#define MUST(call)                                                                                                                                   \
    do {                                                                                                                                             \
        int rc_ = (int)(call);                                                                                                                       \
        if (rc_) fprintf(stderr, "cupti_calls: %s gave %d\n", #call, rc_), exit(2);                                                                  \
    } while (0)

__global__ void by_runtime() {}
__global__ void by_driver() {}

static cudaStream_t stream;
static char *memory;
static CUfunction kernel;
static std::vector<unsigned> works;
static std::map<unsigned, char> called;

static void CUPTIAPI ask(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = static_cast<uint8_t *>(aligned_alloc(8, *size = 1 << 20)), *most = 0;
}

static void CUPTIAPI take(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid)
{
    CUpti_Activity *record = nullptr;
    while (valid && CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == CUPTI_SUCCESS) {
        const auto *api = reinterpret_cast<const CUpti_ActivityAPI *>(record);
        switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: works.push_back(reinterpret_cast<const CUpti_ActivityKernel10 *>(record)->correlationId); break;
        case CUPTI_ACTIVITY_KIND_MEMSET: works.push_back(reinterpret_cast<const CUpti_ActivityMemset4 *>(record)->correlationId); break;
        case CUPTI_ACTIVITY_KIND_DRIVER: called[api->correlationId] = 'D'; break;
        case CUPTI_ACTIVITY_KIND_RUNTIME: called[api->correlationId] = 'R'; break;
        default: break;
        }
    }
    free(buffer);
}

static void single(bool on)
{
    MUST(CUPTI(cuptiActivityEnableDriverApi)(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, on));
    MUST(CUPTI(cuptiActivityEnableDriverApi)(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, on));
}

// Callbacks of the runtime, before and after a call; records are told of later, and count for more.
static CUpti_SubscriberHandle subscriber;

static void CUPTIAPI called_back(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *data)
{
    called.emplace(static_cast<const CUpti_CallbackData *>(data)->correlationId, 'c');
}

static void callbacks_of(std::initializer_list<CUpti_CallbackId> calls)
{
    MUST(CUPTI(cuptiSubscribe)(&subscriber, called_back, nullptr));
    for (CUpti_CallbackId call : calls) MUST(CUPTI(cuptiEnableCallback)(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, call));
}

static void callbacks_on()
{
    callbacks_of({CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
                  CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020});
}

static void callbacks_off()
{
    MUST(CUPTI(cuptiUnsubscribe)(subscriber));
    subscriber = nullptr;
}

// Works are numbered in the order of their calls.
static bool work(const char *expected)
{
    char got[5] = "";
    works.clear();
    by_runtime<<<1, 1, 0, stream>>>();
    MUST(cudaMemsetAsync(memory, 1, 64, stream));
    MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    MUST(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(memory), 1, 64, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(CUPTI(cuptiActivityFlushAll)(1));
    std::map<unsigned, char> by_number;
    for (unsigned number : works) by_number[number] = called.count(number) ? called[number] : '-';
    size_t n = 0;
    for (const auto &one : by_number)
        if (n < 4) got[n++] = one.second;
    printf("%s\n", got);
    return expected && strcmp(got, expected) == 0;
}

static void make_context()
{
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMalloc(&memory, 4096));
    MUST(cudaGetFuncBySymbol(&kernel, reinterpret_cast<const void *>(by_driver)));
}

// --- costs ---

static cudaEvent_t event;

template <class F> static double each(F call)
{
    enum { CALLS = 2000, ROUNDS = 21 };
    std::vector<double> took;
    for (int round = 0; round < ROUNDS; round++) {
        auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < CALLS; i++) call();
        took.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / CALLS);
        MUST(cudaStreamSynchronize(stream));
        if (CUPTI(cuptiActivityFlushAll)) CUPTI(cuptiActivityFlushAll)(0);
    }
    std::nth_element(took.begin(), took.begin() + ROUNDS / 2, took.end());
    return took[ROUNDS / 2];
}

static void costs(const char *how)
{
    double launch = each([] { by_runtime<<<1, 1, 0, stream>>>(); }), query = each([] { cudaStreamQuery(stream); });
    double record = each([] { cudaEventRecord(event, stream); }), driver = each([] { cuStreamQuery(stream); });
    printf("%-44s launch %7.1f  query %6.1f  record %6.1f  cuStreamQuery %6.1f\n", how, launch, query, record, driver);
}

static int all_costs()
{
    MUST(CUPTI(cuptiActivityRegisterCallbacks)(ask, take));
    single(true);
    make_context();
    MUST(cudaEventCreate(&event));
    costs("driver's launches recorded");
    MUST(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    costs("and kernels");
    callbacks_of({CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020});
    costs("and callbacks of another call");
    callbacks_off();
    callbacks_of({CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020});
    costs("and callbacks of these");
    callbacks_off();
    costs("and none again");
    MUST(CUPTI(cuptiActivityEnableRuntimeApi)(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, 1));
    costs("and records of another runtime call");
    for (CUpti_CallbackId call : {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020})
        MUST(CUPTI(cuptiActivityEnableRuntimeApi)(call, 1));
    costs("and records of these");
    MUST(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_RUNTIME));
    costs("and of all runtime calls");
    return 0;
}

int main(int argc, char **argv)
{
    const struct mode *mode = nullptr;
    const char *named = getenv("CUPTI_COUNT_LIB");
    bool right = true;
    for (const struct mode &one : modes) {
        if (argc == 1) puts(one.name);
        else if (strcmp(one.name, argv[1]) == 0) mode = &one;
    }
    const bool costs_wanted = argc > 1 && strcmp(argv[1], "costs") == 0;
    if (!mode && !costs_wanted) return argc != 1;
    if (!(library = dlopen(named ? named : "libcupti.so.13", RTLD_NOW))) return fprintf(stderr, "cupti_calls: %s\n", dlerror()), 2;
    if (costs_wanted) return all_costs();
    if (mode->when == LATE) make_context();
    MUST(CUPTI(cuptiActivityRegisterCallbacks)(ask, take));
    const char *const *expected = mode->expected;
    for (const enum step *step = mode->steps; *step; step++) {
        switch (*step) {
        case END: break;
        case SINGLE_ON: single(true); break;
        case SINGLE_OFF: single(false); break;
        case DRIVER_ON: MUST(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_DRIVER)); break;
        case DRIVER_OFF: MUST(CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_DRIVER)); break;
        case RUNTIME_ON: MUST(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_RUNTIME)); break;
        case RUNTIME_OFF: MUST(CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_RUNTIME)); break;
        case CALLBACKS_ON: callbacks_on(); break;
        case OTHER_CALLBACK_ON: callbacks_of({CUPTI_RUNTIME_TRACE_CBID_cudaEventCreate_v3020}); break;
        case CALLBACKS_OFF: callbacks_off(); break;
        case WORK:
            if (!stream) make_context();
            MUST(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
            MUST(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_MEMSET));
            right &= work(*expected++);
        }
    }
    return right ? 0 : 1;
}
