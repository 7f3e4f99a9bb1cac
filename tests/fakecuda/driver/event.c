/*
 * Events. An event points to its latest recording, which the operations that wait for it share, so
 * recording it again disturbs nobody.
 *
 * An event recorded on a capturing stream belongs to that capture instead: it names the nodes that
 * it stands after (capture.c).
 */
#include "tests/fakecuda/driver/fake.h"

CUresult fake_capture_record(struct fake_stream *stream, struct fake_event *event);
CUresult fake_capture_wait(struct fake_stream *stream, struct fake_event *event);
bool fake_event_captured(
    const struct fake_event *event); /* last recorded in a capture that still runs */
CUresult fake_event_forbids(struct fake_event *event);

static struct fake_handles handles;

struct fake_event *fake_event_get(CUevent handle) { return fake_handle_get(&handles, handle); }

void fake_event_record(struct fake_event *event, struct fake_record *record)
{
    static uint64_t recordings;

    if (record) event->recording = ++recordings;
    fake_record_drop(event->record);
    event->record = record;
    event->capture = NULL;
    free(event->last);
    event->last = NULL;
    event->last_count = 0;
}

IMPL(cuEventCreate)(CUevent *out, unsigned flags)
{
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    static unsigned last_id;
    struct fake_context *context;
    struct fake_event *event;

    if (!out || (flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_current(&context));
    event = calloc(1, sizeof *event);
    if (!event) return CUDA_ERROR_OUT_OF_MEMORY;
    event->context = context;
    event->flags = flags;
    event->id = ++last_id;
    event->handle = fake_handle_new(&handles, event);
    *out = event->handle;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUevent handle)
{
    struct fake_event *event;

    FAKE_LOCKED;
    fake_await_launchers();
    event = fake_event_get(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    fake_handle_free(&handles, handle);
    if (event->opened) {
        event->opened--;
        return CUDA_SUCCESS;
    }
    fake_event_record(event, NULL);
    free(event);
    return CUDA_SUCCESS;
}
IMPL(cuEventDestroy_v2)(CUevent event) { return destroy(event); }
IMPL(cuEventDestroy)(CUevent event) { return destroy(event); }

/* ---- Sharing: within the process, so that a program can be its own peer ---- */

IMPL(cuIpcGetEventHandle)(CUipcEventHandle *out, CUevent handle)
{
    FAKE_LOCKED;
    struct fake_event *event = fake_event_get(handle);
    if (!out || !event) return CUDA_ERROR_INVALID_HANDLE;
    if (!(event->flags & CU_EVENT_INTERPROCESS)) return CUDA_ERROR_INVALID_HANDLE;
    memset(out, 0, sizeof *out);
    memcpy(out->reserved, &handle, sizeof handle);
    return CUDA_SUCCESS;
}

IMPL(cuIpcOpenEventHandle)(CUevent *out, CUipcEventHandle shared)
{
    CUevent handle;
    FAKE_LOCKED;
    memcpy(&handle, shared.reserved, sizeof handle);
    struct fake_event *event = fake_event_get(handle);
    if (!out || !event) return CUDA_ERROR_INVALID_HANDLE;
    event->opened++;
    *out = fake_handle_new(&handles, event);
    return CUDA_SUCCESS;
}

/* ---- Recording and waiting on streams ---- */

static CUresult put_record(struct fake_stream *stream, struct fake_event *event)
{
    struct fake_record *record = fake_record_new();
    struct fake_work work = {
        .type = WORK_RECORD, .event = {event->handle, fake_record_hold(record)}};

    fake_event_record(event, record);
    fake_trace_event(FAKE_EVENT_RECORD, event, stream, false);
    fake_enqueue(stream, &work, false);
    return CUDA_SUCCESS;
}

static CUresult put_wait(struct fake_stream *stream, struct fake_event *event)
{
    struct fake_work work = {
        .type = WORK_WAIT, .event = {event->handle, fake_record_hold(event->record)}};

    fake_trace_event(FAKE_SYNC_WAIT, event, stream, false);
    if (!event->record) return CUDA_SUCCESS; /* never recorded */
    fake_enqueue(stream, &work, false);
    return CUDA_SUCCESS;
}

static CUresult record(CUevent handle, CUstream hstream, bool per_thread, unsigned flags)
{
    struct fake_stream *stream;
    struct fake_event *event;

    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(hstream, per_thread, &stream));
    event = fake_event_get(handle);
    if (!event || event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    fake_clock_spend(fake_call_ns);
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
        if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
        struct fake_work work = {.type = WORK_RECORD, .event = {handle, NULL}};
        return fake_submit(stream, &work, false);
    }
    return fake_event_put(stream, event);
}

CUresult fake_event_put(struct fake_stream *stream, struct fake_event *event)
{
    if (stream->capture) return fake_capture_record(stream, event);
    if (stream->legacy && stream->context->capturing_blocking) {
        struct fake_work nothing = {.type = WORK_EMPTY};
        return fake_submit(stream, &nothing, false); /* refuses, and breaks the capture */
    }
    return put_record(stream, event);
}
IMPL(cuEventRecord)(bool per_thread, CUevent event, CUstream stream)
{
    return record(event, stream, per_thread, 0);
}
IMPL(cuEventRecordWithFlags)(bool per_thread, CUevent event, CUstream stream, unsigned flags)
{
    return record(event, stream, per_thread, flags);
}

IMPL(cuStreamWaitEvent)(bool per_thread, CUstream hstream, CUevent handle, unsigned flags)
{
    struct fake_stream *stream;
    struct fake_event *event;

    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(hstream, per_thread, &stream));
    event = fake_event_get(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (flags & CU_EVENT_WAIT_EXTERNAL) {
        if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
        struct fake_work work = {.type = WORK_WAIT, .event = {handle, NULL}};
        return fake_submit(stream, &work, false);
    }
    fake_clock_spend(fake_call_ns);
    if (stream->capture || fake_event_captured(event)) return fake_capture_wait(stream, event);
    return put_wait(stream, event);
}

/* An event that stands for all work of a context so far: its streams' last operations. */
static CUresult record_context(struct fake_context *context, CUevent handle)
{
    struct fake_event *event = fake_event_get(handle);
    struct fake_record *record;
    struct fake_stream *collector;

    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    FAKE_TRY(fake_capture_forbids_context(context));
    record = fake_record_new();
    FAKE_TRY(fake_stream_new(context, CU_STREAM_NON_BLOCKING, 0, &collector));
    for (struct fake_stream *s = context->streams; s; s = s->next) {
        struct fake_record *tail = s == collector ? NULL : fake_stream_tail(s);
        struct fake_work work = {.type = WORK_WAIT, .event = {NULL, tail}};
        if (tail) fake_enqueue(collector, &work, false);
    }
    fake_event_record(event, record);
    struct fake_work last = {.type = WORK_RECORD, .event = {handle, fake_record_hold(record)}};
    fake_enqueue(collector, &last, false);
    collector->destroyed = true;
    if (!collector->head) fake_stream_release(collector);
    return CUDA_SUCCESS;
}

static CUresult wait_context(struct fake_context *context, CUevent handle)
{
    struct fake_event *event = fake_event_get(handle);

    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    FAKE_TRY(fake_capture_forbids_context(context));
    for (struct fake_stream *s = context->streams; s; s = s->next)
        if (!s->destroyed) put_wait(s, event);
    return CUDA_SUCCESS;
}

IMPL(cuCtxRecordEvent)(CUcontext ctx, CUevent event)
{
    struct fake_context *context;

    FAKE_LOCKED;
    FAKE_TRY(fake_context_of(ctx, &context));
    return record_context(context, event);
}
IMPL(cuCtxWaitEvent)(CUcontext ctx, CUevent event)
{
    struct fake_context *context;

    FAKE_LOCKED;
    FAKE_TRY(fake_context_of(ctx, &context));
    return wait_context(context, event);
}

struct fake_context *fake_green_context(CUgreenCtx handle);
IMPL(cuGreenCtxRecordEvent)(CUgreenCtx green, CUevent event)
{
    FAKE_LOCKED;
    struct fake_context *context = fake_green_context(green);
    return context ? record_context(context, event) : CUDA_ERROR_INVALID_CONTEXT;
}
IMPL(cuGreenCtxWaitEvent)(CUgreenCtx green, CUevent event)
{
    FAKE_LOCKED;
    struct fake_context *context = fake_green_context(green);
    return context ? wait_context(context, event) : CUDA_ERROR_INVALID_CONTEXT;
}

/* ---- Asking from the host ---- */

IMPL(cuEventQuery)(CUevent handle)
{
    struct fake_event *event;

    FAKE_LOCKED;
    event = fake_event_get(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    FAKE_TRY(fake_event_forbids(event));
    fake_trace_event(FAKE_SYNC_EVENT, event, NULL, true);
    if (!event->record || event->record->done) return CUDA_SUCCESS;
    fake_advance();
    return event->record->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

IMPL(cuEventSynchronize)(CUevent handle)
{
    struct fake_event *event;

    FAKE_LOCKED;
    event = fake_event_get(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    FAKE_TRY(fake_event_forbids(event));
    FAKE_TAKES_TIME;
    fake_trace_event(FAKE_SYNC_EVENT, event, NULL, false);
    if (event->record) fake_wait(event->record);
    return CUDA_SUCCESS;
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end)
{
    struct fake_event *a, *b;

    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    a = fake_event_get(start);
    b = fake_event_get(end);
    if (!a || !b || ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    FAKE_TRY(fake_event_forbids(a));
    FAKE_TRY(fake_event_forbids(b));
    if (!a->record || !b->record) return CUDA_ERROR_INVALID_HANDLE;
    fake_advance();
    if (!a->record->done || !b->record->done) return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((double)(int64_t)(b->record->time - a->record->time) / 1e6);
    return CUDA_SUCCESS;
}
IMPL(cuEventElapsedTime)(float *milliseconds, CUevent start, CUevent end)
{
    return elapsed(milliseconds, start, end);
}
IMPL(cuEventElapsedTime_v2)(float *milliseconds, CUevent start, CUevent end)
{
    return elapsed(milliseconds, start, end);
}
