#include "shim/trace/timeline.h"

#include <stdio.h>

#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/base/memory.h"
#include "shim/calls/real.h"
#include "shim/trace/annotation.h"
#include "shim/trace/demangle.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/trace/listener.h"
#include "shim/trace/output.h"
#include "shim/trace/runtime.h"
#include "shim/trace/totals.h"
#include "shim/trace/windows.h"

/* The constant head of each call's slice, up to its thread id, and the head of its args; made at the begin of a file. */
static struct head {
    const char *direction; /* of a copy, where the symbol's name tells */
    cs_u16 length;
    char text[118];
    struct {
        unsigned char length;
        char text[31];
    } label[CS_VALUES]; /* "bytes": */
} heads[CS_CALL_COUNT];

CS_READ_MOSTLY const struct cs_listener *cs_listener;

static cs_u64 next_flow;
static cs_u64 latest_ns; /* up to which the host's slices reach */
static cs_u64 parted_ns; /* up to which they reached in the part of the trace before: those from then on are in the present one */

/* Arrows that have been found: they are kept for one round, so that the slice they start from is in the file before them. */
enum { ARROWS = 1 << 20 };
static struct arrow {
    cs_u64 from_ns, to_ns;
    cs_u32 from_tid, to_tid;
} *arrows_now, *arrows_before, *arrows[2]; /* found in this round; found in the one before: they take turns */
static size_t arrow_count[2];
CS_TABLE(TRACE, arrows_now, ARROWS);
CS_TABLE(TRACE, arrows_before, ARROWS);
static unsigned arrow_now;


static void heads_make(void)
{
    for (int call = 1; call < CS_CALL_COUNT; call++) {
        const char *cat = call == CS_CALL_CALLBACK ? "cs_callback" : call == CS_CALL_LOSS ? "cs_loss" : call == CS_CALL_DELAY ? "cs_policy" : "cuda_driver";
        heads[call].length = (cs_u16)snprintf(heads[call].text, sizeof heads[call].text, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%u,\"tid\":",
                                              cat, cs_call_info[call].name, cs_host_pid());
        heads[call].direction = cs_way_name[cs_call_way((enum cs_call)call)];
        for (int i = 0; i < CS_VALUES && cs_call_info[call].shown[i].label; i++)
            heads[call].label[i].length =
                (unsigned char)snprintf(heads[call].label[i].text, sizeof heads[call].label[i].text, "\"%s\":", cs_call_info[call].shown[i].label);
    }
}

/* Streams whose lives began in an earlier part. Of very many, the others come when something happens on them. */
static void lives_go_on(void)
{
    for (cs_u32 i = 0; i < cs_load(&cs_streams.high) && i < cs_streams.capacity && cs_output_roomy(); i++) {
        struct cs_stream *stream = (struct cs_stream *)cs_pool_slot(&cs_streams, i);
        if (cs_load_acq(&stream->object.ref) && stream->continued && !stream->over) cs_lane_stream(stream);
    }
}

void cs_timeline_begin(enum cs_begin why)
{
    if (why == CS_BEGIN_FILE) {
        next_flow = CS_FLOW_CAUSE;
        arrow_count[0] = arrow_count[1] = 0;
        arrows[0] = arrows_now;
        arrows[1] = arrows_before;
        parted_ns = latest_ns = 0;
        cs_annotations_begin();
    }
    cs_lanes_begin(why == CS_BEGIN_PART);
    cs_gpu_trace_begin(why == CS_BEGIN_FILE);
    heads_make();
    cs_output_commit(cs_totals_header(cs_output_room()));
    cs_lane_process();
    if (why == CS_BEGIN_FILE) return;
    lives_go_on();
    cs_annotations_part_begins(parted_ns);
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) t->part_first_ns = t->last_end_ns;
}

/* --- arrows --- */

static void arrow_note(cs_u64 cause_ticks, cs_u32 from_tid, cs_u64 to_ns, cs_u32 to_tid)
{
    if (arrow_count[arrow_now] == ARROWS) {
        cs_totals.arrows_dropped++;
        return;
    }
    cs_u64 from_ns = cs_clock_ns(cause_ticks);
    arrows[arrow_now][arrow_count[arrow_now]++] = (struct arrow){from_ns, to_ns < from_ns ? from_ns : to_ns, from_tid, to_tid};
}

