/* The simulated CUPTI: calls and work as records, ids, clocks. */
#include "records.h"

#include <sys/syscall.h>
#include <time.h>

extern CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
    unsigned, unsigned, CUstream, void **, void **);

static CUstream stream;
static CUdeviceptr memory;

/* Switches kinds on, runs, flushes, and switches off again. */
#define RECORDED(body, ...) \
    do { \
        const CUpti_ActivityKind kinds_[] = {__VA_ARGS__}; \
        forget_records(); \
        for (size_t i_ = 0; i_ < sizeof kinds_ / sizeof kinds_[0]; i_++) enable(kinds_[i_]); \
        body; \
        OK(cuCtxSynchronize()); \
        flush(); \
        for (size_t i_ = 0; i_ < sizeof kinds_ / sizeof kinds_[0]; i_++) disable(kinds_[i_]); \
    } while (0)
#define KIND(name) CUPTI_ACTIVITY_KIND_##name

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Ids are counted for the process, taken by the calls that need one, and shared by a call and its
 * work. */
static void test_correlation(void)
{
    uint32_t first;

    RECORDED(OK(launch(empty, stream, NULL)); OK(cuStreamQuery(stream));
        OK(launch(empty, stream, NULL)), KIND(CONCURRENT_KERNEL));
    CHECK_IS(record_count, 2);
    first = NTH(CONCURRENT_KERNEL, 0)->kernel.correlationId;
    CHECK_IS(NTH(CONCURRENT_KERNEL, 1)->kernel.correlationId, first + 1); /* the query took none */
    RECORDED(OK(launch(empty, stream, NULL)); OK(cuStreamQuery(stream));
        OK(launch(empty, stream, NULL)), KIND(CONCURRENT_KERNEL), KIND(DRIVER));
    CHECK_IS(count_kind(KIND(CONCURRENT_KERNEL)), 2);
    CHECK_IS(NTH(CONCURRENT_KERNEL, 0)->kernel.correlationId, first + 2);
    CHECK_IS(NTH(CONCURRENT_KERNEL, 1)->kernel.correlationId, first + 4);
    CHECK_IS(NTH(DRIVER, 0)->api.correlationId, first + 2);
    CHECK_IS(NTH(DRIVER, 1)->api.cbid, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery);
    CHECK_IS(NTH(DRIVER, 1)->api.correlationId, first + 3);
    CHECK_IS(NTH(DRIVER, 2)->api.correlationId, first + 4);
    CHECK_IS(NTH(DRIVER, 3)->api.cbid, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize);
    CHECK_IS(count_kind(KIND(DRIVER)), 4);
    /* Any kind of GPU work gives all work an id. */
    RECORDED(OK(cuMemsetD8Async(memory, 1, 64, stream));
        OK(launch(empty, stream, NULL)), KIND(CONCURRENT_KERNEL));
    CHECK_IS(NTH(CONCURRENT_KERNEL, 0)->kernel.correlationId,
        first + 7); /* after the synchronisation's and the set's */
}

