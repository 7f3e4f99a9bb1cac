/* Instantiated graphs, and running one: nodes start when those before them are done, several at a
 * time. */
#include "tests/fakecuda/driver/fake.h"

/* A graph in execution: what runs are copies of its nodes' work, so that the graph may change or go
 * meanwhile. */
struct fake_graph_run {
    struct fake_graph *graph; /* our own copy */
    struct fake_running *nodes;
    size_t left;
};

struct fake_exec {
    CUgraphExec handle;
    struct fake_graph *graph; /* our own copy */
    struct fake_record *last; /* the latest launch: launches of one exec run one after another */
    int references;           /* its handle, and launches under way */
    unsigned long long flags;
    uint64_t made; /* when it was instantiated */
};

static struct fake_handles execs;

struct fake_exec *fake_exec_get(CUgraphExec handle) { return fake_handle_get(&execs, handle); }
struct fake_graph *fake_exec_graph(struct fake_exec *exec) { return exec->graph; }
uint64_t fake_exec_made(const struct fake_exec *exec) { return exec->made; }

void fake_exec_hold(struct fake_exec *exec) { exec->references++; }
void fake_exec_drop(struct fake_exec *exec)
{
    if (--exec->references) return;
    fake_graph_destroy(exec->graph);
    fake_record_drop(exec->last);
    free(exec);
}

/* ---- Running ---- */

/* An event node means the event as it is when the run begins: a record node makes its recording
 * now, a wait node waits for the latest one. */
static void resolve_events(struct fake_graph *graph)
{
    for (struct fake_node *n = graph->first; n; n = n->next) {
        struct fake_event *event;
        struct fake_record *record;

        if (n->work.type != WORK_RECORD && n->work.type != WORK_WAIT) continue;
        event = fake_event_get(n->work.event.handle);
        if (event && n->work.type == WORK_RECORD) fake_event_record(event, fake_record_new());
        record = event ? fake_record_hold(event->record) : NULL;
        if (!record) n->work.type = WORK_EMPTY;
        else n->work.event.record = record;
    }
}

static struct fake_graph_run *run_new(
    const struct fake_graph *graph, const struct fake_running *running)
{
    struct fake_graph_run *run = calloc(1, sizeof *run);
    unsigned index = 0;

    if (!run) abort();
    run->graph = fake_graph_clone(graph, true);
    if (running->launch) fake_graph_same_ids(run->graph, graph);
    run->nodes = calloc(run->graph->count + 1, sizeof *run->nodes);
    if (!run->nodes) abort();
    run->left = run->graph->count;
    for (struct fake_node *n = run->graph->first; n; n = n->next) {
        n->index = index++;
        if (n->disabled) fake_work_drop(&n->work); /* becomes empty */
        if (running->launch) fake_trace_node(n, running, &run->nodes[n->index]);
    }
    resolve_events(run->graph);
    return run;
}

/* When the nodes before this one ended, or false if one has not. */
static bool ready_at(
    const struct fake_graph_run *run, const struct fake_node *node, uint64_t *ready)
{
    for (size_t i = 0; i < node->before_count; i++) {
        const struct fake_running *before = &run->nodes[node->before[i]->index];
        if (before->state != RUN_DONE) return false;
        if (before->end > *ready) *ready = before->end;
    }
    return true;
}

/* A finished host function makes its node RUN_DONE from outside, so what is counted is marked. */
static bool step_nodes(struct fake_graph_run *run, struct fake_running *running, uint64_t ready)
{
    bool progressed = false;

    for (struct fake_node *n = run->graph->first; n; n = n->next) {
        struct fake_running *own = &run->nodes[n->index];
        uint64_t start = ready;

        if (n->marked || !ready_at(run, n, &start)) continue;
        if (!fake_work_step(&n->work, own, start)) continue;
        n->marked = true;
        if (own->end > running->end) running->end = own->end;
        run->left--;
        progressed = true;
    }
    return progressed;
}

bool fake_graph_step(struct fake_graph *graph, struct fake_running *running, uint64_t ready)
{
    struct fake_graph_run *run = running->graph;

    if (!run) {
        run = running->graph = run_new(graph, running);
        for (struct fake_node *n = run->graph->first; n; n = n->next) n->marked = false;
        if (ready > running->end) running->end = ready;
    }
    while (run->left && step_nodes(run, running, ready)) continue;
    if (run->left) return false;
    fake_graph_destroy(run->graph);
    free(run->nodes);
    free(run);
    running->graph = NULL;
    return true;
}

/* ---- Instantiating ---- */

static CUresult instantiate(CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
    struct fake_graph *graph;
    struct fake_exec *exec;

    if (!out) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    graph = fake_graph_get(handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    exec = calloc(1, sizeof *exec);
    if (!exec) return CUDA_ERROR_OUT_OF_MEMORY;
    exec->graph = fake_graph_clone(graph, true);
    exec->references = 1;
    exec->flags = flags;
    exec->made = fake_real_now();
    *out = exec->handle = fake_handle_new(&execs, exec);
    return CUDA_SUCCESS;
}

static CUresult instantiate_old(
    CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log, size_t bytes)
{
    if (node) *node = NULL;
    if (log && bytes) *log = 0;
    return instantiate(out, graph, 0);
}
IMPL(cuGraphInstantiate)(
    CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log, size_t bytes)
{
    return instantiate_old(out, graph, node, log, bytes);
}
IMPL(cuGraphInstantiate_v2)(
    CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log, size_t bytes)
{
    return instantiate_old(out, graph, node, log, bytes);
}
IMPL(cuGraphInstantiateWithFlags)(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    return instantiate(out, graph, flags);
}
IMPL(cuGraphInstantiateWithParams)(
    bool per_thread, CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    CUresult result;

    if (!params) return CUDA_ERROR_INVALID_VALUE;
    result = instantiate(out, graph, params->flags);
    params->hErrNode_out = NULL;
    params->result_out = result ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    if (!result && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))
        result = impl_cuGraphUpload(per_thread, *out, params->hUploadStream);
    return result;
}