/* Where the slice that an arrow starts from begins; 0: it is in another part. `part_ends`: that of an arrow of the last rounds may still be on its way,
 * into the next one. A part's first call gives way to the ranges that go on. */
static cs_u64 start_here(const struct arrow *a, bool part_ends)
{
    if (!part_ends && (!parted_ns || a->from_ns >= parted_ns + CS_RANGES_OPEN)) return a->from_ns;
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) {
        if (t->tid != a->from_tid || cs_load(&t->state) == CS_THREAD_FREE) continue;
        if (a->from_ns < t->part_since_ns || a->from_ns >= t->last_end_ns) return 0;
        return a->from_ns > t->part_first_ns ? a->from_ns : t->part_first_ns;
    }
    return a->from_ns >= parted_ns ? a->from_ns : 0;
}

static void arrows_write(unsigned which, bool part_ends)
{
    for (size_t i = 0; i < arrow_count[which] && !cs_output_full(); i++) {
        const struct arrow *a = &arrows[which][i];
        cs_u64 from_ns = start_here(a, part_ends);
        if (!from_ns) {
            cs_totals.arrows_between_parts++;
            continue;
        }
        char *at = cs_gpu_arrow_end(cs_output_room(), "s", "cs_dep", next_flow, cs_host_pid(), a->from_tid, from_ns);
        cs_output_commit(cs_gpu_arrow_end(at, "f", "cs_dep", next_flow++, cs_host_pid(), a->to_tid, a->to_ns));
    }
    arrow_count[which] = 0;
}

void cs_timeline_arrows(bool all)
{
    arrows_write(!arrow_now, false);
    if (all) arrows_write(arrow_now, false);
    arrow_now = !arrow_now;
}

/* --- args --- */

static const char *word_of(const char *const *words, size_t n, cs_u64 i) { return i < n ? words[i] : "unknown"; }

/* One shown value and those that belong to it; `v` points at the first. */
static char *put_value(char *at, enum cs_format format, const cs_u64 *v)
{
    static const char *const memory[] = {"none", "host", "device", "array", "unified"};
    static const char *const modes[] = {"global", "thread_local", "relaxed"}, *const places[] = {"host", "stream"};
    switch (format) {
    case CS_FORMAT_SIZE:
    case CS_FORMAT_UINT: return cs_put_uint(at, *v);
    case CS_FORMAT_INT: return cs_put_int(at, (int32_t)*v);
    case CS_FORMAT_HEX:
    case CS_FORMAT_PTR:
    case CS_FORMAT_FUNCTION: return cs_put_hex(at, *v);
    case CS_FORMAT_CALL: return cs_put_string(at, cs_call_info[*v < CS_CALL_COUNT ? *v : 0].name ?: "", 128);
    case CS_FORMAT_DELAYED: return cs_put_string(at, word_of(places, CS_COUNT(places), *v), 16);
    case CS_FORMAT_MEMTYPE: return cs_put_string(at, word_of(memory, CS_COUNT(memory), *v), 16);
    case CS_FORMAT_CAPTURE_MODE:
        at = cs_put_string(at, word_of(modes, CS_COUNT(modes), (cs_u32)*v), 16);
        if (*v >> 32 < 2) return at;
        at = cs_put_literal(at, ",\"shared by\":"); /* what is done on any of them meanwhile is in the graph */
        return cs_put_uint(at, *v >> 32);
    case CS_FORMAT_KERNEL:
        at = cs_put_kernel(at, (cs_name)*v);
        if (!(*v >> 32)) return at;
        at = cs_put_literal(at, ",\"shared memory\":");
        return cs_put_uint(at, *v >> 32);
    case CS_FORMAT_GRID: {
        const cs_u32 n[] = {(cs_u32)v[0], (cs_u32)(v[0] >> 32), (cs_u32)v[1], (cs_u32)(v[1] >> 32), (cs_u32)v[2], (cs_u32)(v[2] >> 32)};
        for (int i = 0; i < 6; i++) {
            if (i == 3) at = cs_put_literal(at, "],\"block\":");
            *at++ = i % 3 ? ',' : '[';
            at = cs_put_uint(at, n[i]);
        }
        *at++ = ']';
        return at;
    }
    default: return cs_put_literal(at, "0");
    }
}

