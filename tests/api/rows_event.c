/* Events: how they are made, asked, measured and closed. */
#include "tests/api/rows_event.h"

static custream_event_t timed(void)
{
    custream_event_options_t options = defaults();
    options.timing = 1;
    return made(&options);
}

ROW(65, "create an event")
{
    custream_event_options_t options;
    custream_event_t e;
    CUevent raw;

    start();
    options = defaults();
    CHECK_IS(options.size, sizeof options);
    CHECK_IS(options.device, -1);
    CHECK(!options.timing && !options.blocking_sync && !options.interprocess && !options.external &&
          !options.lazy && !options.single_export);
    e = new_event();
    raw = event_handle(e);
    OK(cuEventQuery(raw));
    WORKS(custream_event_retain(e));
    WORKS(custream_event_release(e));
    OK(cuEventQuery(raw));
    WORKS(custream_event_release(e));
    GONE(cuEventQuery(raw));
    options.size = 0;
    refused(&options);
    options = defaults();
    options.device = 99;
    refused(&options);
    GIVES(custream_event_create(NULL, NULL), INVALID_VALUE);
    GIVES(custream_event_options_init(NULL), INVALID_VALUE);
    GIVES(custream_event_retain(NULL), INVALID_VALUE);
    GIVES(custream_event_release(NULL), INVALID_VALUE);
}

ROW_WITH(65_fails, "the driver makes no event", "CUSTREAM_FAKE_FAIL=cuEventCreate*=2")
{
    custream_event_t e;
    custream_t s;

    start();
    FAILS(custream_event_create(&e, NULL), DRIVER, e);
    CHECK_IS(driver_error(), 2);
    s = new_stream();
    FAILS(custream_record_new(s, NULL, &e), DRIVER, e);
    FAILS(custream_cached_event(s, &e), DRIVER, e);
}

ROW_WITH(65_lazy, "an event that is made at its first record", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_event_options_t options;
    custream_event_t e, never;
    custream_t s, there;
    CUevent raw;

    start();
    s = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    options = defaults();
    options.lazy = 1;
    e = made(&options);
    CHECK(event_handle(e) == NULL);
    CHECK_IS(device_of_event(e), -1);
    WORKS(custream_event_query(e));
    WORKS(custream_event_synchronize(e));
    WORKS(custream_wait_event(s, e, 0));
    WORKS(custream_record(there, e, 0));
    raw = event_handle(e);
    CHECK(raw);
    CHECK_IS(device_of_event(e), 1); /* that stream's */
    WORKS(custream_record(there, e, 0));
    CHECK(event_handle(e) == raw);
    GIVES(custream_record(s, e, 0), DEVICE_MISMATCH); /* from then on it is as any */
    WORKS(custream_event_release(e));
    GONE(cuEventQuery(raw));
    never = made(&options);
    WORKS(custream_event_close(never));
    WORKS(custream_event_release(never));
}

ROW_SIMULATED(65_close, "close an event")
{
    custream_event_t e, other;
    custream_t s;
    CUevent raw, heir;
    void *handle;
    float ms;
    unsigned flags;
    unsigned char bytes[CUSTREAM_IPC_BYTES];

    start();
    s = new_stream();
    e = timed();
    other = timed();
    raw = event_handle(e);
    WORKS(custream_event_close(e));
    OK(cuEventCreate(&heir, 0));
    CHECK(
        heir == raw); /* the simulated GPU's next event has the handle: it must not go with ours */
    WORKS(custream_event_close(e));
    GIVES(custream_event_query(e), CLOSED);
    GIVES(custream_event_synchronize(e), CLOSED);
    GIVES(custream_event_record(e, s), CLOSED);
    GIVES(custream_event_wait(e, s), CLOSED);
    FAILS(custream_event_get_handle(e, &handle), CLOSED, handle);
    GIVES(custream_event_get_flags(e, &flags), CLOSED);
    GIVES(custream_event_elapsed_ms(e, other, 0, &ms), CLOSED);
    GIVES(custream_event_elapsed_ms(other, e, 0, &ms), CLOSED);
    GIVES(custream_event_ipc_export(e, bytes), CLOSED);
    GIVES(custream_wait_stream(s, new_stream(), e, 0), CLOSED);
    WORKS(custream_event_retain(e));
    WORKS(custream_event_release(e));
    WORKS(custream_event_release(e));
    OK(cuEventQuery(heir));
    GIVES(custream_event_close(NULL), INVALID_VALUE);
}