IMPL(cuGraphExecDestroy)(CUgraphExec handle)
{
    struct fake_exec *exec;

    FAKE_LOCKED;
    exec = fake_exec_get(handle);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    fake_handle_free(&execs, handle);
    fake_exec_drop(exec);
    return CUDA_SUCCESS;
}

IMPL(cuGraphUpload)(bool per_thread, CUgraphExec handle, CUstream hstream)
{
    struct fake_work nothing = {.type = WORK_EMPTY};
    struct fake_stream *stream;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(hstream, per_thread, &stream));
    if (!fake_exec_get(handle)) return CUDA_ERROR_INVALID_VALUE;
    return fake_submit(stream, &nothing, false);
}

IMPL(cuGraphLaunch)(bool per_thread, CUgraphExec handle, CUstream hstream)
{
    struct fake_work work = {.type = WORK_GRAPH};
    struct fake_stream *stream;
    struct fake_exec *exec;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(hstream, per_thread, &stream));
    exec = fake_exec_get(handle);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    fake_exec_hold(exec);
    work.graph.exec = exec;
    work.graph.before = fake_record_hold(exec->last);
    work.graph.done = fake_record_new();
    if (!stream->capture) {
        fake_record_drop(exec->last);
        exec->last = fake_record_hold(work.graph.done);
    }
    return fake_submit(stream, &work, false);
}

/* ---- Updating ---- */

/* Same nodes in the same order with the same dependencies: the new work takes the old one's place.
 */
static CUresult update(CUgraphExec handle, CUgraph hgraph, struct fake_node **odd)
{
    struct fake_exec *exec = fake_exec_get(handle);
    struct fake_graph *graph = fake_graph_get(hgraph), *copy;
    struct fake_node *a, *b;

    *odd = NULL;
    if (!exec || !graph) return CUDA_ERROR_INVALID_VALUE;
    for (a = exec->graph->first, b = graph->first; a && b; a = a->next, b = b->next) {
        if (a->type == b->type && a->before_count == b->before_count) continue;
        *odd = b;
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    if (a || b) {
        *odd = b;
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    copy = fake_graph_clone(graph, true);
    fake_graph_same_ids(copy, exec->graph);
    fake_graph_destroy(exec->graph);
    exec->graph = copy;
    return CUDA_SUCCESS;
}

IMPL(cuGraphExecUpdate_v2)(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    struct fake_node *odd;
    CUresult result;

    if (!info) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    result = update(exec, graph, &odd);
    memset(info, 0, sizeof *info);
    info->result =
        result ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED : CU_GRAPH_EXEC_UPDATE_SUCCESS;
    info->errorNode = odd ? fake_node_handle(odd) : NULL;
    return result;
}
IMPL(cuGraphExecUpdate)(
    CUgraphExec exec, CUgraph graph, CUgraphNode *error, CUgraphExecUpdateResult *outcome)
{
    struct fake_node *odd;
    CUresult result;

    FAKE_LOCKED;
    result = update(exec, graph, &odd);
    if (error) *error = odd ? fake_node_handle(odd) : NULL;
    if (outcome)
        *outcome =
            result ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED : CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return result;
}

/* The exec's copy of a node: by its position in the graph that it was made from. */
static struct fake_node *exec_node(struct fake_exec *exec, CUgraphNode handle)
{
    struct fake_node *node = fake_node_get(handle), *copy, *n;

    if (!exec || !node) return NULL;
    for (n = node->graph->first, copy = exec->graph->first; n && copy && n != node; n = n->next)
        copy = copy->next;
    return n ? copy : NULL;
}

static CUresult set_event(
    CUgraphExec handle, CUgraphNode hnode, CUevent event, enum fake_work_type type)
{
    struct fake_node *node;

    FAKE_LOCKED;
    node = exec_node(fake_exec_get(handle), hnode);
    if (!node || node->work.type != type || !fake_event_get(event)) return CUDA_ERROR_INVALID_VALUE;
    node->work.event.handle = event;
    return CUDA_SUCCESS;
}
IMPL(cuGraphExecEventRecordNodeSetEvent)(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    return set_event(exec, node, event, WORK_RECORD);
}
IMPL(cuGraphExecEventWaitNodeSetEvent)(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    return set_event(exec, node, event, WORK_WAIT);
}

API(cuGraphNodeSetEnabled, (CUgraphExec handle, CUgraphNode hnode, unsigned enabled),
    (handle, hnode, enabled))
{
    FAKE_LOCKED;
    struct fake_node *node = exec_node(fake_exec_get(handle), hnode);
    if (!node) return CUDA_ERROR_INVALID_VALUE;
    node->disabled = !enabled;
    return CUDA_SUCCESS;
}
API(cuGraphNodeGetEnabled, (CUgraphExec handle, CUgraphNode hnode, unsigned *enabled),
    (handle, hnode, enabled))
{
    FAKE_LOCKED;
    struct fake_node *node = exec_node(fake_exec_get(handle), hnode);
    if (!node || !enabled) return CUDA_ERROR_INVALID_VALUE;
    *enabled = !node->disabled;
    return CUDA_SUCCESS;
}
API(cuGraphExecGetFlags, (CUgraphExec handle, cuuint64_t *flags), (handle, flags))
{
    FAKE_LOCKED;
    struct fake_exec *exec = fake_exec_get(handle);
    if (!exec || !flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}
