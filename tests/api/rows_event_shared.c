/* Events that others see: of other processes, of graphs, of other owners. */
#include "tests/api/rows_event.h"

ROW(68, "events for other processes take no times")
{
    custream_event_options_t options;

    start();
    options = defaults();
    options.interprocess = 1;
    CHECK_IS(flags_of(made(&options)), CUSTREAM_EVENT_INTERPROCESS | CUSTREAM_EVENT_DISABLE_TIMING);
    options.timing = 1;
    refused(&options);
    options.lazy = 1; /* at once, not at the first record */
    refused(&options);
}

/* The simulated GPU lets a process be its own peer, which a real driver does not. */
ROW_SIMULATED(69, "export and import")
{
    custream_event_options_t options;
    custream_event_t e, plain, imported;
    unsigned char bytes[CUSTREAM_IPC_BYTES], before[CUSTREAM_IPC_BYTES];

    start();
    memset(before, 0x5a, sizeof before);
    memcpy(bytes, before, sizeof bytes);
    plain = new_event();
    GIVES(custream_event_ipc_export(plain, bytes), IPC);
    CHECK(memcmp(bytes, before, sizeof bytes) == 0);
    FAILS(custream_event_ipc_import(&imported, bytes), INVALID_HANDLE, imported);
    CHECK_IS(driver_error(), CUDA_ERROR_INVALID_HANDLE);
    options = defaults();
    options.interprocess = 1;
    e = made(&options);
    WORKS(custream_event_ipc_export(e, bytes));
    WORKS(custream_event_ipc_import(&imported, bytes));
    CHECK(imported != e && event_handle(imported) != event_handle(e));
    WORKS(custream_event_release(imported));
    OK(cuEventQuery(event_handle(e)));
    GIVES(custream_event_ipc_export(NULL, bytes), INVALID_VALUE);
    GIVES(custream_event_ipc_export(e, NULL), INVALID_VALUE);
    FAILS(custream_event_ipc_import(&imported, NULL), INVALID_VALUE, imported);
    GIVES(custream_event_ipc_import(NULL, bytes), INVALID_VALUE);
    CHECK_IS(sizeof(CUipcEventHandle), CUSTREAM_IPC_BYTES);
}

ROW(70, "external events in a capture")
{
    custream_event_t external, plain;
    custream_graph_t graph = NULL;
    custream_t s, t;

    start();
    s = new_stream();
    t = new_stream();
    external = new_event();
    plain = new_event();
    WORKS(custream_record(
        s, external, CUSTREAM_EXTERNAL_IF_CAPTURING)); /* outside of a capture as any */
    WORKS(custream_wait_event(t, external, CUSTREAM_EXTERNAL_IF_CAPTURING));
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_record(s, plain, 0)); /* no node: it names a place in the capture */
    WORKS(custream_wait_event(s, external, CUSTREAM_EXTERNAL));
    WORKS(custream_wait_event(s, external, CUSTREAM_EXTERNAL_IF_CAPTURING));
    WORKS(custream_record(s, external, CUSTREAM_EXTERNAL));
    WORKS(custream_record(s, external, CUSTREAM_EXTERNAL_IF_CAPTURING));
    WORKS(custream_end_capture(s, &graph));
    CHECK_IS(nodes_of(graph), 4);
    WORKS(custream_graph_release(graph));
}

/* Two graphs that wait for each other through an event: the second's launch goes on when the first
 * has recorded it. */
ROW(70_option, "an event that is always external")
{
    custream_event_options_t options;
    custream_graph_t records = NULL, waits = NULL;
    custream_event_t e;
    custream_t s, t;

    start();
    s = new_stream();
    t = new_stream();
    options = defaults();
    options.external = 1;
    e = made(&options);
    WORKS(custream_record(s, e, 0));
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_record(s, e, 0));
    WORKS(custream_end_capture(s, &records));
    CHECK_IS(nodes_of(records), 1);
    WORKS(custream_begin_capture(t, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_event_wait(e, t));
    WORKS(custream_end_capture(t, &waits));
    CHECK_IS(nodes_of(waits), 1);
    hold(handle_of(s));
    mark(handle_of(s), '1');
    WORKS(custream_graph_launch(records, s));
    GIVES(custream_query(s), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(s));
    WORKS(custream_graph_launch(waits, t));
    mark(handle_of(t), '2');
    WORKS(custream_synchronize(t));
    CHECK(marks_are("12"));
    WORKS(custream_graph_release(records));
    WORKS(custream_graph_release(waits));
}

