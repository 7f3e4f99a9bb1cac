/* Captures: modes, states, errors, pausing, forking. */
#include "tests/api/rows.h"

static int capturing(custream_t s)
{
    int answer = UNTOUCHED_INT;
    WORKS(custream_is_capturing(s, &answer));
    return answer;
}
static custream_capture_status_t state_of(custream_t s, uint64_t *id)
{
    custream_capture_status_t status = (custream_capture_status_t)99;
    WORKS(custream_capture_status(s, &status, id));
    return status;
}
static custream_graph_t ended(custream_t s)
{
    custream_graph_t graph = NULL;
    WORKS(custream_end_capture(s, &graph));
    return graph;
}
/* What a capture does not permit: the simulated GPU breaks it, as CUDA does. */
static void break_it(custream_t s)
{
    CHECK_IS(cuStreamSynchronize(handle_of(s)), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

ROW(51, "does it capture?")
{
    custream_t s, t;
    custream_graph_t graph;
    int answer;

    start();
    s = new_stream();
    t = new_stream();
    CHECK_IS(capturing(s), 0);
    CHECK_IS(state_of(s, NULL), CUSTREAM_CAPTURE_NONE);
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_GLOBAL));
    CHECK_IS(capturing(s), 1);
    CHECK_IS(state_of(s, NULL), CUSTREAM_CAPTURE_ACTIVE);
    CHECK_IS(capturing(t), 0);
    break_it(s);
    CHECK_IS(capturing(s), 1); /* also while it is broken */
    CHECK_IS(state_of(s, NULL), CUSTREAM_CAPTURE_BROKEN);
    FAILS(custream_end_capture(s, &graph), CAPTURE_INVALIDATED, graph);
    CHECK_IS(capturing(s), 0);
    FAILS_INT(custream_is_capturing(NULL, &answer), INVALID_VALUE, answer);
    GIVES(custream_is_capturing(s, NULL), INVALID_VALUE);
    GIVES(custream_capture_status(s, NULL, NULL), INVALID_VALUE);
}

ROW(52, "begin a capture")
{
    custream_t s, per_thread;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    mark(handle_of(s), 'x');
    WORKS(custream_graph_release(ended(s)));
    CHECK(marks_are("")); /* captured, not executed */
    WORKS(custream_per_thread_default(&per_thread));
    WORKS(custream_begin_capture(per_thread, CUSTREAM_CAPTURE_THREAD_LOCAL));
    CHECK_IS(capturing(per_thread), 1);
    WORKS(custream_graph_release(ended(per_thread)));
    GIVES(custream_begin_capture(NULL, CUSTREAM_CAPTURE_RELAXED), INVALID_VALUE);
    GIVES(custream_begin_capture(s, (custream_capture_mode_t)3), INVALID_VALUE);
    CHECK_IS(capturing(s), 0);
}

static CUresult unsafe_result;
static void unsafe_call(void)
{
    CUdeviceptr memory;
    OK(cuCtxSetCurrent(context));
    unsafe_result = cuMemAlloc(&memory, 16);
}
/* Whether a call that may block breaks a capture of this mode: one of the same thread's, one of
 * another's. */
static void breaks(custream_capture_mode_t mode, int own, int other)
{
    custream_t s = new_stream();

    WORKS(custream_begin_capture(s, mode));
    in_thread(unsafe_call);
    CHECK_IS(state_of(s, NULL), other ? CUSTREAM_CAPTURE_BROKEN : CUSTREAM_CAPTURE_ACTIVE);
    custream_graph_t graph = NULL;
    CHECK_IS(
        custream_end_capture(s, &graph), other ? CUSTREAM_CAPTURE_INVALIDATED : CUSTREAM_SUCCESS);
    if (graph) WORKS(custream_graph_release(graph));
    WORKS(custream_begin_capture(s, mode));
    unsafe_call();
    CHECK_IS(unsafe_result != CUDA_SUCCESS, own);
    CHECK_IS(state_of(s, NULL), own ? CUSTREAM_CAPTURE_BROKEN : CUSTREAM_CAPTURE_ACTIVE);
    CHECK_IS(
        custream_end_capture(s, &graph), own ? CUSTREAM_CAPTURE_INVALIDATED : CUSTREAM_SUCCESS);
    WORKS(custream_release(s));
}

ROW(53, "the three modes")
{
    start();
    breaks(CUSTREAM_CAPTURE_GLOBAL, 1, 1);
    breaks(CUSTREAM_CAPTURE_THREAD_LOCAL, 1, 0);
    breaks(CUSTREAM_CAPTURE_RELAXED, 0, 0);
}

/* One object stands for a stream of each thread: their captures have nothing to do with each other.
 */
