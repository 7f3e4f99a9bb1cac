#define _GNU_SOURCE
#include "shim/base/append.h"
#include "shim/base/environment.h"
#include "shim/trace/inside.h"
#include "shim/trace/totals.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/claim.h"
#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/base/rings.h"
#include "shim/base/verdict.h"
#include "shim/calls/calls.h"
#include "shim/gpu/backend.h"
#include "shim/gpu/mark.h"
#include "shim/object/event.h"
#include "shim/object/stream.h"
#include "shim/out/path.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/trace/listener.h"
#include "shim/trace/windows.h"

struct cs_totals cs_totals;
char *(*cs_totals_add)(char *at, size_t room);

static struct {
    cs_u64 calls, works, begin_ns, end_ns;
} cut; /* what came after the file was full */

static struct cs_sums flushed; /* as of the last good flush of this file */

static struct {
    struct cs_sums sum; /* in all parts before this one */
    cs_u32 deleted;
    cs_u64 recorded_in_deleted;
    struct cs_totals before; /* of the part before */
} parts;

/* Pieces of work that a file shows. */
static cs_u64 shown_of(const struct cs_gpu_totals *gpu)
{
    cs_u64 n = 0;
    for (int kind = 0; kind < CS_GPU_KINDS; kind++) n += kind == CS_GPU_OVERHEAD ? 0 : gpu->count[kind];
    return n;
}

/* Pieces of work whose times it should have, and has not. */
static cs_u64 untimed_of(const struct cs_gpu_totals *gpu) { return gpu->missed + gpu->no_times; }

/* Sums are counts and nothing else. */
static void sum_up(struct cs_sums *sums, const struct cs_sums *more, int sign)
{
    cs_u64 *to = (cs_u64 *)sums;
    const cs_u64 *from = (const cs_u64 *)more;
    for (size_t i = 0; i < sizeof *sums / sizeof *to; i++) to[i] += sign < 0 ? 0 - from[i] : from[i];
}

void cs_totals_reset(void)
{
    memset(&cs_totals, 0, sizeof cs_totals);
    memset(&cut, 0, sizeof cut);
    memset(&parts, 0, sizeof parts);
    memset(&flushed, 0, sizeof flushed);
    cs_totals.begin_ns = UINT64_MAX;
}

void cs_totals_part_begin(void)
{
    parts.before = cs_totals;
    sum_up(&parts.sum, &cs_totals.sum, 1);
    memset(&cs_totals, 0, sizeof cs_totals);
    memset(&flushed, 0, sizeof flushed);
    cs_totals.begin_ns = UINT64_MAX;
}

void cs_totals_part_undo(void)
{
    cs_totals = parts.before;
    flushed = cs_totals.sum;
    sum_up(&parts.sum, &cs_totals.sum, -1);
}

static void part_deleted(cs_u64 recorded)
{
    parts.deleted++;
    parts.recorded_in_deleted += recorded;
}

cs_u64 cs_totals_before(void) { return parts.before.sum.recorded; }

void cs_totals_came_after_all(bool untimed)
{
    cs_u64 *sum = untimed ? &parts.sum.gpu.no_times : &parts.sum.gpu.missed;
    if (*sum) --*sum;
}

void cs_totals_gathered(cs_u64 begin_ns, cs_u64 end_ns)
{
    if (begin_ns < cs_totals.begin_ns) cs_totals.begin_ns = begin_ns;
    if (end_ns > cs_totals.end_ns) cs_totals.end_ns = end_ns;
}

static _Atomic cs_u64 recorded_told, lost_told, works_told;

struct cs_totals_told cs_totals_told(void)
{
    return (struct cs_totals_told){cs_load(&recorded_told), cs_load(&lost_told), cs_load(&works_told)};
}

struct cs_sums cs_totals_of_all(void)
{
    struct cs_sums all = parts.sum;
    sum_up(&all, &cs_totals.sum, 1);
    all.lost += cut.calls;
    all.gpu.lost += cut.works;
    return all;
}

