/*
 * Numbers of graphs: the profiler's, under which it tells of their nodes, and how many nodes they have.
 */
#ifndef CS_OBJECT_GRAPH_H
#define CS_OBJECT_GRAPH_H

#include "shim/base/compiler.h"
#include "shim/calls/cuda_api.h"

struct cs_graph_ids {
    cs_u32 graph, exec; /* 0: unknown, or none */
    cs_u32 nodes;
};

/* The GPU backend's, NULL where it has none: the profiler's numbers of a graph and, if `exec` is not NULL, of an executable one. Called on the
 * application's thread. */
typedef bool cs_graph_ids_fn(CUgraph graph, CUgraphExec exec, struct cs_graph_ids *ids);
extern cs_graph_ids_fn *_Atomic cs_graph_profiler_ids;
extern _Atomic cs_u64 cs_graph_epoch; /* moves when the profiler begins anew, and its numbers with it */

/* Of a graph that a call has just made or used, and of its executable, each NULL where there is none. All 0 where anything is unknown. Keeps errno. */
CS_COLD struct cs_graph_ids cs_graph_ids_of(const CUgraph *graph, const CUgraphExec *exec);

#endif
