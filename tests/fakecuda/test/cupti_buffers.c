/* The simulated CUPTI: buffers, flushes, what is lost; synchronisation and other records; the
 * subscriber; the end. */
#include "records.h"

#include <sys/wait.h>

#include "tests/patience.h"

#define KIND(name) CUPTI_ACTIVITY_KIND_##name

static CUstream stream;

static size_t dropped(void)
{
    size_t count = 12345;
    OK(cuptiActivityGetNumDroppedRecords(NULL, 0, &count));
    return count;
}

static void launches(int count)
{
    for (int i = 0; i < count; i++) OK(launch(empty, stream, NULL));
    OK(cuStreamSynchronize(stream));
}

/* What the worker does within a millisecond. */
static size_t wait_for(const size_t *counter, size_t least)
{
    size_t now = 0;

    for (unsigned ms = patience(10) * 1000; ms && now < least; ms--) {
        pthread_mutex_lock(&records_lock);
        now = *counter;
        pthread_mutex_unlock(&records_lock);
        if (now < least) usleep(1000);
    }
    return now;
}

/* ---- Buffers ---- */

static void test_before_registering(void)
{
    enable(KIND(CONCURRENT_KERNEL));
    launches(3);
    CHECK_IS(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
    CHECK_IS(cuptiActivityRegisterCallbacks(NULL, take_buffer), CUPTI_ERROR_INVALID_PARAMETER);
    OK(cuptiActivityRegisterCallbacks(ask_buffer, take_buffer));
    flush();
    CHECK(dropped() + record_count == 3);
    disable(KIND(CONCURRENT_KERNEL));
}

/* A flush gives all finished records on the calling thread; with force the others too, without
 * times. */
static void test_flush(void)
{
    forget_records();
    enable(KIND(CONCURRENT_KERNEL));
    launches(1);
    OK(sleep_on(stream, 50000));
    flush();
    CHECK_IS(record_count, 1);
    CHECK(pthread_equal(given_back_by, pthread_self()));
    CHECK_IS(strcmp(NTH(CONCURRENT_KERNEL, 0)->kernel.name, "empty"), 0);
    flush();
    CHECK_IS(record_count, 1);
    CHECK_IS(buffers_back, 1);
    OK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    CHECK_IS(record_count, 2);
    CHECK_IS(strcmp(NTH(CONCURRENT_KERNEL, 1)->kernel.name, "sleep"), 0);
    CHECK(
        NTH(CONCURRENT_KERNEL, 1)->kernel.start == 0 && NTH(CONCURRENT_KERNEL, 1)->kernel.end == 0);
    OK(cuStreamSynchronize(stream));
    OK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    CHECK_IS(record_count, 2); /* it is not given a second time */
    CHECK_IS(buffers_back, buffers_given);
    disable(KIND(CONCURRENT_KERNEL));
    CHECK_IS(dropped(), 0);
}

/* Full buffers come from the worker thread, without a flush. */
static void test_full(void)
{
    forget_records();
    buffer_size = 10 * sizeof(CUpti_ActivityKernel10) + 8;
    enable(KIND(CONCURRENT_KERNEL));
    launches(55);
    CHECK(wait_for(&record_count, 50) == 50);
    CHECK_IS(buffers_back, 5);
    CHECK(!pthread_equal(given_back_by, pthread_self()));
    flush();
    CHECK_IS(record_count, 55);
    buffer_most = 4; /* as many records as the client allows */
    launches(8);
    flush();
    CHECK_IS(buffers_back, 8);
    for (size_t i = 1; i < record_count; i++)
        CHECK_IS(records[i].kernel.correlationId, records[i - 1].kernel.correlationId + 1);
    disable(KIND(CONCURRENT_KERNEL));
    buffer_most = 0;
    CHECK_IS(dropped(), 0);
    CHECK_IS(buffers_given, buffers_back);
}

static void test_dropped(void)
{
    forget_records();
    enable(KIND(CONCURRENT_KERNEL));
    buffer_refused = true;
    launches(5);
    flush();
    CHECK_IS(record_count, 0);
    CHECK_IS(dropped(), 5);
    CHECK_IS(dropped(), 0); /* counted since the last question */
    buffer_refused = false;
    buffer_size = 64; /* smaller than a record */
    launches(3);
    OK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    CHECK_IS(dropped(), 3);
    CHECK_IS(buffers_given, buffers_back);
    buffer_size = 1 << 16;
    buffer_skew = 4; /* not aligned */
    launches(3);
    OK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    CHECK_IS(dropped(), 3);
    CHECK_IS(buffers_given, buffers_back);
    buffer_skew = 0;
    launches(2);
    flush();
    CHECK_IS(record_count, 2);
    disable(KIND(CONCURRENT_KERNEL));
}

static void *query_once(void *unused)
{
    (void)unused;
    OK(cuCtxSetCurrent(context));
    OK(cuStreamQuery(stream));
    return NULL;
}

/* Each thread's calls fill buffers of their own; what a thread leaves behind when it ends is not
 * lost. */
static void test_threads(void)
{
    pthread_t threads[4];

    forget_records();
    enable(KIND(DRIVER));
    OK(cuStreamQuery(stream));
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, query_once, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    CHECK(wait_for(&buffers_back, 4) == 4);
    CHECK_IS(buffers_given, 5);
    CHECK_IS(record_count, 8);
    disable(KIND(DRIVER));
    flush();
    CHECK_IS(record_count, 9);
    CHECK_IS(buffers_back, 5);
}

/* The last to register gets all buffers, also those of the one before. */
static size_t foreign;
static void CUPTIAPI other_take(
    CUcontext ctx, uint32_t id, uint8_t *buffer, size_t size, size_t valid)
{
    foreign++;
    take_buffer(ctx, id, buffer, size, valid);
}
static void test_last_registered(void)
{
    enable(KIND(DRIVER));
    OK(cuStreamQuery(stream));
    OK(cuptiActivityRegisterCallbacks(ask_buffer, other_take));
    disable(KIND(DRIVER));
    flush();
    CHECK_IS(foreign, 1);
    OK(cuptiActivityRegisterCallbacks(ask_buffer, take_buffer));
}

/* ---- Other records ---- */

static void test_syncs(void)
{
    const CUpti_ActivitySynchronization2 *sync;
    CUevent event;
    uint64_t recording;

    OK(cuEventCreate(&event, 0));
    forget_records();
    enable(KIND(SYNCHRONIZATION));
    enable(KIND(CUDA_EVENT));
    OK(sleep_on(stream, 20000));
    CHECK_IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    OK(cuEventRecord(event, stream));
    OK(cuEventSynchronize(event));
    OK(cuStreamSynchronize(stream));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitEvent(NULL, event, 0));
    OK(cuptiActivityEnableAllSyncRecords(0));
    OK(sleep_on(stream, 20000));
    CHECK_IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    OK(cuptiActivityEnableAllSyncRecords(1));
    disable(KIND(SYNCHRONIZATION));
    OK(cuStreamSynchronize(stream));
    disable(KIND(CUDA_EVENT));
    flush();
    CHECK_IS(record_count, 6);
    recording = NTH(CUDA_EVENT, 0)->event.cudaEventSyncId;
    CHECK_IS(NTH(CUDA_EVENT, 0)->event.streamId, 13);
    sync = &NTH(SYNCHRONIZATION, 0)->sync;
    CHECK_IS(sync->type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
    CHECK_IS(sync->returnValue, CUDA_ERROR_NOT_READY);
    sync = &NTH(SYNCHRONIZATION, 1)->sync;
    CHECK_IS(sync->type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
    CHECK_IS(sync->streamId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    CHECK_IS(sync->cudaEventId, NTH(CUDA_EVENT, 0)->event.eventId);
    CHECK_IS(sync->cudaEventSyncId, recording);
    CHECK(sync->end - sync->start > 1000000 && sync->correlationId);
    sync = &NTH(SYNCHRONIZATION, 2)->sync;
    CHECK_IS(sync->type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
    CHECK_IS(sync->streamId, 13);
    CHECK_IS(sync->cudaEventId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    sync = &NTH(SYNCHRONIZATION, 3)->sync;
    CHECK_IS(sync->type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
    CHECK_IS(sync->contextId, 1);
    CHECK_IS(sync->streamId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    sync = &NTH(SYNCHRONIZATION, 4)->sync;
    CHECK_IS(sync->type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
    CHECK_IS(sync->streamId, 7);
    CHECK_IS(sync->cudaEventSyncId, recording);
    OK(cuEventDestroy(event));
}

static void test_external(void)
{
    uint64_t last = 0;

    forget_records();
    enable(KIND(DRIVER));
    enable(KIND(EXTERNAL_CORRELATION));
    enable(KIND(OVERHEAD));
    OK(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 5));
    OK(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 6));
    OK(cuStreamQuery(stream));
    OK(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last));
    CHECK_IS(last, 6);
    OK(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, NULL));
    CHECK_IS(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, NULL),
        CUPTI_ERROR_QUEUE_EMPTY);
    CHECK_IS(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_SIZE, 1),
        CUPTI_ERROR_INVALID_PARAMETER);
    OK(cuStreamQuery(stream));
    flush();
    disable(KIND(DRIVER));
    disable(KIND(EXTERNAL_CORRELATION));
    disable(KIND(OVERHEAD));
    CHECK_IS(record_count, 4);
    CHECK_IS(records[0].external.kind, KIND(EXTERNAL_CORRELATION));
    CHECK_IS(records[0].external.externalId, 6);
    CHECK_IS(records[0].external.correlationId, records[1].api.correlationId);
    CHECK_IS(records[3].overhead.overheadKind, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
}

static void test_arguments(void)
{
    size_t bytes = 2, value = 0;
    uint8_t small;
    const char *text;
    CUpti_Activity *record = NULL;

    CHECK_IS(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID), CUPTI_ERROR_INVALID_KIND);
    CHECK_IS(cuptiActivityEnable(1000), CUPTI_ERROR_INVALID_KIND);
    CHECK_IS(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_METRIC), CUPTI_ERROR_NOT_COMPATIBLE);
    CHECK_IS(cuptiActivityGetNextRecord(NULL, 0, &record), CUPTI_ERROR_INVALID_PARAMETER);
    CHECK_IS(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    bytes = sizeof value;
    OK(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value));
    CHECK_IS(value, 3200000);
    bytes = sizeof small;
    OK(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &bytes, &small));
    CHECK_IS(small, 1);
    OK(cuptiGetResultString(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, &text));
    CHECK_IS(strcmp(text, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"), 0);
    OK(cuptiGetCallbackName(
        CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &text));
    CHECK_IS(strcmp(text, "cuLaunchKernel"), 0);
    OK(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 211, &text));
    CHECK_IS(strcmp(text, "cudaLaunchKernel_v7000"), 0);
    CHECK_IS(
        cuptiGetCallbackName(CUPTI_CB_DOMAIN_RESOURCE, 1, &text), CUPTI_ERROR_INVALID_PARAMETER);
}

/* ---- The subscriber ---- */

static int entries, exits;
static uint32_t called_id;
static void CUPTIAPI called(
    void *data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *more)
{
    const CUpti_CallbackData *call = more;

    CHECK(data == &entries);
    CHECK_IS(domain, CUPTI_CB_DOMAIN_DRIVER_API);
    CHECK_IS(cbid, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    CHECK_IS(strcmp(call->functionName, "cuLaunchKernel"), 0);
    CHECK(call->context == context && call->contextUid == 1);
    OK(cuCtxGetDevice(&(CUdevice){0})); /* is not reported */
    if (call->callbackSite == CUPTI_API_ENTER) {
        entries++;
        *call->correlationData = 77;
        called_id = call->correlationId;
        return;
    }
    exits++;
    CHECK_IS(*call->correlationData, 77);
    CHECK_IS(call->correlationId, called_id);
    OK(*(CUresult *)call->functionReturnValue);
}

static void test_subscriber(void)
{
    char name[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN];
    CUpti_SubscriberParams params = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
        .subscriberName = "the test",
        .oldSubscriberName = name,
        .oldSubscriberSize = sizeof name};
    CUpti_SubscriberHandle mine, second;
    uint32_t on = 7;

    OK(cuptiSubscribe_v2(&mine, called, &entries, &params));
    CHECK_IS(cuptiSubscribe(&second, called, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    CHECK_IS(cuptiSubscribe_v2(&second, called, NULL, &params), 39);
    CHECK_IS(strcmp(name, "CUPTI for the test"), 0);
    launches(1);
    CHECK_IS(entries, 0);
    OK(cuptiEnableCallback(
        1, mine, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    OK(cuptiGetCallbackState(
        &on, mine, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    CHECK_IS(on, 1);
    forget_records();
    enable(KIND(DRIVER));
    launches(2);
    disable(KIND(DRIVER));
    flush();
    CHECK(entries == 2 && exits == 2);
    CHECK_IS(CALL_RECORD(cuLaunchKernel)->correlationId, called_id);
    CHECK_IS(record_count, 3);
    OK(cuptiUnsubscribe(mine));
    CHECK_IS(cuptiUnsubscribe(mine), CUPTI_ERROR_INVALID_PARAMETER);
    launches(1);
    CHECK_IS(entries, 2);
    OK(cuptiSubscribe(&second, called, NULL));
    OK(cuptiUnsubscribe(second));
}

/* ---- The end ---- */

static void test_fork(void)
{
    int status;
    pid_t child;

    enable(KIND(CONCURRENT_KERNEL));
    launches(1);
    child = fork();
    if (child == 0) {
        failures = 0;
        CHECK_IS(cuptiActivityEnable(KIND(MEMCPY)), CUPTI_ERROR_NOT_INITIALIZED);
        CHECK_IS(
            cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_ERROR_INVALID_OPERATION);
        _exit(failures != 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_IS(status, 0);
    disable(KIND(CONCURRENT_KERNEL));
    flush();
}

static void test_finalize(void)
{
    forget_records();
    enable(KIND(CONCURRENT_KERNEL));
    enable(KIND(DRIVER));
    OK(sleep_on(stream, 20000));
    flush();
    CHECK_IS(record_count, 1);
    OK(cuptiFinalize());
    launches(2);
    CHECK_IS(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
    CHECK_IS(record_count, 1);
    /* It can be had again, as at first. */
    OK(cuptiActivityRegisterCallbacks(ask_buffer, take_buffer));
    enable(KIND(CONCURRENT_KERNEL));
    launches(2);
    OK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    CHECK_IS(count_kind(KIND(CONCURRENT_KERNEL)), 2);
    CHECK_IS(record_count, 3);
    CHECK_IS(dropped(), 0);
}

int main(void)
{
    set_up();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    test_before_registering();
    test_flush();
    test_full();
    test_dropped();
    test_threads();
    test_last_registered();
    test_syncs();
    test_external();
    test_arguments();
    test_subscriber();
    test_fork();
    test_finalize();
    FINISH();
}
