/* Adding nodes to a graph by hand, and reading back or changing what they do. */
#include "tests/fakecuda/driver/fake.h"

void fake_kernel_work(
    const struct fake_function *function, const CUDA_KERNEL_NODE_PARAMS *p, struct fake_work *work);
CUresult fake_copy_work(const CUDA_MEMCPY3D *copy, struct fake_work *work);

/* Adds a node after checking its graph and dependencies; takes the work over, or drops it. */
static CUresult add(CUgraphNode *out, CUgraph hgraph, const CUgraphNode *before, size_t count,
    CUgraphNodeType type, struct fake_work *work)
{
    struct fake_graph *graph = fake_graph_get(hgraph);
    struct fake_node **list = calloc(count + 1, sizeof *list);
    bool valid = out && graph && (!count || before);

    if (!list) abort();
    for (size_t i = 0; valid && i < count; i++) {
        list[i] = fake_node_get(before[i]);
        valid = list[i] && list[i]->graph == graph;
    }
    if (valid) *out = fake_node_handle(fake_node_add(graph, type, work, list, count));
    else fake_work_drop(work);
    free(list);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- The work that a node's parameters describe ---- */

static CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS *p, struct fake_work *work)
{
    CUDA_KERNEL_NODE_PARAMS params = *p;
    struct fake_function *function;

    if (!params.func) params.func = (CUfunction)params.kern;
    function = fake_function_get(params.func);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    fake_kernel_work(function, &params, work);
    return CUDA_SUCCESS;
}

static CUresult set_work(const CUDA_MEMSET_NODE_PARAMS *p, struct fake_work *work)
{
    if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    *work = (struct fake_work){
        .type = WORK_SET, .set = {p->dst, p->pitch, p->width, p->height, p->value, p->elementSize}};
    return CUDA_SUCCESS;
}

static CUresult child_work(CUgraph handle, struct fake_work *work)
{
    struct fake_graph *graph = fake_graph_get(handle);

    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    *work = (struct fake_work){.type = WORK_CHILD, .child = fake_graph_clone(graph, true)};
    return CUDA_SUCCESS;
}