static bool is_shown(enum cs_format format, cs_u64 value)
{
    switch (format) {
    case CS_FORMAT_NONE:
    case CS_FORMAT_CAUSE:
    case CS_FORMAT_CAPTURE:
    case CS_FORMAT_GRAPH_IDS: return false;
    case CS_FORMAT_EVENT: return cs_pool_get(&cs_events, (cs_ref)value) != NULL;
    case CS_FORMAT_KERNEL: return (cs_u32)value != 0;
    default: return true;
    }
}

static char *put_event(char *at, struct cs_event *event)
{
    cs_name name = event ? cs_load(&event->name) : 0;
    at = cs_put_uint(at, event ? event->number : 0);
    if (!name) return at;
    at = cs_put_literal(at, ",\"event name\":");
    return cs_put_string(at, cs_name_text(name), 512);
}

static char *put_shown(char *at, const struct cs_record *r)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++) {
        enum cs_format format = info->shown[i].format;
        if (!is_shown(format, r->value[i])) continue;
        at = cs_put(at, heads[r->call].label[i].text, heads[r->call].label[i].length);
        if (format == CS_FORMAT_EVENT) at = put_event(at, cs_pool_get(&cs_events, (cs_ref)r->value[i]));
        else at = put_value(at, format, &r->value[i]);
        *at++ = ',';
    }
    return at;
}

static char *put_result(char *at, int result)
{
    const char *name = cs_result_name((CUresult)result);
    at = cs_put_literal(at, "\"cs.result\":");
    if (name) at = cs_put_string(at, name, 128);
    else at = cs_put_int(at, result);
    *at++ = ',';
    return at;
}

static char *put_stream(char *at, const struct cs_stream *stream)
{
    at = cs_put_literal(at, "\"cs.stream\":");
    at = cs_put_uint(at, stream->lane);
    if (stream->device) {
        at = cs_put_literal(at, ",\"cs.device\":");
        at = cs_put_int(at, stream->device);
    }
    *at++ = ',';
    return at;
}

/* Closes args: the last comma becomes a brace. */
static char *close_args(char *at)
{
    if (at[-1] == ',') at--;
    return cs_put_literal(at, "}}");
}

static char *put_head(char *at, enum cs_call call, cs_u32 tid, cs_u64 begin, cs_u64 end)
{
    at = cs_put(at, heads[call].text, heads[call].length);
    at = cs_put_uint(at, tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, begin);
    at = cs_put_literal(at, ",\"dur\":");
    at = cs_put_us(at, end > begin ? end - begin : 1);
    return cs_put_literal(at, ",\"args\":{");
}

/* --- what calls say of streams --- */

static void count_work(struct cs_stream *stream, const struct cs_record *r)
{
    static const unsigned char work_of[CS_KIND_COUNT] = {
        [CS_KIND_NONE] = CS_WORK_OTHER,    [CS_KIND_LAUNCH] = CS_WORK_LAUNCHES, [CS_KIND_COPY] = CS_WORK_COPIES,    [CS_KIND_SET] = CS_WORK_SETS,
        [CS_KIND_EVENT] = CS_WORK_RECORDS, [CS_KIND_WAIT] = CS_WORK_WAITS,      [CS_KIND_SYNC] = CS_WORK_SYNCS,     [CS_KIND_QUERY] = CS_WORK_OTHER,
        [CS_KIND_STREAM] = CS_WORK_OTHER,  [CS_KIND_CAPTURE] = CS_WORK_OTHER,   [CS_KIND_GRAPH] = CS_WORK_GRAPHS,   [CS_KIND_HOSTFN] = CS_WORK_OTHER,
        [CS_KIND_MEMORY] = CS_WORK_OTHER,  [CS_KIND_MEMOP] = CS_WORK_OTHER,     [CS_KIND_EXTERNAL] = CS_WORK_OTHER, [CS_KIND_CONTEXT] = CS_WORK_OTHER,
        [CS_KIND_MODULE] = CS_WORK_OTHER};
    if (r->result != CUDA_SUCCESS) return;
    const struct cs_call_info *info = &cs_call_info[r->call];
    stream->work[work_of[info->kind]]++;
    if (info->kind == CS_KIND_COPY && info->shown[0].format == CS_FORMAT_SIZE) stream->bytes_copied += r->value[0];
}