ROW(66, "times are off unless asked")
{
    custream_t s;
    float raw_ms;

    start();
    s = new_stream();
    CHECK_IS(flags_of(new_event()), CUSTREAM_EVENT_DISABLE_TIMING);
    CHECK_IS(flags_of(timed()), 0);
    custream_event_t a = timed();
    WORKS(custream_record(s, a, 0));
    WORKS(custream_event_synchronize(a));
    OK(cuEventElapsedTime(&raw_ms, event_handle(a), event_handle(a))); /* CUDA agrees */
}

/* What the driver was given is in its journal; test_api.py reads it. */
ROW(67, "waiting that blocks")
{
    custream_event_options_t options;
    custream_event_t e;
    custream_t s;

    start();
    s = new_stream();
    options = defaults();
    options.blocking_sync = 1;
    e = made(&options);
    CHECK_IS(flags_of(e), CUSTREAM_EVENT_BLOCKING_SYNC | CUSTREAM_EVENT_DISABLE_TIMING);
    options.timing = 1;
    CHECK_IS(flags_of(made(&options)), CUSTREAM_EVENT_BLOCKING_SYNC);
    WORKS(custream_record(s, e, 0));
    WORKS(custream_event_synchronize(e));
}

ROW(72, "is an event done?")
{
    custream_event_t e;
    custream_t s;

    start();
    s = new_stream();
    e = new_event();
    WORKS(custream_event_query(e)); /* never recorded */
    hold(handle_of(s));
    WORKS(custream_record(s, e, 0));
    GIVES(custream_event_query(e), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(s));
    WORKS(custream_event_query(e));
    GIVES(custream_event_query(NULL), INVALID_VALUE);
}

ROW(73, "wait for an event on the host")
{
    custream_event_t e;
    custream_t s;

    start();
    s = new_stream();
    e = new_event();
    WORKS(custream_event_synchronize(e)); /* never recorded */
    mark(handle_of(s), '1');
    WORKS(custream_record(s, e, 0));
    WORKS(custream_event_synchronize(e));
    CHECK(marks_are("1"));
    hold(handle_of(s)); /* what comes later is not waited for */
    WORKS(custream_event_synchronize(e));
    GIVES(custream_query(s), NOT_READY);
    open_gate();
    GIVES(custream_event_synchronize(NULL), INVALID_VALUE);
}

static void no_time(
    custream_event_t a, custream_event_t b, int synchronize, custream_status_t expected)
{
    float ms = -7;
    CHECK_IS(custream_event_elapsed_ms(a, b, synchronize, &ms), expected);
    CHECK(ms == -7);
}

ROW(74, "the time between two events, or why there is none")
{
    custream_event_t a, b, untimed, never;
    custream_t s;
    CUfunction sleeps;
    float ms = -1;

    start();
    s = new_stream();
    a = timed();
    b = timed();
    untimed = new_event();
    never = timed();
    sleeps = kernel_of("sleep_us_500");
    WORKS(custream_record(s, untimed, 0));
    WORKS(custream_record(s, a, 0));
    OK(cuLaunchKernel(sleeps, 1, 1, 1, 1, 1, 1, 0, handle_of(s), NULL, NULL));
    hold(handle_of(s));
    WORKS(custream_record(s, b, 0));
    no_time(a, b, 0, CUSTREAM_NOT_READY);
    no_time(b, a, 0, CUSTREAM_NOT_READY);
    no_time(a, untimed, 0, CUSTREAM_TIMING_DISABLED);
    no_time(untimed, a, 1, CUSTREAM_TIMING_DISABLED);
    no_time(a, never, 0, CUSTREAM_NOT_RECORDED);
    no_time(never, a, 1, CUSTREAM_NOT_RECORDED);
    open_gate();
    WORKS(custream_event_elapsed_ms(a, b, 1, &ms));
    CHECK(ms > 0.499f); /* simulated time: the kernel's own */
    WORKS(custream_event_elapsed_ms(b, a, 0, &ms));
    CHECK(ms < -0.499f);
    WORKS(custream_event_elapsed_ms(a, a, 0, &ms));
    CHECK(ms == 0);
    no_time(NULL, a, 0, CUSTREAM_INVALID_VALUE);
    no_time(a, NULL, 0, CUSTREAM_INVALID_VALUE);
    GIVES(custream_event_elapsed_ms(a, b, 0, NULL), INVALID_VALUE);
}

