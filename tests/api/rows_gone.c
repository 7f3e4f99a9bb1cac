/* Handles that come back as other objects, ends that are refused, and what the recorder meets later
 * than this API. */
#include "tests/api/rows_event.h"

/* Whoever implements the API here is the one who records. */
static int sees_ends(void)
{
#ifdef API_DLOPEN
    if (!getenv("API_DEFAULT")) return 0;
#endif
    return recorded();
}

ROW(45_closed, "a cached event that its borrower has closed")
{
    custream_event_t e, again;
    custream_t a, b;
    CUevent mine;

    start();
    a = new_stream();
    b = new_stream();
    WORKS(custream_cached_event(a, &e));
    WORKS(custream_event_close(e));
    OK(cuEventCreate(&mine, 0)); /* at the address that is free now, perhaps */
    hold(handle_of(a));
    WORKS(custream_wait_stream(b, a, NULL, 0));
    GIVES(custream_query(b), NOT_READY);
    OK(cuEventQuery(mine)); /* nobody has recorded it */
    open_gate();
    WORKS(custream_synchronize(b));
    WORKS(custream_cached_event(a, &again));
    CHECK(again != e);
    GIVES(custream_record(a, e, 0), CLOSED);
    WORKS(custream_record(a, again, 0));
    WORKS(custream_event_release(again));
    WORKS(custream_event_release(e));
    OK(cuEventDestroy(mine));
}

ROW_SIMULATED(67_again, "a wrapped event whose handle comes back as another one")
{
    custream_event_t w, next;
    CUevent raw, other;

    start();
    OK(cuEventCreate(&raw, CU_EVENT_DISABLE_TIMING));
    WORKS(custream_event_wrap(&w, raw, -1, NULL, NULL));
    OK(cuEventDestroy(raw));
    OK(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
    if (!sees_ends() || other != raw) return;
    GIVES(custream_event_query(w), INVALID_HANDLE);
    WORKS(custream_event_wrap(&next, other, -1, NULL, NULL));
    CHECK(next != w);
    WORKS(custream_event_query(next));
    WORKS(custream_event_release(w));
    WORKS(custream_event_release(next));
    OK(cuEventDestroy(other));
}

ROW_SIMULATED(65_again, "an event that was destroyed elsewhere, and its handle has come back")
{
    custream_event_t e;
    CUevent raw, other;

    start();
    e = new_event();
    raw = event_handle(e);
    OK(cuEventDestroy(raw));
    OK(cuEventCreate(&other, 0));
    if (!sees_ends() || other != raw) return;
    GIVES(custream_event_query(e), INVALID_HANDLE);
    WORKS(custream_event_release(e));
    OK(cuEventQuery(other));
    OK(cuEventDestroy(other));
}

static custream_t on;
static int made_in_hook;
static void make_an_event(custream_hook_info_t *info, void *arg)
{
    custream_event_t e;
    CUevent raw;

    (void)arg;
    if (info->after) return;
    WORKS(custream_record_new(on, NULL, &e));
    raw = event_handle(e);
    WORKS(custream_event_release(e));
    GONE(cuEventQuery(raw));
    made_in_hook++;
}

ROW(65_hook, "events that a hook makes end like others")
{
    custream_hook_t hook;
    CUevent before[4];

    start();
    on = new_stream();
    for (int i = 0; i < 4; i++) OK(cuEventCreate(&before[i], 0));
    for (int i = 0; i < 4; i++) OK(cuEventDestroy(before[i])); /* whose addresses are used again */
    if (!preloaded()) return;
    WORKS(custream_register_hook(CUSTREAM_HOOK_SYNCHRONIZE, make_an_event, NULL, &hook));
    for (int i = 0; i < 8; i++) OK(cuStreamSynchronize(handle_of(on)));
    WORKS(custream_unregister_hook(hook));
    CHECK_IS(made_in_hook, 8);
}

static custream_t from_hook;
static void make_a_stream(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (!info->after && !from_hook) from_hook = new_stream();
}

ROW(22_late, "a stream that the recorder meets later than its object was made")
{
    custream_history_t history = {.size = sizeof history};
    custream_hook_t hook;
    custream_t s;
    CUstream raw, other;

    start();
    if (!sees_ends()) return;
    s = new_stream();
    WORKS(custream_register_hook(CUSTREAM_HOOK_SYNCHRONIZE, make_a_stream, NULL, &hook));
    WORKS(custream_synchronize(s));
    WORKS(custream_unregister_hook(hook));
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, handle_of(from_hook), NULL, NULL));
    WORKS(custream_synchronize(from_hook));
    WORKS(custream_trace_flush());
    WORKS(custream_history(from_hook, &history));
    CHECK_IS(history.launches, 1);
    raw = handle_of(from_hook);
    OK(cuStreamDestroy(raw));
    GIVES(custream_query(from_hook), INVALID_HANDLE);
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    WORKS(custream_release(from_hook)); /* which is not the end of whoever has its address now */
    OK(cuStreamQuery(other));
    OK(cuStreamDestroy(other));
}