static custream_t per_thread;
static void capture_own(void)
{
    custream_graph_t graph;

    OK(cuCtxSetCurrent(context));
    CHECK_IS(capturing(per_thread), 0);
    FAILS(custream_end_capture(per_thread, &graph), CAPTURE_STATE, graph);
    WORKS(custream_begin_capture(per_thread, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_graph_release(ended(per_thread)));
}

ROW(52_per_thread, "two threads capture their default streams at once")
{
    start();
    WORKS(custream_per_thread_default(&per_thread));
    WORKS(custream_begin_capture(per_thread, CUSTREAM_CAPTURE_RELAXED));
    mark(CU_STREAM_PER_THREAD, 'x');
    in_thread(capture_own);
    CHECK_IS(capturing(per_thread), 1);
    WORKS(custream_pause_capture(per_thread));
    in_thread(capture_own);
    WORKS(custream_resume_capture(per_thread));
    custream_graph_t graph = ended(per_thread);
    CHECK_IS(nodes_of(graph), 1);
    WORKS(custream_graph_release(graph));
}

ROW(54, "the legacy default stream cannot be captured")
{
    custream_t legacy;
    custream_graph_t graph;

    start();
    WORKS(custream_legacy_default(&legacy));
    GIVES(custream_begin_capture(legacy, CUSTREAM_CAPTURE_GLOBAL), CAPTURE_UNSUPPORTED);
    GIVES(custream_begin_capture(legacy, CUSTREAM_CAPTURE_RELAXED), CAPTURE_UNSUPPORTED);
    CHECK_IS(capturing(legacy), 0);
    FAILS(custream_end_capture(legacy, &graph), CAPTURE_STATE, graph);
    WORKS(custream_query(legacy));
}

ROW(55, "errors of a capture's state")
{
    custream_t s, t;
    custream_event_t outside;
    custream_graph_t graph;

    start();
    s = new_stream();
    t = new_stream();
    FAILS(custream_end_capture(s, &graph), CAPTURE_STATE, graph);
    GIVES(custream_pause_capture(s), CAPTURE_STATE);
    GIVES(custream_resume_capture(s), CAPTURE_STATE);
    GIVES(custream_adopt_capture(s), CAPTURE_STATE);
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    GIVES(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED), CAPTURE_STATE);
    CHECK_IS(state_of(s, NULL), CUSTREAM_CAPTURE_ACTIVE);
    GIVES(custream_end_capture(s, NULL), INVALID_VALUE);
    CHECK_IS(state_of(s, NULL), CUSTREAM_CAPTURE_ACTIVE);
    WORKS(custream_graph_release(ended(s)));

    outside = new_event();
    WORKS(custream_record(t, outside, 0));
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    CHECK(custream_wait_event(s, outside, 0) !=
          CUSTREAM_SUCCESS); /* a graph cannot wait for what is not in it */
    GIVES(custream_wait_event(s, outside, 0), CAPTURE_INVALIDATED);
    FAILS(custream_end_capture(s, &graph), CAPTURE_INVALIDATED, graph);
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED)); /* afterwards all is well */
    WORKS(custream_graph_release(ended(s)));
}

ROW(55_synchronize, "waiting on the host is not permitted in a capture")
{
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_GLOBAL));
    GIVES(custream_synchronize(s), CAPTURE_UNSUPPORTED);
    CHECK_IS(capturing(s), 1);
}

ROW(55_joined, "a capture ends where it began, with all streams back")
{
    custream_t s, t;
    custream_graph_t graph;

    start();
    s = new_stream();
    t = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_wait_stream(t, s, NULL, 0));
    CHECK_IS(capturing(t), 1);
    FAILS(custream_end_capture(t, &graph), CAPTURE_STATE, graph); /* another's */
    if (capturing(s)) custream_end_capture(s, &graph);
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_wait_stream(t, s, NULL, 0));
    mark(handle_of(t), 'x');
    graph = UNTOUCHED;
    CHECK(custream_end_capture(s, &graph) != CUSTREAM_SUCCESS); /* t was not joined back */
    CHECK(graph == UNTOUCHED);
    CHECK_IS(capturing(s), 0);
    CHECK_IS(capturing(t), 0);
}

ROW(56, "end a capture: a graph that can be launched")
{
    custream_graph_t graph;
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_GLOBAL));
    mark(handle_of(s), 'a');
    mark(handle_of(s), 'b');
    graph = ended(s);
    CHECK_IS(capturing(s), 0);
    CHECK_IS(nodes_of(graph), 2);
    CHECK(marks_are(""));
    WORKS(custream_graph_launch(graph, s));
    WORKS(custream_graph_launch(graph, s));
    WORKS(custream_synchronize(s));
    CHECK(marks_are("abab"));
    WORKS(custream_graph_release(graph));
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_GLOBAL));
    graph = ended(s); /* of nothing */
    CHECK_IS(nodes_of(graph), 0);
    WORKS(custream_graph_launch(graph, s));
    WORKS(custream_graph_release(graph));
}

