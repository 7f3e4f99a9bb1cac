#include "shim/trace/call_slice.h"

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/calls/real.h"
#include "shim/gpu/mark.h"
#include "shim/match/match.h"
#include "shim/object/event.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"
#include "shim/trace/totals.h"

/* Of each call's slice, what does not change; made at the begin of a file. */
static struct head {
    const char *direction; /* of a copy, where the symbol's name tells */
    bool waits;            /* for a record */
    struct cs_slice_head slice;
    struct cs_key label[CS_VALUES];
} *heads;
CS_TABLE(TRACE, heads, CS_CALL_COUNT);

void cs_call_slices_begin(void)
{
    for (int call = 1; call < CS_CALL_COUNT; call++) {
        const char *cat = call == CS_CALL_CALLBACK ? "cs_callback" : call == CS_CALL_LOSS ? "cs_loss" : call == CS_CALL_DELAY ? "cs_policy" : "cuda_driver";
        cs_slice_head_make(&heads[call].slice, cat, cs_call_info[call].name, cs_host_pid());
        heads[call].direction = cs_way_name[cs_call_way((enum cs_call)call)];
        for (int i = 0; i < CS_VALUES && cs_call_info[call].shown[i].label; i++) {
            cs_key_make(&heads[call].label[i], cs_call_info[call].shown[i].label);
            heads[call].waits |= cs_call_info[call].shown[i].format == CS_FORMAT_CAUSE;
        }
    }
}

static struct cs_draft slice(enum cs_call call, cs_u32 tid, cs_u64 begin, cs_u64 end) { return cs_slice_made(cs_draft(), &heads[call].slice, tid, begin, end); }

/* --- arguments --- */

static const char *word_of(const char *const *words, size_t n, cs_u64 i) { return i < n ? words[i] : "unknown"; }
static const char *call_name(cs_u64 call) { return cs_call_info[call < CS_CALL_COUNT ? call : 0].name ?: ""; }

/* One shown value and those that belong to it; `v` points at the first. */
static struct cs_draft value(struct cs_draft e, enum cs_format format, const cs_u64 *v, bool work_tells)
{
    static const char *const memory[] = {"none", "host", "device", "array", "unified"};
    char words[CS_WORDS_ROOM];
    static const char *const modes[] = {"global", "thread_local", "relaxed"}, *const places[] = {"host", "stream"};
    switch (format) {
    case CS_FORMAT_INT: return cs_value_int(e, (int32_t)*v);
    case CS_FORMAT_HEX:
    case CS_FORMAT_RESERVED:
    case CS_FORMAT_PTR:
    case CS_FORMAT_FUNCTION: return cs_value_hex(e, *v);
    case CS_FORMAT_CALL: return cs_value_constant(e, call_name(*v));
    case CS_FORMAT_DELAYED: return cs_value_constant(e, word_of(places, CS_COUNT(places), *v));
    case CS_FORMAT_MEMTYPE: return cs_value_constant(e, word_of(memory, CS_COUNT(memory), *v));
    case CS_FORMAT_CAPTURE_MODE:
        e = cs_value_constant(e, word_of(modes, CS_COUNT(modes), (cs_u32)*v));
        return *v >> 32 < 2 ? e : cs_arg_uint(e, "shared by", *v >> 32); /* what is done on any of them meanwhile is in the graph */
    case CS_FORMAT_KERNEL:
        if (work_tells) return cs_value_kernel_brief(e, (cs_name)*v);
        e = cs_value_kernel(e, (cs_name)*v);
        return *v >> 32 ? cs_arg_uint(e, "shared memory", *v >> 32) : e;
    case CS_FORMAT_GRID: {
        const cs_u32 n[] = {(cs_u32)v[0], (cs_u32)(v[0] >> 32), (cs_u32)v[1], (cs_u32)(v[1] >> 32), (cs_u32)v[2], (cs_u32)(v[2] >> 32)};
        return cs_arg_uints(cs_value_uints(e, n, 3), "block", n + 3, 3);
    }
    case CS_FORMAT_SIZE:
    case CS_FORMAT_UINT: return cs_value_uint(e, *v);
    default:
        cs_words_put((enum cs_words)(format - CS_FORMAT_FIRST_WORDS), *v, words);
        return cs_value_word(e, words);
    }
}

static bool is_shown(enum cs_format format, cs_u64 v, bool work_tells)
{
    switch (format) {
    case CS_FORMAT_GRID: return !work_tells;
    case CS_FORMAT_NONE:
    case CS_FORMAT_CAUSE:
    case CS_FORMAT_CAPTURE:
    case CS_FORMAT_GRAPH_IDS: return false;
    case CS_FORMAT_EVENT: return cs_pool_get(&cs_events, (cs_ref)v) != NULL;
    case CS_FORMAT_KERNEL: return (cs_u32)v != 0;
    case CS_FORMAT_RESERVED: return v != 0;
    default: return true;
    }
}

