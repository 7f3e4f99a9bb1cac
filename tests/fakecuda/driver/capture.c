/*
 * Stream capture: work on a capturing stream becomes nodes of a graph.
 *
 * A capture has an origin stream; others join it by waiting for an event recorded in it and must be
 * joined back before it ends. Each member stream keeps the nodes that its next node depends on.
 * What a capture cannot express breaks ("invalidates") it: from then on every call on its streams
 * fails, and ending it gives no graph.
 */
#include "tests/fakecuda/driver/fake.h"

struct fake_capture {
    struct fake_graph *graph;
    struct fake_stream *origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    unsigned long long id;
    bool broken;
    bool to_graph; /* the graph was the caller's */
    struct fake_capture *next;
    CUstreamCaptureStatus status;
};

static struct fake_capture *captures;

CUresult fake_capture_record(struct fake_stream *stream, struct fake_event *event);
CUresult fake_capture_wait(struct fake_stream *stream, struct fake_event *event);
bool fake_event_captured(const struct fake_event *event);
CUresult fake_event_forbids(struct fake_event *event);

static CUresult break_capture(struct fake_capture *capture, CUresult why)
{
    capture->broken = true;
    return why;
}

static void set_last(
    struct fake_node ***last, size_t *count, struct fake_node **from, size_t from_count)
{
    struct fake_node **copy = from_count ? malloc(from_count * sizeof *copy) : NULL;

    if (from_count && !copy) abort();
    if (from_count) memcpy(copy, from, from_count * sizeof *copy);
    free(*last);
    *last = copy;
    *count = from_count;
}

static void add_last(struct fake_stream *stream, struct fake_node **from, size_t from_count)
{
    for (size_t i = 0; i < from_count; i++) {
        bool known = false;
        for (size_t k = 0; k < stream->last_count; k++) known |= stream->last[k] == from[i];
        if (known) continue;
        stream->last = realloc(stream->last, (stream->last_count + 1) * sizeof *stream->last);
        if (!stream->last) abort();
        stream->last[stream->last_count++] = from[i];
    }
}

static void join(struct fake_stream *stream, struct fake_capture *capture)
{
    stream->capture = capture;
    if (fake_blocking(stream)) stream->context->capturing_blocking++;
}

static void leave(struct fake_stream *stream)
{
    if (!stream->capture) return;
    stream->capture = NULL;
    if (fake_blocking(stream)) stream->context->capturing_blocking--;
    set_last(&stream->last, &stream->last_count, NULL, 0);
}

static void end_capture(struct fake_capture *capture)
{
    struct fake_capture **link = &captures;

    for (struct fake_context *c = fake_contexts; c; c = c->next)
        for (struct fake_stream *s = c->streams; s; s = s->next)
            if (s->capture == capture) leave(s);
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    free(capture);
}

/* A stream destroyed while it is being captured breaks the capture; the origin takes it along. */
void fake_capture_leave(struct fake_stream *stream)
{
    struct fake_capture *capture = stream->capture;

    if (!capture) return;
    capture->broken = true;
    leave(stream);
    if (capture->origin != stream) return;
    if (!capture->to_graph) fake_graph_destroy(capture->graph);
    end_capture(capture);
}

/* ---- Work ---- */