/* A capture stands on the row of waits of the stream that it began on, from the begin call's return to the end call. */
static void capture_slice(struct cs_stream *stream, const struct cs_record *r, cs_u64 began)
{
    cs_u64 from = cs_clock_ns(began), to = cs_clock_ns(r->begin);
    cs_u32 tid = cs_gpu_wait_tid(stream, &from, to > from ? to : from + 1);
    if (!tid) return;
    char *at = cs_put_literal(cs_output_room(), ",\n{\"ph\":\"X\",\"cat\":\"cs_stream\",\"name\":\"capture\",\"pid\":");
    at = cs_put_uint(at, (cs_u32)stream->device);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, from);
    at = cs_put_literal(at, ",\"dur\":");
    at = cs_put_us(at, to > from ? to - from : 1);
    at = cs_put_literal(at, ",\"args\":{");
    if (r->result != CUDA_SUCCESS) at = put_result(at, r->result);
    cs_output_commit(close_args(put_stream(at, stream)));
}

/* What becomes of the nodes of a graph. */
static void tell_graphs(const struct cs_record *r, struct cs_stream *stream)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    const cs_u64 *ids = NULL;
    cs_match_graph_call(r);
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++)
        if (info->shown[i].format == CS_FORMAT_GRAPH_IDS) ids = &r->value[i];
    if (!ids || r->result != CUDA_SUCCESS) return;
    cs_u32 graph = (cs_u32)ids[0], exec = (cs_u32)(ids[0] >> 32), nodes = (cs_u32)ids[1];
    if (info->kind == CS_KIND_CAPTURE && stream) cs_match_graph_captured(stream, r->value[0], r->begin, graph, nodes);
    else if (info->how & CS_HOW_UPDATES) cs_match_graph_updated(exec);
    else if (info->kind == CS_KIND_GRAPH) cs_match_graph_instantiated(graph, exec, nodes);
}

static void tell_causes(const struct cs_thread *thread, const struct cs_record *r, struct cs_stream *stream, cs_u64 begin)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    if (info->how & CS_HOW_BEGINS && stream && r->result == CUDA_SUCCESS) cs_match_capture_began(stream, r->end);
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++) {
        if (info->shown[i].format == CS_FORMAT_CAUSE && r->value[i] && r->result == CUDA_SUCCESS) arrow_note(r->value[i], (cs_u32)r->value[i + 1], begin, thread->tid);
        if (info->shown[i].format == CS_FORMAT_CAPTURE && r->value[i] && stream) {
            capture_slice(stream, r, r->value[i]);
            cs_match_capture_ended(stream, r->value[i], r->begin);
        }
    }
}

/* Where the host or a stream waits: the record that an event stood for, if it waits for one. */
static void tell_wait(const struct cs_thread *thread, const struct cs_record *r, struct cs_stream *stream, cs_u64 begin, cs_u64 end)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    const cs_u64 *cause = NULL;
    if (info->kind != CS_KIND_SYNC && info->kind != CS_KIND_WAIT) return;
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++)
        if (info->shown[i].format == CS_FORMAT_CAUSE) cause = &r->value[i];
    cs_gpu_trace_sync(thread, r, stream, cause, begin, end);
}

