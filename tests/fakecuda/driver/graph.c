/* Graphs as objects: nodes, the edges between them, and what each node does. Running them:
 * graph_run.c. */
#include "tests/fakecuda/driver/fake.h"

static struct fake_handles graphs, nodes;
static unsigned last_graph;

struct fake_graph *fake_graph_get(CUgraph handle) { return fake_handle_get(&graphs, handle); }
struct fake_node *fake_node_get(CUgraphNode handle) { return fake_handle_get(&nodes, handle); }

CUgraph fake_graph_handle(struct fake_graph *graph)
{
    if (!graph->handle) graph->handle = fake_handle_new(&graphs, graph);
    return graph->handle;
}

CUgraphNode fake_node_handle(struct fake_node *node)
{
    if (!node->handle) node->handle = fake_handle_new(&nodes, node);
    return node->handle;
}

struct fake_graph *fake_graph_new(bool child)
{
    struct fake_graph *graph = calloc(1, sizeof *graph);

    if (!graph) abort();
    graph->child = child;
    graph->id = ++last_graph;
    return graph;
}

/* Takes the work over. */
struct fake_node *fake_node_add(struct fake_graph *graph, CUgraphNodeType type,
    struct fake_work *work, struct fake_node **before, size_t count)
{
    struct fake_node *node = calloc(1, sizeof *node);

    if (!node) abort();
    node->graph = graph;
    node->type = type;
    node->id = (uint64_t)graph->id << 32 | graph->last_node++;
    node->work = *work;
    node->before = calloc(count + 1, sizeof *before);
    if (!node->before) abort();
    if (count) memcpy(node->before, before, count * sizeof *before);
    node->before_count = count;
    if (graph->tail) graph->tail->next = node;
    else graph->first = node;
    graph->tail = node;
    graph->count++;
    return node;
}

struct fake_graph *fake_graph_clone(const struct fake_graph *from, bool child)
{
    struct fake_graph *graph = fake_graph_new(child);
    struct fake_node **copies = calloc(from->count + 1, sizeof *copies);
    unsigned index = 0;

    if (!copies) abort();
    for (struct fake_node *n = from->first; n; n = n->next) {
        struct fake_work work;

        n->index = index;
        fake_work_copy(&work, &n->work);
        copies[index] = fake_node_add(graph, n->type, &work, n->before, n->before_count);
        copies[index++]->disabled = n->disabled;
    }
    for (struct fake_node *n = graph->first; n; n = n->next)
        for (size_t i = 0; i < n->before_count; i++) n->before[i] = copies[n->before[i]->index];
    free(copies);
    fake_users_copy(graph, from);
    return graph;
}

void fake_graph_same_ids(struct fake_graph *graph, const struct fake_graph *as)
{
    const struct fake_node *other = as->first;

    graph->id = as->id;
    for (struct fake_node *n = graph->first; n && other; n = n->next, other = other->next) {
        n->id = other->id;
        if (n->work.type == WORK_CHILD && other->work.type == WORK_CHILD)
            fake_graph_same_ids(n->work.child, other->work.child);
    }
}

static void node_free(struct fake_node *node)
{
    if (node->handle) fake_handle_free(&nodes, node->handle);
    fake_work_drop(&node->work);
    free(node->before);
    free(node);
}

void fake_graph_destroy(struct fake_graph *graph)
{
    while (graph->first) {
        struct fake_node *node = graph->first;
        graph->first = node->next;
        node_free(node);
    }
    fake_users_drop(graph);
    if (graph->handle) fake_handle_free(&graphs, graph->handle);
    free(graph);
}

/* ---- Graphs ---- */

API(cuGraphCreate, (CUgraph * out, unsigned flags), (out, flags))
{
    if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    *out = fake_graph_handle(fake_graph_new(false));
    return CUDA_SUCCESS;
}
API(cuGraphDestroy, (CUgraph handle), (handle))
{
    FAKE_LOCKED;
    struct fake_graph *graph = fake_graph_get(handle);
    if (!graph || graph->child) return CUDA_ERROR_INVALID_VALUE;
    fake_graph_destroy(graph);
    return CUDA_SUCCESS;
}
API(cuGraphClone, (CUgraph * out, CUgraph handle), (out, handle))
{
    FAKE_LOCKED;
    struct fake_graph *graph = fake_graph_get(handle);
    if (!graph || !out) return CUDA_ERROR_INVALID_VALUE;
    *out = fake_graph_handle(fake_graph_clone(graph, false));
    return CUDA_SUCCESS;
}

/* Fills what fits and tells how many there are, as all of these do; a NULL list only asks for the
 * number. */
static void give(CUgraphNode *list, size_t room, size_t at, struct fake_node *node)
{
    if (list && at < room) list[at] = fake_node_handle(node);
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *list, size_t *count, bool roots)
{
    size_t at = 0;

    if (!count) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    struct fake_graph *graph = fake_graph_get(handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    for (struct fake_node *n = graph->first; n; n = n->next)
        if (!roots || !n->before_count) give(list, *count, at++, n);
    for (size_t i = at; list && i < *count; i++) list[i] = NULL;
    *count = at;
    return CUDA_SUCCESS;
}
API(cuGraphGetNodes, (CUgraph graph, CUgraphNode *list, size_t *count), (graph, list, count))
{
    return list_nodes(graph, list, count, false);
}
API(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *list, size_t *count), (graph, list, count))
{
    return list_nodes(graph, list, count, true);
}

