/* Graphs that come of captures: making them executable, launching, describing. */
#include "tests/api/rows.h"

static custream_graph_t graph_of(custream_t s, char c)
{
    custream_graph_t graph = NULL;

    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    mark(handle_of(s), c);
    WORKS(custream_end_capture(s, &graph));
    return graph;
}

ROW(63, "launch and upload")
{
    custream_graph_t graph;
    custream_t s, t;
    void *raw = UNTOUCHED, *exec = UNTOUCHED, *again;

    start();
    s = new_stream();
    t = new_stream();
    graph = graph_of(s, 'g');
    WORKS(custream_graph_get_handles(graph, &raw, &exec));
    CHECK(raw && raw != UNTOUCHED && !exec);
    WORKS(custream_graph_instantiate(graph));
    WORKS(custream_graph_get_handles(graph, &raw, &exec));
    CHECK(exec);
    WORKS(custream_graph_instantiate(graph)); /* nothing */
    WORKS(custream_graph_upload(graph, s));
    WORKS(custream_graph_get_handles(graph, &raw, &again));
    CHECK(again == exec);
    WORKS(custream_set_current(t, 0));
    hold(handle_of(t));
    mark(handle_of(t), '1');
    WORKS(custream_graph_launch(graph, NULL)); /* on the current stream */
    mark(handle_of(t), '2');
    WORKS(custream_synchronize(s));
    GIVES(custream_query(t), NOT_READY);
    WORKS(custream_graph_upload(graph, NULL));
    open_gate();
    WORKS(custream_synchronize(t));
    CHECK(marks_are("1g2"));
    WORKS(custream_close(s));
    GIVES(custream_graph_launch(graph, s), CLOSED);
    GIVES(custream_graph_launch(NULL, t), INVALID_VALUE);
    GIVES(custream_graph_upload(NULL, t), INVALID_VALUE);
    GIVES(custream_graph_instantiate(NULL), INVALID_VALUE);
    FAILS(custream_graph_get_handles(NULL, &raw, NULL), INVALID_VALUE, raw);
    WORKS(custream_graph_release(graph));
}

ROW(63_references, "the last reference destroys the graph; launches are still done")
{
    custream_graph_t graph;
    custream_t s;
    size_t count;
    CUgraph raw;

    start();
    s = new_stream();
    graph = graph_of(s, 'g');
    raw = graph_handle(graph);
    WORKS(custream_graph_retain(graph));
    WORKS(custream_graph_release(graph));
    OK(cuGraphGetNodes(raw, NULL, &count));
    hold(handle_of(s));
    WORKS(custream_graph_launch(graph, s));
    WORKS(custream_graph_release(graph));
    CHECK_IS(cuGraphGetNodes(raw, NULL, &count), CUDA_ERROR_INVALID_VALUE);
    open_gate();
    WORKS(custream_synchronize(s));
    CHECK(marks_are("g"));
    GIVES(custream_graph_retain(NULL), INVALID_VALUE);
    GIVES(custream_graph_release(NULL), INVALID_VALUE);
}

ROW_WITH(
    63_error, "a graph that cannot be instantiated", "CUSTREAM_FAKE_FAIL=cuGraphInstantiate*=2")
{
    custream_graph_t graph;
    custream_t s;

    start();
    s = new_stream();
    graph = graph_of(s, 'g');
    GIVES(custream_graph_launch(graph, s), DRIVER);
    CHECK_IS(driver_error(), 2);
    WORKS(custream_graph_release(graph));
    CHECK(marks_are(""));
}

/* The simulated GPU draws no graphs: the driver's own answer must come through. */
ROW_SIMULATED(64, "a description for Graphviz")
{
    custream_graph_t graph;
    custream_t s;

    start();
    s = new_stream();
    graph = graph_of(s, 'g');
    GIVES(custream_graph_debug_dot(graph, "graph.dot", 0), NOT_SUPPORTED);
    CHECK_IS(driver_error(), CUDA_ERROR_NOT_SUPPORTED);
    GIVES(custream_graph_debug_dot(NULL, "graph.dot", 0), INVALID_VALUE);
    GIVES(custream_graph_debug_dot(graph, NULL, 0), INVALID_VALUE);
    WORKS(custream_graph_release(graph));
}