static void all_flushed(void)
{
    flushed = cs_totals.sum;
    const struct cs_sums all = cs_totals_of_all();
    cs_store(&recorded_told, all.recorded);
    cs_store(&lost_told, all.lost);
    cs_store(&works_told, shown_of(&all.gpu));
    cs_totals.begin_ns = UINT64_MAX;
    cs_totals.end_ns = 0;
}

/* It belongs to the gap at the end. */
static void never_flushed(void)
{
    cs_totals_cut(cs_totals.sum.recorded - flushed.recorded + cs_totals.sum.lost - flushed.lost, cs_totals.begin_ns, cs_totals.end_ns);
    cs_totals_cut_work(shown_of(&cs_totals.sum.gpu) + cs_totals.sum.gpu.lost - shown_of(&flushed.gpu) - flushed.gpu.lost, cs_totals.begin_ns, cs_totals.end_ns);
    cs_totals.sum = flushed;
}

static void cut_grows(cs_u64 begin_ns, cs_u64 end_ns)
{
    if ((!cut.calls && !cut.works) || begin_ns < cut.begin_ns) cut.begin_ns = begin_ns;
    if (end_ns > cut.end_ns) cut.end_ns = end_ns;
}

void cs_totals_cut(cs_u64 calls, cs_u64 begin_ns, cs_u64 end_ns)
{
    if (calls) cut_grows(begin_ns, end_ns);
    cut.calls += calls;
}

void cs_totals_cut_work(cs_u64 works, cs_u64 begin_ns, cs_u64 end_ns)
{
    if (works) cut_grows(begin_ns, end_ns);
    cut.works += works;
}

/* Where that was, for who puts the traces of many together. */
static char *put_place(char *at)
{
    char host[256] = "";
    const char *job = cs_process_job(), *command_line = cs_process_command_line();
    if (gethostname(host, sizeof host - 1)) *host = 0;
    at = cs_put_string(cs_put_literal(at, ",\"host\":"), host, sizeof host);
    if (*command_line) at = cs_put_string(cs_put_literal(at, ",\"command_line\":"), command_line, CS_COMMAND_LINE);
    return job ? cs_put_string(cs_put_literal(at, ",\"job\":"), job, 256) : at;
}

char *cs_totals_header(char *at)
{
    char *header = at;
    int world, rank = cs_process_rank(&world);
    at = cs_put_literal(at, CS_TRACE_BEGIN_NOW);
    at = cs_put_uint(at, cs_clock_wall_base_ns());
    if (cs_option_parts(CS_OPTION_TRACE_MAX)) {
        at = cs_put_literal(at, ",\"part\":"); /* base/claim.c looks for it here */
        at = cs_put_uint(at, cs_output_part());
    }
    at = cs_put_literal(at, ",\n\"distributedInfo\": {\"rank\": ");
    at = cs_put_int(at, rank < 0 ? 0 : rank);
    at = cs_put_literal(at, ", \"world_size\": ");
    at = cs_put_int(at, world < 1 ? 1 : world);
    at = cs_put_literal(at, "},\n\"metadata\":{\"tool\":\"custream " CUSTREAM_VERSION_STRING "\",\"gpu_time_source\":");
    at = cs_put_string(at, cs_gpu_source(), 16);
    at = put_place(at);
    if (cs_gpu_samples()) at = cs_put_uint(cs_put_literal(at, ",\"gpu_sample\":"), cs_gpu_sample);
    at = cs_put_literal(at, ",\"simulated_gpu\":");
    at = cs_put_text(at, cs_device_is_simulated() ? "true" : "false");
    at = cs_put_literal(at, ",\"max_connections\":");
    at = cs_put_uint(at, (cs_u64)cs_max_connections());
    at = cs_put_literal(at, ",\"clock\":");
    at = cs_put_string(at, cs_clock_is_counter ? "processor counter" : "CLOCK_MONOTONIC", 32);
    at = cs_put_literal(at, ",\"clock_error_ns\":");
    at = cs_put_uint(at, cs_clock_error_ns());
    at = cs_put_literal(at, ",\"rings\":");
    at = cs_put_string(at, cs_rings_where(), CS_RINGS_PATH);
    at = cs_put_literal(at, ",\"options\":{");
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        if (i) *at++ = ',';
        at = cs_put_string(at, cs_option_info[i].env, 64);
        *at++ = ':';
        at = cs_put_string(at, cs_option_text(i), 1024);
    }
    return cs_events_begin(header, cs_put_literal(at, "}},\n"), cs_host_pid());
}

