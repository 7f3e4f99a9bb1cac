/*
 * STREAMS=serial: all work of a context runs on one stream, in the order in which it is issued.
 *
 * Each stream is made as it was asked for, so that its handle means the same to whoever we do not see. Work that names it goes to the carrier, a blocking
 * stream of ours that its context gets with the first one; the legacy default stream keeps its work, which CUDA orders with the carrier's, and takes over that
 * of the threads' own default streams. What is asked of a stream itself (its priority, its capture) is asked of the program's own.
 *
 * A stream that captures takes its work itself, and so does one that joins a capture, by waiting for an event that was recorded in one: the event's object
 * says so. While anybody captures no carrier is made, and the threads' own default streams keep their work, since the legacy stream may not be touched then;
 * where work stands on two streams for such a reason, an event of ours orders the one behind the other (`join`).
 */
#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/calls/real.h"
#include "shim/object/event.h"
#include "shim/policy/policies.h"

static _Atomic bool used; /* some stream was made under it: before that nothing need be looked up */

static struct cs_stream *living(CUstream handle)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, cs_stream_find(NULL, handle, false));
    return stream && !cs_load(&stream->object.ended) ? stream : NULL;
}

/* What is put on `to` from now on waits for what stands on `from`. */
static void join(CUstream from, CUstream to)
{
    CS_KEEP_ERRNO;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* nobody's capture is to mind that */
    CUevent event;
    cs_real.cuThreadExchangeStreamCaptureMode(&mode);
    CUresult result = cs_real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) {
        result = cs_real.cuEventRecord(event, from);
        if (result == CUDA_SUCCESS) result = cs_real.cuStreamWaitEvent(to, event, 0);
        cs_real.cuEventDestroy_v2(event);
    }
    cs_real.cuThreadExchangeStreamCaptureMode(&mode);
    if (result != CUDA_SUCCESS) cs_log_once(CS_LOG_WARN, "CUSTREAM_STREAMS=serial: work of two streams could not be ordered (CUDA error %d)", (int)result);
}

/* --- the carrier --- */

static CUstream carrier_new(struct cs_thread *thread, struct cs_context *context)
{
    CS_KEEP_ERRNO;
    CUstream carrier;
    if (cs_real.cuStreamCreate(&carrier, CU_STREAM_DEFAULT) != CUDA_SUCCESS) return NULL;
    struct cs_stream *stream = cs_pool_get(&cs_streams, cs_stream_created(thread, carrier, CU_STREAM_DEFAULT, 0, CS_CALL_NONE, NULL, cs_ticks()));
    if (stream) stream->ours = true, cs_store(&stream->name, cs_name_add("carrier of all streams"));
    cs_u64 nobody = 0;
    if (atomic_compare_exchange_strong(&context->carrier, &nobody, (uintptr_t)carrier)) return carrier;
    if (stream) stream->unseen = true; /* another thread was faster */
    cs_ref dying = cs_stream_destroying(thread, carrier, false);
    cs_stream_destroyed(dying, cs_real.cuStreamDestroy_v2(carrier) == CUDA_SUCCESS, cs_ticks());
    return (CUstream)(uintptr_t)nobody;
}

static CUstream carrier_of(struct cs_thread *thread, cs_ref ref)
{
    struct cs_context *context = cs_pool_get(&cs_contexts, ref);
    CUstream carrier = context ? (CUstream)(uintptr_t)cs_load_acq(&context->carrier) : NULL;
    if (carrier || !context || cs_streams_capture() || cs_context_current(thread) != ref) return carrier;
    return carrier_new(thread, context);
}

void cs_serial_created(struct cs_creation *c, struct cs_stream *stream)
{
    if (!c->policy || c->policy->sharing.kind != CS_SHARING_SERIAL || c->green) return; /* its work belongs on its own part of the GPU */
    stream->serial = true;
    if (!cs_load(&used)) cs_store(&used, true);
    cs_store(&stream->ordered, carrier_of(c->thread, cs_load(&stream->context)) != NULL);
}

/* --- operations --- */

static bool asks_of_stream(enum cs_kind kind) { return cs_kind_info[kind].implies & CS_OF_STREAM; }

CUstream cs_serial_stream(struct cs_steer *steer, struct cs_thread *thread, CUstream handle, const struct cs_steered *how)
{
    struct cs_stream *stream = !cs_load(&used) || asks_of_stream(how->kind) ? NULL : living(handle);
    if (!stream) return handle;
    const bool looks = cs_streams_capture() && (stream->serial || how->kind == CS_KIND_EVENT);
    steer->captures = looks && cs_stream_is_capturing(handle, false);
    CUstream carrier = stream->serial && !steer->captures ? carrier_of(thread, cs_load(&stream->context)) : NULL;
    if (!carrier) return handle;
    if (!cs_load(&stream->ordered) && !atomic_exchange(&stream->ordered, true)) join(handle, carrier); /* from before there was a carrier */
    return carrier;
}

/* The call is made on the stream that the program named, between the work of the carrier. */
static void enclose(struct cs_steer *steer, CUstream own, CUstream carrier)
{
    join(carrier, own);
    steer->own = own;
    steer->carrier = carrier;
}

CUstream cs_serial_default(struct cs_steer *steer, struct cs_thread *thread, CUstream handle, const struct cs_steered *how)
{
    const bool is_own = handle == CU_STREAM_PER_THREAD || (!handle && how->of_sibling);
    if (!is_own || asks_of_stream(how->kind)) return handle;
    if (cs_streams_capture()) {
        CUstream carrier = carrier_of(thread, cs_context_current(thread));
        steer->captures = cs_stream_is_capturing(NULL, true);
        if (carrier && !steer->captures) enclose(steer, CU_STREAM_PER_THREAD, carrier);
        return handle;
    }
    steer->redirected = true;
    if (handle || !how->has_sibling) return CU_STREAM_LEGACY;
    steer->flip = true;
    return handle;
}

static bool captured(CUevent handle)
{
    struct cs_event *event = cs_pool_get(&cs_events, cs_event_find(handle));
    return event && cs_load(&event->captured);
}

CUstream cs_steer_wait(struct cs_steer *steer, CUstream stream, CUevent event)
{
    if (stream == steer->asked || steer->asked <= CU_STREAM_PER_THREAD || !cs_streams_capture() || !captured(event)) return stream;
    steer->own = steer->asked; /* it joins the capture, and the carrier must not; where it does not, what comes later still waits */
    steer->carrier = stream;
    return steer->stream = steer->asked;
}

CUstream cs_steer_leave(struct cs_steer *steer)
{
    if (steer->asked > CU_STREAM_PER_THREAD && steer->stream != steer->asked) enclose(steer, steer->asked, steer->stream);
    return steer->stream = steer->asked;
}

void cs_serial_done(const struct cs_steer *steer)
{
    if (!cs_streams_capture() || !cs_stream_is_capturing(steer->own, false)) join(steer->own, steer->carrier);
}

void cs_steer_recorded(const struct cs_steer *steer, cs_ref ref)
{
    struct cs_event *event = cs_pool_get(&cs_events, ref);
    if (event && cs_load(&event->captured) != steer->captures) cs_store(&event->captured, steer->captures);
}
