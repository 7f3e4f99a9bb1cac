/* Graphs: what a capture gave, and its executable form. */
#include "shim/api/api.h"

status api_graph_new(custream_graph_t *out, CUgraph graph, int device)
{
    custream_graph_t g = api_object_new(API_GRAPH);
    CHECK(g, CUSTREAM_NO_MEMORY);
    g->graph = graph;
    g->object.device = device;
    api_object_list(&g->object, graph);
    *out = g;
    return CUSTREAM_SUCCESS;
}

static status instantiate(custream_graph_t g)
{
    CUgraphExec exec, none = NULL;
    if (cs_load_acq(&g->exec)) return CUSTREAM_SUCCESS;
    TRY(CUDA(cuGraphInstantiateWithFlags, &exec, g->graph, 0));
    if (!atomic_compare_exchange_strong(&g->exec, &none, exec)) api_driver.cuGraphExecDestroy(exec);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_graph_instantiate(custream_graph_t graph)
{
    USABLE_GRAPH(graph);
    TRY(api_ready());
    return instantiate(graph);
}

static status on(custream_graph_t graph, custream_t stream, bool launch)
{
    status result;
    USABLE_GRAPH(graph);
    if (stream) USABLE_STREAM(stream);
    TRY(api_ready());
    TRY(instantiate(graph));
    custream_t chosen = api_current_or(stream, &result);
    if (!chosen) return result;
    if ((result = api_stream_enter(chosen)) == CUSTREAM_SUCCESS)
        result = launch ? CUDA(cuGraphLaunch, cs_load_acq(&graph->exec), chosen->handle) : CUDA(cuGraphUpload, cs_load_acq(&graph->exec), chosen->handle);
    if (!stream) custream_release(chosen);
    return result;
}

CS_EXPORT status custream_graph_launch(custream_graph_t graph, custream_t stream) { return on(graph, stream, true); }
CS_EXPORT status custream_graph_upload(custream_graph_t graph, custream_t stream) { return on(graph, stream, false); }

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

CS_EXPORT status custream_graph_release(custream_graph_t graph)
{
    TRY(api_object_check(graph, API_GRAPH));
    if (!api_release(graph)) return CUSTREAM_SUCCESS;
    CUgraphExec exec = cs_load_acq(&graph->exec);
    status first = exec && !api_forked() ? CUDA_ENDS(cuGraphExecDestroy, exec) : CUSTREAM_SUCCESS;
    status second = api_forked() ? CUSTREAM_SUCCESS : CUDA_ENDS(cuGraphDestroy, graph->graph);
    api_object_free(graph);
    return first != CUSTREAM_SUCCESS ? first : second;
}