/* The gap after the file was full, on a lane of its own: the threads' lanes end where the file did. */
static char *put_cut(char *at)
{
    const struct cs_lane lane = cs_host_lane(cs_host_pid() ^ 1u << 30);
    struct cs_draft e = cs_args_end(cs_meta_name((struct cs_draft){at}, CS_META_THREAD, lane, "custream: not in this file"));
    e = cs_slice(e, "cs_loss", cs_title("lost"), lane, cut.begin_ns, cut.end_ns);
    e = cs_arg_uint(e, "count", cut.calls);
    e = cs_arg_uint(e, "gpu_work", cut.works);
    return cs_args_end(cs_arg_word(e, "cause", cs_output_full_cause() ?: "")).at;
}

/* --- what was never destroyed, by who made it --- */

enum { GROUPS = 128 };
static struct group {
    bool is_event;
    cs_name library;
    cs_u16 call;
    cs_u64 count;
} groups[GROUPS];
static size_t group_count;

static void group_add(bool is_event, cs_name library, cs_u16 call)
{
    size_t i = 0;
    while (i < group_count && (groups[i].is_event != is_event || groups[i].library != library || groups[i].call != call)) i++;
    if (i == group_count && group_count < GROUPS) groups[group_count++] = (struct group){is_event, library, call, 0};
    if (i < group_count) groups[i].count++;
}

static void count_live(cs_u64 *streams, cs_u64 *events)
{
    *streams = *events = group_count = 0;
    for (cs_u32 i = 0; i < cs_load(&cs_streams.high) && i < cs_streams.capacity; i++) {
        struct cs_stream *s = (struct cs_stream *)cs_pool_slot(&cs_streams, i);
        if (!cs_load_acq(&s->object.ref) || !cs_load_acq(&s->filled) || cs_load(&s->object.ended) || cs_load(&s->origin) != CS_STREAM_CREATED) continue;
        for (cs_u32 n = s->ours ? 0 : s->share_place ? cs_load(&s->shares) : 1; n; n--) { /* as often as the program made it and did not destroy it */
            group_add(false, s->library, s->call);
            ++*streams;
        }
    }
    for (cs_u32 i = 0; i < cs_load(&cs_events.high) && i < cs_events.capacity; i++) {
        struct cs_event *e = (struct cs_event *)cs_pool_slot(&cs_events, i);
        if (!cs_load_acq(&e->object.ref) || cs_load(&e->object.ended) || !e->call) continue;
        group_add(true, e->library, e->call);
        ++*events;
    }
}

static char *put_leaks(char *at, const char *end)
{
    cs_u64 streams, events;
    count_live(&streams, &events);
    at = cs_put_literal(at, ",\"leaked_streams\":");
    at = cs_put_uint(at, streams);
    at = cs_put_literal(at, ",\"leaked_events\":");
    at = cs_put_uint(at, events);
    at = cs_put_literal(at, "},\n\"neverDestroyed\":[");
    for (size_t i = 0; i < group_count && end - at > 4096; i++) {
        if (i) *at++ = ',';
        at = cs_put_literal(at, "\n{\"object\":");
        at = cs_put_string(at, groups[i].is_event ? "event" : "stream", 8);
        at = cs_put_literal(at, ",\"library\":");
        at = cs_put_string(at, cs_name_text(groups[i].library), 256);
        at = cs_put_literal(at, ",\"call\":");
        at = cs_put_string(at, cs_call_info[groups[i].call].name ?: "", 128);
        at = cs_put_literal(at, ",\"count\":");
        at = cs_put_uint(at, groups[i].count);
        *at++ = '}';
    }
    return cs_put_literal(at, "]");
}

