/* Streams: created ones, the legacy default stream of each context, and each thread's own. */
#include "tests/fakecuda/driver/fake.h"

static struct fake_handles handles;

unsigned long long fake_next_id(void)
{
    static unsigned long long last =
        13; /* 7 is the first context's legacy stream; those in between are the driver's own */
    return ++last;
}

static uint32_t next_trace_id(void)
{
    static uint32_t last = FAKE_TRACE_FIRST_STREAM - 1;
    return ++last;
}

struct fake_stream *fake_stream_alloc(struct fake_context *context)
{
    struct fake_stream *stream = calloc(1, sizeof *stream);

    if (!stream) abort();
    stream->context = context;
    stream->trace_id = FAKE_TRACE_NULL_STREAM;
    stream->sync_policy = CU_SYNC_POLICY_AUTO;
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

static int clamped(int priority)
{
    int least, greatest;

    fake_priority_range(&least, &greatest);
    return priority > least ? least : priority < greatest ? greatest : priority;
}

CUresult fake_stream_new(
    struct fake_context *context, unsigned flags, int priority, struct fake_stream **out)
{
    struct fake_stream *stream = fake_stream_alloc(context);

    stream->flags = flags;
    stream->priority = clamped(priority);
    stream->id = fake_next_id();
    stream->trace_id = next_trace_id();
    stream->handle = fake_handle_new(&handles, stream);
    if (!stream->handle) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = stream;
    return CUDA_SUCCESS;
}

/* Frees a stream without pending operations. */
void fake_stream_release(struct fake_stream *stream)
{
    struct fake_stream **link = &stream->context->streams;

    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    fake_capture_leave(stream);
    if (stream->handle) fake_handle_free(&handles, stream->handle);
    free(stream->last);
    free(stream);
}

/* The handle is free at once; the rest goes when its work is done. */
static void stream_destroy(struct fake_stream *stream)
{
    fake_capture_leave(stream);
    if (stream->handle) fake_handle_free(&handles, stream->handle);
    stream->handle = NULL;
    stream->destroyed = true;
    if (!stream->head) fake_stream_release(stream);
}

void fake_streams_drop(struct fake_thread *thread)
{
    for (unsigned i = 0; i < FAKE_MAX_DEVICES; i++) {
        struct fake_context *context = thread->own[i].context;
        if (context && context->alive && context->generation == thread->own[i].generation)
            stream_destroy(thread->own[i].stream);
        thread->own[i].context = NULL;
    }
}

/* The calling thread's own stream in a context, made at its first use. */
static struct fake_stream *own_stream(struct fake_context *context)
{
    struct fake_thread *thread = fake_thread();
    unsigned i = 0;

    for (i = 0; i < FAKE_MAX_DEVICES - 1 && thread->own[i].context; i++)
        if (thread->own[i].context == context) break;
    if (thread->own[i].context == context && thread->own[i].generation == context->generation)
        return thread->own[i].stream;
    thread->own[i].context = context;
    thread->own[i].generation = context->generation;
    thread->own[i].stream = fake_stream_alloc(context);
    thread->own[i].stream->per_thread = true;
    thread->own[i].stream->id = fake_next_id();
    thread->own[i].stream->trace_id = next_trace_id();
    return thread->own[i].stream;
}

CUresult fake_stream_get(CUstream handle, bool per_thread, struct fake_stream **stream)
{
    return fake_stream_in(NULL, handle, per_thread, stream);
}

CUresult fake_stream_in(
    CUcontext hcontext, CUstream handle, bool per_thread, struct fake_stream **stream)
{
    if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        struct fake_context *context;
        FAKE_TRY(fake_context_of(hcontext, &context));
        *stream = handle == CU_STREAM_PER_THREAD || (!handle && per_thread) ? own_stream(context)
                                                                            : context->legacy;
    } else {
        *stream = fake_handle_get(&handles, handle);
    }
    if (UNLIKELY(fake_journaling) && *stream) fake_journal_stream(*stream);
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- Calls ---- */

static CUresult create(CUstream *out, unsigned flags, int priority)
{
    struct fake_context *context;
    struct fake_stream *stream;

    if (!out || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    fake_await_launchers();
    FAKE_TRY(fake_current(&context));
    FAKE_TRY(fake_stream_new(context, flags, priority, &stream));
    fake_journal_created(stream);
    *out = stream->handle;
    return CUDA_SUCCESS;
}
IMPL(cuStreamCreate)(CUstream *stream, unsigned flags) { return create(stream, flags, 0); }
IMPL(cuStreamCreateWithPriority)(CUstream *stream, unsigned flags, int priority)
{
    return create(stream, flags, priority);
}

static CUresult destroy(CUstream handle)
{
    struct fake_stream *stream;

    if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return CUDA_ERROR_INVALID_HANDLE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, false, &stream));
    stream_destroy(stream);
    return CUDA_SUCCESS;
}
IMPL(cuStreamDestroy_v2)(CUstream stream) { return destroy(stream); }
IMPL(cuStreamDestroy)(CUstream stream) { return destroy(stream); }

