/* Devices and contexts of streams, and what happens where none is current. */
#include "tests/api/rows.h"

ROW_WITH(16, "the device of a stream", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t here, there, legacy, wrapped = NULL;
    CUcontext now;
    CUstream raw;
    int device;

    start();
    here = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    CHECK_IS(device_of(here), 0);
    CHECK_IS(device_of(there), 1);
    OK(cuCtxGetCurrent(&now));
    CHECK(now == context); /* making one elsewhere leaves the current context */
    WORKS(custream_legacy_default(&legacy));
    CHECK_IS(device_of(legacy), 0);
    OK(cuCtxSetCurrent(primary_of(1)));
    CHECK_IS(device_of(legacy), 1);
    CHECK_IS(device_of(here), 0);
    OK(cuStreamCreate(&raw, 0));
    OK(cuCtxSetCurrent(context));
    WORKS(custream_wrap(&wrapped, raw, -1, NULL, NULL)); /* asked of CUDA */
    CHECK_IS(device_of(wrapped), 1);
    FAILS_INT(custream_get_device(NULL, &device), INVALID_VALUE, device);
    GIVES(custream_get_device(here, NULL), INVALID_VALUE);
    WORKS(custream_release(wrapped));
    WORKS(custream_release(here));
    WORKS(custream_release(there));
}

ROW_WITH(17, "the context of a stream", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t here, there, legacy;
    void *got = NULL;

    start();
    here = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    WORKS(custream_get_context(here, &got));
    CHECK(got == context);
    WORKS(custream_get_context(there, &got));
    CHECK(got == primary_of(1));
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_get_context(legacy, &got));
    CHECK(got == context);
    FAILS(custream_get_context(NULL, &got), INVALID_VALUE, got);
    GIVES(custream_get_context(here, NULL), INVALID_VALUE);
    WORKS(custream_release(here));
    WORKS(custream_release(there));
}

CUresult cuCtxCreate_v2(CUcontext *created, unsigned flags,
    CUdevice device); /* of which newer headers have other forms alone */

ROW(17_created, "a context that is not the primary one")
{
    custream_t s, legacy;
    custream_event_t e;
    CUcontext created;
    void *got = NULL;

    start();
    OK(cuCtxCreate_v2(&created, 0, 0));
    s = new_stream();
    e = new_event();
    WORKS(custream_get_context(s, &got));
    CHECK(got == created); /* the current one */
    WORKS(custream_record(s, e, 0));
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_get_context(legacy, &got));
    CHECK(got == created);
    OK(cuCtxDestroy(created));
    /* They went with it. A real driver crashes over their handles, and the library alone does not
     * know; with the recorder it does. */
    if (!simulated() && !recorded()) return;
    CHECK(custream_query(s) != CUSTREAM_SUCCESS);
    CHECK(custream_record(s, e, 0) != CUSTREAM_SUCCESS);
    WORKS(custream_event_release(e));
    WORKS(custream_release(s));
}

/* The driver's own calls tell a green context's resources; here a stream of one must be a stream
 * like any. */
ROW(18, "a stream of a green context")
{
    start();
    CUdevResource resource;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    CUstream raw;
    custream_t s = NULL;

    OK(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuDevResourceGenerateDesc(&desc, &resource, 1));
    OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    OK(cuGreenCtxStreamCreate(&raw, green, CU_STREAM_NON_BLOCKING, -1));
    WORKS(custream_wrap(&s, raw, -1, NULL, NULL));
    CHECK_IS(device_of(s), 0);
    CHECK_IS(priority_of(s), -1);
    CHECK_IS(nonblocking(s), 1);
    WORKS(custream_synchronize(s));
    WORKS(custream_release(s));
    OK(cuStreamDestroy(raw));
    OK(cuGreenCtxDestroy(green));
}

ROW(86, "no current context: the primary one is made current")
{
    CUcontext now = NULL, primary;
    custream_t s = NULL;
    void *of_stream = NULL;

    WORKS(custream_create(&s, NULL));
    OK(cuCtxGetCurrent(&now));
    primary = primary_of(0);
    CHECK(now && now == primary);
    WORKS(custream_get_context(s, &of_stream));
    CHECK(of_stream == primary);
    WORKS(custream_release(s));
}

static void without_context(void)
{
    CUcontext now = NULL;
    custream_t s = NULL, legacy = NULL;
    custream_event_t e = NULL;

    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_query(legacy)); /* which needs one */
    OK(cuCtxGetCurrent(&now));
    CHECK(now == context);
    OK(cuCtxSetCurrent(NULL));
    WORKS(custream_event_create(&e, NULL));
    OK(cuCtxSetCurrent(NULL));
    WORKS(custream_create_from_pool(&s, -1, 0, 0));
    OK(cuCtxSetCurrent(NULL));
    WORKS(custream_device_synchronize(-1));
    OK(cuCtxSetCurrent(NULL));
    CHECK_IS(device_of(legacy), 0); /* device 0 where there is none */
    WORKS(custream_current(-1, &s));
    CHECK(s == legacy);
    WORKS(custream_priority_range(-1, NULL, NULL));
}
static custream_t from_elsewhere;
static void use_without_context(void)
{
    custream_event_t e = NULL;
    custream_t out[1];

    WORKS(custream_query(from_elsewhere));
    WORKS(custream_record_new(from_elsewhere, NULL, &e));
    WORKS(custream_wait_event(from_elsewhere, e, 0));
    WORKS(custream_fork(from_elsewhere, 1, out));
    WORKS(custream_join(from_elsewhere, 1, out));
    WORKS(custream_synchronize(from_elsewhere));
    WORKS(custream_event_release(e));
}

