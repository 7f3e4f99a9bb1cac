/* Order and completion: events on streams, waiting and queries. */
#include "tests/api/rows.h"

static custream_event_t event_with(int timing, int interprocess, int single_export)
{
    custream_event_options_t options;
    custream_event_t e = NULL;

    WORKS(custream_event_options_init(&options));
    options.timing = timing;
    options.interprocess = interprocess;
    options.single_export = single_export;
    WORKS(custream_event_create(&e, &options));
    return e;
}

ROW(40, "record an event")
{
    custream_event_options_t options;
    custream_event_t e, made = NULL, timed = NULL;
    custream_t s;
    unsigned flags = 99;

    start();
    s = new_stream();
    e = new_event();
    hold(handle_of(s));
    WORKS(custream_record(s, e, 0));
    GIVES(custream_event_query(e), NOT_READY);
    WORKS(custream_record_new(s, NULL, &made));
    GIVES(custream_event_query(made), NOT_READY);
    WORKS(custream_event_get_flags(made, &flags));
    CHECK_IS(flags, CUSTREAM_EVENT_DISABLE_TIMING);
    WORKS(custream_event_options_init(&options));
    options.timing = 1;
    WORKS(custream_record_new(s, &options, &timed));
    WORKS(custream_event_get_flags(timed, &flags));
    CHECK_IS(flags, 0);
    open_gate();
    WORKS(custream_event_synchronize(timed));
    WORKS(custream_event_query(e));
    WORKS(custream_event_query(made));
    WORKS(custream_event_release(e));
    WORKS(custream_event_release(made));
    WORKS(custream_event_release(timed));
    WORKS(custream_release(s));
}

ROW_WITH(40_refused, "records that mean nothing", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_event_options_t options;
    custream_event_t e, out;
    custream_t s, there;
    int device = 9;

    start();
    s = new_stream();
    e = new_event();
    GIVES(custream_record(NULL, e, 0), INVALID_VALUE);
    GIVES(custream_record(s, NULL, 0), INVALID_VALUE);
    GIVES(custream_record(s, e, 4), INVALID_VALUE);
    FAILS(custream_record_new(NULL, NULL, &out), INVALID_VALUE, out);
    GIVES(custream_record_new(s, NULL, NULL), INVALID_VALUE);
    WORKS(custream_event_options_init(&options));
    options.size = 0;
    FAILS(custream_record_new(s, &options, &out), INVALID_VALUE, out);
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    WORKS(custream_record_new(there, NULL, &out)); /* on the stream's device, whatever is current */
    WORKS(custream_event_get_device(out, &device));
    CHECK_IS(device, 1);
    CHECK_IS(current_device(), 0);
}

ROW(41, "recording an interprocess event again")
{
    custream_event_t often, once;
    custream_t s;

    start();
    s = new_stream();
    often = event_with(0, 1, 0);
    WORKS(custream_record(s, often, 0));
    WORKS(custream_record(s, often, 0));
    once = event_with(0, 1, 1);
    WORKS(custream_record(s, once, 0));
    GIVES(custream_record(s, once, 0), IPC);
    GIVES(custream_event_record(once, s), IPC);
    WORKS(custream_event_release(often));
    WORKS(custream_event_release(once));
    WORKS(custream_release(s));
}

ROW_WITH(42, "an event of another device", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_event_options_t options;
    custream_event_t here, there = NULL;
    custream_t s, far;

    start();
    s = new_stream();
    far = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    here = new_event();
    WORKS(custream_event_options_init(&options));
    options.device = 1;
    WORKS(custream_event_create(&there, &options));
    GIVES(custream_record(s, there, 0), DEVICE_MISMATCH);
    GIVES(custream_record(far, here, 0), DEVICE_MISMATCH);
    GIVES(custream_wait_stream(s, far, here, 0), DEVICE_MISMATCH);
    WORKS(custream_record(far, there, 0));
    WORKS(custream_wait_event(s, there, 0)); /* waiting goes across devices */
    WORKS(custream_synchronize(s));
}

ROW(43, "wait for an event")
{
    custream_event_t e, never;
    custream_t a, b;

    start();
    a = new_stream();
    b = new_stream();
    e = new_event();
    never = new_event();
    WORKS(custream_wait_event(b, never, 0)); /* never recorded: nothing */
    WORKS(custream_query(b));
    hold(handle_of(a));
    mark(handle_of(a), '1');
    WORKS(custream_record(a, e, 0));
    WORKS(custream_wait_event(b, e, 0));
    mark(handle_of(b), '2');
    GIVES(custream_query(b), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(b));
    CHECK(marks_are("12"));
    GIVES(custream_wait_event(NULL, e, 0), INVALID_VALUE);
    GIVES(custream_wait_event(a, NULL, 0), INVALID_VALUE);
    GIVES(custream_wait_event(a, e, 4), INVALID_VALUE);
    WORKS(custream_event_close(e));
    GIVES(custream_wait_event(a, e, 0), CLOSED);
    GIVES(custream_record(a, e, 0), CLOSED);
}

