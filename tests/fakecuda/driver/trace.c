/* Telling a tracer about calls and work, and answering it (trace.h). */
#include "tests/fakecuda/driver/fake.h"

#include <errno.h>

#include "tests/fakecuda/left.h"

const struct fake_tracer *fake_tracer;
static const struct fake_tracer *latest; /* who gave the tokens out; stays when it detaches */

/* ---- Calls ---- */

static void enter(struct fake_trace_call *traced)
{
    if (!traced->tracer) return;
    traced->outer = fake_thread()->traced;
    fake_thread()->traced = traced;
    traced->tracer->api_enter(traced);
}

void fake_trace_enter(struct fake_call *call, struct fake_trace_call *traced)
{
    *traced = (struct fake_trace_call){.name = call->name,
        .errno_found = errno,
        .note = &call->note,
        .tracer = __atomic_load_n(&fake_tracer, __ATOMIC_ACQUIRE)};
    enter(traced);
}

CUresult fake_leave(struct fake_trace_call *traced, CUresult result)
{
    if (traced->tracer) {
        fake_thread()->traced = traced->outer;
        traced->tracer->api_exit(traced, result);
    }
    if (fake_errno && !traced->runtime)
        errno = fake_left_in_errno(traced->errno_found, traced->name);
    return result;
}

EXPORT void custream_fakecuda_runtime_enter(struct fake_trace_call *call)
{
    *call = (struct fake_trace_call){.name = call->name,
        .runtime = true,
        .tracer = __atomic_load_n(&fake_tracer, __ATOMIC_ACQUIRE)};
    enter(call);
}

EXPORT void custream_fakecuda_runtime_leave(struct fake_trace_call *call, int result)
{
    fake_leave(call, (CUresult)result);
}

static void sync_on(struct fake_trace_sync *sync, const struct fake_context *context)
{
    sync->context = (uint32_t)context->id;
    sync->device = (uint32_t)context->device;
}

void fake_trace_stream(int kind, const struct fake_stream *stream, bool query)
{
    struct fake_trace_call *traced = fake_tracing() ? fake_thread()->traced : NULL;

    if (!traced) return;
    traced->sync.kind = kind;
    traced->sync.query = query;
    traced->sync.stream = stream->trace_id;
    sync_on(&traced->sync, stream->context);
}

void fake_trace_event(
    int kind, const struct fake_event *event, const struct fake_stream *stream, bool query)
{
    struct fake_trace_call *traced = fake_tracing() ? fake_thread()->traced : NULL;

    if (!traced) return;
    traced->sync.kind = kind;
    traced->sync.query = query;
    traced->sync.event = event->id;
    traced->sync.recording = event->recording;
    traced->sync.stream = stream ? stream->trace_id : 0;
    sync_on(&traced->sync, stream ? stream->context : event->context);
}

void fake_trace_context(const struct fake_context *context)
{
    struct fake_trace_call *traced = fake_tracing() ? fake_thread()->traced : NULL;

    if (!traced) return;
    traced->sync.kind = FAKE_SYNC_CONTEXT;
    sync_on(&traced->sync, context);
}

/* ---- Work ---- */

static struct fake_trace_place place(const struct fake_stream *stream, bool array, uint64_t address)
{
    const struct fake_memory *memory = fake_memory_find(address);
    struct fake_trace_place place = {
        .device = (uint32_t)stream->context->device, .context = (uint32_t)stream->context->id};

    if (memory && memory->type != CU_MEMORYTYPE_HOST) {
        place.device = (uint32_t)memory->device;
        place.context = (uint32_t)memory->context->id;
    }
    if (array) place.memory = FAKE_MEMORY_ARRAY;
    else if (!memory) place.memory = FAKE_MEMORY_PAGEABLE;
    else if (memory->type == CU_MEMORYTYPE_HOST) place.memory = FAKE_MEMORY_PINNED;
    else
        place.memory =
            memory->type == CU_MEMORYTYPE_UNIFIED ? FAKE_MEMORY_MANAGED : FAKE_MEMORY_DEVICE;
    return place;
}

static uint64_t copied_bytes(const struct fake_graph *graph)
{
    uint64_t bytes = 0;
    for (const struct fake_node *n = graph->first; n; n = n->next) {
        if (n->work.type == WORK_COPY && !n->disabled)
            bytes += (uint64_t)n->work.copy.width * n->work.copy.height * n->work.copy.depth;
        if (n->work.type == WORK_CHILD) bytes += copied_bytes(n->work.child);
    }
    return bytes;
}