static void test_calls(void)
{
    uint64_t before = clock_ns(CLOCK_REALTIME), after;
    const CUpti_ActivityAPI *call;

    RECORDED(OK(sleep_on(stream, 20000));
        OK(cuLaunchKernel_ptsz(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        CHECK_IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        CHECK_IS(cuStreamDestroy((CUstream)0x1234), CUDA_ERROR_INVALID_HANDLE), KIND(DRIVER));
    after = clock_ns(CLOCK_REALTIME);
    call = CALL_RECORD(cuLaunchKernel);
    CHECK_IS(call->cbid, 307);
    CHECK_IS(call->processId, getpid());
    CHECK_IS(call->threadId, (uint32_t)(uintptr_t)pthread_self());
    CHECK_IS(call->returnValue, CUDA_SUCCESS);
    CHECK(before <= call->start && call->start < call->end && call->end <= after);
    CHECK_IS(CALL_RECORD(cuLaunchKernel_ptsz)->cbid, 442);
    CHECK_IS(CALL_RECORD(cuStreamQuery)->returnValue, CUDA_ERROR_NOT_READY);
    CHECK_IS(CALL_RECORD(cuStreamDestroy_v2)->returnValue, CUDA_ERROR_INVALID_HANDLE);
    CHECK(CALL_RECORD(cuCtxSynchronize)->end - CALL_RECORD(cuCtxSynchronize)->start > 1000000);
    CHECK_IS(record_count, 5);

    /* The system's thread id, if that is asked for. */
    OK(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
    RECORDED(OK(launch(empty, stream, NULL)), KIND(DRIVER));
    CHECK_IS(CALL_RECORD(cuLaunchKernel)->threadId, syscall(SYS_gettid));
    OK(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT));

    /* Single calls, of the kind: for others see cupti_runtime.c. */
    forget_records();
    enable(KIND(DRIVER));
    OK(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuStreamQuery, 0));
    OK(cuStreamQuery(stream));
    OK(launch(empty, stream, NULL));
    disable(KIND(DRIVER));
    flush();
    CHECK_IS(record_count, 1);
    CHECK_IS(NTH(DRIVER, 0)->api.cbid, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
}

static void test_kernels(void)
{
    unsigned microseconds = 3000;
    void *parameters[] = {&microseconds};
    const CUpti_ActivityKernel10 *k;

    RECORDED(OK(cuLaunchKernel(sleep_kernel, 2, 3, 4, 32, 2, 1, 1024, stream, parameters, NULL));
        OK(sleep_on(stream, 1000)), KIND(CONCURRENT_KERNEL), KIND(DRIVER));
    k = &NTH(CONCURRENT_KERNEL, 0)->kernel;
    CHECK_IS(strcmp(k->name, "sleep"), 0);
    CHECK_IS(k->gridX * 100 + k->gridY * 10 + k->gridZ, 234);
    CHECK_IS(k->blockX * 100 + k->blockY * 10 + k->blockZ, 3221);
    CHECK_IS(k->dynamicSharedMemory, 1024);
    CHECK_IS(k->deviceId, 0);
    CHECK_IS(k->contextId, 1);
    CHECK_IS(k->graphNodeId, 0);
    CHECK(k->end - k->start > 2990000 && k->end - k->start < 3010000);
    CHECK(k->start + 2000 >= NTH(DRIVER, 0)->api.start); /* by reading the clocks, not exactly */
    CHECK(k->end < CALL_RECORD(cuCtxSynchronize)->end + 2000);
    CHECK(
        NTH(CONCURRENT_KERNEL, 1)->kernel.start >=
        k->end); /* one after the other; at once, unless a busy machine enqueues the second late */
    CHECK(k->name == NTH(CONCURRENT_KERNEL, 1)->kernel.name);
    /* Work that was enqueued before its kind was on has no record; a kind may go off before the
     * work ends. */
    forget_records();
    OK(sleep_on(stream, 1000));
    enable(KIND(CONCURRENT_KERNEL));
    OK(launch(empty, stream, NULL));
    disable(KIND(CONCURRENT_KERNEL));
    OK(launch(empty, stream, NULL));
    OK(cuStreamSynchronize(stream));
    flush();
    CHECK_IS(record_count, 1);
    CHECK_IS(strcmp(NTH(CONCURRENT_KERNEL, 0)->kernel.name, "empty"), 0);
    /* The old kind, and the latency's times. */
    OK(cuptiActivityEnableLatencyTimestamps(1));
    RECORDED(OK(sleep_on(stream, 100000)); OK(sleep_on(stream, 1000)),
        KIND(KERNEL)); /* the second is enqueued while the first runs, on a busy machine too */
    OK(cuptiActivityEnableLatencyTimestamps(0));
    k = &NTH(KERNEL, 1)->kernel;
    CHECK(k->queued && k->queued <= k->submitted + 2000);
    CHECK(k->submitted + 500000 < k->start);
    CHECK_IS(k->completed, k->end);
}

static void check_copy(CUdeviceptr to, CUdeviceptr from, int kind, int from_kind, int to_kind)
{
    const char *takes = getenv("CUSTREAM_FAKE_COPY_NS");
    const CUpti_ActivityMemcpy6 *copy;

    RECORDED(OK(cuMemcpyAsync(to, from, 64, stream)), KIND(MEMCPY));
    CHECK_IS(record_count, 1);
    copy = &NTH(MEMCPY, 0)->copy;
    CHECK_IS(copy->copyKind, kind);
    CHECK_IS(copy->srcKind, from_kind);
    CHECK_IS(copy->dstKind, to_kind);
    CHECK_IS(copy->bytes, 64);
    CHECK_IS(copy->flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
    CHECK(llabs((long long)(copy->end - copy->start) - (takes ? atoll(takes) : 0)) <
          2000); /* as exact as the reading of two clocks */
}

static void test_copies(void)
{
    enum { PAGEABLE = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, PINNED, DEVICE, ARRAY, MANAGED };
    static char ordinary[64], registered[64];
    CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 64, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = memory,
        .srcPitch = 64,
        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
        .WidthInBytes = 32,
        .Height = 2};
    CUdeviceptr managed, host = (CUdeviceptr)(uintptr_t)ordinary,
                         pinned = (CUdeviceptr)(uintptr_t)registered;
    CUarray array;

    OK(cuMemHostRegister(registered, sizeof registered, 0));
    OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    OK(cuArrayCreate(&array, &shape));
    check_copy(memory, host, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, PAGEABLE, DEVICE);
    check_copy(memory, pinned, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, PINNED, DEVICE);
    check_copy(host, memory, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, DEVICE, PAGEABLE);
    check_copy(memory, memory + 64, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, DEVICE, DEVICE);
    check_copy(managed, memory, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, DEVICE, MANAGED);
    check_copy(host, pinned, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, PINNED, PAGEABLE);
    flat.dstArray = array;
    RECORDED(OK(cuMemcpy2D(&flat)); OK(cuMemcpyAtoH(ordinary, array, 0, 16));
        OK(cuMemcpyHtoA(array, 0, ordinary, 16)), KIND(MEMCPY), KIND(DRIVER));
    CHECK_IS(count_kind(KIND(MEMCPY)), 3);
    CHECK_IS(NTH(MEMCPY, 0)->copy.copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_DTOA);
    CHECK_IS(NTH(MEMCPY, 0)->copy.dstKind, ARRAY);
    CHECK_IS(NTH(MEMCPY, 0)->copy.bytes, 64);
    CHECK_IS(NTH(MEMCPY, 0)->copy.flags, 0);
    CHECK_IS(NTH(MEMCPY, 0)->copy.correlationId, CALL_RECORD(cuMemcpy2D_v2)->correlationId);
    CHECK_IS(NTH(MEMCPY, 1)->copy.copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_ATOH);
    CHECK_IS(NTH(MEMCPY, 2)->copy.copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOA);
    /* Sets; nothing of no size. */
    RECORDED(OK(cuMemsetD32(memory, 0x11223344, 16)); OK(cuCtxSynchronize());
        OK(cuMemsetD8Async(managed, 7, 10, stream)); OK(cuMemsetD8Async(memory, 7, 0, stream));
        OK(cuMemcpyHtoDAsync(memory, ordinary, 0, stream)), KIND(MEMSET), KIND(MEMCPY));
    CHECK_IS(record_count, 2);
    CHECK_IS(NTH(MEMSET, 0)->set.value, 0x11223344);
    CHECK_IS(NTH(MEMSET, 0)->set.bytes, 64);
    CHECK_IS(NTH(MEMSET, 0)->set.flags, 0);
    CHECK_IS(NTH(MEMSET, 0)->set.streamId, 7);
    CHECK_IS(NTH(MEMSET, 0)->set.memoryKind, DEVICE);
    CHECK_IS(NTH(MEMSET, 1)->set.value, 7);
    CHECK_IS(NTH(MEMSET, 1)->set.memoryKind, MANAGED);
    CHECK_IS(NTH(MEMSET, 1)->set.flags, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
    OK(cuArrayDestroy(array));
    OK(cuMemFree(managed));
    OK(cuMemHostUnregister(registered));
}

static void *own_stream_id(void *arg)
{
    uint32_t *id = arg;

    OK(cuCtxSetCurrent(context));
    OK(cuptiGetStreamIdEx(NULL, NULL, 1, id));
    OK(launch(empty, CU_STREAM_PER_THREAD, NULL));
    return NULL;
}

static void test_ids(void)
{
    uint32_t id, next, own, other, number;
    CUstream a, b;
    pthread_t thread;

    OK(cuptiGetContextId(context, &id));
    CHECK_IS(id, 1);
    CHECK_IS(cuptiGetContextId(NULL, &id), CUPTI_ERROR_INVALID_CONTEXT);
    OK(cuptiGetDeviceId(NULL, &id));
    CHECK_IS(id, 0);
    OK(cuptiGetStreamIdEx(NULL, NULL, 0, &id));
    CHECK_IS(id, 7);
    OK(cuptiGetStreamIdEx(context, CU_STREAM_LEGACY, 1, &id));
    CHECK_IS(id, 7);
    OK(cuptiGetStreamId(NULL, stream, &id));
    CHECK_IS(id, 13); /* the first that was made */
    OK(cuptiGetStreamIdEx(NULL, NULL, 1, &own));
    OK(cuptiGetStreamIdEx(context, CU_STREAM_PER_THREAD, 0, &id));
    CHECK_IS(id, own);
    OK(cuStreamCreate(&a, 0));
    OK(cuptiGetStreamIdEx(context, a, 0, &id));
    OK(cuStreamDestroy(a));
    OK(cuStreamCreate(&b, 0));
    CHECK(a == b);
    OK(cuptiGetStreamIdEx(NULL, b, 1, &next));
    CHECK_IS(next, id + 1);
    OK(cuStreamDestroy(b));
    CHECK_IS(cuptiGetStreamIdEx(NULL, b, 0, &id), CUPTI_ERROR_INVALID_STREAM);
    RECORDED(OK(launch(empty, NULL, NULL)); OK(launch(empty, stream, NULL));
        OK(launch(empty, CU_STREAM_PER_THREAD, NULL));
        pthread_create(&thread, NULL, own_stream_id, &other);
        pthread_join(thread, NULL), KIND(CONCURRENT_KERNEL));
    CHECK_IS(NTH(CONCURRENT_KERNEL, 0)->kernel.streamId, 7);
    CHECK_IS(NTH(CONCURRENT_KERNEL, 1)->kernel.streamId, 13);
    CHECK_IS(NTH(CONCURRENT_KERNEL, 2)->kernel.streamId, own);
    CHECK_IS(NTH(CONCURRENT_KERNEL, 3)->kernel.streamId, other);
    CHECK_IS(other, next + 1);
    OK(cuptiGetVersion(&number));
    CHECK_IS(number, 130001);
}

/* ---- Clocks ---- */

static uint64_t CUPTIAPI twice(void) { return 2 * clock_ns(CLOCK_MONOTONIC); }
static uint64_t CUPTIAPI real(void) { return clock_ns(CLOCK_REALTIME); }

/* A client's clock is that of the calls and of the GPU's work, at whatever rate it goes. */
static void test_clock(void)
{
    uint64_t now, start, end;

    CHECK_IS(cuptiActivityRegisterTimestampCallback(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    OK(cuptiActivityRegisterTimestampCallback(twice));
    RECORDED(OK(sleep_on(stream, 5000)); OK(cuStreamSynchronize(stream));
        OK(sleep_on(stream, 5000)), KIND(CONCURRENT_KERNEL), KIND(DRIVER));
    OK(cuptiGetTimestamp(&now));
    CHECK(now > twice() - 2000000000 && now <= twice());
    for (size_t i = 0; i < 2; i++) {
        const CUpti_ActivityKernel10 *k = &NTH(CONCURRENT_KERNEL, i)->kernel;
        CHECK(k->end - k->start > 9900000 && k->end - k->start < 10100000);
    }
    start = NTH(DRIVER, 0)->api.start;
    end = CALL_RECORD(cuCtxSynchronize)->end;
    CHECK(NTH(CONCURRENT_KERNEL, 0)->kernel.start + 10000 > start);
    CHECK(NTH(CONCURRENT_KERNEL, 1)->kernel.end < end + 10000);
    CHECK(end <= now && now - start < 4000000000);
    OK(cuptiActivityRegisterTimestampCallback(real));
}

int main(void)
{
    begin();
    OK(cuptiActivityRegisterCallbacks(ask_buffer, take_buffer));
    enable(KIND(DRIVER)); /* before the driver is initialised */
    set_up();
    flush();
    disable(KIND(DRIVER));
    CHECK_IS(NTH(DRIVER, 0)->api.cbid, CUPTI_DRIVER_TRACE_CBID_cuInit);
    CHECK_IS(NTH(DRIVER, 0)->api.correlationId, 1);
    CHECK_IS(NTH(DRIVER, 1)->api.cbid, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRetain);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&memory, 4096));
    test_correlation();
    test_calls();
    test_kernels();
    test_copies();
    test_ids();
    test_clock();
    FINISH();
}