/* An event is CUDA's: others may record it by its handle. */
ROW(43_raw, "wait for an event that somebody else recorded")
{
    custream_event_t e;
    custream_t a, b;

    start();
    a = new_stream();
    b = new_stream();
    e = new_event();
    hold(handle_of(a));
    OK(cuEventRecord(event_handle(e), handle_of(a)));
    WORKS(custream_wait_event(b, e, 0));
    GIVES(custream_query(b), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(b));
}

ROW(44, "wait for a stream")
{
    custream_t a, b, c;
    custream_event_t e;

    start();
    a = new_stream();
    b = new_stream();
    c = new_stream();
    e = new_event();
    WORKS(custream_wait_stream(a, a, NULL, 0)); /* not for itself */
    hold(handle_of(a));
    mark(handle_of(a), '1');
    WORKS(custream_wait_stream(a, a, e, 0));
    WORKS(custream_wait_stream(b, a, NULL, 0));
    mark(handle_of(b), '2');
    WORKS(custream_wait_stream(c, b, e, 0)); /* the event that is recorded for it */
    mark(handle_of(c), '3');
    GIVES(custream_query(b), NOT_READY);
    GIVES(custream_query(c), NOT_READY);
    GIVES(custream_event_query(e), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(c));
    CHECK(marks_are("123"));
    WORKS(custream_event_query(e));
    GIVES(custream_wait_stream(a, NULL, NULL, 0), INVALID_VALUE);
    GIVES(custream_wait_stream(NULL, a, NULL, 0), INVALID_VALUE);
    GIVES(custream_wait_stream(a, b, NULL, 4), INVALID_VALUE);
    WORKS(custream_close(c));
    GIVES(custream_wait_stream(a, c, NULL, 0), CLOSED);
    GIVES(custream_wait_stream(c, a, NULL, 0), CLOSED);
}

/* What has been enqueued by then, and not what comes after. */
ROW(44_now, "it waits for what is there now")
{
    custream_t a, b;

    start();
    a = new_stream();
    b = new_stream();
    WORKS(custream_wait_stream(b, a, NULL, 0));
    hold(handle_of(a));
    WORKS(custream_query(b));
    WORKS(custream_synchronize(b));
    GIVES(custream_query(a), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(a));
}

ROW(44_handle, "wait for a handle that is no object here")
{
    custream_t s;
    CUstream raw;

    start();
    s = new_stream();
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    hold(raw);
    mark(raw, '1');
    WORKS(custream_wait_handle(s, raw));
    mark(handle_of(s), '2');
    GIVES(custream_query(s), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(s));
    CHECK(marks_are("12"));
    WORKS(custream_wait_handle(s, handle_of(s)));
    OK(cuStreamDestroy(raw));
    if (simulated())
        GIVES(custream_wait_handle(s, raw), INVALID_HANDLE); /* a real driver crashes */
    GIVES(custream_wait_handle(NULL, raw), INVALID_VALUE);
    hold(CU_STREAM_LEGACY);
    WORKS(custream_wait_handle(s, NULL)); /* the legacy default stream */
    GIVES(custream_query(s), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(s));
}

ROW_WITH(44_devices, "wait for a stream of another device", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t here, there;

    start();
    here = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    hold(handle_of(there));
    mark(handle_of(there), '1');
    WORKS(custream_wait_stream(here, there, NULL, 0));
    mark(handle_of(here), '2');
    GIVES(custream_query(here), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(here));
    CHECK(marks_are("12"));
    CHECK_IS(current_device(), 0);
}

ROW(45, "the cached event of a stream")
{
    custream_event_t e = NULL, again = NULL;
    custream_t a, b;
    unsigned flags = 99;
    CUevent raw;

    start();
    a = new_stream();
    b = new_stream();
    WORKS(custream_cached_event(a, &e));
    WORKS(custream_cached_event(a, &again));
    CHECK(e == again);
    WORKS(custream_event_get_flags(e, &flags));
    CHECK(flags & CUSTREAM_EVENT_DISABLE_TIMING);
    hold(handle_of(a));
    WORKS(custream_wait_stream(b, a, NULL, 0));
    GIVES(custream_event_query(e), NOT_READY); /* it was recorded for that */
    open_gate();
    WORKS(custream_synchronize(b));
    raw = event_handle(e);
    WORKS(custream_event_release(e));
    WORKS(custream_event_release(again));
    OK(cuEventQuery(raw));
    WORKS(custream_release(a));
    GONE(cuEventQuery(raw));
    FAILS(custream_cached_event(NULL, &e), INVALID_VALUE, e);
    GIVES(custream_cached_event(b, NULL), INVALID_VALUE);
}