static CUgraphNodeType node_type(enum fake_work_type type)
{
    switch (type) {
    case WORK_KERNEL: return CU_GRAPH_NODE_TYPE_KERNEL;
    case WORK_COPY: return CU_GRAPH_NODE_TYPE_MEMCPY;
    case WORK_SET: return CU_GRAPH_NODE_TYPE_MEMSET;
    case WORK_HOST: return CU_GRAPH_NODE_TYPE_HOST;
    case WORK_RECORD: return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case WORK_WAIT: return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case WORK_VALUES: return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    case WORK_FREE: return CU_GRAPH_NODE_TYPE_MEM_FREE;
    case WORK_ALLOC: return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    case WORK_CHILD: return CU_GRAPH_NODE_TYPE_GRAPH;
    default: return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

/* Work on the legacy stream would have to wait for a blocking stream that is being captured. */
static CUresult implicit(struct fake_context *context)
{
    for (struct fake_stream *s = context->streams; s; s = s->next)
        if (s->capture && fake_blocking(s)) break_capture(s->capture, CUDA_SUCCESS);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static CUresult submit(struct fake_stream *stream, struct fake_work *work, bool wait)
{
    struct fake_capture *capture = stream->capture;
    struct fake_node *node;

    if (UNLIKELY(stream->legacy && stream->context->capturing_blocking))
        return implicit(stream->context);
    if (!capture) {
        fake_await_room(stream);
        fake_enqueue(stream, work, wait);
        return CUDA_SUCCESS;
    }
    if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (wait) return break_capture(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (work->type == WORK_GRAPH) { /* launching a graph in a capture makes a child graph of it */
        struct fake_work child = {
            .type = WORK_CHILD, .child = fake_graph_clone(fake_exec_graph(work->graph.exec), true)};
        fake_work_drop(work);
        *work = child;
    }
    node = fake_node_add(
        capture->graph, node_type(work->type), work, stream->last, stream->last_count);
    set_last(&stream->last, &stream->last_count, &node, 1);
    return CUDA_SUCCESS;
}

CUresult fake_submit(struct fake_stream *stream, struct fake_work *work, bool wait)
{
    fake_clock_spend(
        work->type == WORK_KERNEL || work->type == WORK_SET ? fake_launch_ns : fake_call_ns);
    CUresult result = submit(stream, work, wait);
    if (result) fake_work_drop(work);
    return result;
}

CUresult fake_capture_forbids(struct fake_stream *stream)
{
    if (stream->capture) {
        if (stream->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        return break_capture(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (stream->legacy && stream->context->capturing_blocking) return implicit(stream->context);
    return fake_unsafe();
}

CUresult fake_capture_forbids_context(struct fake_context *context)
{
    bool any = false;

    if (!captures) return CUDA_SUCCESS;
    for (struct fake_stream *s = context->streams; s; s = s->next) {
        if (!s->capture) continue;
        s->capture->broken = true;
        any = true;
    }
    return any ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/* By the calling thread's mode: global minds every capture begun in global mode and its own,
 * thread-local only its own, relaxed none. */
CUresult fake_unsafe(void)
{
    CUresult result = CUDA_SUCCESS;

    if (!captures || fake_thread()->mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    for (struct fake_capture *c = captures; c; c = c->next) {
        bool own = pthread_equal(c->thread, pthread_self());
        bool minds = own ? c->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                         : c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                               fake_thread()->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (minds) result = break_capture(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return result;
}

/* ---- Events in captures ---- */

static struct fake_capture *capture_of(const struct fake_event *event)
{
    for (struct fake_capture *c = captures; c; c = c->next)
        if (c == event->capture && c->id == event->capture_id) return c;
    return NULL;
}

bool fake_event_captured(const struct fake_event *event)
{
    return event->capture && capture_of(event);
}

CUresult fake_event_forbids(struct fake_event *event)
{
    if (event->capture) {
        struct fake_capture *capture = capture_of(event);
        return capture ? break_capture(capture, CUDA_ERROR_CAPTURED_EVENT)
                       : CUDA_ERROR_CAPTURED_EVENT;
    }
    return fake_unsafe();
}

CUresult fake_capture_record(struct fake_stream *stream, struct fake_event *event)
{
    if (stream->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    fake_event_record(event, NULL);
    event->capture = stream->capture;
    event->capture_id = stream->capture->id;
    set_last(&event->last, &event->last_count, stream->last, stream->last_count);
    return CUDA_SUCCESS;
}

CUresult fake_capture_wait(struct fake_stream *stream, struct fake_event *event)
{
    struct fake_capture *capture = capture_of(event);

    if (!capture) { /* recorded outside: the graph cannot wait for that */
        if (stream->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (!event->record && !event->capture) return CUDA_SUCCESS;
        return break_capture(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->legacy) return break_capture(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (!stream->capture) join(stream, capture);
    if (stream->capture != capture) {
        capture->broken = true;
        return break_capture(stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    add_last(stream, event->last, event->last_count);
    return CUDA_SUCCESS;
}

/* ---- Beginning and ending ---- */

static CUresult begin(
    CUstream handle, bool per_thread, CUstreamCaptureMode mode, struct fake_graph *graph)
{
    static unsigned long long last_id;
    struct fake_stream *stream;
    struct fake_capture *capture;

    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    capture = calloc(1, sizeof *capture);
    if (!capture) return CUDA_ERROR_OUT_OF_MEMORY;
    capture->graph = graph ? graph : fake_graph_new(false);
    capture->to_graph = graph != NULL;
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->id = ++last_id;
    capture->next = captures;
    captures = capture;
    join(stream, capture);
    return CUDA_SUCCESS;
}

IMPL(cuStreamBeginCapture_v2)(bool per_thread, CUstream stream, CUstreamCaptureMode mode)
{
    FAKE_LOCKED;
    return begin(stream, per_thread, mode, NULL);
}
IMPL(cuStreamBeginCapture)(bool per_thread, CUstream stream)
{
    FAKE_LOCKED;
    return begin(stream, per_thread, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL);
}

IMPL(cuStreamBeginCaptureToGraph)(bool per_thread, CUstream handle, CUgraph hgraph,
    const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
    CUstreamCaptureMode mode)
{
    struct fake_graph *graph;
    struct fake_stream *stream;

    (void)edges;
    FAKE_LOCKED;
    graph = fake_graph_get(hgraph);
    if (!graph || (count && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!fake_node_get(dependencies[i])) return CUDA_ERROR_INVALID_VALUE;
    FAKE_TRY(begin(handle, per_thread, mode, graph));
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    for (size_t i = 0; i < count; i++) {
        struct fake_node *node = fake_node_get(dependencies[i]);
        add_last(stream, &node, 1);
    }
    return CUDA_SUCCESS;
}

static void mark_before(struct fake_node *node)
{
    if (node->marked) return;
    node->marked = true;
    for (size_t i = 0; i < node->before_count; i++) mark_before(node->before[i]);
}

/* True if all that other streams captured leads to the origin's last nodes. */
static bool joined(const struct fake_capture *capture)
{
    bool all = true;

    for (struct fake_node *n = capture->graph->first; n; n = n->next) n->marked = false;
    for (size_t i = 0; i < capture->origin->last_count; i++) mark_before(capture->origin->last[i]);
    for (struct fake_context *c = fake_contexts; c; c = c->next)
        for (struct fake_stream *s = c->streams; s; s = s->next)
            for (size_t i = 0; s->capture == capture && i < s->last_count; i++)
                all &= s->last[i]->marked;
    return all;
}

IMPL(cuStreamEndCapture)(bool per_thread, CUstream handle, CUgraph *hgraph)
{
    struct fake_stream *stream;
    struct fake_capture *capture;
    CUresult result = CUDA_SUCCESS;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    capture = stream->capture;
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (hgraph) *hgraph = NULL;
    if (capture->origin != stream)
        return break_capture(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(capture->thread, pthread_self()))
        return break_capture(capture, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    if (capture->broken) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!joined(capture)) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (!result && hgraph) *hgraph = fake_graph_handle(capture->graph);
    if ((result || !hgraph) && !capture->to_graph) fake_graph_destroy(capture->graph);
    end_capture(capture);
    return result;
}

/* ---- Asking ---- */

/* With the lock held. */
static CUresult status_of(
    CUstream handle, bool per_thread, CUstreamCaptureStatus *status, struct fake_stream **out)
{
    struct fake_stream *stream;

    if (!status) return CUDA_ERROR_INVALID_VALUE;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    if (stream->legacy && stream->context->capturing_blocking)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = !stream->capture          ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    *out = stream;
    return CUDA_SUCCESS;
}

IMPL(cuStreamIsCapturing)(bool per_thread, CUstream handle, CUstreamCaptureStatus *status)
{
    struct fake_stream *stream;

    FAKE_LOCKED;
    return status_of(handle, per_thread, status, &stream);
}

static CUresult info(CUstream handle, bool per_thread, CUstreamCaptureStatus *status,
    cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
    static TLS CUgraphNode *answer; /* what the caller reads until its next call */
    struct fake_stream *stream;

    FAKE_LOCKED;
    FAKE_TRY(status_of(handle, per_thread, status, &stream));
    if (*status == CU_STREAM_CAPTURE_STATUS_NONE) {
        if (id) *id = 0;
        return CUDA_SUCCESS;
    }
    if (id) *id = stream->capture->id;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (graph) *graph = fake_graph_handle(stream->capture->graph);
    if (count) *count = stream->last_count;
    if (!nodes) return CUDA_SUCCESS;
    answer = realloc(answer, (stream->last_count + 1) * sizeof *answer);
    for (size_t i = 0; i < stream->last_count; i++) answer[i] = fake_node_handle(stream->last[i]);
    *nodes = answer;
    return CUDA_SUCCESS;
}
IMPL(cuStreamGetCaptureInfo)(
    bool per_thread, CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return info(stream, per_thread, status, id, NULL, NULL, NULL);
}
IMPL(cuStreamGetCaptureInfo_v2)(bool per_thread, CUstream stream, CUstreamCaptureStatus *status,
    cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
    return info(stream, per_thread, status, id, graph, nodes, count);
}
IMPL(cuStreamGetCaptureInfo_v3)(bool per_thread, CUstream stream, CUstreamCaptureStatus *status,
    cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes, const CUgraphEdgeData **edges,
    size_t *count)
{
    if (edges) *edges = NULL; /* all edges are plain ones */
    return info(stream, per_thread, status, id, graph, nodes, count);
}

static CUresult update(
    CUstream handle, bool per_thread, CUgraphNode *nodes, size_t count, unsigned flags)
{
    struct fake_stream *stream;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    for (size_t i = 0; i < count; i++)
        if (!fake_node_get(nodes[i])) return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        set_last(&stream->last, &stream->last_count, NULL, 0);
    for (size_t i = 0; i < count; i++) {
        struct fake_node *node = fake_node_get(nodes[i]);
        add_last(stream, &node, 1);
    }
    return CUDA_SUCCESS;
}
IMPL(cuStreamUpdateCaptureDependencies)(
    bool per_thread, CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags)
{
    return update(stream, per_thread, nodes, count, flags);
}
IMPL(cuStreamUpdateCaptureDependencies_v2)(bool per_thread, CUstream stream, CUgraphNode *nodes,
    const CUgraphEdgeData *edges, size_t count, unsigned flags)
{
    (void)edges;
    return update(stream, per_thread, nodes, count, flags);
}

IMPL(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = fake_thread()->mode;

    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    fake_thread()->mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
