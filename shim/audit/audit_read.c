#include "shim/audit/audit_read.h"

#include <string.h>

#include "shim/object/event.h"

/* Of each call: what it does to the order of things, and which of its values say so. */
static struct meaning {
    unsigned char what;              /* enum cs_audit_what */
    signed char event, cause, context, capture; /* values; -1 none */
    signed char since;               /* likewise: the event from which a time is asked, `event` being its end */
    signed char size;                /* likewise: how many bytes are copied */
    signed char dst, src, bytes;     /* likewise; all there: a copy or set of one stretch of memory */
    signed char from, to;            /* kinds of memory, CUmemorytype */
    bool dst_array, src_array, host; /* memory is an array's, known by its handle; may be the host's */
    bool returns_done, returns_early; /* a copy that returns when it is done; when its data have been taken, at least */
    bool wide;                       /* concerns a whole context */
    bool may_lack;                   /* there may be no stream: it is no work then */
    bool harmless;                   /* touches nothing that another operation depends on */
    bool asks;                       /* of the host: it does not wait */
    bool elsewhere;                  /* hands an event to a graph or to another process */
} meanings[CS_CALL_COUNT];

static void find_values(const struct cs_call_info *info, struct meaning *out)
{
    out->event = out->cause = out->context = out->capture = out->dst = out->src = out->bytes = out->from = out->to = out->since = out->size = -1;
    for (signed char i = 0; i < CS_VALUES && info->shown[i].label; i++) {
        const char *label = info->shown[i].label;
        if (info->shown[i].format == CS_FORMAT_EVENT) out->event = i;
        if (info->shown[i].format == CS_FORMAT_CAUSE) out->cause = i;
        if (info->shown[i].format == CS_FORMAT_CAPTURE) out->capture = i;
        if (!strcmp(label, "context")) out->context = i;
        if (!strcmp(label, "dst")) out->dst = i;
        if (!strcmp(label, "src")) out->src = i;
        if (!strcmp(label, "bytes")) out->bytes = out->size = i;
        if (!strcmp(label, "start") && info->shown[i].format == CS_FORMAT_EVENT) out->since = i;
        if (info->shown[i].format == CS_FORMAT_MEMTYPE && !strcmp(label, "from")) out->from = i;
        if (info->shown[i].format == CS_FORMAT_MEMTYPE && !strcmp(label, "to")) out->to = i;
    }
}

/* Which copies wait for themselves: the driver API's page on synchronisation. One to the host returns when its data are there; one from the host may
 * return once they have been taken (pageable memory); one inside the device does not wait, and sets do not either. */
static void describe_copy(const struct cs_call_info *info, struct meaning *out)
{
    const char *way = cs_way_name[info->how & CS_HOW_WAY];
    bool waits = info->how & CS_HOW_BLOCKS;
    out->dst_array = way && way[3] == 'A';
    out->src_array = way && way[0] == 'A';
    out->host = !way || way[0] == 'H' || way[3] == 'H'; /* of "Peer" neither */
    out->returns_done = waits && out->host;
    out->returns_early = waits && (!way || way[0] == 'H');
    if (out->dst < 0 || out->src < 0) out->bytes = -1;
}

