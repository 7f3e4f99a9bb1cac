#include "shim/object/graph.h"

#include "shim/base/keep.h"
#include "shim/calls/real.h"

cs_graph_ids_fn *_Atomic cs_graph_profiler_ids;
_Atomic cs_u64 cs_graph_epoch;

struct cs_graph_ids cs_graph_ids_of(const CUgraph *graph, const CUgraphExec *exec)
{
    CS_KEEP_ERRNO;
    struct cs_graph_ids ids = {0};
    size_t nodes = 0;
    cs_graph_ids_fn *ask = cs_load_acq(&cs_graph_profiler_ids);
    if (!ask || !graph || !*graph || (exec && !*exec) || !cs_real.cuGraphGetNodes) return ids;
    if (cs_real.cuGraphGetNodes(*graph, NULL, &nodes) != CUDA_SUCCESS || !nodes || nodes > UINT32_MAX) return ids;
    if (!ask(*graph, exec ? *exec : NULL, &ids)) return (struct cs_graph_ids){0};
    ids.nodes = (cs_u32)nodes;
    return ids;
}