ROW(57, "adopt a capture that somebody else began")
{
    custream_graph_t graph;
    custream_t s = NULL;
    CUstream raw;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    WORKS(custream_wrap(&s, raw, -1, NULL, NULL));
    GIVES(custream_adopt_capture(s), CAPTURE_STATE);
    GIVES(custream_adopt_capture(NULL), INVALID_VALUE);
    OK(cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_GLOBAL));
    mark(raw, 'a');
    FAILS(custream_end_capture(s, &graph), CAPTURE_STATE,
        graph); /* another's, as long as it is not adopted */
    CHECK_IS(state_of(s, NULL), CUSTREAM_CAPTURE_ACTIVE);
    WORKS(custream_adopt_capture(s));
    mark(raw, 'b');
    graph = ended(s);
    CHECK_IS(nodes_of(graph), 2);
    WORKS(custream_graph_launch(graph, s));
    WORKS(custream_synchronize(s));
    CHECK(marks_are("ab"));
    WORKS(custream_graph_release(graph));
    WORKS(custream_release(s));
    OK(cuStreamDestroy(raw));
}

ROW(58, "pause a capture")
{
    custream_graph_t graph;
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    mark(handle_of(s), 'a');
    WORKS(custream_pause_capture(s));
    GIVES(custream_pause_capture(s), CAPTURE_STATE);
    GIVES(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED), CAPTURE_STATE);
    FAILS(custream_end_capture(s, &graph), CAPTURE_STATE, graph);
    mark(handle_of(s), 'b');
    WORKS(custream_synchronize(s));
    CHECK(marks_are("b")); /* executed */
    WORKS(custream_resume_capture(s));
    GIVES(custream_resume_capture(s), CAPTURE_STATE);
    CHECK_IS(capturing(s), 1);
    mark(handle_of(s), 'c');
    WORKS(custream_pause_capture(s)); /* as often as one likes */
    WORKS(custream_resume_capture(s));
    mark(handle_of(s), 'd');
    graph = ended(s);
    CHECK_IS(nodes_of(graph), 3);
    WORKS(custream_graph_launch(graph, s));
    WORKS(custream_synchronize(s));
    CHECK(marks_are("bacd")); /* one after another: the same graph went on */
    WORKS(custream_graph_release(graph));
    GIVES(custream_pause_capture(NULL), INVALID_VALUE);
    GIVES(custream_resume_capture(NULL), INVALID_VALUE);
    WORKS(custream_release(s));
}

ROW(58_mode, "a capture that goes on has the mode that it had")
{
    custream_graph_t graph;
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_GLOBAL));
    WORKS(custream_pause_capture(s));
    unsafe_call(); /* nothing minds while it is paused */
    CHECK_IS(unsafe_result, CUDA_SUCCESS);
    WORKS(custream_resume_capture(s));
    in_thread(unsafe_call);
    CHECK_IS(state_of(s, NULL), CUSTREAM_CAPTURE_BROKEN);
    FAILS(custream_end_capture(s, &graph), CAPTURE_INVALIDATED, graph);
}

/* The graph is nobody's while the capture is paused: it must go with the stream. */
ROW(58_close, "close a stream whose capture is paused")
{
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    mark(handle_of(s), 'a');
    WORKS(custream_pause_capture(s));
    WORKS(custream_close(s));
    WORKS(custream_release(s));
}

/* build/fakecuda12.0 in place of build/fakecuda. */
ROW_WITH(58_old, "a driver that cannot pause", "LD_LIBRARY_PATH+=12.0")
{
    custream_graph_t graph;
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    mark(handle_of(s), 'a');
    GIVES(custream_pause_capture(s), NOT_SUPPORTED);
    CHECK_IS(state_of(s, NULL), CUSTREAM_CAPTURE_ACTIVE); /* it goes on */
    graph = ended(s);
    CHECK_IS(nodes_of(graph), 1);
    WORKS(custream_graph_release(graph));
    WORKS(custream_release(s));
}

ROW(59, "the id of a capture")
{
    uint64_t none = 7, first = 0, second = 0, joined = 0;
    custream_t s, t;

    start();
    s = new_stream();
    t = new_stream();
    state_of(s, &none);
    CHECK_IS(none, 0);
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    state_of(s, &first);
    WORKS(custream_wait_stream(t, s, NULL, 0));
    state_of(t, &joined);
    CHECK(first != 0 && joined == first); /* a stream that takes part has the same */
    WORKS(custream_wait_stream(s, t, NULL, 0));
    WORKS(custream_graph_release(ended(s)));
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    state_of(s, &second);
    CHECK(second != 0 && second != first);
    WORKS(custream_graph_release(ended(s)));
}