static CUresult event_work(CUevent event, enum fake_work_type type, struct fake_work *work)
{
    *work = (struct fake_work){.type = type, .event = {event, NULL}};
    return fake_event_get(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static struct fake_work host_work(CUhostFn function, void *data)
{
    return (struct fake_work){.type = WORK_HOST, .host = {function, NULL, NULL, data}};
}

/* ---- One call a type ---- */

#define ADD(call, extra, names, node_type, make) \
    API(call, (CUgraphNode * out, CUgraph graph, const CUgraphNode *before, size_t count EXPAND \
    extra), (out, graph, before, count EXPAND names)) { \
        struct fake_work work = {.type = WORK_EMPTY}; \
        FAKE_LOCKED; \
        make; \
        return add(out, graph, before, count, CU_GRAPH_NODE_TYPE_##node_type, &work); \
    }
#define EXPAND(...) __VA_OPT__(, ) __VA_ARGS__
#define GIVEN(p)    if (!(p)) return CUDA_ERROR_INVALID_VALUE

ADD(cuGraphAddEmptyNode, (), (), EMPTY, (void)0)
ADD(cuGraphAddKernelNode_v2, (const CUDA_KERNEL_NODE_PARAMS *p), (p), KERNEL, GIVEN(p);
    FAKE_TRY(kernel_work(p, &work)))
ADD(cuGraphAddMemcpyNode, (const CUDA_MEMCPY3D *p, CUcontext ctx), (p, ctx), MEMCPY, (void)ctx;
    GIVEN(p); FAKE_TRY(fake_copy_work(p, &work)))
ADD(cuGraphAddMemsetNode, (const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx), (p, ctx), MEMSET,
    (void)ctx;
    GIVEN(p); FAKE_TRY(set_work(p, &work)))
ADD(cuGraphAddHostNode, (const CUDA_HOST_NODE_PARAMS *p), (p), HOST, GIVEN(p && p->fn);
    work = host_work(p->fn, p->userData))
ADD(cuGraphAddChildGraphNode, (CUgraph child), (child), GRAPH, FAKE_TRY(child_work(child, &work)))

/* The old kernel node of CUDA 10, without `kern` and `ctx` at the end. */
API(cuGraphAddKernelNode,
    (CUgraphNode * out, CUgraph graph, const CUgraphNode *before, size_t count,
        const CUDA_KERNEL_NODE_PARAMS_v1 *p),
    (out, graph, before, count, p))
{
    struct fake_work work;
    CUDA_KERNEL_NODE_PARAMS params = {0};

    GIVEN(p);
    memcpy(&params, p, sizeof *p);
    FAKE_LOCKED;
    FAKE_TRY(kernel_work(&params, &work));
    return add(out, graph, before, count, CU_GRAPH_NODE_TYPE_KERNEL, &work);
}

static CUresult add_event(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
    CUevent event, bool record)
{
    struct fake_work work;

    FAKE_LOCKED;
    FAKE_TRY(event_work(event, record ? WORK_RECORD : WORK_WAIT, &work));
    return add(out, graph, before, count,
        record ? CU_GRAPH_NODE_TYPE_EVENT_RECORD : CU_GRAPH_NODE_TYPE_WAIT_EVENT, &work);
}
IMPL(cuGraphAddEventRecordNode)(
    CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count, CUevent event)
{
    return add_event(out, graph, before, count, event, true);
}
IMPL(cuGraphAddEventWaitNode)(
    CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count, CUevent event)
{
    return add_event(out, graph, before, count, event, false);
}

/* ---- The one call for all types, CUDA 12.2 ---- */

static CUresult work_of(const CUgraphNodeParams *p, struct fake_work *work)
{
    *work = (struct fake_work){.type = WORK_EMPTY};
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS params = {.func = p->kernel.func,
            .gridDimX = p->kernel.gridDimX,
            .gridDimY = p->kernel.gridDimY,
            .gridDimZ = p->kernel.gridDimZ,
            .blockDimX = p->kernel.blockDimX,
            .blockDimY = p->kernel.blockDimY,
            .blockDimZ = p->kernel.blockDimZ,
            .sharedMemBytes = p->kernel.sharedMemBytes,
            .kernelParams = p->kernel.kernelParams,
            .extra = p->kernel.extra,
            .kern = p->kernel.kern};
        return kernel_work(&params, work);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: return fake_copy_work(&p->memcpy.copyParams, work);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS params = {.dst = p->memset.dst,
            .pitch = p->memset.pitch,
            .value = p->memset.value,
            .elementSize = p->memset.elementSize,
            .width = p->memset.width,
            .height = p->memset.height};
        return set_work(&params, work);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
        *work = host_work(p->host.fn, p->host.userData);
        return p->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_GRAPH: return child_work(p->graph.graph, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_work(p->eventRecord.event, WORK_RECORD, work);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return event_work(p->eventWait.event, WORK_WAIT, work);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        *work = (struct fake_work){.type = WORK_FREE, .memory = p->free.dptr};
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult add_any(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
    CUgraphNodeParams *params)
{
    struct fake_work work;

    GIVEN(params);
    FAKE_LOCKED;
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        FAKE_TRY(
            fake_memory_new(params->alloc.bytesize, CU_MEMORYTYPE_DEVICE, 0, &params->alloc.dptr));
        work = (struct fake_work){.type = WORK_ALLOC, .memory = params->alloc.dptr};
    } else {
        FAKE_TRY(work_of(params, &work));
    }
    return add(out, graph, before, count, params->type, &work);
}
IMPL(cuGraphAddNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
    CUgraphNodeParams *params)
{
    return add_any(out, graph, before, count, params);
}
IMPL(cuGraphAddNode_v2)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
    const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
    (void)edges;
    return add_any(out, graph, before, count, params);
}

IMPL(cuGraphNodeSetParams)(CUgraphNode handle, CUgraphNodeParams *params)
{
    struct fake_node *node;
    struct fake_work work;

    GIVEN(params);
    FAKE_LOCKED;
    node = fake_node_get(handle);
    if (!node || node->type != params->type) return CUDA_ERROR_INVALID_VALUE;
    FAKE_TRY(work_of(params, &work));
    fake_work_drop(&node->work);
    node->work = work;
    return CUDA_SUCCESS;
}

/* ---- Reading back ---- */

static struct fake_node *node_of(CUgraphNode handle, enum fake_work_type type)
{
    struct fake_node *node = fake_node_get(handle);
    return node && node->work.type == type ? node : NULL;
}

static CUresult get_event(CUgraphNode handle, CUevent *event, enum fake_work_type type)
{
    FAKE_LOCKED;
    struct fake_node *node = node_of(handle, type);
    if (!node || !event) return CUDA_ERROR_INVALID_VALUE;
    *event = node->work.event.handle;
    return CUDA_SUCCESS;
}
static CUresult set_event(CUgraphNode handle, CUevent event, enum fake_work_type type)
{
    FAKE_LOCKED;
    struct fake_node *node = node_of(handle, type);
    if (!node || !fake_event_get(event)) return CUDA_ERROR_INVALID_VALUE;
    node->work.event.handle = event;
    return CUDA_SUCCESS;
}
IMPL(cuGraphEventRecordNodeGetEvent)(CUgraphNode node, CUevent *event)
{
    return get_event(node, event, WORK_RECORD);
}
IMPL(cuGraphEventRecordNodeSetEvent)(CUgraphNode node, CUevent event)
{
    return set_event(node, event, WORK_RECORD);
}
IMPL(cuGraphEventWaitNodeGetEvent)(CUgraphNode node, CUevent *event)
{
    return get_event(node, event, WORK_WAIT);
}
IMPL(cuGraphEventWaitNodeSetEvent)(CUgraphNode node, CUevent event)
{
    return set_event(node, event, WORK_WAIT);
}

/* Of a kernel's attributes there is its priority, the stream's where it was captured. */
IMPL(cuGraphKernelNodeGetAttribute)(
    CUgraphNode handle, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue *value)
{
    FAKE_LOCKED;
    struct fake_node *node = node_of(handle, WORK_KERNEL);
    if (!node || !value) return CUDA_ERROR_INVALID_VALUE;
    if (attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY) return CUDA_ERROR_NOT_SUPPORTED;
    value->priority = node->work.kernel.priority;
    return CUDA_SUCCESS;
}
IMPL(cuGraphKernelNodeSetAttribute)(
    CUgraphNode handle, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue *value)
{
    FAKE_LOCKED;
    struct fake_node *node = node_of(handle, WORK_KERNEL);
    if (!node || !value) return CUDA_ERROR_INVALID_VALUE;
    if (attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY) return CUDA_ERROR_NOT_SUPPORTED;
    fake_journal_add(" priority=%d", value->priority);
    node->work.kernel.priority = value->priority;
    return CUDA_SUCCESS;
}

#define READ(call, params_type, kind, fill) \
    API(call, (CUgraphNode handle, params_type * p), (handle, p)) { \
        FAKE_LOCKED; \
        struct fake_node *node = node_of(handle, kind); \
        if (!node || !p) return CUDA_ERROR_INVALID_VALUE; \
        fill; \
        return CUDA_SUCCESS; \
    }
/* The caller's parameters are gone; ours are what an effect would read. */
static void kernel_params(struct fake_node *node, CUDA_KERNEL_NODE_PARAMS *p)
{
    *p = node->work.kernel.params;
    for (unsigned i = 0; i < COUNT_OF(node->work.kernel.values); i++)
        node->work.kernel.parameters[i] = &node->work.kernel.values[i];
    p->kernelParams = node->work.kernel.parameters;
    p->extra = NULL;
}
READ(cuGraphKernelNodeGetParams_v2, CUDA_KERNEL_NODE_PARAMS, WORK_KERNEL, kernel_params(node, p))
READ(cuGraphMemcpyNodeGetParams, CUDA_MEMCPY3D, WORK_COPY, *p = node->work.copy.shape)
READ(cuGraphMemsetNodeGetParams, CUDA_MEMSET_NODE_PARAMS, WORK_SET,
    *p = ((CUDA_MEMSET_NODE_PARAMS){node->work.set.address, node->work.set.pitch,
        node->work.set.value, node->work.set.element, node->work.set.width, node->work.set.height}))
READ(cuGraphHostNodeGetParams, CUDA_HOST_NODE_PARAMS, WORK_HOST, p->fn = node->work.host.function;
    p->userData = node->work.host.data)
READ(cuGraphMemFreeNodeGetParams, CUdeviceptr, WORK_FREE, *p = node->work.memory)
