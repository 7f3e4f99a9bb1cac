#include "shim/trace/timeline.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/base/memory.h"
#include "shim/calls/real.h"
#include "shim/trace/lanes.h"
#include "shim/trace/output.h"
#include "shim/trace/totals.h"

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

static cs_u64 next_flow;

/* Where a copy goes, as the symbol's name has it: "HtoD". NULL where the name does not say. */
static const char *direction_of(const struct cs_call_info *info)
{
    static const char *const directions[] = {"HtoD", "DtoH", "DtoD", "HtoA", "AtoH", "AtoD", "DtoA", "AtoA", "Peer"};
    for (size_t i = 0; info->kind == CS_KIND_COPY && i < CS_COUNT(directions); i++)
        if (strstr(info->name, directions[i])) return directions[i];
    return NULL;
}

static void heads_make(void)
{
    for (int call = 1; call < CS_CALL_COUNT; call++) {
        const char *cat = call == CS_CALL_CALLBACK ? "cs_callback" : call == CS_CALL_LOSS ? "cs_loss" : "cuda_driver";
        heads[call].length = (cs_u16)snprintf(heads[call].text, sizeof heads[call].text, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%u,\"tid\":",
                                              cat, cs_call_info[call].name, cs_host_pid());
        heads[call].direction = direction_of(&cs_call_info[call]);
        for (int i = 0; i < CS_VALUES && cs_call_info[call].shown[i].label; i++)
            heads[call].label[i].length =
                (unsigned char)snprintf(heads[call].label[i].text, sizeof heads[call].label[i].text, "\"%s\":", cs_call_info[call].shown[i].label);
    }
}

void cs_timeline_begin(void)
{
    next_flow = 1;
    cs_lanes_begin();
    heads_make();
    cs_output_commit(cs_totals_header(cs_output_room()));
    cs_lane_process();
}

/* --- arrows: kept for one round, so that the slice they start from is in the file before them --- */

static struct arrow {
    cs_u64 from_ns, to_ns;
    cs_u32 from_tid, to_tid;
} *arrows[2]; /* found in this round; found in the one before */
static size_t arrow_count[2], arrow_room;
static unsigned arrow_now;

static void arrow_note(cs_u64 cause_ticks, cs_u32 from_tid, cs_u64 to_ns, cs_u32 to_tid)
{
    enum { ARROWS = 1 << 20 };
    if (!arrow_room) {
        arrows[0] = cs_memory_map(ARROWS * sizeof **arrows);
        arrows[1] = cs_memory_map(ARROWS * sizeof **arrows);
        arrow_room = arrows[0] && arrows[1] ? ARROWS : 0;
    }
    if (arrow_count[arrow_now] == arrow_room) {
        cs_totals.arrows_dropped++;
        return;
    }
    cs_u64 from_ns = cs_clock_ns(cause_ticks);
    arrows[arrow_now][arrow_count[arrow_now]++] = (struct arrow){from_ns, to_ns < from_ns ? from_ns : to_ns, from_tid, to_tid};
}

static char *arrow_end(char *at, const char *phase, cs_u64 id, cs_u32 tid, cs_u64 ns)
{
    at = cs_put_literal(at, ",\n{\"ph\":\"");
    at = cs_put_text(at, phase);
    at = cs_put_literal(at, ",\"id\":");
    at = cs_put_uint(at, id);
    at = cs_put_literal(at, ",\"pid\":");
    at = cs_put_uint(at, cs_host_pid());
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, ns);
    return cs_put_literal(at, ",\"cat\":\"cs_dep\",\"name\":\"cs_dep\"}");
}

static void arrows_write(unsigned which)
{
    for (size_t i = 0; i < arrow_count[which] && !cs_output_full(); i++) {
        const struct arrow *a = &arrows[which][i];
        char *at = arrow_end(cs_output_room(), "s\"", next_flow, a->from_tid, a->from_ns);
        cs_output_commit(arrow_end(at, "f\",\"bp\":\"e\"", next_flow++, a->to_tid, a->to_ns));
    }
    arrow_count[which] = 0;
}

void cs_timeline_arrows(bool all)
{
    arrows_write(!arrow_now);
    if (all) arrows_write(arrow_now);
    arrow_now = !arrow_now;
}

/* --- args --- */

static const char *word_of(const char *const *words, size_t n, cs_u64 i) { return i < n ? words[i] : "unknown"; }