ROW(60, "fork and join")
{
    custream_t s, out[3];
    CUstream raw[3];

    start();
    s = stream_with(-1, CUSTREAM_DEFAULT, -2);
    hold(handle_of(s));
    mark(handle_of(s), '1');
    WORKS(custream_fork(s, 3, out));
    for (int i = 0; i < 3; i++) {
        raw[i] = handle_of(out[i]);
        CHECK_IS(nonblocking(out[i]), 0);
        CHECK_IS(priority_of(out[i]), -2);
        CHECK(raw[i] != handle_of(s));
        GIVES(custream_query(out[i]), NOT_READY);
    }
    mark(raw[1], '2');
    WORKS(custream_join(s, 3, out));
    mark(handle_of(s), '3');
    open_gate();
    WORKS(custream_synchronize(s));
    CHECK(marks_are("123"));
    for (int i = 0; i < 3; i++) GONE(cuStreamQuery(raw[i])); /* closed and released */
}

ROW(60_capture, "fork and join in a capture")
{
    custream_t s, out[2];
    custream_graph_t graph;
    CUstream raw[2];

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    mark(handle_of(s), 'a');
    WORKS(custream_fork(s, 2, out));
    CHECK(capturing(out[0]) && capturing(out[1]));
    for (int i = 0; i < 2; i++) {
        raw[i] = handle_of(out[i]);
        mark(raw[i], (char)('b' + i));
    }
    WORKS(custream_join(s, 2, out));
    mark(handle_of(s), 'd');
    graph = ended(s);
    CHECK_IS(nodes_of(graph), 4);
    for (int i = 0; i < 2; i++) GONE(cuStreamQuery(raw[i]));
    WORKS(custream_graph_launch(graph, s));
    WORKS(custream_synchronize(s));
    CHECK_IS(strlen(marks), 4);
    CHECK(marks[0] == 'a' && marks[3] == 'd');
    WORKS(custream_graph_release(graph));
}

ROW(60_refused, "forks and joins that mean nothing")
{
    custream_t s, out[2] = {UNTOUCHED, UNTOUCHED}, in[2] = {NULL, NULL};

    start();
    s = new_stream();
    GIVES(custream_fork(NULL, 1, out), INVALID_VALUE);
    GIVES(custream_fork(s, -1, out), INVALID_VALUE);
    GIVES(custream_fork(s, 1, NULL), INVALID_VALUE);
    CHECK(out[0] == UNTOUCHED);
    GIVES(custream_join(s, -1, in), INVALID_VALUE);
    GIVES(custream_join(s, 1, NULL), INVALID_VALUE);
    in[0] = new_stream();
    GIVES(custream_join(s, 2, in),
        INVALID_VALUE); /* the second is none: none is joined, all stay the caller's */
    WORKS(custream_query(in[0]));
    WORKS(custream_release(in[0]));
    GIVES(custream_join(NULL, 1, in), INVALID_VALUE);
}

ROW_WITH(
    60_fails, "the driver makes one of three streams", "CUSTREAM_FAKE_FAIL=cuStreamCreate*:3=2")
{
    custream_t s, out[3] = {UNTOUCHED, UNTOUCHED, UNTOUCHED};
    custream_stats_t before = {.size = sizeof before}, after = {.size = sizeof after};

    start();
    s = new_stream();
    WORKS(custream_stats(-1, &before));
    GIVES(custream_fork(s, 3, out), DRIVER);
    CHECK(out[0] == UNTOUCHED && out[1] == UNTOUCHED && out[2] == UNTOUCHED);
    WORKS(custream_stats(-1, &after));
    CHECK_IS(after.streams, before.streams);
}

ROW(62, "the calling thread's mode")
{
    custream_capture_mode_t mode = CUSTREAM_CAPTURE_RELAXED;
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_GLOBAL));
    WORKS(custream_exchange_capture_mode(&mode));
    CHECK_IS(mode, CUSTREAM_CAPTURE_GLOBAL);
    unsafe_call();
    CHECK_IS(unsafe_result, CUDA_SUCCESS);
    CHECK_IS(state_of(s, NULL), CUSTREAM_CAPTURE_ACTIVE);
    WORKS(custream_exchange_capture_mode(&mode));
    CHECK_IS(mode, CUSTREAM_CAPTURE_RELAXED);
    unsafe_call();
    CHECK_IS(state_of(s, NULL), CUSTREAM_CAPTURE_BROKEN);
    mode = (custream_capture_mode_t)3;
    GIVES(custream_exchange_capture_mode(&mode), INVALID_VALUE);
    CHECK_IS(mode, 3);
    GIVES(custream_exchange_capture_mode(NULL), INVALID_VALUE);
}
