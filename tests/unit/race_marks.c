/*
 * Races, for the thread sanitizer: the event backend between threads that mark calls, one that ends
 * contexts, the GPU thread and the writer.
 *
 * The driver is a stub in which an event is done a moment after it was recorded, and which knows
 * the contexts that are gone: whoever uses one of those, or an event of it, fails the test.
 */
#include "shim/gpu/backend.h"
#include "shim/gpu/mark.h"
#include "tests/unit/driver.h"

enum { THREADS = 4, CALLS = 6000, CONTEXTS = 40, EVENTS = 1 << 18, DELAY_NS = 30000 };

/* Event n is the number n + 1, context n as stub_context has it. */
static struct event {
    _Atomic cs_u64 at;
    _Atomic int context;
} events[EVENTS];
static _Atomic cs_u32 event_count;
static _Atomic bool gone[CONTEXTS + 2];
static _Atomic cs_u64 misuses, refused_records;
static __thread int current;

static struct event *event_of(CUevent handle)
{
    struct event *event = &events[(uintptr_t)handle - 1];
    if (cs_load(&gone[cs_load(&event->context)])) cs_add(&misuses, 1);
    return event;
}

static CUresult stub_push(CUcontext context)
{
    current = (int)((uintptr_t)context >> 8 & 0xff);
    if (atomic_load(&gone[current])) cs_add(&misuses, 1);
    return CUDA_SUCCESS;
}
static CUresult stub_pop(CUcontext *out) { return current = 0, *out = NULL, CUDA_SUCCESS; }
static CUresult stub_exchange(CUstreamCaptureMode *mode)
{
    return *mode = CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_SUCCESS;
}
static CUresult stub_create_stream(CUstream *out, unsigned flags)
{
    return (void)flags, *out = stub_stream(9999), CUDA_SUCCESS;
}
static CUresult stub_capturing(CUstream stream, CUstreamCaptureStatus *out)
{
    return (void)stream, *out = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}
static CUresult stub_create(CUevent *out, unsigned flags)
{
    (void)flags;
    cs_u32 n = cs_add(&event_count, 1);
    if (n >= EVENTS) return CUDA_ERROR_OUT_OF_MEMORY;
    cs_store(&events[n].context, current);
    return *out = (CUevent)(uintptr_t)(n + 1), CUDA_SUCCESS;
}
static CUresult stub_record(CUevent handle, CUstream stream)
{
    static _Atomic cs_u64 records;
    if (stream != stub_stream(9999) && cs_add(&records, 1) % 97 == 0)
        return cs_add(&refused_records, 1), CUDA_ERROR_INVALID_HANDLE;
    cs_store(&event_of(handle)->at, cs_monotonic_ns());
    return CUDA_SUCCESS;
}
static CUresult stub_query(CUevent handle)
{
    return cs_monotonic_ns() - cs_load(&event_of(handle)->at) > DELAY_NS ? CUDA_SUCCESS
                                                                         : CUDA_ERROR_NOT_READY;
}
static CUresult stub_elapsed(float *ms, CUevent a, CUevent b)
{
    return *ms = (float)((double)(cs_i64)(cs_load(&event_of(b)->at) - cs_load(&event_of(a)->at)) /
                         1e6),
           CUDA_SUCCESS;
}

/* --- the threads --- */

static cs_ref shared;
static _Atomic int running;

static void mark_one(struct cs_thread *t, CUstream handle, cs_ref stream, bool done)
{
    static const cs_u64 value[CS_VALUES];
    struct cs_mark mark = cs_mark_before(t, handle, false);
    cs_u64 begin = cs_ticks();
    if (mark.number)
        cs_mark_after(mark, &(struct cs_marked_call){t, handle, stream, done, false,
                                CS_CALL_cuLaunchKernel, begin, cs_ticks(), value});
}