ROW(71, "wrap an event that somebody else owns")
{
    custream_event_t e = NULL, again = NULL;
    custream_t s, t;
    int released = 0;
    unsigned flags = 99;
    CUevent raw;

    start();
    s = new_stream();
    t = new_stream();
    OK(cuEventCreate(&raw, CU_EVENT_DISABLE_TIMING));
    WORKS(custream_event_wrap(&e, raw, -1, count_call, &released));
    CHECK(event_handle(e) == raw);
    CHECK_IS(device_of_event(e), 0);
    WORKS(custream_event_get_flags(e, &flags));
    WORKS(custream_event_wrap(&again, raw, -1, count_call, &released));
    CHECK(again == e);
    CHECK_IS(count_of(&released), 1);
    WORKS(custream_event_release(again));
    hold(handle_of(s));
    WORKS(custream_record(s, e, 0));
    WORKS(custream_wait_event(t, e, 0));
    GIVES(custream_query(t), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(t));
    WORKS(custream_event_release(e));
    CHECK_IS(count_of(&released), 2);
    OK(cuEventQuery(raw));
    WORKS(custream_event_wrap(&e, raw, 0, count_call, &released));
    WORKS(custream_event_close(e));
    WORKS(custream_event_release(e));
    CHECK_IS(count_of(&released), 3);
    OK(cuEventDestroy(raw));
    FAILS(custream_event_wrap(&e, NULL, -1, count_call, &released), INVALID_VALUE, e);
    GIVES(custream_event_wrap(NULL, raw, -1, NULL, NULL), INVALID_VALUE);
    CHECK_IS(count_of(&released), 3);
}

ROW(83_lazy, "also once a lazy event has been made")
{
    custream_event_options_t options = defaults();
    custream_event_t e, again = NULL;
    CUevent raw;

    start();
    options.lazy = 1;
    e = made(&options);
    WORKS(custream_record(new_stream(), e, 0));
    raw = event_handle(e);
    WORKS(custream_event_wrap(&again, raw, -1, NULL, NULL));
    CHECK(again == e);
    WORKS(custream_event_release(again));
    OK(cuEventQuery(raw));
    WORKS(custream_event_release(e));
    GONE(cuEventQuery(raw));
}

ROW_SIMULATED(71_lost, "the owner destroys a wrapped event")
{
    custream_event_t e = NULL;
    CUevent raw;

    start();
    OK(cuEventCreate(&raw, CU_EVENT_DISABLE_TIMING));
    WORKS(custream_event_wrap(&e, raw, -1, NULL, NULL));
    OK(cuEventDestroy(raw));
    GIVES(custream_event_query(e), INVALID_HANDLE);
    GIVES(custream_event_synchronize(e), INVALID_HANDLE);
    GIVES(custream_record(new_stream(), e, 0), INVALID_HANDLE);
    WORKS(custream_event_release(e));
}

/* There is no function that compares events: one handle has one object while it lives, so the
 * pointers do. */
ROW(83, "the same event is the same object")
{
    custream_event_t a, b, again = NULL;
    int released = 0;

    start();
    a = new_event();
    b = new_event();
    CHECK(a != b && event_handle(a) != event_handle(b));
    WORKS(custream_event_wrap(&again, event_handle(a), -1, count_call, &released));
    CHECK(again == a);
    CHECK_IS(count_of(&released), 1);
    WORKS(custream_event_release(a));
    WORKS(custream_event_query(again));
    WORKS(custream_event_release(again));
    WORKS(custream_event_release(b));
}
