#define _GNU_SOURCE
#include "shim/trace/totals.h"

#include <string.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/base/options.h"
#include "shim/calls/calls.h"
#include "shim/gpu/backend.h"
#include "shim/object/event.h"
#include "shim/object/stream.h"
#include "shim/trace/audit.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/trace/output.h"
#include "shim/trace/path.h"
#include "shim/trace/windows.h"

struct cs_totals cs_totals;

static struct {
    cs_u64 count, begin_ns, end_ns;
} cut; /* what came after the file was full */

static cs_u64 recorded_in_file, lost_in_file;

static struct {
    cs_u32 number;
    cs_u64 recorded, lost; /* in all parts before this one */
    cs_u32 deleted;
    cs_u64 recorded_in_deleted;
    struct cs_totals before; /* of the part before */
} parts;

void cs_totals_reset(void)
{
    memset(&cs_totals, 0, sizeof cs_totals);
    memset(&cut, 0, sizeof cut);
    memset(&parts, 0, sizeof parts);
    parts.number = 1;
    recorded_in_file = lost_in_file = 0;
    cs_totals.begin_ns = UINT64_MAX;
}

void cs_totals_part_begin(void)
{
    parts.before = cs_totals;
    parts.recorded += cs_totals.recorded;
    parts.lost += cs_totals.lost;
    parts.number++;
    memset(&cs_totals, 0, sizeof cs_totals);
    cs_totals.begin_ns = UINT64_MAX;
    recorded_in_file = lost_in_file = 0;
}

void cs_totals_part_undo(void)
{
    cs_totals = parts.before;
    cs_totals.part_ends = false;
    parts.recorded -= cs_totals.recorded;
    parts.lost -= cs_totals.lost;
    parts.number--;
    recorded_in_file = cs_totals.recorded;
    lost_in_file = cs_totals.lost;
}

void cs_totals_part_deleted(cs_u64 recorded)
{
    parts.deleted++;
    parts.recorded_in_deleted += recorded;
}

cs_u32 cs_totals_part(void) { return parts.number; }
cs_u64 cs_totals_before(void) { return parts.before.recorded; }

void cs_totals_gathered(cs_u64 begin_ns, cs_u64 end_ns)
{
    if (begin_ns < cs_totals.begin_ns) cs_totals.begin_ns = begin_ns;
    if (end_ns > cs_totals.end_ns) cs_totals.end_ns = end_ns;
}

static _Atomic cs_u64 recorded_told, lost_told;

void cs_totals_told(cs_u64 *recorded, cs_u64 *lost)
{
    *recorded = cs_load(&recorded_told);
    *lost = cs_load(&lost_told);
}

void cs_totals_flushed(void)
{
    recorded_in_file = cs_totals.recorded;
    lost_in_file = cs_totals.lost;
    cs_store(&recorded_told, parts.recorded + cs_totals.recorded);
    cs_store(&lost_told, parts.lost + cs_totals.lost + cut.count);
    cs_totals.begin_ns = UINT64_MAX;
    cs_totals.end_ns = 0;
}

void cs_totals_unflushed(void)
{
    cs_u64 count = cs_totals.recorded - recorded_in_file + cs_totals.lost - lost_in_file;
    cs_totals.recorded = recorded_in_file;
    cs_totals.lost = lost_in_file;
    if (count) cs_totals_cut(count, cs_totals.begin_ns, cs_totals.end_ns);
}

void cs_totals_cut(cs_u64 count, cs_u64 begin_ns, cs_u64 end_ns)
{
    if (!cut.count || begin_ns < cut.begin_ns) cut.begin_ns = begin_ns;
    if (end_ns > cut.end_ns) cut.end_ns = end_ns;
    cut.count += count;
}

char *cs_totals_header(char *at)
{
    int world, rank = cs_process_rank(&world);
    at = cs_put_literal(at, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":");
    at = cs_put_uint(at, cs_clock_wall_base_ns());
    if (cs_option_parts(CS_OPTION_TRACE_MAX)) {
        at = cs_put_literal(at, ",\"part\":"); /* part.c looks for it here */
        at = cs_put_uint(at, parts.number);
    }
    at = cs_put_literal(at, ",\n\"distributedInfo\": {\"rank\": ");
    at = cs_put_int(at, rank < 0 ? 0 : rank);
    at = cs_put_literal(at, ", \"world_size\": ");
    at = cs_put_int(at, world < 1 ? 1 : world);
    at = cs_put_literal(at, "},\n\"metadata\":{\"tool\":\"custream " CUSTREAM_VERSION_STRING "\",\"gpu_time_source\":");
    at = cs_put_string(at, cs_gpu_source(), 16);
    at = cs_put_literal(at, ",\"simulated_gpu\":");
    at = cs_put_text(at, cs_device_is_simulated() ? "true" : "false");
    at = cs_put_literal(at, ",\"clock\":");
    at = cs_put_string(at, cs_clock_is_counter ? "processor counter" : "CLOCK_MONOTONIC", 32);
    at = cs_put_literal(at, ",\"clock_error_ns\":");
    at = cs_put_uint(at, cs_clock_error_ns());
    at = cs_put_literal(at, ",\"options\":{");
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        if (i) *at++ = ',';
        at = cs_put_string(at, cs_option_info[i].env, 64);
        *at++ = ':';
        at = cs_put_string(at, cs_option_text(i), 1024);
    }
    at = cs_put_literal(at, "}},\n\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":");
    at = cs_put_uint(at, cs_host_pid());
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, cs_host_pid());
    return cs_put_literal(at, ",\"args\":{\"sort_index\":0}}");
}