static struct cs_draft event_value(struct cs_draft e, struct cs_event *event)
{
    cs_name name = event ? cs_load(&event->name) : 0;
    e = cs_value_uint(e, event ? event->number : 0);
    return name ? cs_arg_text(e, "event name", cs_name_text(name), 512) : e;
}

/* `work_tells`: the slice of the call's work has the kernel's whole name, and how it was launched. */
static struct cs_draft shown_args(struct cs_draft e, const struct cs_record *r, bool work_tells)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++) {
        enum cs_format format = info->shown[i].format;
        if (!is_shown(format, r->value[i], work_tells)) continue;
        e = cs_arg_made(e, &heads[r->call].label[i]);
        if (format == CS_FORMAT_EVENT) e = event_value(e, cs_pool_get(&cs_events, (cs_ref)r->value[i]));
        else e = value(e, format, &r->value[i], work_tells);
    }
    return e;
}

/* The stream on which the record was made that the call waits for; or that no call in the trace need have made it. */
static struct cs_draft cause_arg(struct cs_draft e, const struct cs_record *r)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++) {
        if (info->shown[i].format != CS_FORMAT_CAUSE || r->result != CUDA_SUCCESS) continue;
        if (!r->value[i] && r->value[i + 1] == CS_CAUSE_ELSEWHERE) e = cs_arg_uint(e, "recorded elsewhere", 1);
        if (!r->value[i]) continue;
        struct cs_stream *from = cs_pool_get(&cs_streams, (cs_ref)(r->value[i + 1] >> 32));
        if (!from || from->created > r->value[i]) continue; /* the reference is old, and may be another stream's by now */
        e = cs_arg_uint(e, "recorded on", from->lane);
    }
    return e;
}

struct cs_draft cs_arg_result(struct cs_draft e, int result)
{
    const char *name = cs_result_name((CUresult)result);
    return name ? cs_arg_text(e, "cs.result", name, 128) : cs_arg_int(e, "cs.result", result);
}

struct cs_draft cs_arg_stream(struct cs_draft e, const struct cs_stream *stream)
{
    e = cs_arg_uint(e, "cs.stream", stream->lane);
    return stream->device ? cs_arg_int(e, "cs.device", stream->device) : e;
}

/* --- slices --- */

void cs_callback_slice(cs_u32 tid, const struct cs_record *r, const struct cs_stream *stream, cs_u64 begin, cs_u64 end)
{
    cs_u64 enqueued = cs_clock_ns(r->value[1]);
    struct cs_draft e = slice(CS_CALL_CALLBACK, tid, begin, end);
    e = cs_arg_hex(e, "function", r->value[0]);
    e = cs_arg_us(e, "delay_us", begin > enqueued ? begin - enqueued : 0);
    e = cs_arg_constant(e, "enqueued by", call_name(r->value[2]));
    if (stream) e = cs_arg_stream(e, stream);
    cs_commit_record(cs_args_end(e));
}

void cs_loss_slice(cs_u32 tid, cs_u64 begin, cs_u64 end, cs_u64 count)
{
    struct cs_draft e = cs_arg_uint(slice(CS_CALL_LOSS, tid, begin, end), "count", count);
    const struct cs_loss_info *why = &cs_loss_info[CS_LOSS_FULL_RING];
    cs_commit_record(cs_args_end(cs_arg_word(cs_arg_word(e, "cause", why->text), "cs.loss", why->key)));
    if (cs_output_full()) {
        cs_totals_cut(count, begin, end);
        return;
    }
    cs_totals_gathered(begin, end);
    cs_totals.sum.lost += count;
}

void cs_call_slice(cs_u32 tid, const struct cs_record *r, const struct cs_stream *stream, cs_u64 correlation, const cs_u64 *cpu_ns, cs_u64 begin, cs_u64 end)
{
    const char *direction = heads[r->call].direction;
    struct cs_draft e = slice(r->call, tid, begin, end);
    if (stream) e = cs_arg_stream(e, stream);
    if (correlation) e = cs_arg_uint(e, "correlation", correlation);
    if (direction) e = cs_arg_constant(e, "direction", direction);
    e = shown_args(e, r, correlation && cs_match_tells(correlation));
    if (heads[r->call].waits) e = cause_arg(e, r);
    if (stream && cs_match_captured(stream, r)) e = cs_arg_uint(e, "cs.captured", 1); /* no work comes of it: who looks for what has not ended must know */
    if (cs_call_info[r->call].kind == CS_KIND_SYNC) e = cs_arg_us(e, "blocked_us", end - begin);
    if (cpu_ns && cpu_ns[CS_CLOCK_AT_BEGIN]) e = cs_arg_us(e, "cpu_us", cpu_ns[CS_CLOCK_AT_BEGIN]);
    if (cpu_ns && cpu_ns[CS_CLOCK_AT_END]) e = cs_arg_us(e, "cpu_end_us", cpu_ns[CS_CLOCK_AT_END]);
    if (r->result != CUDA_SUCCESS) e = cs_arg_result(e, r->result);
    cs_commit_record(correlation ? cs_args_end_bound(e, CS_END_FIRST, correlation) : cs_args_end(e));
}
