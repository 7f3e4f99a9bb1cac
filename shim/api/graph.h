/* Graph objects. */
#ifndef CS_API_GRAPH_H
#define CS_API_GRAPH_H

#include "shim/api/driver.h"

struct custream_graph_s {
    struct api_object object;
    CUgraph graph;
    _Atomic(CUgraphExec) exec;
};

#define USABLE_GRAPH(graph) TRY(api_object_usable(graph, API_GRAPH))
status api_graph_new(custream_graph_t *out, CUgraph graph, int device);

#endif
