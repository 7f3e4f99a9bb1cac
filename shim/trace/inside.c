#include "shim/trace/inside.h"

#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/calls/calls.h"
#include "shim/gpu/backend.h"
#include "shim/match/match.h"
#include "shim/object/context.h"
#include "shim/object/event.h"
#include "shim/object/stream.h"
#include "shim/trace/thread_row.h"

enum { LOOK_NS = 20000000, LISTED = 32, ENTRY_ROOM = 512 };

static cs_u64 gpu_flushed; /* ticks: what the GPU had finished by then is in the trace, or was lost; 0: nobody tells */

/* --- looking --- */

static void see(struct cs_inside_seen *seen, cs_u64 what, cs_u64 at, cs_u64 now)
{
    const bool same = seen->since && seen->what == what && seen->at == at;
    if (!what) *seen = (struct cs_inside_seen){0};
    else if (same) seen->twice = true;
    else *seen = (struct cs_inside_seen){.what = what, .at = at, .since = now};
}

static void look_at(struct cs_thread *thread, cs_u64 now)
{
    struct cs_thread_row *row = cs_thread_row(thread);
    const cs_u64 at = cs_load(&thread->ring.head) + cs_load(&thread->lost); /* another call of the same name has made a record before */
    see(&row->call, CS_CALL_IN(cs_load(&thread->inside)), at, now);
    see(&row->function, (uintptr_t)cs_load(&thread->function), 0, now);
}

void cs_inside_look(void)
{
    static cs_u64 looked_ns;
    const cs_u64 ns = cs_monotonic_ns(), now = cs_ticks();
    gpu_flushed = cs_gpu_flushed();
    if (ns - looked_ns < LOOK_NS) return;
    looked_ns = ns;
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next)
        if (t->index <= CS_THREADS && cs_load_acq(&t->state) == CS_THREAD_LIVE) look_at(t, now);
}

/* --- telling --- */

static char *put_time(char *at, const char *key, cs_u64 ticks)
{
    return cs_put_us(cs_put_text(at, key), cs_clock_ns(ticks));
}

static char *put_stream(char *at, cs_ref ref)
{
    const struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    if (!stream || !cs_load_acq(&stream->filled)) return at;
    at = cs_put_uint(cs_put_literal(at, ",\"stream\":"), stream->lane);
    return cs_put_int(cs_put_literal(at, ",\"device\":"), stream->device);
}

/* Where a policy sends the stream's work (policy/serial.c). */
static cs_ref carried_by(struct cs_thread *thread, cs_ref ref)
{
    const struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    const struct cs_context *context = stream && stream->serial ? cs_pool_get(&cs_contexts, cs_load(&stream->context)) : NULL;
    const CUstream carrier = context ? (CUstream)(uintptr_t)cs_load_acq(&context->carrier) : NULL;
    return carrier ? cs_stream_find(thread, carrier, false) : ref;
}

/* What a call that synchronises waits for, or on which stream one puts work. The thread may leave it while this is read: then it names what it last waited for. */
static char *put_waited(char *at, struct cs_thread *thread, const struct cs_call_info *info)
{
    const void *waited = cs_load(&thread->waited);
    const bool on_default = info->kind == CS_KIND_COPY && info->how & CS_HOW_BLOCKS;
    if (on_default) return put_stream(at, cs_stream_find(thread, NULL, info->per_thread));
    /* NULL may be a stream that stands behind a pointer of the program's. */
    if (cs_kind_info[info->kind].implies & CS_NODE && waited) return put_stream(at, carried_by(thread, cs_stream_find(thread, (CUstream)waited, info->per_thread)));
    if (info->kind != CS_KIND_SYNC) return at;
    if (info->how & CS_HOW_WIDE) return cs_put_literal(at, ",\"all\":true");
    if (info->shown[0].format != CS_FORMAT_EVENT) return put_stream(at, cs_stream_find(thread, (CUstream)waited, info->per_thread));
    const struct cs_event *event = cs_pool_get(&cs_events, cs_event_find((CUevent)waited));
    return event ? cs_put_uint(cs_put_literal(at, ",\"event\":"), event->number) : at;
}