static char *put_cause(char *at, const struct cs_record *r)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++) {
        if (info->shown[i].format != CS_FORMAT_CAUSE || !r->value[i] || r->result != CUDA_SUCCESS) continue;
        struct cs_stream *from = cs_pool_get(&cs_streams, (cs_ref)(r->value[i + 1] >> 32));
        if (!from || from->created > r->value[i]) continue; /* the reference is old, and may be another stream's by now */
        at = cs_put_literal(at, "\"recorded on\":");
        at = cs_put_uint(at, from->lane);
        *at++ = ',';
    }
    return at;
}

static void callback_slice(struct cs_thread *thread, const struct cs_record *r, const struct cs_stream *stream, cs_u64 begin, cs_u64 end)
{
    cs_u64 enqueued = cs_clock_ns(r->value[1]);
    char *at = put_head(cs_output_room(), CS_CALL_CALLBACK, thread->tid, begin, end);
    at = cs_put_literal(at, "\"function\":");
    at = cs_put_hex(at, r->value[0]);
    at = cs_put_literal(at, ",\"delay_us\":");
    at = cs_put_us(at, begin > enqueued ? begin - enqueued : 0);
    at = cs_put_literal(at, ",\"enqueued by\":");
    at = cs_put_string(at, cs_call_info[r->value[2] < CS_CALL_COUNT ? r->value[2] : 0].name ?: "", 128);
    *at++ = ',';
    if (stream) at = put_stream(at, stream);
    cs_output_commit(close_args(at));
}

static void loss_slice(cs_u32 tid, cs_u64 begin, cs_u64 end, cs_u64 count)
{
    char *at = put_head(cs_output_room(), CS_CALL_LOSS, tid, begin, end);
    at = cs_put_literal(at, "\"count\":");
    at = cs_put_uint(at, count);
    cs_output_commit(cs_put_literal(at, ",\"cause\":\"the thread's ring was full (CUSTREAM_BUFFER, CUSTREAM_FULL)\"}}"));
    if (cs_output_full()) {
        cs_totals_cut(count, begin, end);
        return;
    }
    cs_totals_gathered(begin, end);
    cs_totals.lost += count;
}

static void call_slice(struct cs_thread *thread, const struct cs_record *r, const struct cs_stream *stream, cs_u64 correlation, cs_u64 begin, cs_u64 end)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    char *at = put_head(cs_output_room(), r->call, thread->tid, begin, end);
    if (stream) at = put_stream(at, stream);
    if (correlation) {
        at = cs_put_literal(at, "\"correlation\":");
        at = cs_put_uint(at, correlation);
        *at++ = ',';
    }
    const char *direction = heads[r->call].direction;
    if (direction) {
        at = cs_put_literal(at, "\"direction\":");
        at = cs_put_string(at, direction, 8);
        *at++ = ',';
    }
    at = put_shown(at, r);
    at = put_cause(at, r);
    if (info->kind == CS_KIND_SYNC) {
        at = cs_put_literal(at, "\"blocked_us\":");
        at = cs_put_us(at, end - begin);
        *at++ = ',';
    }
    if (r->result != CUDA_SUCCESS) at = put_result(at, r->result);
    cs_output_commit(close_args(at));
}

/* Where a callback's slice begins. A gap may have begun before the callback, in one whose record is lost, and ended in it: the slice then begins behind it,
 * and behind any other gap since, so that it holds nothing in part. */
static cs_u64 callback_begin(struct cs_thread *thread, cs_u64 begin)
{
    if (thread->loss_begin_ns && thread->loss_begin_ns < begin && begin < thread->loss_end_ns) begin = thread->loss_end_ns;
    thread->loss_begin_ns = thread->loss_end_ns = 0;
    return begin;
}

/* A policy leaves it out: what it puts on the GPU is known by it, and left out too. */
static void record_muted(struct cs_thread *thread, struct cs_record r)
{
    r.call &= (cs_u16)~CS_CALL_MUTED;
    cs_match_muted(thread, &r);
    CS_TELL(call, thread, &r, cs_pool_get(&cs_streams, r.stream), 0, cs_clock_ns(r.begin));
    cs_totals.muted++;
}

