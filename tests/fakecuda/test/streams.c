/* Streams: order, implicit synchronisation, per-thread streams, events with times, priorities,
 * handles. */
#include "device.h"

#include <pthread.h>
#include <stdbool.h>

static void test_properties(void)
{
    CUstream s, t, low, high;
    unsigned flags;
    int least, greatest, priority;
    unsigned long long id, next;

    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK_IS(least, 0);
    CHECK_IS(greatest, -5);
    OK(cuStreamGetId(NULL, &id));
    CHECK_IS(id, 7);
    OK(cuStreamGetId(CU_STREAM_LEGACY, &id));
    CHECK_IS(id, 7);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamGetId(s, &id));
    OK(cuStreamCreateWithPriority(&low, 0, 100));
    OK(cuStreamGetId(low, &next));
    CHECK_IS(next, id + 1);
    OK(cuStreamCreateWithPriority(&high, 0, -100));
    OK(cuStreamGetPriority(low, &priority));
    CHECK_IS(priority, 0);
    OK(cuStreamGetPriority(high, &priority));
    CHECK_IS(priority, -5);
    OK(cuStreamGetFlags(s, &flags));
    CHECK_IS(flags, CU_STREAM_NON_BLOCKING);
    CHECK_IS(cuStreamCreate(&t, 8), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamDestroy(s));
    CHECK_IS(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
    CHECK_IS(cuStreamDestroy(s), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamCreate(&t, 0));
    CHECK(t == s); /* the handle is reused at once, the id is not */
    OK(cuStreamGetId(t, &id));
    CHECK_IS(id, next + 2);
    CHECK_IS(cuStreamSynchronize((CUstream)0x1234), CUDA_ERROR_INVALID_HANDLE);
    CHECK_IS(cuStreamDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamDestroy(t));
    OK(cuStreamDestroy(low));
    OK(cuStreamDestroy(high));
}

static void test_overlap(void)
{
    CUstream a, b;
    double begin_ms = milliseconds();

    OK(cuStreamCreate(&a, 0));
    OK(cuStreamCreate(&b, 0));
    OK(close_gate(a));
    OK(sleep_on(a, 30000));
    OK(sleep_on(b, 3000));
    OK(cuStreamSynchronize(b)); /* it does not wait for the other one's work */
    CHECK_IS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    gate_is_open = 1;
    OK(cuCtxSynchronize());
    CHECK(milliseconds() - begin_ms >= 32);
    OK(cuStreamQuery(a));
    OK(sleep_on(a, 20000));
    OK(sleep_on(a, 20000));
    begin_ms = milliseconds();
    OK(cuStreamSynchronize(a));
    CHECK(milliseconds() - begin_ms >= 35);
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
}

/* What the legacy stream waits for, and who waits for it: the time from `first` to the end of
 * `second`. */
static float serial(CUstream first, CUstream second)
{
    CUevent start, end;
    float ms = 0;

    OK(cuEventCreate(&start, 0));
    OK(cuEventCreate(&end, 0));
    OK(cuEventRecord(start, first));
    OK(sleep_on(first, 20000));
    OK(sleep_on(second, 20000));
    OK(cuEventRecord(end, second));
    OK(cuEventSynchronize(end));
    OK(cuEventElapsedTime(&ms, start, end));
    OK(cuCtxSynchronize());
    OK(cuEventDestroy(start));
    OK(cuEventDestroy(end));
    return ms;
}

static void test_legacy(void)
{
    CUstream blocking, free_stream;

    OK(cuStreamCreate(&blocking, 0));
    OK(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
    CHECK(serial(NULL, blocking) >= 39.9f);
    CHECK(serial(blocking, NULL) >= 39.9f);
    CHECK(serial(NULL, free_stream) < 39.0f);
    CHECK(serial(free_stream, NULL) < 39.0f);
    CHECK(serial(CU_STREAM_PER_THREAD, NULL) >= 39.9f);
    CHECK(serial(CU_STREAM_PER_THREAD, free_stream) < 39.0f);
    CHECK(serial(CU_STREAM_PER_THREAD, blocking) < 39.0f);
    OK(sleep_on(blocking, 20000));
    CHECK_IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize(NULL));
    OK(cuStreamQuery(blocking));
    OK(cuStreamDestroy(blocking));
    OK(cuStreamDestroy(free_stream));
}

/* Measured. What stands wrong waits for the gate, which then opens never. */
static void test_waits_beside_legacy(void)
{
    CUstream blocking, other;
    CUevent reached;

    OK(cuStreamCreate(&blocking, 0));
    OK(cuStreamCreate(&other, 0));
    OK(cuEventCreate(&reached, 0));
    OK(cuEventRecord(reached, other));
    OK(cuEventSynchronize(reached));

    OK(close_gate(NULL));
    OK(cuStreamWaitEvent(blocking, reached, 0));
    OK(cuStreamSynchronize(blocking)); /* a wait is not behind the legacy stream */
    gate_is_open = 1;
    OK(cuCtxSynchronize());

    OK(close_gate(blocking));
    OK(cuStreamWaitEvent(NULL, reached, 0)); /* there it is behind all blocking ones */
    OK(sleep_on(other, 0));
    CHECK_IS(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    gate_is_open = 1;
    OK(cuCtxSynchronize());
}

static unsigned *arrived; /* threads whose streams have begun */
static void CUDA_CB arrive(void *unused)
{
    (void)unused;
    __atomic_fetch_add(arrived, 1, __ATOMIC_ACQ_REL);
}

/* Each stream waits until all have begun: on one stream they would wait for ever. */
static void *own_stream(void *arg)
{
    unsigned long long id;

    (void)arg;
    OK(cuCtxSetCurrent(context));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &id));
    OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, arrive, NULL));
    OK(cuStreamWaitValue32(
        CU_STREAM_PER_THREAD, (CUdeviceptr)(uintptr_t)arrived, 4, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return (void *)(uintptr_t)id;
}

static void test_per_thread(void)
{
    pthread_t threads[4];
    void *ids[4];

    OK(cuMemHostAlloc((void **)&arrived, sizeof *arrived, 0));
    *arrived = 0;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, own_stream, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], &ids[i]);
    OK(cuMemFreeHost(arrived));
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++) CHECK(ids[i] != ids[k]);
}