/* False for work that leaves no record. */
static bool describe(
    const struct fake_stream *stream, const struct fake_work *work, struct fake_trace_work *out)
{
    *out = (struct fake_trace_work){.device = (uint32_t)stream->context->device,
        .context = (uint32_t)stream->context->id,
        .stream = stream->trace_id,
        .asynchronous = work->asynchronous,
        .issued = fake_now()};
    switch (work->type) {
    case WORK_KERNEL: {
        const CUDA_KERNEL_NODE_PARAMS *p = &work->kernel.params;
        const struct fake_function *function = fake_function_get(p->func);

        out->kind = FAKE_TRACE_KERNEL;
        out->name = function ? function->name
                             : "unloaded"; /* its module went while a graph kept the node */
        out->grid[0] = p->gridDimX, out->grid[1] = p->gridDimY, out->grid[2] = p->gridDimZ;
        out->block[0] = p->blockDimX, out->block[1] = p->blockDimY, out->block[2] = p->blockDimZ;
        out->shared = p->sharedMemBytes;
        return true;
    }
    case WORK_COPY:
        out->kind = FAKE_TRACE_COPY;
        out->bytes = (uint64_t)work->copy.width * work->copy.height * work->copy.depth;
        out->to = place(stream, work->copy.to_array, (uintptr_t)work->copy.to.base);
        out->from = place(stream, work->copy.from_array, (uintptr_t)work->copy.from.base);
        return out->bytes != 0;
    case WORK_SET:
        out->kind = FAKE_TRACE_SET;
        out->bytes = (uint64_t)work->set.element * work->set.width * work->set.height;
        out->value = work->set.value;
        out->to = place(stream, false, work->set.address);
        return out->bytes != 0;
    case WORK_GRAPH:
        out->kind = FAKE_TRACE_GRAPH;
        out->graph = fake_exec_graph(work->graph.exec)->id;
        out->made = fake_exec_made(work->graph.exec);
        out->bytes = copied_bytes(fake_exec_graph(work->graph.exec));
        return true;
    default: return false;
    }
}

void fake_trace_op(struct fake_op *op)
{
    struct fake_trace_work work;

    if (!describe(op->stream, &op->work, &work)) return;
    op->running.trace = latest->work_new(fake_thread()->traced, NULL, &work);
    if (op->work.type == WORK_GRAPH) {
        op->running.launch = op->running.trace;
        op->running.stream = op->stream;
    }
}

void fake_trace_node(
    const struct fake_node *node, const struct fake_running *graph, struct fake_running *running)
{
    struct fake_trace_work work;

    running->launch = graph->launch; /* for the nodes of child graphs */
    running->stream = graph->stream;
    if (!describe(graph->stream, &node->work, &work)) return;
    work.node = node->id;
    work.asynchronous = true;
    running->trace = latest->work_new(NULL, graph->launch, &work);
}

void fake_trace_done(struct fake_running *running)
{
    latest->work_done(running->trace, running->start, running->end);
    running->trace = NULL;
}

/* ---- Answers ---- */

static void advance(void)
{
    FAKE_LOCKED;
    fake_advance();
}

static CUcontext current(void)
{
    struct fake_context *context;
    FAKE_LOCKED;
    return fake_current(&context) ? NULL : context->handle;
}

static CUresult context_id(CUcontext handle, uint32_t *id, uint32_t *device)
{
    struct fake_context *context;

    FAKE_LOCKED;
    FAKE_TRY(fake_context_of(handle, &context));
    *id = (uint32_t)context->id;
    *device = (uint32_t)context->device;
    return CUDA_SUCCESS;
}

static CUresult stream_id(CUcontext handle, CUstream hstream, bool per_thread, uint32_t *id)
{
    struct fake_context *context;
    struct fake_stream *stream;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_in(handle, hstream, per_thread, &stream));
    if (handle) {
        FAKE_TRY(fake_context_of(handle, &context));
        if (stream->context != context) return CUDA_ERROR_INVALID_HANDLE;
    }
    *id = stream->trace_id;
    return CUDA_SUCCESS;
}

static CUresult graph_id(CUgraph handle, uint32_t *id)
{
    FAKE_LOCKED;
    struct fake_graph *graph = fake_graph_get(handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    *id = graph->id;
    return CUDA_SUCCESS;
}

static CUresult exec_id(CUgraphExec handle, uint32_t *id)
{
    FAKE_LOCKED;
    struct fake_exec *exec = fake_exec_get(handle);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    *id = fake_exec_graph(exec)->id;
    return CUDA_SUCCESS;
}

static CUresult node_id(CUgraphNode handle, uint64_t *id)
{
    FAKE_LOCKED;
    struct fake_node *node = fake_node_get(handle);
    if (!node) return CUDA_ERROR_INVALID_VALUE;
    *id = node->id;
    return CUDA_SUCCESS;
}

static bool any_context(void)
{
    FAKE_LOCKED;
    for (const struct fake_context *context = fake_contexts; context; context = context->next)
        if (context->alive) return true;
    return false;
}

EXPORT const struct fake_traced *custream_fakecuda_trace(const struct fake_tracer *tracer)
{
    static const struct fake_traced answers = {fake_now, advance, current, context_id, stream_id,
        graph_id, exec_id, node_id, any_context, fake_break_down};

    if (fake_forked()) return NULL;
    FAKE_LOCKED;
    if (tracer) latest = tracer;
    __atomic_store_n(&fake_tracer, tracer, __ATOMIC_RELEASE);
    fake_ready_update();
    return &answers;
}