/* A name as a JSON string; each is made once and kept. */
static char *put_name(char *at, cs_name name)
{
    static struct {
        const char *json;
        cs_u32 length;
    } *kept;
    static char *chunk, *chunk_end;
    enum { NAMES = 1 << 16, CHUNK = 1 << 18, JSON_MAX = 6 * 4096 + 2 };
    if (!kept && !(kept = cs_memory_map(NAMES * sizeof *kept))) return cs_put_literal(at, "\"\"");
    if (name >= NAMES) name = 0;
    if (!kept[name].json) {
        if (chunk_end - chunk < JSON_MAX) {
            chunk = cs_memory_map(CHUNK);
            chunk_end = chunk ? chunk + CHUNK : NULL;
        }
        if (!chunk) return cs_put_literal(at, "\"\"");
        char *end = cs_put_string(chunk, cs_name_text(name), 4096);
        kept[name].json = chunk;
        kept[name].length = (cs_u32)(end - chunk);
        chunk = end;
    }
    return cs_put(at, kept[name].json, kept[name].length);
}

/* One shown value and those that belong to it; `v` points at the first. */
static char *put_value(char *at, enum cs_format format, const cs_u64 *v)
{
    static const char *const memory[] = {"none", "host", "device", "array", "unified"};
    static const char *const modes[] = {"global", "thread_local", "relaxed"};
    switch (format) {
    case CS_FORMAT_SIZE:
    case CS_FORMAT_UINT: return cs_put_uint(at, *v);
    case CS_FORMAT_INT: return cs_put_int(at, (int32_t)*v);
    case CS_FORMAT_HEX:
    case CS_FORMAT_PTR:
    case CS_FORMAT_FUNCTION: return cs_put_hex(at, *v);
    case CS_FORMAT_MEMTYPE: return cs_put_string(at, word_of(memory, CS_COUNT(memory), *v), 16);
    case CS_FORMAT_CAPTURE_MODE: return cs_put_string(at, word_of(modes, CS_COUNT(modes), *v), 16);
    case CS_FORMAT_KERNEL:
        at = put_name(at, (cs_name)*v);
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
    case CS_FORMAT_CAPTURE: return false;
    case CS_FORMAT_EVENT: return cs_pool_get(&cs_events, (cs_ref)value) != NULL;
    case CS_FORMAT_KERNEL: return (cs_u32)value != 0;
    default: return true;
    }
}

static char *put_shown(char *at, const struct cs_record *r)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++) {
        enum cs_format format = info->shown[i].format;
        if (!is_shown(format, r->value[i])) continue;
        at = cs_put(at, heads[r->call].label[i].text, heads[r->call].label[i].length);
        if (format == CS_FORMAT_EVENT) at = cs_put_uint(at, ((struct cs_event *)cs_pool_get(&cs_events, (cs_ref)r->value[i]))->number);
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

/* A capture stands on the lane of the stream that it began on, from the begin call's return to the end call. */
static void capture_slice(const struct cs_stream *stream, const struct cs_record *r, cs_u64 began)
{
    cs_u64 from = cs_clock_ns(began), to = cs_clock_ns(r->begin);
    char *at = cs_put_literal(cs_output_room(), ",\n{\"ph\":\"X\",\"cat\":\"cs_stream\",\"name\":\"capture\",\"pid\":");
    at = cs_put_uint(at, (cs_u32)stream->device);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, stream->lane);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, from);
    at = cs_put_literal(at, ",\"dur\":");
    at = cs_put_us(at, to > from ? to - from : 1);
    at = cs_put_literal(at, ",\"args\":{");
    if (r->result != CUDA_SUCCESS) at = put_result(at, r->result);
    cs_output_commit(close_args(put_stream(at, stream)));
}

static void tell_causes(const struct cs_thread *thread, const struct cs_record *r, const struct cs_stream *stream, cs_u64 begin)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++) {
        if (info->shown[i].format == CS_FORMAT_CAUSE && r->value[i] && r->result == CUDA_SUCCESS) arrow_note(r->value[i], (cs_u32)r->value[i + 1], begin, thread->tid);
        if (info->shown[i].format == CS_FORMAT_CAPTURE && r->value[i] && stream && cs_capture_is_over((CUresult)r->result)) capture_slice(stream, r, r->value[i]);
    }
}