/* The gap after the file was full, on a lane of its own: the threads' lanes end where the file did. */
static char *put_cut(char *at)
{
    cs_u32 tid = cs_host_pid() ^ 1u << 30;
    at = cs_put_literal(at, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":");
    at = cs_put_uint(at, cs_host_pid());
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, tid);
    at = cs_put_literal(at, ",\"args\":{\"name\":\"custream: not in this file\"}},\n{\"ph\":\"X\",\"cat\":\"cs_loss\",\"name\":\"lost\",\"pid\":");
    at = cs_put_uint(at, cs_host_pid());
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, cut.begin_ns);
    at = cs_put_literal(at, ",\"dur\":");
    at = cs_put_us(at, cut.end_ns > cut.begin_ns ? cut.end_ns - cut.begin_ns : 1);
    at = cs_put_literal(at, ",\"args\":{\"count\":");
    at = cs_put_uint(at, cut.count);
    at = cs_put_literal(at, ",\"cause\":");
    at = cs_put_string(at, cs_output_full_cause(), 128);
    return cs_put_literal(at, "}}");
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
        if (!cs_load_acq(&s->object.ref) || !cs_load_acq(&s->filled) || cs_load(&s->object.ended) || s->origin != CS_STREAM_CREATED) continue;
        for (cs_u32 n = s->ours ? 0 : s->pool_place ? cs_load(&s->shares) : 1; n; n--) { /* as often as the program made it and did not destroy it */
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
        at = cs_put_literal(at, ",\"numSms\":");
        at = cs_put_int(at, cs_device_sms(d));
        *at++ = '}';
    }
    return cs_put_literal(at, "]");
}

/* What one file of several cannot tell by itself. */
static char *put_parts(char *at)
{
    at = cs_put_literal(at, ",\"arrows_between_parts\":");
    at = cs_put_uint(at, cs_totals.arrows_between_parts);
    at = cs_put_literal(at, ",\"part\":");
    at = cs_put_uint(at, parts.number);
    at = cs_put_literal(at, ",\"continues\":");
    at = cs_put_text(at, cs_totals.part_ends && !cs_output_full() ? "true" : "false");
    at = cs_put_literal(at, ",\"parts_deleted\":");
    at = cs_put_uint(at, parts.deleted);
    at = cs_put_literal(at, ",\"recorded_in_deleted_parts\":");
    at = cs_put_uint(at, parts.recorded_in_deleted);
    at = cs_put_literal(at, ",\"recorded_in_all_parts\":");
    at = cs_put_uint(at, parts.recorded + cs_totals.recorded);
    at = cs_put_literal(at, ",\"lost_in_all_parts\":");
    return cs_put_uint(at, parts.lost + cs_totals.lost + cut.count);
}

char *cs_totals_trailer(char *at, size_t size)
{
    const char *end = at + size;
    if (cut.count) at = put_cut(at);
    at = cs_put_literal(at, "\n],\"traceName\":\"custream\"");
    at = put_devices(at);
    at = cs_audit_put(at, cs_totals.brief ? 0 : size / 8 * 3);
    at = cs_put_literal(at, ",\n\"totals\":{\"recorded\":");
    at = cs_put_uint(at, cs_totals.recorded);
    at = cs_put_literal(at, ",\"lost_records\":");
    at = cs_put_uint(at, cs_totals.lost + cut.count);
    if (cs_totals.muted) {
        at = cs_put_literal(at, ",\"left_out_by_rule\":");
        at = cs_put_uint(at, cs_totals.muted);
    }
    at = cs_put_literal(at, ",\"complete\":");
    at = cs_put_text(at, (cs_totals.final || cs_totals.part_ends) && !cs_output_full() ? "true" : "false");
    at = cs_put_literal(at, ",\"untracked_objects\":");
    at = cs_put_uint(at, cs_load(&cs_streams.refused) + cs_load(&cs_events.refused) + cs_load(&cs_contexts.refused));
    at = cs_put_literal(at, ",\"arrows_dropped\":");
    at = cs_put_uint(at, cs_totals.arrows_dropped);
    at = cs_gpu_put_totals(at);
    at = cs_windows_put_totals(at, cs_totals.brief);
    if (cs_option_parts(CS_OPTION_TRACE_MAX)) at = put_parts(at);
    at = cs_totals.final && !cs_totals.brief ? put_leaks(at, end) : cs_put_literal(at, "}");
    return cs_put_literal(at, "}\n");
}