IMPL(cuStreamQuery)(bool per_thread, CUstream handle)
{
    struct fake_stream *stream;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    FAKE_TRY(fake_capture_forbids(stream));
    fake_trace_stream(FAKE_SYNC_STREAM, stream, true);
    return fake_stream_done(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

IMPL(cuStreamSynchronize)(bool per_thread, CUstream handle)
{
    struct fake_stream *stream;
    struct fake_work nothing = {.type = WORK_EMPTY};
    struct fake_record *tail;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    FAKE_TRY(fake_capture_forbids(stream));
    FAKE_TAKES_TIME;
    fake_trace_stream(FAKE_SYNC_STREAM, stream, false);
    if (stream->legacy &&
        !fake_idle(stream)) { /* it also waits for what blocking streams were given before */
        fake_enqueue(stream, &nothing, true);
        return CUDA_SUCCESS;
    }
    tail = fake_stream_tail(stream);
    if (tail) fake_wait(tail);
    fake_record_drop(tail);
    fake_clock_back(stream->last_end);
    if (stream->legacy) fake_clock_back(stream->context->blocking_end);
    return CUDA_SUCCESS;
}

/* Measured: some of these questions break a capture of the stream, in any mode. */
#define GETTER(call, type, out, breaks, expression) \
    IMPL(call)(bool per_thread, CUstream handle, type out) { \
        struct fake_stream *stream; \
        if (!out) return CUDA_ERROR_INVALID_VALUE; \
        FAKE_LOCKED; \
        FAKE_TRY(fake_stream_get(handle, per_thread, &stream)); \
        if (breaks && stream->capture) FAKE_TRY(fake_capture_forbids(stream)); \
        *out = expression; \
        return CUDA_SUCCESS; \
    }
GETTER(cuStreamGetPriority, int *, out, false, stream->priority)
GETTER(cuStreamGetFlags, unsigned *, out, true, stream->flags)
GETTER(cuStreamGetId, unsigned long long *, out, true, stream->id)
GETTER(cuStreamGetCtx, CUcontext *, out, false, stream->context->handle)
GETTER(cuStreamGetDevice, CUdevice *, out, true, stream->context->device)
#undef GETTER

IMPL(cuStreamGetCtx_v2)(bool per_thread, CUstream handle, CUcontext *pctx, CUgreenCtx *green)
{
    struct fake_stream *stream;

    if (!pctx || !green) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    *green = stream->green;
    *pctx = stream->green ? NULL : stream->context->handle;
    return CUDA_SUCCESS;
}

IMPL(cuStreamGetGreenCtx)(CUstream handle, CUgreenCtx *green)
{
    struct fake_stream *stream;

    if (!green) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, false, &stream));
    *green = stream->green;
    return CUDA_SUCCESS;
}

/* ---- Attributes ---- */

IMPL(cuStreamGetAttribute)(
    bool per_thread, CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue *value)
{
    struct fake_stream *stream;

    if (!value) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    switch ((int)attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: *value = stream->window; break;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = (CUsynchronizationPolicy)stream->sync_policy;
        break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: value->priority = stream->priority; break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        value->memSyncDomain = (CUlaunchMemSyncDomain)stream->sync_domain;
        break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

IMPL(cuStreamSetAttribute)(
    bool per_thread, CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
    struct fake_stream *stream;

    if (!value) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    switch ((int)attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: stream->window = *value; break;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        fake_journal_add(" policy=%d", (int)value->syncPolicy);
        stream->sync_policy = (int)value->syncPolicy;
        break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        fake_journal_add(" priority=%d", value->priority);
        stream->priority = clamped(value->priority);
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        stream->sync_domain = (int)value->memSyncDomain;
        break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

IMPL(cuStreamCopyAttributes)(bool per_thread, CUstream to, CUstream from)
{
    struct fake_stream *target, *source;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(to, per_thread, &target));
    FAKE_TRY(fake_stream_get(from, per_thread, &source));
    target->window = source->window;
    target->sync_policy = source->sync_policy;
    target->sync_domain = source->sync_domain;
    return CUDA_SUCCESS;
}
