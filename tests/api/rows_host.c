/* Functions that CUDA calls on the host: callbacks, host functions, and the end of their arguments.
 */
#include "tests/api/rows.h"

static int called;
static custream_t called_with;
static custream_status_t called_status = CUSTREAM_DRIVER;
static void callback(custream_t stream, custream_status_t status, void *arg)
{
    called_with = stream;
    called_status = status;
    count_call(arg);
}

ROW(48, "a callback with stream, status and argument")
{
    custream_t s;

    start();
    s = new_stream();
    hold(handle_of(s));
    WORKS(custream_add_callback(s, callback, &called));
    mark(handle_of(s), '2');
    CHECK_IS(count_of(&called), 0);
    CHECK(marks_are(""));
    open_gate();
    WORKS(custream_synchronize(s));
    CHECK_IS(count_of(&called), 1);
    CHECK(called_with == s);
    CHECK_IS(called_status, CUSTREAM_SUCCESS);
    CHECK(marks_are("2"));
    GIVES(custream_add_callback(NULL, callback, NULL), INVALID_VALUE);
    GIVES(custream_add_callback(s, NULL, NULL), INVALID_VALUE);
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    GIVES(custream_add_callback(s, callback, &called), CAPTURE_UNSUPPORTED);
    CHECK_IS(count_of(&called), 1);
}

/* An object whose last user is CUDA's thread is destroyed on another: at the latest by a thread
 * that calls something here. */
static int gone(CUstream raw)
{
    custream_t legacy;

    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_query(legacy));
    return !simulated() || cuStreamQuery(raw) == CUDA_ERROR_INVALID_HANDLE;
}

ROW(48_reference, "the stream lives until it was called")
{
    custream_t s;
    CUstream raw;

    start();
    s = new_stream();
    raw = handle_of(s);
    hold(raw);
    WORKS(custream_add_callback(s, callback, &called));
    WORKS(custream_release(s));
    CHECK_IS(cuStreamQuery(raw), CUDA_ERROR_NOT_READY);
    open_gate();
    AWAIT(count_of(&called));
    AWAIT(gone(raw));
    CHECK_IS(count_of(&called), 1);
    CHECK(called_with == s);
}

ROW_WITH(48_error, "a callback that CUDA refuses", "CUSTREAM_FAKE_FAIL=cuStreamAddCallback*=304")
{
    custream_t s;
    CUstream raw;

    start();
    s = new_stream();
    raw = handle_of(s);
    GIVES(custream_add_callback(s, callback, &called), DRIVER);
    CHECK_IS(driver_error(), 304);
    WORKS(custream_synchronize(s));
    CHECK_IS(count_of(&called), 0);
    WORKS(custream_release(s));
    GONE(cuStreamQuery(raw)); /* no reference was left behind */
}

static int host_calls, destroys;
static void host(void *arg)
{
    CHECK_IS(count_of(&destroys), 0);
    count_call(arg);
}
static void destroy(void *arg)
{
    CHECK(arg == &host_calls);
    count_call(&destroys);
}

ROW(49, "a host function, and its argument's end")
{
    custream_t s;

    start();
    s = new_stream();
    hold(handle_of(s));
    WORKS(custream_launch_host_func(s, host, &host_calls, destroy));
    mark(handle_of(s), '2');
    CHECK(count_of(&host_calls) == 0 && count_of(&destroys) == 0);
    open_gate();
    WORKS(custream_synchronize(s));
    CHECK_IS(count_of(&host_calls), 1);
    AWAIT(count_of(&destroys));
    WORKS(
        custream_launch_host_func(s, count_call, &called, NULL)); /* no destroy: nothing to call */
    WORKS(custream_synchronize(s));
    CHECK_IS(count_of(&called), 1);
    CHECK_IS(count_of(&destroys), 1);
    CHECK(marks_are("2"));
    GIVES(custream_launch_host_func(NULL, host, &host_calls, destroy), INVALID_VALUE);
    GIVES(custream_launch_host_func(s, NULL, &host_calls, destroy), INVALID_VALUE);
    CHECK_IS(count_of(&destroys), 1); /* in case of an error it stays the caller's */
}

ROW_WITH(49_error, "a host function that CUDA refuses", "CUSTREAM_FAKE_FAIL=cuLaunchHostFunc*=304")
{
    custream_t s;

    start();
    s = new_stream();
    GIVES(custream_launch_host_func(s, host, &host_calls, destroy), DRIVER);
    CHECK_IS(driver_error(), 304);
    WORKS(custream_synchronize(s));
    CHECK(count_of(&host_calls) == 0 && count_of(&destroys) == 0);
}

/* The graph keeps function and argument, its executable form too; they go with the last of the two.
 */
ROW(49_capture, "a host function in a graph")
{
    custream_graph_t graph = NULL;
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_launch_host_func(s, host, &host_calls, destroy));
    WORKS(custream_end_capture(s, &graph));
    CHECK_IS(nodes_of(graph), 1);
    CHECK_IS(count_of(&host_calls), 0);
    for (int i = 1; i <= 3; i++) {
        WORKS(custream_graph_launch(graph, s));
        WORKS(custream_synchronize(s));
        CHECK_IS(count_of(&host_calls), i);
    }
    CHECK_IS(count_of(&destroys), 0);
    WORKS(custream_graph_release(graph));
    AWAIT(count_of(&destroys));
    WORKS(custream_synchronize(s));
    CHECK_IS(count_of(&destroys), 1);
}

ROW(49_broken, "a host function in a capture that came to nothing")
{
    custream_graph_t graph;
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_launch_host_func(s, host, &host_calls, destroy));
    CHECK_IS(cuStreamSynchronize(handle_of(s)), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    FAILS(custream_end_capture(s, &graph), CAPTURE_INVALIDATED, graph);
    AWAIT(count_of(&destroys));
    CHECK_IS(count_of(&host_calls), 0);
}

static custream_t last_reference;
static CUstream asked_there;
static void let_it_go(void *arg)
{
    WORKS(custream_retain(last_reference));
    WORKS(custream_release(last_reference));
    WORKS(custream_release(last_reference));
    OK(cuStreamQuery(
        asked_there)); /* so that the journal shows which thread this is: test_api.py reads it */
    count_call(arg);
}

/* CUDA may not be called in there, so a last reference that ends there must not destroy the stream
 * on that thread, or deadlock. */
ROW(50, "a function of CUDA's thread gives the last reference back")
{
    CUstream raw;

    start();
    OK(cuStreamCreate(&asked_there, CU_STREAM_NON_BLOCKING));
    last_reference = new_stream();
    raw = handle_of(last_reference);
    WORKS(custream_launch_host_func(last_reference, let_it_go, &called, NULL));
    AWAIT(count_of(&called));
    AWAIT(gone(raw));
}

static void free_it(void *memory)
{
    free(memory);
    count_call(&destroys);
}
static void nothing(void *memory) { (void)memory; }

/* PyTorch's record_stream: memory that is given back once the stream is done with it. Here the end
 * of a host function's argument does that. */
ROW(84, "keep memory until a stream is done")
{
    custream_t s;

    start();
    s = new_stream();
    hold(handle_of(s));
    WORKS(custream_launch_host_func(s, nothing, malloc(64), free_it));
    CHECK_IS(count_of(&destroys), 0);
    open_gate();
    AWAIT(count_of(&destroys));
    WORKS(custream_synchronize(s));
    CHECK_IS(count_of(&destroys), 1);
}