static char *put_device_facts(char *at, int device)
{
    for (int fact = 0; fact < CS_DEVICE_FACTS; fact++) {
        const char *name;
        const int value = cs_device_fact(device, fact, &name);
        at = cs_put_text(cs_put_literal(at, ",\""), name);
        at = cs_put_int(cs_put_literal(at, "\":"), value);
    }
    return at;
}

static char *put_devices(char *at)
{
    bool first = true;
    at = cs_put_literal(at, ",\"deviceProperties\":[");
    for (int d = 0; d < CS_GPU_PIDS; d++) {
        if (!*cs_device_name(d)) continue;
        if (!first) *at++ = ',';
        first = false;
        at = cs_put_literal(at, "{\"id\":");
        at = cs_put_int(at, d);
        at = cs_put_literal(at, ",\"name\":");
        at = cs_put_string(at, cs_device_name(d), 256);
        at = put_device_facts(at, d);
        *at++ = '}';
    }
    return cs_put_literal(at, "]");
}

/* What one file of several cannot tell by itself. */
static char *put_parts(char *at)
{
    const struct cs_sums all = cs_totals_of_all();
    at = cs_put_literal(at, ",\"arrows_between_parts\":");
    at = cs_put_uint(at, cs_totals.arrows_between_parts);
    at = cs_put_literal(at, ",\"part\":");
    at = cs_put_uint(at, cs_output_part());
    at = cs_put_literal(at, ",\"continues\":");
    at = cs_put_text(at, cs_totals.part_ends && !cs_output_full() ? "true" : "false");
    at = cs_put_literal(at, ",\"parts_deleted\":");
    at = cs_put_uint(at, parts.deleted);
    at = cs_put_literal(at, ",\"recorded_in_deleted_parts\":");
    at = cs_put_uint(at, parts.recorded_in_deleted);
    at = cs_put_literal(at, ",\"recorded_in_all_parts\":");
    at = cs_put_uint(at, all.recorded);
    at = cs_put_literal(at, ",\"calls_in_all_parts\":");
    at = cs_put_uint(at, all.calls);
    at = cs_put_literal(at, ",\"lost_in_all_parts\":");
    at = cs_put_uint(at, all.lost);
    at = cs_put_literal(at, ",\"gpu_work_in_all_parts\":");
    at = cs_put_uint(at, shown_of(&all.gpu));
    at = cs_put_literal(at, ",\"gpu_work_lost_in_all_parts\":");
    at = cs_put_uint(at, all.gpu.lost);
    at = cs_put_literal(at, ",\"gpu_work_without_call_in_all_parts\":");
    at = cs_put_uint(at, all.gpu.unmatched);
    at = cs_put_literal(at, ",\"gpu_work_without_times_in_all_parts\":");
    return cs_put_uint(at, untimed_of(&all.gpu));
}

/* What there was no memory for. */
static char *put_refused(char *at)
{
    const char *lost = cs_refused_nth(0);
    for (unsigned i = 0; lost; lost = cs_refused_nth(++i)) {
        at = cs_put_text(at, i ? "," : ",\"no_memory_for\":[");
        at = cs_put_string(at, lost, 128);
        if (!cs_refused_nth(i + 1)) *at++ = ']';
    }
    return at;
}

static cs_u64 untracked(void) { return cs_load(&cs_streams.refused) + cs_load(&cs_events.refused) + cs_load(&cs_contexts.refused); }

/* Counts of what is not known since a table was full; nothing if there are none. */
static char *put_no_room(char *at)
{
    bool any = false;
    for (int i = 0; i < CS_NO_ROOM_KINDS; i++) {
        const cs_u64 count = cs_no_room_count(i);
        if (!count) continue;
        at = cs_put_text(cs_put_text(at, any ? ",\"" : ",\"no_room\":{\""), cs_no_room_info[i].name);
        at = cs_put_uint(cs_put_literal(at, "\":"), count);
        any = true;
    }
    return any ? cs_put_literal(at, "}") : at;
}