static void test_events(void)
{
    CUevent a, b, untimed, again;
    CUstream s, t;
    float ms = 0;

    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, CU_EVENT_BLOCKING_SYNC));
    OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamCreate(&t, 0));
    OK(cuEventQuery(a)); /* never recorded: done */
    OK(cuEventSynchronize(a));
    OK(cuStreamWaitEvent(s, a, 0));
    CHECK_IS(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(a, s));
    OK(sleep_on(s, 25000));
    OK(cuEventRecord(b, s));
    CHECK_IS(cuEventQuery(b), CUDA_ERROR_NOT_READY);
    CHECK_IS(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_NOT_READY);
    OK(cuStreamWaitEvent(t, b, 0));
    OK(launch(empty, t, NULL));
    CHECK_IS(cuStreamQuery(t), CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize(t));
    OK(cuEventQuery(b));
    OK(cuEventElapsedTime(&ms, a, b));
    CHECK(ms >= 24.9f && ms < 27.0f);
    OK(cuEventRecord(untimed, s));
    OK(cuEventSynchronize(untimed));
    CHECK_IS(cuEventElapsedTime(&ms, untimed, b), CUDA_ERROR_INVALID_HANDLE);
    /* A wait takes the recording of its moment; recording again later does not move it. */
    OK(cuEventRecord(a, t));
    OK(sleep_on(s, 30000));
    OK(cuStreamWaitEvent(t, a, 0));
    OK(cuEventRecord(a, s));
    OK(cuStreamSynchronize(t));
    CHECK_IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(cuEventDestroy(a)); /* with the recording pending */
    CHECK_IS(cuEventQuery(a), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventCreate(&again, 0));
    CHECK(again == a);
    CHECK_IS(cuEventCreate(&a, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventDestroy(again));
    OK(cuEventDestroy(b));
    OK(cuEventDestroy(untimed));
    OK(cuStreamDestroy(s));
    OK(cuStreamDestroy(t));
}

static pthread_t callback_thread;
static volatile int order;
static void CUDA_CB at_host(void *data)
{
    callback_thread = pthread_self();
    CHECK_IS(order, *(int *)data);
    order++;
}
static void CUDA_CB at_callback(CUstream stream, CUresult status, void *data)
{
    CHECK(stream != NULL);
    OK(status);
    CHECK(pthread_equal(callback_thread, pthread_self()));
    CHECK_IS(order, *(int *)data);
    order++;
}

static void test_host(void)
{
    CUstream s;
    int numbers[] = {0, 1, 2};

    OK(cuStreamCreate(&s, 0));
    OK(sleep_on(s, 10000));
    OK(cuLaunchHostFunc(s, at_host, &numbers[0]));
    OK(cuStreamAddCallback(s, at_callback, &numbers[1], 0));
    OK(cuLaunchHostFunc(s, at_host, &numbers[2]));
    CHECK_IS(order, 0);
    OK(cuStreamSynchronize(s));
    CHECK_IS(order, 3);
    CHECK(!pthread_equal(callback_thread, pthread_self()));
    OK(cuStreamDestroy(s));
}

static void test_destroy_pending(void)
{
    CUstream s;
    CUevent e;
    double begin_ms = milliseconds();

    OK(cuEventCreate(&e, 0));
    OK(cuStreamCreate(&s, 0));
    OK(close_gate(s));
    OK(sleep_on(s, 30000));
    OK(cuEventRecord(e, s));
    OK(cuStreamDestroy(s)); /* does not wait */
    CHECK_IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    gate_is_open = 1;
    OK(cuEventSynchronize(e));
    CHECK(milliseconds() - begin_ms >= 29);
    OK(cuEventDestroy(e));
}

static void test_launch_cost(void)
{
    enum { LAUNCHES = 200000 };
    double begin_ms = milliseconds();

    for (int i = 0; i < LAUNCHES; i++) cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    printf(
        "launch_ns %.0f\n", (milliseconds() - begin_ms) * 1e6 / LAUNCHES); /* shown, not judged */
}

int main(void)
{
    CUstream early;

    CHECK_IS(cuStreamCreate(&early, 0), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    CHECK_IS(cuStreamCreate(&early, 0), CUDA_ERROR_INVALID_CONTEXT);
    set_up();
    test_properties();
    test_overlap();
    test_legacy();
    test_waits_beside_legacy();
    test_per_thread();
    test_events();
    test_host();
    test_destroy_pending();
    test_launch_cost();
    FINISH();
}