/* An event is CUDA's: others may record it by its handle. */
ROW(74_raw, "the time between events that somebody else recorded")
{
    custream_event_t a, b;
    custream_t s;
    float ms = -1;

    start();
    s = new_stream();
    a = timed();
    b = timed();
    OK(cuEventRecord(event_handle(a), handle_of(s)));
    OK(cuEventRecord(event_handle(b), handle_of(s)));
    WORKS(custream_event_elapsed_ms(a, b, 1, &ms));
    CHECK(ms >= 0);
}

ROW(75, "record from the event's side")
{
    custream_event_t e;
    custream_t s;

    start();
    s = new_stream();
    e = new_event();
    WORKS(custream_set_current(s, 0));
    hold(handle_of(s));
    WORKS(custream_event_record(e, NULL)); /* on the current stream */
    GIVES(custream_event_query(e), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(s));
    WORKS(custream_event_query(e));
    hold(handle_of(s));
    WORKS(custream_event_record(e, new_stream()));
    WORKS(custream_event_query(e));
    open_gate();
    GIVES(custream_event_record(NULL, s), INVALID_VALUE);
}

ROW(76, "wait from the event's side")
{
    custream_event_t e;
    custream_t s, t, u;

    start();
    s = new_stream();
    t = new_stream();
    u = new_stream();
    e = new_event();
    hold(handle_of(s));
    WORKS(custream_event_record(e, s));
    WORKS(custream_set_current(t, 0));
    WORKS(custream_event_wait(e, NULL));
    GIVES(custream_query(t), NOT_READY);
    WORKS(custream_query(u));
    WORKS(custream_event_wait(e, u));
    GIVES(custream_query(u), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(t));
    WORKS(custream_synchronize(u));
    GIVES(custream_event_wait(NULL, s), INVALID_VALUE);
}

ROW_WITH(77, "the device of an event", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_event_options_t options;
    custream_event_t e;
    int device;

    start();
    e = new_event();
    CHECK_IS(device_of_event(e), 0);
    options = defaults();
    options.device = 1;
    CHECK_IS(device_of_event(made(&options)), 1);
    CHECK_IS(current_device(), 0);
    OK(cuCtxSetCurrent(primary_of(1)));
    CHECK_IS(device_of_event(new_event()), 1);
    FAILS_INT(custream_event_get_device(NULL, &device), INVALID_VALUE, device);
    GIVES(custream_event_get_device(e, NULL), INVALID_VALUE);
}

ROW(78, "the flags of an event")
{
    custream_event_options_t options;
    custream_event_t e;
    unsigned flags = 77;

    start();
    options = defaults();
    for (int bits = 0; bits < 8; bits++) {
        options.timing = bits & 1;
        options.blocking_sync = bits >> 1 & 1;
        options.interprocess = bits >> 2 & 1;
        if (options.timing && options.interprocess) continue;
        e = made(&options);
        CHECK_IS(flags_of(e), (options.timing ? 0 : CUSTREAM_EVENT_DISABLE_TIMING) |
                                  (options.blocking_sync ? CUSTREAM_EVENT_BLOCKING_SYNC : 0) |
                                  (options.interprocess ? CUSTREAM_EVENT_INTERPROCESS : 0));
        WORKS(custream_event_release(e));
    }
    GIVES(custream_event_get_flags(NULL, &flags), INVALID_VALUE);
    CHECK_IS(flags, 77);
    GIVES(custream_event_get_flags(new_event(), NULL), INVALID_VALUE);
}