/* One object stands for a stream of each context, and another for one of each thread: so their
 * events cannot be one either. */
ROW_WITH(45_defaults, "waiting for default streams of two devices", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t here, there, legacy, per_thread;

    start();
    here = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_per_thread_default(&per_thread));
    WORKS(custream_wait_stream(here, legacy, NULL, 0));
    WORKS(custream_wait_stream(here, per_thread, NULL, 0));
    OK(cuCtxSetCurrent(primary_of(1)));
    hold(CU_STREAM_LEGACY);
    WORKS(custream_wait_stream(there, legacy, NULL, 0));
    WORKS(custream_wait_stream(there, per_thread, NULL, 0));
    GIVES(custream_query(there), NOT_READY);
    WORKS(custream_query(here));
    OK(cuCtxSetCurrent(context));
    WORKS(custream_wait_stream(here, legacy, NULL, 0)); /* the first device's again */
    WORKS(custream_query(here));
    open_gate();
    WORKS(custream_synchronize(there));
}

CUresult cuCtxCreate_v2(CUcontext *created, unsigned flags,
    CUdevice device); /* of which newer headers have other forms alone */

ROW_WITH(45_devices, "the cached event of a default stream is the current device's",
    "CUSTREAM_FAKE_DEVICES=2")
{
    custream_event_t here = NULL, there = NULL, again = NULL;
    custream_t legacy, per_thread;
    CUcontext created;
    int device = -1;

    start();
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_per_thread_default(&per_thread));
    WORKS(custream_cached_event(legacy, &here));
    WORKS(custream_record(legacy, here, 0));
    OK(cuCtxSetCurrent(primary_of(1)));
    WORKS(custream_cached_event(legacy, &there));
    WORKS(custream_record(legacy, there, 0));
    WORKS(custream_event_get_device(there, &device));
    CHECK_IS(device, 1);
    OK(cuCtxSetCurrent(context));
    WORKS(custream_cached_event(legacy, &again));
    CHECK(again == here && here != there);
    WORKS(custream_event_release(again));
    WORKS(custream_cached_event(per_thread, &again));
    CHECK(again != here);
    WORKS(custream_record(per_thread, again, 0));
    WORKS(custream_event_release(again));
    WORKS(custream_event_release(there));
    OK(cuCtxCreate_v2(&created, 0, 0)); /* and of the current context */
    WORKS(custream_cached_event(legacy, &there));
    WORKS(custream_record(legacy, there, 0));
    OK(cuCtxPopCurrent(NULL));
    WORKS(custream_cached_event(legacy, &again));
    WORKS(custream_record(legacy, again, 0));
    WORKS(custream_event_release(here));
    WORKS(custream_event_release(there));
    OK(cuCtxDestroy(created));
    here = again;
    OK(cuDevicePrimaryCtxReset(0)); /* and after a reset another one */
    WORKS(custream_cached_event(legacy, &again));
    CHECK(again != here);
    WORKS(custream_event_release(here));
    WORKS(custream_record(legacy, again, 0));
    WORKS(custream_event_synchronize(again));
    WORKS(custream_event_release(again));
}

ROW(46, "is the work done?")
{
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_query(s));
    hold(handle_of(s));
    GIVES(custream_query(s), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(s));
    WORKS(custream_query(s));
    GIVES(custream_query(NULL), INVALID_VALUE);
}

ROW_WITH(46_error, "an error is not 'not ready'",
    "CUSTREAM_FAKE_FAIL=cuStreamQuery*=700,cuStreamSynchronize*=719")
{
    custream_t s;

    start();
    s = new_stream();
    GIVES(custream_query(s), DRIVER);
    CHECK_IS(driver_error(), 700);
    GIVES(custream_synchronize(s), DRIVER);
    CHECK_IS(driver_error(), 719);
    WORKS(custream_device_synchronize(-1));
    CHECK_IS(driver_error(), 0);
    GIVES(custream_last_driver_error(NULL), INVALID_VALUE);
}

ROW_WITH(47, "wait for all work of a stream or device", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t s, t, there;

    start();
    s = new_stream();
    t = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    hold(handle_of(t));
    WORKS(custream_synchronize(s)); /* its own work alone */
    GIVES(custream_query(t), NOT_READY);
    WORKS(custream_device_synchronize(1));
    open_gate();
    WORKS(custream_device_synchronize(-1));
    WORKS(custream_query(t));
    hold(handle_of(there));
    WORKS(custream_device_synchronize(0));
    CHECK_IS(current_device(), 0);
    open_gate();
    WORKS(custream_device_synchronize(1));
    WORKS(custream_query(there));
    GIVES(custream_synchronize(NULL), INVALID_VALUE);
    GIVES(custream_device_synchronize(99), INVALID_VALUE);
    GIVES(custream_device_synchronize(-2), INVALID_VALUE);
}