/* Why the file ended before the process, and what was recorded for it in vain. */
static char *put_not_written(char *at)
{
    at = cs_put_literal(at, ",\"ended\":");
    at = cs_put_string(at, cs_output_full_cause() ?: "", 128);
    at = cs_put_literal(at, ",\"not_written\":{\"calls\":");
    at = cs_put_uint(at, cut.calls);
    at = cs_put_literal(at, ",\"gpu_work\":");
    at = cs_put_uint(at, cut.works);
    return cs_put_literal(at, "}");
}

static char *put_trailer(char *at, size_t size, unsigned how)
{
    const char *end = at + size;
    const bool final = how & CS_TRAILER_LAST, brief = how & CS_TRAILER_BRIEF;
    cs_trailer_begins();
    if (cut.calls || cut.works) at = put_cut(at);
    at = cs_put_literal(cs_events_end(at), ",\"traceName\":\"custream\"");
    at = put_devices(at);
    if (cs_listener) at = cs_listener->put(at, brief ? 0 : size / 8 * 3);
    at = cs_put_literal(at, ",\n\"totals\":{\"recorded\":");
    at = cs_put_uint(at, cs_totals.sum.recorded);
    at = cs_put_literal(at, ",\"calls\":");
    at = cs_put_uint(at, cs_totals.sum.calls);
    at = cs_put_literal(at, ",\"lost_records\":");
    at = cs_put_uint(at, cs_totals.sum.lost + cut.calls);
    if (cs_totals.muted) {
        at = cs_put_literal(at, ",\"left_out_by_rule\":");
        at = cs_put_uint(at, cs_totals.muted);
    }
    at = cs_put_literal(at, ",\"complete\":");
    at = cs_put_text(at, (final || cs_totals.part_ends) && !cs_output_full() && !cs_refused_nth(0) ? "true" : "false");
    if (cs_output_full()) at = put_not_written(at);
    at = put_no_room(put_refused(at));
    at = cs_put_literal(at, ",\"untracked_objects\":");
    at = cs_put_uint(at, untracked());
    at = cs_gpu_put_totals(at);
    at = cs_windows_put_totals(at, brief);
    if (cs_option_parts(CS_OPTION_TRACE_MAX)) at = put_parts(at);
    if (!final && !brief && !cs_totals.part_ends) at = cs_inside_put(at, end);
    at = final && !brief ? put_leaks(at, end) : cs_put_literal(at, "}");
    if (cs_totals_add && !brief && end - at > 8192) at = cs_totals_add(at, (size_t)(end - at) - 4096);
    return cs_put_literal(at, "}\n");
}

/* In the words of the trailer, so that who reads that says the same. */
void cs_totals_verdict(struct cs_verdict *v, char *room, size_t size)
{
    cs_u64 since;
    const struct cs_sums all = cs_totals_of_all();
    const char *why = cs_gpu_missing(CS_GPU_TIMES, &since), *source = cs_gpu_source();
    size_t n = 0;
    *room = 0;
    for (unsigned i = 0; cs_refused_nth(i); i++) n = cs_append(room, size, n, "%s%s", i ? ", " : "", cs_refused_nth(i));
    *v = (struct cs_verdict){
        .calls = all.calls,
        .operations = shown_of(&all.gpu),
        .lost_calls = all.lost,
        .lost_work = all.gpu.lost,
        .complete = !cs_output_full() && !*room,
        .ended = cs_output_full() ? cs_output_full_cause() ?: "" : NULL,
        .calls_not_written = cut.calls,
        .work_not_written = cut.works,
        .no_memory_for = *room ? room : NULL,
        .no_gpu_times = !strcmp(source, "none"),
        .sample = cs_gpu_samples() ? cs_gpu_sample : 0,
        .untimed = untimed_of(&all.gpu),
        .without_call = all.gpu.unmatched,
        .gpu_cause = why == cs_gpu_ended || !strcmp(source, "events") ? NULL : why,
    };
    for (int i = 0; i < CS_NO_ROOM_KINDS; i++) v->no_room[i] = cs_no_room_count(i);
    v->no_room[CS_NO_ROOM_FOR_OBJECTS] = untracked();
}

const struct cs_output_teller cs_totals_teller = {.trailer = put_trailer, .sealed = cs_trailer_ends, .flushed = all_flushed, .unflushed = never_flushed, .part_deleted = part_deleted};