static CUresult edges(
    CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
    size_t at = 0;

    if (!count) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    struct fake_graph *graph = fake_graph_get(handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    for (struct fake_node *n = graph->first; n; n = n->next)
        for (size_t i = 0; i < n->before_count; i++, at++) {
            give(from, *count, at, n->before[i]);
            give(to, *count, at, n);
            if (data && at < *count) memset(&data[at], 0, sizeof *data);
        }
    *count = at;
    return CUDA_SUCCESS;
}

static CUresult dependencies(
    CUgraphNode handle, CUgraphNode *list, CUgraphEdgeData *data, size_t *count, bool after)
{
    size_t at = 0;

    if (!count) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    struct fake_node *node = fake_node_get(handle);
    if (!node) return CUDA_ERROR_INVALID_VALUE;
    if (!after) {
        for (; at < node->before_count; at++) give(list, *count, at, node->before[at]);
    } else {
        for (struct fake_node *n = node->graph->first; n; n = n->next)
            for (size_t i = 0; i < n->before_count; i++)
                if (n->before[i] == node) give(list, *count, at++, n);
    }
    if (data) memset(data, 0, (at < *count ? at : *count) * sizeof *data);
    *count = at;
    return CUDA_SUCCESS;
}

static CUresult change_edges(
    CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count, bool add)
{
    FAKE_LOCKED;
    struct fake_graph *graph = fake_graph_get(handle);
    if (!graph || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct fake_node *a = fake_node_get(from[i]), *b = fake_node_get(to[i]);
        size_t at;

        if (!a || !b || a->graph != graph || b->graph != graph) return CUDA_ERROR_INVALID_VALUE;
        for (at = 0; at < b->before_count && b->before[at] != a; at++) continue;
        if (add == (at < b->before_count))
            return CUDA_ERROR_INVALID_VALUE; /* there already, or not there */
        if (!add) {
            b->before[at] = b->before[--b->before_count];
            continue;
        }
        b->before = realloc(b->before, (b->before_count + 1) * sizeof *b->before);
        if (!b->before) abort();
        b->before[b->before_count++] = a;
    }
    return CUDA_SUCCESS;
}

API(cuGraphGetEdges_v2,
    (CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *d, size_t *n),
    (g, from, to, d, n))
{
    return edges(g, from, to, d, n);
}
API(cuGraphNodeGetDependencies_v2,
    (CUgraphNode g, CUgraphNode *list, CUgraphEdgeData *d, size_t *n), (g, list, d, n))
{
    return dependencies(g, list, d, n, false);
}
API(cuGraphNodeGetDependentNodes_v2,
    (CUgraphNode g, CUgraphNode *list, CUgraphEdgeData *d, size_t *n), (g, list, d, n))
{
    return dependencies(g, list, d, n, true);
}
API(cuGraphAddDependencies_v2,
    (CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *d, size_t n),
    (g, from, to, d, n))
{
    (void)d;
    return change_edges(g, from, to, n, true);
}
API(cuGraphRemoveDependencies_v2,
    (CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *d, size_t n),
    (g, from, to, d, n))
{
    (void)d;
    return change_edges(g, from, to, n, false);
}
API(cuGraphGetEdges, (CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n), (g, from, to, n))
{
    return edges(g, from, to, NULL, n);
}
API(cuGraphNodeGetDependencies, (CUgraphNode g, CUgraphNode *list, size_t *n), (g, list, n))
{
    return dependencies(g, list, NULL, n, false);
}
API(cuGraphNodeGetDependentNodes, (CUgraphNode g, CUgraphNode *list, size_t *n), (g, list, n))
{
    return dependencies(g, list, NULL, n, true);
}
API(cuGraphAddDependencies, (CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n),
    (g, from, to, n))
{
    return change_edges(g, from, to, n, true);
}
API(cuGraphRemoveDependencies,
    (CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n), (g, from, to, n))
{
    return change_edges(g, from, to, n, false);
}

API(cuGraphNodeGetType, (CUgraphNode handle, CUgraphNodeType *type), (handle, type))
{
    FAKE_LOCKED;
    struct fake_node *node = fake_node_get(handle);
    if (!node || !type) return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}
API(cuGraphDestroyNode, (CUgraphNode handle), (handle))
{
    FAKE_LOCKED;
    struct fake_node *node = fake_node_get(handle), **link;
    if (!node) return CUDA_ERROR_INVALID_VALUE;
    node->graph->tail = NULL;
    for (link = &node->graph->first; *link;) {
        struct fake_node *n = *link;

        if (n == node) {
            *link = n->next;
            continue;
        }
        for (size_t i = 0; i < n->before_count;) {
            if (n->before[i] == node) n->before[i] = n->before[--n->before_count];
            else i++;
        }
        node->graph->tail = n;
        link = &n->next;
    }
    node->graph->count--;
    node_free(node);
    return CUDA_SUCCESS;
}
API(cuGraphChildGraphNodeGetGraph, (CUgraphNode handle, CUgraph *graph), (handle, graph))
{
    FAKE_LOCKED;
    struct fake_node *node = fake_node_get(handle);
    if (!node || !graph || node->work.type != WORK_CHILD) return CUDA_ERROR_INVALID_VALUE;
    *graph = fake_graph_handle(node->work.child);
    return CUDA_SUCCESS;
}
API(cuGraphGetId, (CUgraph handle, unsigned *id), (handle, id))
{
    FAKE_LOCKED;
    struct fake_graph *graph = fake_graph_get(handle);
    if (!graph || !id) return CUDA_ERROR_INVALID_VALUE;
    *id = graph->id;
    return CUDA_SUCCESS;
}
API(cuGraphDebugDotPrint, (CUgraph handle, const char *path, unsigned flags), (handle, path, flags))
{
    (void)path, (void)flags;
    FAKE_LOCKED;
    return fake_graph_get(handle) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}