/* The stream of the host function that was seen, while it still runs: its thread may leave it meanwhile and enter another one, of another stream. */
static char *put_function_stream(char *at, struct cs_thread *thread, cs_u64 function)
{
    const cs_ref stream = cs_load_acq(&thread->function_stream);
    return (uintptr_t)cs_load(&thread->function) == function ? put_stream(at, stream) : at;
}

static char *put_entry(char *at, struct cs_thread *thread, const struct cs_inside_seen *seen, bool is_call)
{
    char name[CS_THREAD_COMM];
    cs_thread_comm(thread, name);
    at = cs_put_uint(cs_put_literal(at, "\n{\"thread\":"), thread->tid);
    at = cs_put_string(cs_put_literal(at, ",\"name\":"), name, sizeof name);
    at = put_time(at, ",\"since_us\":", seen->since);
    if (is_call) {
        const struct cs_call_info *info = &cs_call_info[seen->what < CS_CALL_COUNT ? seen->what : 0];
        at = cs_put_string(cs_put_literal(at, ",\"call\":"), info->name ?: "", 128);
        at = put_waited(at, thread, info);
    } else {
        at = cs_put_hex(cs_put_literal(at, ",\"function\":"), seen->what);
        at = put_function_stream(at, thread, seen->what);
    }
    return cs_put_literal(at, "},");
}

static bool is_wait(const struct cs_inside_seen *seen) { return seen->what < CS_CALL_COUNT && cs_call_info[seen->what].kind == CS_KIND_SYNC; }

/* Waits come last: there may be more of them than have room, and whoever is in a launch or a host function for long may be why they wait. */
static char *put_list(char *at, const char *end, unsigned *more)
{
    unsigned listed = 0;
    for (int waits = 0; waits < 2; waits++)
        for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) {
            if (t->index > CS_THREADS || cs_load_acq(&t->state) != CS_THREAD_LIVE) continue;
            const struct cs_thread_row *row = cs_thread_row(t);
            const struct cs_inside_seen *const all[] = {&row->function, &row->call};
            for (int i = 0; i < 2; i++) {
                if (!all[i]->twice || (i && is_wait(all[i])) != waits) continue;
                if (listed == LISTED || end - at < ENTRY_ROOM + 8192) ++*more;
                else at = put_entry(at, t, all[i], i), listed++;
            }
        }
    return at[-1] == ',' ? at - 1 : at;
}

/* --- launches that have not ended --- */

static char *put_three(char *at, const char *key, cs_u32 x, cs_u32 y, cs_u32 z)
{
    at = cs_put_uint(cs_put_literal(cs_put_text(at, key), "["), x);
    at = cs_put_uint(cs_put_literal(at, ","), y);
    return cs_put_literal(cs_put_uint(cs_put_literal(at, ","), z), "]");
}

static char *put_awaited(char *at, const char *end)
{
    unsigned listed = 0;
    for (cs_u32 i = 1; i <= cs_match_lanes_high() && listed < LISTED && end - at > ENTRY_ROOM + 8192; i++) {
        const struct cs_match_lane *lane = cs_match_lane_get(i);
        const struct cs_op *op = cs_match_awaited(lane);
        if (!op) continue;
        at = cs_put_uint(cs_put_literal(at, "\n{\"stream\":"), lane->tid);
        at = cs_put_uint(cs_put_literal(at, ",\"device\":"), lane->device);
        at = cs_put_uint(cs_put_literal(at, ",\"correlation\":"), op->id);
        at = put_three(at, ",\"grid\":", op->launch.grid[0], op->launch.grid[1], op->launch.grid[2]);
        at = cs_put_literal(put_three(at, ",\"block\":", op->launch.block & 2047, op->launch.block >> 11 & 2047, op->launch.block >> 22), "},");
        listed++;
    }
    return at[-1] == ',' ? at - 1 : at;
}

char *cs_inside_put(char *at, const char *end)
{
    unsigned more = 0;
    at = put_time(at, ",\"as_of_us\":", cs_ticks());
    if (gpu_flushed) at = put_time(at, ",\"gpu_as_of_us\":", gpu_flushed);
    at = cs_put_literal(put_awaited(cs_put_literal(at, ",\"awaited\":["), end), "]");
    at = cs_put_literal(put_list(cs_put_literal(at, ",\"inside\":["), end, &more), "]");
    return more ? cs_put_uint(cs_put_literal(at, ",\"inside_more\":"), more) : at;
}
