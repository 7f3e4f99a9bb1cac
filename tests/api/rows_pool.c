/* Pools of streams, and the default streams. */
#include "tests/api/rows.h"

static custream_t pooled(int priority)
{
    custream_t s = NULL;
    WORKS(custream_create_from_pool(&s, -1, priority, 0));
    return s;
}

ROW(3, "32 streams in turns: the 33rd is the first")
{
    custream_t s[CUSTREAM_POOL_SIZE];

    start();
    CHECK_IS(CUSTREAM_POOL_SIZE, 32);
    for (int i = 0; i < CUSTREAM_POOL_SIZE; i++) {
        s[i] = pooled(0);
        CHECK_IS(nonblocking(s[i]), 1);
        CHECK_IS(owned(s[i]), 0);
        for (int k = 0; k < i; k++) CHECK(handle_of(s[k]) != handle_of(s[i]));
    }
    for (int i = 0; i < CUSTREAM_POOL_SIZE; i++) CHECK(pooled(0) == s[i]);
    CHECK_IS(custream_equal(pooled(0), s[0]), 1);
}

ROW(3_levels, "a ring for each priority, 0 to -3")
{
    custream_t first[4];

    start();
    for (int level = 0; level < 4; level++) {
        first[level] = pooled(-level);
        CHECK_IS(priority_of(first[level]), -level);
        for (int i = 1; i <= level; i++) pooled(-level); /* the rings turn by themselves */
    }
    for (int level = 0; level < 4; level++) {
        for (int i = level + 1; i < CUSTREAM_POOL_SIZE; i++) CHECK(pooled(-level) != first[level]);
        CHECK(pooled(-level) == first[level]);
    }
    CHECK_IS(priority_of(pooled(-5)), -3);
    CHECK_IS(priority_of(pooled(-100)), -3);
    CHECK_IS(priority_of(pooled(100)), 0);
}

ROW(3_forever, "a pool's streams are never destroyed")
{
    CUstream handles[CUSTREAM_POOL_SIZE];
    custream_stats_t stats = {.size = sizeof stats};
    custream_t s;

    start();
    for (int i = 0; i < CUSTREAM_POOL_SIZE; i++) {
        s = pooled(-1);
        handles[i] = handle_of(s);
        WORKS(custream_release(s));
    }
    for (int i = 0; i < CUSTREAM_POOL_SIZE; i++) {
        OK(cuStreamQuery(handles[i]));
        s = pooled(-1);
        CHECK(handle_of(s) == handles[i]);
        WORKS(custream_release(s));
    }
    WORKS(custream_stats(-1, &stats));
    CHECK_IS(stats.pooled, CUSTREAM_POOL_SIZE);
}

ROW_WITH(3_devices, "a pool for each device; as an option of create", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_options_t options;
    custream_t here, there, s = NULL, t = NULL;

    start();
    here = pooled(0);
    WORKS(custream_create_from_pool(&there, 1, 0, 0));
    CHECK_IS(device_of(here), 0);
    CHECK_IS(device_of(there), 1);
    WORKS(custream_options_init(&options));
    options.pooled = 1;
    options.priority = -2;
    WORKS(custream_create(&s, &options));
    CHECK_IS(priority_of(s), -2);
    CHECK_IS(owned(s), 0);
    for (int i = 1; i < CUSTREAM_POOL_SIZE; i++) pooled(-2);
    WORKS(custream_create(&t, &options));
    CHECK(t == s);
    FAILS(custream_create_from_pool(&s, 99, 0, 0), INVALID_VALUE, s);
    GIVES(custream_create_from_pool(NULL, -1, 0, 0), INVALID_VALUE);
}

CUresult cuCtxCreate_v2(CUcontext *created, unsigned flags,
    CUdevice device); /* of which newer headers have other forms alone */

static CUcontext context_of(custream_t s)
{
    void *got = NULL;
    WORKS(custream_get_context(s, &got));
    return got;
}

ROW(3_context, "a pool is in the primary context, whichever is current")
{
    CUcontext created, now;
    custream_t s, t, own, again = NULL;

    OK(cuInit(0));
    OK(cuCtxCreate_v2(&created, 0, 0));
    s = pooled(0);
    CHECK(context_of(s) == primary_of(0));
    WORKS(custream_set_default_mode(CUSTREAM_DEFAULT_DEVICE));
    WORKS(custream_default(-1, &own));
    CHECK(context_of(own) == primary_of(0));
    OK(cuCtxGetCurrent(&now));
    CHECK(now == created);
    OK(cuCtxDestroy(created));
    OK(cuCtxSetCurrent(primary_of(0)));
    for (int i = 1; i < CUSTREAM_POOL_SIZE; i++) WORKS(custream_query(pooled(0)));
    t = pooled(0);
    CHECK(t == s);
    WORKS(custream_query(t));
    WORKS(custream_default(-1, &again));
    CHECK(again == own);
    WORKS(custream_query(own));
}

