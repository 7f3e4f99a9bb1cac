/* Graphs: what a capture gave, and its executable form. */
#include "shim/api/graph.h"

static status end(void *graph)
{
    custream_graph_t g = graph;
    CUgraphExec exec = cs_load_acq(&g->exec);
    status first = exec && !api_forked() ? CUDA_ENDS(cuGraphExecDestroy, exec) : CUSTREAM_SUCCESS;
    status second = api_forked() ? CUSTREAM_SUCCESS : CUDA_ENDS(cuGraphDestroy, g->graph);
    api_object_free(g);
    return first != CUSTREAM_SUCCESS ? first : second;
}

status api_graph_new(custream_graph_t *out, CUgraph graph, int device)
{
    custream_graph_t g = api_object_new(API_GRAPH, sizeof *g, end);
    CHECK(g, CUSTREAM_NO_MEMORY);
    g->graph = graph;
    g->object.device = device;
    api_object_list(&g->object, graph);
    *out = g;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_graph_instantiate(custream_graph_t graph)
{
    CUgraphExec exec, none = NULL;
    USABLE_GRAPH(graph);
    TRY(api_ready());
    if (cs_load_acq(&graph->exec)) return CUSTREAM_SUCCESS;
    TRY(CUDA(cuGraphInstantiateWithFlags, &exec, graph->graph, 0));
    if (!atomic_compare_exchange_strong(&graph->exec, &none, exec)) api_driver.cuGraphExecDestroy(exec);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_graph_debug_dot(custream_graph_t graph, const char *path, unsigned flags)
{
    NEED(path);
    USABLE_GRAPH(graph);
    TRY(api_ready());
    return CUDA(cuGraphDebugDotPrint, graph->graph, path, flags);
}

CS_EXPORT status custream_graph_get_handles(custream_graph_t graph, void **graph_handle, void **exec_handle)
{
    USABLE_GRAPH(graph);
    if (graph_handle) *graph_handle = graph->graph;
    if (exec_handle) *exec_handle = cs_load_acq(&graph->exec);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_graph_retain(custream_graph_t graph) { return api_retain(graph, API_GRAPH); }
CS_EXPORT status custream_graph_release(custream_graph_t graph) { return api_release(graph, API_GRAPH); }