void cs_timeline_record(struct cs_thread *thread, const struct cs_record *r)
{
    if (CS_UNLIKELY(r->call & CS_CALL_MUTED)) {
        record_muted(thread, *r);
        return;
    }
    if (r->call == CS_CALL_SITE) {
        CS_TELL(place, thread, r);
        return;
    }
    if (cs_output_full()) {
        cs_totals_cut(r->call == CS_CALL_LOSS ? r->value[0] : cs_annotation_count(r), cs_clock_ns(r->begin), cs_clock_ns(r->end));
        return;
    }
    if (!thread->announced) {
        if (!thread->last_end_ns) thread->is_driver = r->call == CS_CALL_CALLBACK || (r->call == CS_CALL_DELAY && r->value[2]);
        cs_lane_thread(thread, false);
    }
    if (cs_call_is_runtime(r->call)) {
        if (r->value[1]) cs_match_runtime(thread, r);
        const cs_u64 ended = cs_runtime_slice(thread, r);
        if (ended > latest_ns) latest_ns = ended;
        return;
    }
    if (r->call >= CS_CALL_RANGE_PUSH) {
        cs_annotation_record(thread, r);
        return;
    }
    struct cs_stream *stream = cs_pool_get(&cs_streams, r->stream);
    if (stream) cs_lane_stream(stream), thread->device = (cs_u32)stream->device;
    cs_u64 begin = cs_clock_ns(r->begin), end = cs_clock_ns(r->end);
    /* Slices of a thread follow each other; a callback's may hold others. Two that round to the same nanosecond are kept apart. */
    if (r->call == CS_CALL_CALLBACK) begin = callback_begin(thread, begin);
    else if (begin < thread->last_end_ns) begin = thread->last_end_ns;
    if (r->call == CS_CALL_CALLBACK && end < thread->last_end_ns) end = thread->last_end_ns;
    if (end <= begin) end = begin + 1;
    if (end > thread->last_end_ns) thread->last_end_ns = end;
    if (end > latest_ns) latest_ns = end;
    if (r->call == CS_CALL_LOSS) {
        if (!thread->loss_begin_ns) thread->loss_begin_ns = begin;
        thread->loss_end_ns = end;
        thread->last_end_ns = end + 1; /* what begins at its end is to hold what comes then */
        loss_slice(thread->tid, begin, end, r->value[0]);
        CS_TELL(lost, thread, r->value[0]);
        return;
    }
    if (r->call == CS_CALL_CALLBACK) {
        callback_slice(thread, r, stream, begin, end);
        cs_annotations_crossed(thread, begin);
    } else if (r->call == CS_CALL_DELAY) {
        call_slice(thread, r, stream, 0, begin, end);
    } else {
        if (stream) count_work(stream, r);
        cs_u64 work = cs_match_call(thread, r, stream, begin);
        CS_TELL(call, thread, r, stream, work, begin);
        call_slice(thread, r, stream, work, begin, end);
    }
    if (cs_output_full()) { /* making room for it ended the file */
        cs_totals_cut(1, begin, end);
        return;
    }
    cs_totals_gathered(begin, end);
    cs_totals.recorded++;
    if (r->call == CS_CALL_CALLBACK || r->call == CS_CALL_DELAY) return;
    tell_causes(thread, r, stream, begin);
    tell_wait(thread, r, stream, begin, end);
    tell_graphs(r, stream);
}

