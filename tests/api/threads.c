/*
 * Four threads use the same streams and events at once: create, wrap, retain, release, close, make
 * current, record, wait, capture. What must hold: no crash, no race that a sanitizer sees, statuses
 * that the header allows, and in the end as many objects as before. Built plain, and with the
 * address and the thread sanitizer.
 */
#include "tests/api/rows.h"

enum { THREADS = 4, TURNS = 600, SHARED = 6 };

static custream_t shared[SHARED]; /* the main thread holds a reference of each throughout */
static custream_event_t shared_events[SHARED];
static CUstream foreign;
static int releases, wraps;

/* Another thread may have closed it before the call or, so that CUDA does not know the handle any
 * more, during it. */
static int closing;
static int allowed(custream_status_t status)
{
    if (status == CUSTREAM_SUCCESS || status == CUSTREAM_NOT_READY) return 1;
    return closing && (status == CUSTREAM_CLOSED || status == CUSTREAM_INVALID_HANDLE);
}
#define OR_CLOSED(call) \
    do { \
        custream_status_t status_ = call; \
        if (allowed(status_)) break; \
        fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, (int)status_); \
        FAILED(); \
    } while (0)

static void use_shared(unsigned turn)
{
    custream_t s = shared[turn % SHARED], other = shared[(turn + 1) % SHARED], got = NULL;
    custream_event_t e = shared_events[turn % SHARED];
    void *handle;
    char text[128];

    OR_CLOSED(custream_retain(s));
    OR_CLOSED(custream_record(s, e, 0));
    OR_CLOSED(custream_wait_event(other, e, 0));
    OR_CLOSED(custream_wait_stream(other, s, NULL, 0));
    OR_CLOSED(custream_get_handle(s, &handle));
    OR_CLOSED(custream_set_name(s, turn & 1 ? "odd" : "even"));
    OR_CLOSED(custream_format(s, text, sizeof text, NULL));
    OR_CLOSED(custream_push(s, 0));
    if (custream_current(-1, &got) == CUSTREAM_SUCCESS) OR_CLOSED(custream_release(got));
    if (closing && turn % 97 == 96) OR_CLOSED(custream_close(s));
    custream_pop(0); /* nothing to pop where the push found it closed */
    OR_CLOSED(custream_query(s));
    OR_CLOSED(custream_event_query(e));
    custream_hash(s);
    OR_CLOSED(custream_release(s));
}

/* An object of this thread's own, and one for a handle that all wrap at once. */
static void use_own(unsigned turn)
{
    custream_t s = NULL, w = NULL, same = NULL, pooled = NULL;
    void *handle = NULL;

    OR_CLOSED(custream_create(&s, NULL));
    OR_CLOSED(custream_wrap(&w, foreign, 0, count_call, &releases));
    __atomic_add_fetch(&wraps, 1, __ATOMIC_RELAXED);
    OR_CLOSED(custream_create_from_pool(&pooled, -1, -(int)(turn & 3), 0));
    OR_CLOSED(custream_get_handle(s, &handle));
    OR_CLOSED(custream_wrap(&same, handle, -1, NULL, NULL));
    OR_CLOSED(custream_set_current(turn & 1 ? s : w, 0));
    OR_CLOSED(custream_wait_stream(s, pooled, NULL, 0));
    OR_CLOSED(custream_release(same));
    OR_CLOSED(custream_release(pooled));
    if (turn & 2) OR_CLOSED(custream_close(s));
    OR_CLOSED(custream_release(s));
    OR_CLOSED(custream_release(w));
}