static void describe(const struct cs_call_info *info, struct meaning *out)
{
    find_values(info, out);
    out->wide = info->how & CS_HOW_WIDE;
    out->may_lack = info->kind == CS_KIND_MEMORY;
    if (cs_kind_info[info->kind].implies & CS_NODE) out->what = CS_AUDIT_WORK;
    switch (info->kind) {
    case CS_KIND_GRAPH: out->what = info->how & CS_HOW_LAUNCHES ? CS_AUDIT_WORK : CS_AUDIT_NOTHING; break;
    case CS_KIND_EVENT: out->what = info->how & CS_HOW_RECORDS ? CS_AUDIT_RECORD : out->since >= 0 ? CS_AUDIT_HOST : CS_AUDIT_NOTHING; break;
    case CS_KIND_WAIT: out->what = CS_AUDIT_WAIT; break;
    case CS_KIND_SYNC:
    case CS_KIND_QUERY: out->what = CS_AUDIT_HOST; break;
    case CS_KIND_CAPTURE:
        if (info->how & CS_HOW_BEGINS) out->what = CS_AUDIT_CAPTURE;
        if (info->how & CS_HOW_ENDS) out->what = CS_AUDIT_CAPTURED;
        break;
    default: break;
    }
    if (info->kind == CS_KIND_COPY) describe_copy(info, out);
    if (info->how & CS_HOW_PITCHED) out->bytes = -1;
    out->harmless = info->how & CS_HOW_PREFETCHES;
    out->asks = info->kind == CS_KIND_QUERY || out->since >= 0;
    out->elsewhere = info->kind == CS_KIND_GRAPH && out->event >= 0;
    switch ((enum cs_call)(info - cs_call_info)) {
    case CS_CALL_cuIpcGetEventHandle: case CS_CALL_cuIpcOpenEventHandle:
    case CS_CALL_cuGraphAddNode: case CS_CALL_cuGraphAddNode_v2: case CS_CALL_cuGraphAddNode_v3: /* of which kind the node is, is not recorded */
    case CS_CALL_cuGraphNodeSetParams: case CS_CALL_cuGraphNodeSetParams_v2: case CS_CALL_cuGraphExecNodeSetParams:
        out->elsewhere = true;
        break;
    default: break;
    }
}

void cs_audit_read_begin(void)
{
    for (int call = 1; call < CS_CALL_COUNT; call++) {
        meanings[call] = (struct meaning){0};
        describe(&cs_call_info[call], &meanings[call]);
    }
}

/* --- streams --- */

static struct cs_audit_lane lane_of(cs_ref context, enum cs_audit_kind kind, cs_u64 low, cs_u64 high)
{
    return (struct cs_audit_lane){.key = {low | (cs_u64)kind << 32, high}, .kind = kind, .blocking = true, .context = cs_audit_context(context)};
}

/* Names of lanes in the timeline: a thread's lane gets one when its per-thread stream is used. */
static cs_u16 shown(cs_u16 lane, const struct cs_stream *stream)
{
    struct cs_audit_lane *at = cs_audit_lane_at(lane);
    if (lane) at->number = stream->lane, at->device = (cs_u32)stream->device;
    return lane;
}

/* Where the call goes, and where it would go. False: there are too many streams to follow. */
static bool place(const struct cs_thread *thread, bool names_legacy, const struct cs_stream *stream, struct cs_audit_step *step)
{
    cs_ref context = cs_load(&stream->context);
    struct cs_audit_lane own = lane_of(context, CS_AUDIT_THREAD, context, (cs_u64)thread->index << 32 | thread->tid), what;
    step->context = own.context;
    switch (cs_load(&stream->origin)) {
    case CS_STREAM_LEGACY:
        what = lane_of(context, CS_AUDIT_LEGACY, context, 0);
        step->op.stream = shown(cs_audit_lane(&what), stream);
        step->lane = names_legacy ? step->op.stream : cs_audit_lane(&own);
        break;
    case CS_STREAM_PER_THREAD: step->op.stream = step->lane = shown(cs_audit_lane(&own), stream); break;
    default:
        what = lane_of(context, CS_AUDIT_CREATED, cs_load(&stream->object.ref), 0);
        what.blocking = !(stream->flags & CU_STREAM_NON_BLOCKING);
        step->op.stream = step->lane = shown(cs_audit_lane(&what), stream);
    }
    return step->op.stream && step->lane;
}

/* 0: the current one. */
static cs_u16 context_by_handle(cs_ref current, cs_u64 handle)
{
    for (cs_u32 i = 0; handle && i < cs_load(&cs_contexts.high) && i < cs_contexts.capacity; i++) {
        const struct cs_context *context = (const struct cs_context *)(const void *)cs_pool_slot(&cs_contexts, i);
        cs_ref ref = cs_load_acq(&context->object.ref);
        if (ref && (uintptr_t)context->handle == handle && !cs_load(&context->object.ended)) return cs_audit_context(ref);
    }
    return handle || !current ? 0 : cs_audit_context(current);
}