/* The stream that follows one of the same handle must live: nothing of before is destroyed again.
 */
ROW(3_reset, "after a reset the pool and the device's default stream are made anew")
{
    custream_t s, own, after, later = NULL;
    custream_event_t e;
    CUstream raw[3];

    start();
    s = pooled(0);
    WORKS(custream_cached_event(s, &e));
    WORKS(custream_set_default_mode(CUSTREAM_DEFAULT_DEVICE));
    WORKS(custream_default(-1, &own));
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    for (int i = 0; i < 3; i++) OK(cuStreamCreate(&raw[i], CU_STREAM_NON_BLOCKING));
    after = pooled(0);
    CHECK(after != s);
    WORKS(custream_synchronize(after));
    WORKS(custream_default(-1, &later));
    CHECK(later != own && later == current_on(0));
    WORKS(custream_query(later));
    WORKS(custream_wait_stream(later, after, NULL, 0));
    WORKS(custream_event_release(e));
    WORKS(custream_release(s));
    WORKS(custream_release(own));
    for (int i = 0; i < CUSTREAM_POOL_SIZE; i++) WORKS(custream_query(pooled(0)));
    for (int i = 0; i < 3; i++) OK(cuStreamQuery(raw[i]));
    OK(cuDevicePrimaryCtxReset(0));
    WORKS(custream_shutdown());
}

ROW_WITH(
    3_fails, "the driver makes no stream for the pool", "CUSTREAM_FAKE_FAIL=cuStreamCreate*:1=2")
{
    custream_t s;

    start();
    FAILS(custream_create_from_pool(&s, -1, 0, 0), DRIVER, s);
    CHECK_IS(driver_error(), 2);
    WORKS(custream_create_from_pool(&s, -1, 0, 0)); /* once it can */
    WORKS(custream_query(s));
}