static void *marks(void *which)
{
    struct cs_thread *t = cs_thread_start();
    CUstream own = stub_stream(100 + (int)(intptr_t)which);
    stub_current = stub_context(0, 1);
    cs_context_set(t, stub_current);
    cs_ref stream = make_stream(t, own);
    for (int i = 0; i < CALLS; i++) {
        mark_one(t, own, stream, i % 50 != 7);
        mark_one(t, stub_stream(1), shared, true);
        if (i % 64 == 63) nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void *ends_contexts(void *unused)
{
    struct cs_thread *t = cs_thread_start();
    for (int n = 2; n < CONTEXTS + 2; n++) {
        stub_current = stub_context(0, n);
        cs_context_made(stub_current);
        cs_context_set(t, stub_current);
        CUstream handle = stub_stream(200 + n);
        cs_ref stream = make_stream(t, handle);
        for (int i = 0; i < 300; i++) {
            mark_one(t, handle, stream, true);
            if (i % 100 == 0)
                nanosleep(&(struct timespec){0, 2000000}, NULL); /* so that it gets a pool */
        }
        bool held = cs_gpu_hold();
        atomic_store(&gone[n], true);
        nanosleep(&(struct timespec){0, 200000}, NULL);
        cs_context_destroyed(cs_context_destroying(stub_current), true);
        cs_gpu_release(held);
    }
    atomic_fetch_sub(&running, 1);
    return unused;
}

static cs_u64 calls_seen, calls_lost;
static void on_work(const struct cs_gpu_work *w)
{
    calls_seen += w->kind == CS_GPU_RANGE ? w->range.calls : 1;
    CHECK(w->end > w->start && w->by_events && w->correlation);
}
static void on_lost(cs_u64 count, enum cs_loss why)
{
    CHECK(why < CS_LOSSES);
    calls_lost += count;
}

static _Atomic bool over;
static void *writes(void *unused)
{
    const struct cs_gpu_sink sink = {.work = on_work, .lost = on_lost};
    for (bool last = false; !last;) {
        last = cs_load_acq(&over);
        cs_gpu_events.drain(&sink);
        nanosleep(&(struct timespec){0, 300000}, NULL);
    }
    return unused;
}

TEST(marks_between_threads)
{
    pthread_t threads[THREADS + 2];
    cs_clock_init();
    stub_driver();
    cs_real.cuCtxPushCurrent_v2 = stub_push;
    cs_real.cuCtxPopCurrent_v2 = stub_pop;
    cs_real.cuThreadExchangeStreamCaptureMode = stub_exchange;
    cs_real.cuStreamCreate = stub_create_stream;
    cs_real.cuStreamIsCapturing = stub_capturing;
    cs_real.cuEventCreate = stub_create;
    cs_real.cuEventRecord = stub_record;
    cs_real.cuEventQuery = stub_query;
    cs_real.cuEventElapsedTime = stub_elapsed;
    struct cs_thread *t = cs_thread_start();
    stub_current = stub_context(0, 1);
    cs_context_made(stub_current);
    cs_context_set(t, stub_current);
    shared = make_stream(t, stub_stream(1));
    REQUIRE(!cs_gpu_events.start());
    atomic_store(&running, THREADS + 1);
    for (intptr_t i = 0; i < THREADS; i++)
        REQUIRE(!pthread_create(&threads[i], NULL, marks, (void *)i));
    REQUIRE(!pthread_create(&threads[THREADS], NULL, ends_contexts, NULL));
    REQUIRE(!pthread_create(&threads[THREADS + 1], NULL, writes, NULL));
    while (atomic_load(&running)) {
        cs_gpu_events.poll();
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    cs_gpu_events.flush(true);
    cs_gpu_events.stop(true);
    for (int i = 0; i < THREADS + 1; i++) pthread_join(threads[i], NULL);
    cs_store_rel(&over, true);
    pthread_join(threads[THREADS + 1], NULL);
    cs_u64 failed = 0; /* calls that the driver refused stand for nothing, unless their begin event
                          was refused before */
    for (int i = 0; i < CALLS; i++) failed += i % 50 == 7;
    cs_u64 made = THREADS * 2 * CALLS + CONTEXTS * 300;
    CHECK_IS(cs_load(&misuses), 0);
    CHECK(calls_seen + calls_lost <= made && calls_seen + calls_lost >= made - THREADS * failed);
    CHECK(calls_lost >= cs_load(&refused_records) &&
          calls_seen); /* how many find an event depends on how often this thread gets to look */
}