ROW(86_threads, "threads without a context")
{
    start();
    from_elsewhere = new_stream();
    in_thread(without_context);
    in_thread(use_without_context);
    WORKS(custream_release(from_elsewhere));
}

ROW(86_refused, "no current context, and none is to be made")
{
    custream_init_options_t options;
    custream_t s;
    custream_event_t e;
    CUcontext now = NULL;

    WORKS(custream_init_options_init(&options));
    CHECK_IS(options.make_context, 1);
    options.make_context = 0;
    WORKS(custream_init(&options));
    FAILS(custream_create(&s, NULL), NO_CONTEXT, s);
    FAILS(custream_event_create(&e, NULL), NO_CONTEXT, e);
    GIVES(custream_device_synchronize(-1), NO_CONTEXT);
    WORKS(custream_legacy_default(&s));
    GIVES(custream_query(s), NO_CONTEXT);
    OK(cuCtxGetCurrent(&now));
    CHECK(!now);
    start();
    WORKS(custream_create(&s, NULL));
    WORKS(custream_release(s));
}

static int is_active(int device)
{
    unsigned flags;
    int active = -1;
    OK(cuDevicePrimaryCtxGetState(device, &flags, &active));
    return active;
}
static void use_again(void)
{
    custream_t s = new_stream();
    custream_event_t e = new_event();

    WORKS(custream_record(s, e, 0));
    WORKS(custream_synchronize(s));
    WORKS(custream_event_release(e));
    WORKS(custream_release(s));
    WORKS(custream_query(current_on(-1)));
}

ROW_WITH(86_reset, "the context was reset: it is made anew", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t there;

    use_again();
    OK(cuDevicePrimaryCtxReset(0)); /* what was current is no more */
    CHECK_IS(is_active(0), 0);
    use_again();
    CHECK_IS(is_active(0), 1);
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuCtxSetCurrent(NULL)); /* nor is another */
    use_again();
    OK(cuDevicePrimaryCtxReset(0));
    in_thread(use_again);
    OK(cuCtxSetCurrent(primary_of(1)));
    OK(cuDevicePrimaryCtxReset(1));
    there = new_stream();
    CHECK_IS(device_of(there), 1); /* of the device that was current */
    WORKS(custream_release(there));
    WORKS(custream_shutdown());
    CHECK_IS(is_active(0), 0); /* the library has one reference, however often it was reset */
}

ROW(86_reset_refused, "the context was reset, and none is to be made")
{
    custream_init_options_t options;
    custream_t s;

    WORKS(custream_init_options_init(&options));
    options.make_context = 0;
    WORKS(custream_init(&options));
    start();
    WORKS(custream_release(new_stream()));
    OK(cuDevicePrimaryCtxReset(0));
    FAILS(custream_create(&s, NULL), NO_CONTEXT, s);
    CHECK_IS(is_active(0), 0);
}

/* CUDA gives their handles to others, or crashes over them. */
ROW(86_reset_objects, "what a reset has ended is not destroyed once more")
{
    custream_t s, other;
    custream_event_t e, cached;
    CUstream raw;

    start();
    s = new_stream();
    other = new_stream();
    e = new_event();
    WORKS(custream_record(s, e, 0));
    WORKS(custream_cached_event(s, &cached));
    OK(cuDevicePrimaryCtxReset(0));
    WORKS(custream_release(other)); /* while there is none */
    context = primary_of(0);
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    WORKS(custream_event_release(e));
    WORKS(custream_close(s));
    WORKS(custream_event_release(cached));
    WORKS(custream_release(s));
    OK(cuStreamQuery(raw));
}

static custream_t elsewhere, waiting;
static void wait_there(void)
{ /* the primary context is current here */
    OK(cuCtxSetCurrent(context));
    waiting = new_stream();
    WORKS(custream_wait_stream(waiting, elsewhere, NULL, 0));
    GIVES(custream_query(waiting), NOT_READY);
}

ROW(44_context, "wait for a stream of another context of the device")
{
    CUcontext created;

    start();
    OK(cuCtxCreate_v2(&created, 0, 0));
    elsewhere = new_stream();
    OK(cuCtxPopCurrent(NULL));
    hold(handle_of(elsewhere));
    in_thread(wait_there);
    in_thread(wait_there); /* by the event that was made then */
    open_gate();
    WORKS(custream_synchronize(waiting));
    WORKS(custream_release(elsewhere));
    OK(cuCtxDestroy(created));
}

/* Which stream the legacy default stream is depends on the current context: it must be that of the
 * device in question. */
ROW_WITH(37_device, "the new current stream waits for the other device's default stream",
    "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t there;

    start();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    OK(cuCtxPushCurrent(primary_of(1)));
    hold(CU_STREAM_LEGACY);
    OK(cuCtxPopCurrent(NULL));
    WORKS(custream_push(there, CUSTREAM_SYNC | CUSTREAM_SWITCH_DEVICE));
    GIVES(custream_query(there), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(there));
    WORKS(custream_pop(0));
    CHECK_IS(current_device(), 0);
}