ROW(4, "streams that capture are passed over")
{
    custream_t all[CUSTREAM_POOL_SIZE], s;
    CUgraph graph;

    start();
    for (int i = 0; i < CUSTREAM_POOL_SIZE; i++) all[i] = pooled(0);
    OK(cuStreamBeginCapture(handle_of(all[0]), CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamBeginCapture(handle_of(all[2]), CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < 2 * CUSTREAM_POOL_SIZE; i++) {
        WORKS(custream_create_from_pool(&s, -1, 0, 1));
        CHECK(s != all[0] && s != all[2]);
    }
    s = NULL;
    for (int i = 0; i < CUSTREAM_POOL_SIZE && s != all[0]; i++) s = pooled(0);
    CHECK(s == all[0]); /* who does not ask gets it */
    for (int i = 0; i < CUSTREAM_POOL_SIZE; i++)
        if (i != 0 && i != 2)
            OK(cuStreamBeginCapture(handle_of(all[i]), CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS(custream_create_from_pool(&s, -1, 0, 1), CAPTURE_STATE, s);
    for (int i = 0; i < CUSTREAM_POOL_SIZE; i++) OK(cuStreamEndCapture(handle_of(all[i]), &graph));
    WORKS(custream_create_from_pool(&s, -1, 0, 1));
}

ROW(28, "the legacy default stream")
{
    custream_t a = NULL, b = NULL;

    start();
    WORKS(custream_legacy_default(&a));
    WORKS(custream_legacy_default(&b));
    CHECK(a && a == b);
    CHECK(handle_of(a) == CU_STREAM_LEGACY);
    CHECK_IS(nonblocking(a), 0);
    CHECK_IS(owned(a), 0);
    hold(CU_STREAM_LEGACY);
    GIVES(custream_query(a), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(a));
    for (int i = 0; i < 5; i++) WORKS(custream_release(a)); /* references mean nothing */
    WORKS(custream_query(a));
    GIVES(custream_legacy_default(NULL), INVALID_VALUE);
}

static custream_t theirs;
static void query_own(void)
{
    OK(cuCtxSetCurrent(context));
    WORKS(custream_per_thread_default(&theirs));
    WORKS(custream_query(theirs)); /* this thread's own is idle */
}

ROW(29, "the per-thread default stream")
{
    custream_t a = NULL;

    start();
    WORKS(custream_per_thread_default(&a));
    CHECK(handle_of(a) == CU_STREAM_PER_THREAD);
    hold(CU_STREAM_PER_THREAD);
    GIVES(custream_query(a), NOT_READY);
    in_thread(query_own);
    CHECK(theirs == a);
    open_gate();
    WORKS(custream_synchronize(a));
    for (int i = 0; i < 5; i++) WORKS(custream_release(a));
    WORKS(custream_query(a));
    GIVES(custream_per_thread_default(NULL), INVALID_VALUE);
}

static custream_t default_on(int device)
{
    custream_t s = NULL;
    WORKS(custream_default(device, &s));
    return s;
}
static custream_t seen_current;
static void look_current(void)
{
    OK(cuCtxSetCurrent(context));
    seen_current = current_on(-1);
}

ROW_WITH(30, "which stream is the default", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_default_mode_t mode = (custream_default_mode_t)9;
    custream_t legacy, per_thread, own;

    start();
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_per_thread_default(&per_thread));
    WORKS(custream_get_default_mode(&mode));
    CHECK_IS(mode, CUSTREAM_DEFAULT_LEGACY);
    CHECK(default_on(-1) == legacy && default_on(1) == legacy);
    WORKS(custream_set_default_mode(CUSTREAM_DEFAULT_PER_THREAD));
    CHECK(default_on(-1) == per_thread);
    in_thread(look_current);
    CHECK(seen_current == per_thread);
    WORKS(custream_set_default_mode(CUSTREAM_DEFAULT_DEVICE));
    own = default_on(0);
    CHECK(own != legacy && own != per_thread && own == default_on(0) && own == default_on(-1));
    CHECK_IS(nonblocking(own), 0); /* as Warp's */
    CHECK_IS(device_of(own), 0);
    CHECK(default_on(1) != own);
    CHECK_IS(device_of(default_on(1)), 1);
    in_thread(look_current);
    CHECK(seen_current == own);
    GIVES(custream_set_default_mode((custream_default_mode_t)3), INVALID_VALUE);
    WORKS(custream_get_default_mode(&mode));
    CHECK_IS(mode, CUSTREAM_DEFAULT_DEVICE);
    GIVES(custream_get_default_mode(NULL), INVALID_VALUE);
    GIVES(custream_default(-1, NULL), INVALID_VALUE);
    FAILS(custream_default(99, &own), INVALID_VALUE, own);
}

static void starts_in(custream_default_mode_t expected)
{
    custream_default_mode_t mode = (custream_default_mode_t)9;

    start();
    WORKS(custream_get_default_mode(&mode));
    CHECK_IS(mode, expected);
    CHECK(handle_of(default_on(-1)) ==
          (expected == CUSTREAM_DEFAULT_LEGACY ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD));
    CHECK(handle_of(current_on(-1)) == handle_of(default_on(-1)));
}
ROW_WITH(31, "cuda.core's variable", "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=1")
{
    starts_in(CUSTREAM_DEFAULT_PER_THREAD);
}
ROW_WITH(31_cupy, "CuPy's variable", "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM=2")
{
    starts_in(CUSTREAM_DEFAULT_PER_THREAD);
}
ROW_WITH(31_zero, "a variable that is 0",
    "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=0 CUPY_CUDA_PER_THREAD_DEFAULT_STREAM=0")
{
    starts_in(CUSTREAM_DEFAULT_LEGACY);
}
ROW_WITH(31_word, "a variable that is no number", "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=yes")
{
    starts_in(CUSTREAM_DEFAULT_LEGACY);
}
ROW_WITH(31_empty, "a variable that is empty", "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM=")
{
    starts_in(CUSTREAM_DEFAULT_LEGACY);
}

static void keep_legacy(void) { WORKS(custream_legacy_default(&theirs)); }

ROW(32, "a default stream is one object")
{
    custream_t legacy, again;

    start();
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_release(legacy));
    in_thread(keep_legacy);
    CHECK(theirs == legacy);
    CHECK(default_on(-1) == legacy);
    CHECK(current_on(-1) == legacy);
    WORKS(custream_wrap(&again, CU_STREAM_LEGACY, -1, NULL, NULL));
    CHECK(again == legacy);
    CHECK_IS(custream_equal(again, legacy), 1);
}