/* The end of a stream's life in this file, with what went through it here. `how`: a member of its args. */
static void life_end(struct cs_stream *stream, cs_u64 ns, const char *how)
{
    static const char *const names[] = {"launches", "copies", "memsets", "event records", "waits", "synchronisations", "graphs", "other calls"};
    if (ns <= stream->shown_from_ns) ns = stream->shown_from_ns + 1;
    char *at = cs_put_literal(cs_output_room(), ",\n{\"ph\":\"E\",\"pid\":");
    at = cs_put_uint(at, (cs_u32)stream->device);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, stream->lane);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, ns);
    at = cs_put_literal(at, ",\"args\":{");
    for (size_t i = 0; i < CS_COUNT(names); i++) {
        if (!stream->work[i]) continue;
        at = cs_put_string(at, names[i], 32);
        *at++ = ':';
        at = cs_put_uint(at, stream->work[i]);
        *at++ = ',';
    }
    if (stream->bytes_copied) {
        at = cs_put_literal(at, "\"bytes copied\":");
        at = cs_put_uint(at, stream->bytes_copied);
        *at++ = ',';
    }
    if (stream->pool_place) {
        at = cs_put_literal(at, "\"shared by\":");
        at = cs_put_uint(at, cs_load(&stream->shares_most));
        *at++ = ',';
    }
    if (stream->rule != stream->rule_shown) { /* it matched by the name that it got */
        at = cs_put_literal(at, "\"rule\":\"rules[");
        at = cs_put_uint(at, stream->rule - 1u);
        at = cs_put_literal(at, "]\",\"priority\":");
        at = cs_put_int(at, stream->priority);
        *at++ = ',';
    }
    if (stream->name_shown) {
        at = cs_put_literal(at, "\"application name\":");
        at = cs_put_string(at, cs_name_text(stream->name_shown), 512);
        *at++ = ',';
    }
    cs_output_commit(close_args(cs_put_text(at, how)));
    memset(stream->work, 0, sizeof stream->work);
    stream->bytes_copied = 0;
    cs_lane_stream_ended(stream, ns);
}

void cs_timeline_stream_end(struct cs_stream *stream, cs_u64 ended)
{
    bool unseen = !stream->announced && (stream->over || cs_windows_within(stream->created, ended)); /* an earlier part has its end; nobody could see it */
    if (!cs_output_full() && !unseen) {
        cs_u64 to = cs_clock_ns(ended), filled = cs_match_filled(stream);
        cs_lane_stream(stream);
        cs_gpu_trace_stream_ends(stream);
        life_end(stream, filled > to ? filled : to, cs_load(&stream->ended) ? "\"destroyed\":true" : "\"destroyed\":false"); /* its work went on */
        stream->over = true;
    }
    cs_match_lane_free(stream);
}

/* --- parts --- */

size_t cs_timeline_pending(void) { return (arrow_count[0] + arrow_count[1]) * 230 + cs_lanes_alive() * (size_t)200; }

/* The writer may be far behind the program: what has ended there may go on here, so lives are cut where the records are, and not at the present time. */
void cs_timeline_part_end(void)
{
    arrows_write(!arrow_now, true);
    arrows_write(arrow_now, true);
    cs_annotations_part_ends(latest_ns);
    cs_windows_part_ends();
    for (cs_u32 i = 0; i < cs_load(&cs_streams.high) && i < cs_streams.capacity; i++) {
        struct cs_stream *stream = (struct cs_stream *)cs_pool_slot(&cs_streams, i);
        if (!cs_load_acq(&stream->object.ref) || !stream->announced || cs_output_full()) continue;
        cs_u64 ended = cs_load(&stream->ended), ended_ns = ended ? cs_clock_ns(ended) : UINT64_MAX;
        bool awaited;
        cs_gpu_trace_stream_ends(stream);
        cs_u64 cut = cs_match_cut(stream, ended_ns < latest_ns ? ended_ns : latest_ns, &awaited);
        stream->over = ended_ns <= latest_ns && !awaited;
        life_end(stream, cut, stream->over ? "\"destroyed\":true" : "\"continues\":true");
    }
    parted_ns = latest_ns;
}

void cs_timeline_thread_end(struct cs_thread *thread)
{
    cs_annotations_thread_ends(thread, thread->ended);
    cs_u64 lost = cs_load_acq(&thread->lost);
    if (lost && cs_output_full()) cs_totals_cut(lost, cs_clock_ns(cs_load(&thread->lost_begin)), cs_clock_ns(cs_load(&thread->lost_end)));
    if (cs_output_full()) return;
    if (lost) {
        cs_u64 begin = cs_clock_ns(cs_load(&thread->lost_begin)), end = cs_clock_ns(cs_load(&thread->lost_end));
        cs_lane_thread(thread, false);
        loss_slice(thread->tid, begin < thread->last_end_ns ? thread->last_end_ns : begin, end, lost);
        CS_TELL(lost, thread, lost);
    }
    if (thread->announced) cs_lane_thread(thread, true);
}