static CUstream unseen;
static void begin_a_capture(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (info->after || unseen) return;
    OK(cuStreamCreate(&unseen, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(unseen, CU_STREAM_CAPTURE_MODE_RELAXED));
}

ROW(57_unseen, "a stream that captures when the recorder meets it goes on")
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    custream_hook_t hook;
    CUgraph graph = NULL;
    size_t nodes = 0;
    custream_t s;

    start();
    if (!preloaded()) return;
    s = new_stream();
    WORKS(custream_register_hook(CUSTREAM_HOOK_SYNCHRONIZE, begin_a_capture, NULL, &hook));
    WORKS(custream_synchronize(s));
    WORKS(custream_unregister_hook(hook));
    mark(unseen, 'a');
    OK(cuStreamIsCapturing(unseen, &status));
    CHECK_IS(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    mark(unseen, 'b');
    OK(cuStreamEndCapture(unseen, &graph));
    OK(cuGraphGetNodes(graph, NULL, &nodes));
    CHECK_IS(nodes, 2);
    mark(unseen, 'c');
    OK(cuStreamSynchronize(unseen));
    CHECK(marks_are("c"));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy(unseen));
}

static void refuse_it(custream_hook_info_t *info, void *arg)
{
    if (!info->after && info->stream == *(CUstream *)arg) info->result = CUDA_ERROR_NOT_PERMITTED;
}

ROW(85_refuse_end, "a hook refuses the end of a stream")
{
    custream_hook_t hook;
    CUstream raw[2];

    start();
    if (!preloaded()) return;
    for (int i = 0; i < 2; i++) {
        custream_t s = new_stream();
        raw[i] = handle_of(s);
        WORKS(custream_register_hook(CUSTREAM_HOOK_DESTROY, refuse_it, &raw[i], &hook));
        if (i == 0) GIVES(custream_close(s), DRIVER);
        else GIVES(custream_release(s), DRIVER);
        CHECK_IS(driver_error(), CUDA_ERROR_NOT_PERMITTED);
        WORKS(custream_unregister_hook(hook));
        OK(cuStreamQuery(raw[i]));
        if (i == 0) WORKS(custream_close(s)); /* it is closed, and stays so */
        if (i == 0) WORKS(custream_release(s));
        OK(cuStreamDestroy(raw[i]));
    }
}

ROW(83_ends, "the last error after what ends an object")
{
    custream_event_t e;
    custream_t s, closed;

    start();
    s = new_stream();
    closed = new_stream();
    e = new_event();
    hold(handle_of(s));
    WORKS(custream_record(s, e, 0));
    GIVES(custream_event_query(e), NOT_READY);
    CHECK_IS(driver_error(), CUDA_ERROR_NOT_READY);
    WORKS(custream_close(closed));
    CHECK_IS(driver_error(), 0);
    GIVES(custream_event_query(e), NOT_READY);
    WORKS(custream_release(closed));
    CHECK_IS(driver_error(), CUDA_ERROR_NOT_READY); /* it had ended */
    WORKS(custream_event_release(e));
    CHECK_IS(driver_error(), 0);
    open_gate();
    WORKS(custream_release(s));
}

static void block_it(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (!info->after) info->flags = CU_STREAM_DEFAULT;
}

ROW(3_given, "flags are those that the stream got")
{
    custream_hook_t hook;
    custream_t s;
    unsigned flags = 9;
    char text[200];

    start();
    if (!preloaded()) return;
    WORKS(custream_register_hook(CUSTREAM_HOOK_CREATE, block_it, NULL, &hook));
    s = stream_with(-1, CUSTREAM_NON_BLOCKING, 0);
    WORKS(custream_unregister_hook(hook));
    WORKS(custream_get_flags(s, &flags));
    CHECK_IS(flags, 0);
    CHECK_IS(nonblocking(s), 0);
    WORKS(custream_format(s, text, sizeof text, NULL));
    CHECK(strstr(text, ", blocking,") != NULL);
    WORKS(custream_release(s));
}