static bool find_place(const struct meaning *means, const struct cs_thread *thread, const struct cs_audit_thread *at, const struct cs_record *r,
                       const struct cs_stream *stream, struct cs_audit_step *step)
{
    if (stream) return place(thread, at->site_legacy, stream, step);
    if (means->wide) step->context = context_by_handle(at->site_context, means->context >= 0 ? r->value[means->context] : 0);
    if (means->wide) return step->context != 0;
    return means->what == CS_AUDIT_HOST && step->event;
}

/* --- memory --- */

static void stretch(cs_u64 range[2], cs_u64 from, cs_u64 bytes, bool array)
{
    range[0] = from;
    range[1] = array ? from + 1 : from + bytes;
}

static bool is_device(cs_u64 type) { return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY; }

static void tell_memory(const struct meaning *means, const struct cs_record *r, struct cs_audit_memory *memory)
{
    memory->known = means->harmless;
    memory->host = means->host;
    if (means->from >= 0 && is_device(r->value[means->from]) && is_device(r->value[means->to])) memory->host = false;
    if (means->bytes < 0 || means->dst < 0) return;
    memory->known = true;
    stretch(memory->write, r->value[means->dst], r->value[means->bytes], means->dst_array);
    if (means->src >= 0) stretch(memory->read, r->value[means->src], r->value[means->bytes], means->src_array);
}

/* The step of a copy that is done, or whose data have been taken, when the call returns; false: it only enqueues. */
static bool tell_return(const struct meaning *means, const struct cs_record *r, const struct cs_audit_step *work, struct cs_audit_step *host)
{
    bool done = means->returns_done && work->op.memory.host, early = means->returns_early;
    if (!done) return false;
    if (means->from >= 0) early = r->value[means->to] != CU_MEMORYTYPE_HOST;
    if (means->size >= 0 && !r->value[means->size]) early = true; /* a copy of nothing may wait for nobody */
    *host = *work;
    host->what = CS_AUDIT_HOST;
    host->at = r->end;
    host->weak = early;
    host->copy = true;
    return true;
}

int cs_audit_read(const struct cs_thread *thread, const struct cs_audit_thread *at, const struct cs_record *r, const struct cs_stream *stream,
                  struct cs_audit_step step[2])
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    const struct meaning *means = &meanings[r->call];
    bool over = means->capture >= 0 && r->value[means->capture]; /* a capture, also where that is an error */
    bool moves = stream && cs_load(&stream->origin) == CS_STREAM_LEGACY && !at->site_legacy;
    if (moves && r->result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r->result <= CUDA_ERROR_CAPTURED_EVENT)
        cs_audit_sums.doubt[CS_AUDIT_DOUBT_REFUSED] = true;
    if (moves && cs_call_way((enum cs_call)r->call) == CS_WAY_PEER) cs_audit_sums.doubt[CS_AUDIT_DOUBT_PEER] = true;
    if (means->elsewhere && r->result == CUDA_SUCCESS) cs_audit_sums.elsewhere = true;
    const bool denied = means->asks && r->result == CUDA_ERROR_NOT_READY;
    if (!means->what || (r->result != CUDA_SUCCESS && !over && !denied)) return 0;
    *step = (struct cs_audit_step){.at = means->what == CS_AUDIT_HOST ? r->end : r->begin, .what = (enum cs_audit_what)means->what};
    step->op = (struct cs_audit_op){.begin = r->begin, .site = at->site, .tid = thread->tid, .call = r->call,
                                    .kernel = info->shown[0].format == CS_FORMAT_KERNEL ? (cs_name)r->value[0] : 0};
    if (means->event >= 0 && !(step->event = (cs_ref)r->value[means->event])) return 0; /* none that is known */
    if (means->since >= 0) step->since = (cs_ref)r->value[means->since];
    step->asked = means->asks;
    step->denied = denied;
    if (means->cause >= 0 && !r->value[means->cause]) {
        cs_audit_sums.unseen += r->value[means->cause + 1] == CS_CAUSE_ELSEWHERE; /* else it was never recorded: nothing to wait for */
        return 0;
    }
    if (!stream && !r->stream && means->may_lack) return 0;
    if (!find_place(means, thread, at, r, stream, step)) {
        cs_audit_sums.unseen++;
        return 0;
    }
    if (means->what != CS_AUDIT_WORK) return 1;
    tell_memory(means, r, &step->op.memory);
    return tell_return(means, r, step, &step[1]) ? 2 : 1;
}