/* RELAXED, so that the other threads' calls break nothing. */
static void use_capture(void)
{
    custream_graph_t graph = NULL;
    custream_t s = NULL, forked[2];

    OR_CLOSED(custream_create(&s, NULL));
    OR_CLOSED(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    OR_CLOSED(custream_fork(s, 2, forked));
    OR_CLOSED(custream_join(s, 2, forked));
    OR_CLOSED(custream_launch_host_func(s, count_call, &wraps, NULL));
    OR_CLOSED(custream_end_capture(s, &graph));
    if (graph) OR_CLOSED(custream_graph_release(graph));
    OR_CLOSED(custream_release(s));
}

/* One that this library did not begin and does not end, so that other threads come upon its
 * branches. */
static void use_foreign_capture(void)
{
    custream_t w = NULL, forked[2];
    CUgraph graph = NULL;
    CUstream raw;

    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_RELAXED));
    OR_CLOSED(custream_wrap(&w, raw, -1, NULL, NULL));
    OR_CLOSED(custream_fork(w, 2, forked));
    OR_CLOSED(custream_join(w, 2, forked));
    OR_CLOSED(custream_release(w));
    OK(cuStreamEndCapture(raw, &graph));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy(raw));
}

static int count_stream(custream_t stream, void *arg)
{
    (void)stream;
    ++*(int *)arg;
    return 0;
}

/* In the second half shared streams are closed, but none captures: a call that meets a stream being
 * closed may find its handle given to a new one. */
static pthread_barrier_t together;
static void *worker(void *number)
{
    unsigned first = (unsigned)(uintptr_t)number;
    custream_t legacy;
    int count = 0;

    OK(cuCtxSetCurrent(context));
    pthread_barrier_wait(&together);
    for (unsigned turn = first; turn < first + TURNS; turn++) {
        if (turn == first + TURNS / 2) {
            pthread_barrier_wait(&together);
            __atomic_store_n(&closing, 1, __ATOMIC_SEQ_CST);
            pthread_barrier_wait(&together);
        }
        use_shared(turn);
        use_own(turn);
        if (!closing && turn % 16 == 0) use_capture();
        if (!closing && turn % 16 == 8) use_foreign_capture();
        if (turn % 64 == 0) OR_CLOSED(custream_foreach(count_stream, &count));
    }
    OR_CLOSED(custream_legacy_default(&legacy));
    OR_CLOSED(
        custream_set_current(legacy, 0)); /* the thread's reference ends before the counting */
    return NULL;
}

/* All wrap the same handle, which has no object before: they must get one. */
static custream_t got[THREADS];
static void *wrapper(void *number)
{
    custream_t *own = &got[(uintptr_t)number];

    OK(cuCtxSetCurrent(context));
    for (int turn = 0; turn < 100; turn++) {
        pthread_barrier_wait(&together);
        OR_CLOSED(custream_wrap(own, foreign, 0, count_call, &releases));
        pthread_barrier_wait(&together);
        CHECK(*own == got[0]);
        pthread_barrier_wait(&together);
        OR_CLOSED(custream_release(*own));
    }
    return NULL;
}

static void on_threads(void *(*function)(void *))
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, function, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static uint64_t live(void)
{
    custream_stats_t stats = {.size = sizeof stats};
    WORKS(custream_stats(-1, &stats));
    return stats.streams - stats.pooled;
}

int main(void)
{
    custream_t legacy;
    uint64_t before;

    alarm(patience(60));
    start();
    WORKS(custream_legacy_default(&legacy)); /* counts as one from here on */
    before = live();
    OK(cuStreamCreate(&foreign, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < SHARED; i++) {
        shared[i] = new_stream();
        shared_events[i] = new_event();
    }
    pthread_barrier_init(&together, NULL, THREADS);
    on_threads(wrapper);
    CHECK_IS(count_of(&releases), THREADS * 100); /* each wrap's release came once */
    releases = 0;
    on_threads(worker);
    for (int i = 0; i < SHARED; i++) {
        WORKS(custream_release(shared[i]));
        WORKS(custream_event_release(shared_events[i]));
    }
    CHECK_IS(count_of(&releases), THREADS * TURNS);
    CHECK_IS(live(), before);
    OK(cuStreamQuery(foreign)); /* nobody destroyed it */
    OK(cuStreamDestroy(foreign));
    return failures != 0;
}