static char *put_cause(char *at, const struct cs_record *r)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++) {
        if (info->shown[i].format != CS_FORMAT_CAUSE || !r->value[i] || r->result != CUDA_SUCCESS) continue;
        struct cs_stream *from = cs_pool_get(&cs_streams, (cs_ref)(r->value[i + 1] >> 32));
        if (!from) continue;
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

/* What the next flush brings into the file reaches from here to there. */
static void gathered(cs_u64 begin, cs_u64 end)
{
    if (begin < cs_totals.begin_ns) cs_totals.begin_ns = begin;
    if (end > cs_totals.end_ns) cs_totals.end_ns = end;
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
    gathered(begin, end);
    cs_totals.lost += count;
}

static void call_slice(struct cs_thread *thread, const struct cs_record *r, const struct cs_stream *stream, cs_u64 begin, cs_u64 end)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    char *at = put_head(cs_output_room(), r->call, thread->tid, begin, end);
    if (stream) at = put_stream(at, stream);
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

void cs_timeline_record(struct cs_thread *thread, const struct cs_record *r)
{
    if (cs_output_full()) {
        cs_totals_cut(r->call == CS_CALL_LOSS ? r->value[0] : 1, cs_clock_ns(r->begin), cs_clock_ns(r->end));
        return;
    }
    if (!thread->announced) {
        thread->is_driver = r->call == CS_CALL_CALLBACK;
        cs_lane_thread(thread, false);
    }
    struct cs_stream *stream = cs_pool_get(&cs_streams, r->stream);
    if (stream) cs_lane_stream(stream);
    cs_u64 begin = cs_clock_ns(r->begin), end = cs_clock_ns(r->end);
    /* Slices of a thread follow each other; a callback's may hold others. Two that round to the same nanosecond are kept apart. */
    if (r->call != CS_CALL_CALLBACK && begin < thread->last_end_ns) begin = thread->last_end_ns;
    if (end <= begin) end = begin + 1;
    if (end > thread->last_end_ns) thread->last_end_ns = end;
    if (r->call == CS_CALL_LOSS) {
        loss_slice(thread->tid, begin, end, r->value[0]);
        return;
    }
    if (r->call == CS_CALL_CALLBACK) {
        callback_slice(thread, r, stream, begin, end);
    } else {
        if (stream) count_work(stream, r);
        call_slice(thread, r, stream, begin, end);
    }
    if (cs_output_full()) { /* making room for it ended the file */
        cs_totals_cut(1, begin, end);
        return;
    }
    gathered(begin, end);
    cs_totals.recorded++;
    if (r->call != CS_CALL_CALLBACK) tell_causes(thread, r, stream, begin);
}

void cs_timeline_stream_end(struct cs_stream *stream, cs_u64 ended)
{
    static const char *const names[] = {"launches", "copies", "memsets", "event records", "waits", "synchronisations", "graphs", "other calls"};
    if (cs_output_full()) return;
    cs_lane_stream(stream);
    char *at = cs_put_literal(cs_output_room(), ",\n{\"ph\":\"E\",\"pid\":");
    at = cs_put_uint(at, (cs_u32)stream->device);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, stream->lane);
    at = cs_put_literal(at, ",\"ts\":");
    cs_u64 from = cs_clock_ns(stream->created), to = cs_clock_ns(ended);
    at = cs_put_us(at, to > from ? to : from + 1);
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
    at = cs_put_text(at, cs_load(&stream->ended) ? "\"destroyed\":true" : "\"destroyed\":false");
    cs_output_commit(close_args(at));
}

void cs_timeline_thread_end(struct cs_thread *thread)
{
    cs_u64 lost = cs_load_acq(&thread->lost);
    if (lost && cs_output_full()) cs_totals_cut(lost, cs_clock_ns(cs_load(&thread->lost_begin)), cs_clock_ns(cs_load(&thread->lost_end)));
    if (cs_output_full()) return;
    if (lost) {
        cs_u64 begin = cs_clock_ns(cs_load(&thread->lost_begin)), end = cs_clock_ns(cs_load(&thread->lost_end));
        cs_lane_thread(thread, false);
        loss_slice(thread->tid, begin < thread->last_end_ns ? thread->last_end_ns : begin, end, lost);
    }
    if (thread->announced) cs_lane_thread(thread, true);
}
