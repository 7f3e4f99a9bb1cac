/*
 * Lives of streams: two marks each, from its creation to its end, or cut in two between parts of the trace. They stand on one lane per GPU, so that a stream
 * which is given no work takes none of its own.
 */
#include "shim/trace/stream_life.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/append.h"
#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/calls/calls.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"
#include "shim/trace/windows.h"

/* What the timeline keeps of each stream, by the place of its object; as new for each object in that place. */
static struct row {
    cs_ref ref;           /* of the stream whose row it is */
    bool announced;       /* its life has begun in this file, and not ended */
    cs_u32 lane_file;     /* the file in which its lane was last announced; 0: none */
    cs_u32 naming;        /* the way in which lanes were called then */
    bool continued, over; /* its life has begun, has ended in an earlier part of the trace */
    cs_u64 shown_from_ns; /* where its life begins in the present part; 0: where it was created */
    cs_u64 marked_ns;     /* where the mark of that stands */
    cs_u16 rule_shown;    /* when its life began */
    cs_name name_shown;   /* in the lane's name as last announced */
    cs_u64 work[CS_WORK_KINDS], bytes_copied; /* what went through it in this part */
} *rows;
CS_TABLE(TRACE, rows, CS_STREAMS);
static _Atomic bool has_rows; /* for other threads */
static cs_u32 shown;

/* How lanes are called: with their library once two of them come from different ones. */
static struct {
    cs_u32 way; /* counts up with each change, from 1 */
    bool with_library;
    cs_name library; /* of the first lane that has one */
} naming;

/* Of each GPU, in this file. */
static struct {
    bool announced;
    cs_u32 streams, idle; /* whose life has begun; whose life has ended without work on a lane */
    cs_u64 marked_ns, shown_ns; /* the last run of marks: the time of the last one not moved, and where the run ends */
} lives[CS_GPU_PIDS];

static inline struct row *row_of(const struct cs_stream *stream)
{
    cs_ref ref = cs_load(&stream->object.ref);
    struct row *row = &rows[ref % CS_STREAMS];
    if (CS_UNLIKELY(row->ref != ref)) *row = (struct row){.ref = ref};
    return row;
}

static struct cs_stream *stream_at(cs_u32 i)
{
    struct cs_stream *stream = (struct cs_stream *)cs_pool_slot(&cs_streams, i);
    return cs_load_acq(&stream->object.ref) ? stream : NULL;
}

static cs_u32 streams_high(void) { return cs_load(&cs_streams.high) < cs_streams.capacity ? cs_load(&cs_streams.high) : cs_streams.capacity; }

void cs_stream_lives_begin(bool part)
{
    shown = 0;
    memset(lives, 0, sizeof lives);
    if (!part) cs_memory_forget(rows, CS_STREAMS * sizeof *rows), naming = (__typeof__(naming)){.way = 1};
    for (cs_u32 i = 0; part && i < streams_high(); i++) rows[i].announced = false;
    cs_store_rel(&has_rows, true);
}

/* GPUs beyond have no lane of marks, and so their streams no lives. */
static bool has_life(const struct cs_stream *stream) { return stream->device >= 0 && stream->device < CS_GPU_PIDS; }

void cs_stream_lives_forget(void) { cs_store(&has_rows, false); }
cs_u32 cs_stream_lives_shown(void) { return shown; }

/* --- names --- */

/* "libc10_cuda" of "libc10_cuda.so.2", "driver" of "driver.cpython-312-x86_64-linux-gnu.so". */
static int library_length(const char *library)
{
    static const char *const ends[] = {".cpython-", ".abi3.so", ".so"};
    const char *end = NULL;
    for (size_t i = 0; i < CS_COUNT(ends) && !end; i++) end = strstr(library, ends[i]);
    return end && end > library ? (int)(end - library) : (int)strlen(library);
}

/* "stream 14 p-5 nb · loader": what it is, then the name that the program gave it, or the thread that made it. */
static void put_name(const struct cs_stream *stream, cs_name given, char *name, size_t size)
{
    char maker[64] = "";
    const int priority = cs_load(&stream->priority);
    size_t n = cs_append(name, size, 0, "stream %u", stream->lane);
    if (cs_load(&stream->origin) == CS_STREAM_LEGACY) n = cs_append(name, size, n, " legacy default");
    if (cs_load(&stream->origin) == CS_STREAM_PER_THREAD) n = cs_append(name, size, n, " per-thread default");
    if (cs_load(&stream->origin) <= CS_STREAM_ADOPTED && priority) n = cs_append(name, size, n, " p%d", priority);
    if (cs_load(&stream->origin) <= CS_STREAM_ADOPTED && stream->flags & CU_STREAM_NON_BLOCKING) n = cs_append(name, size, n, " nb");
    if (stream->green) n = cs_append(name, size, n, " green");
    if (cs_load(&stream->origin) == CS_STREAM_ADOPTED) n = cs_append(name, size, n, " adopted");
    if (cs_load(&stream->origin) == CS_STREAM_CREATED) cs_thread_shown_name(stream->tid, maker, sizeof maker);
    if (cs_load(&stream->origin) == CS_STREAM_PER_THREAD) snprintf(maker, sizeof maker, "%s", stream->owner);
    if (given) n = cs_append(name, size, n, " · %.128s", cs_name_text(given));
    else if (*maker) n = cs_append(name, size, n, " · %s", maker);
    if (!naming.with_library || !stream->library) return;
    const char *library = cs_name_text(stream->library);
    cs_append(name, size, n, " (%.*s)", library_length(library), library);
}

static void lane_write(const struct cs_stream *stream, struct row *row, cs_name given)
{
    const cs_u32 tid = cs_lane_tid(stream->lane, CS_LANE_WORK, 0);
    const bool again = row->lane_file == cs_lanes_file();
    char name[512];
    if (stream->library && !naming.library) naming.library = stream->library;
    if (stream->library && stream->library != naming.library && !naming.with_library) naming.with_library = true, naming.way++;
    row->lane_file = cs_lanes_file();
    row->naming = naming.way;
    row->name_shown = given;
    put_name(stream, given, name, sizeof name);
    cs_lane_named_of_gpu((cs_u32)stream->device, tid, name, again);
}

/* The lane of the marks of a GPU, announced. */
static struct cs_lane marks_lane(cs_u32 device)
{
    const struct cs_lane lane = cs_lane_at(device, cs_lane_tid(CS_LANE_LIVES, CS_LANE_WORK, 0));
    if (lives[device].announced) return lane;
    lives[device].announced = true;
    cs_lane_named_of_gpu(device, lane.tid, "streams", false);
    return lane;
}

/* Where a mark stands. Viewers put marks of one moment below each other, and all streams that are left end with the process. So each takes a nanosecond. */
static cs_u64 mark_place(cs_u32 device, cs_u64 ns)
{
    const bool taken = ns >= lives[device].marked_ns && ns <= lives[device].shown_ns;
    const cs_u64 shown_ns = taken ? lives[device].shown_ns + 1 : ns;
    if (!taken) lives[device].marked_ns = ns;
    return lives[device].shown_ns = shown_ns;
}

void cs_stream_lives_summed_up(void)
{
    for (cs_u32 device = 0; device < CS_GPU_PIDS && !cs_output_full(); device++) {
        const cs_u32 all = lives[device].streams, idle = lives[device].idle;
        char name[80];
        if (!idle) continue;
        const struct cs_lane lane = marks_lane(device);
        snprintf(name, sizeof name, "%u stream%s, %u idle", all, all == 1 ? "" : "s", idle);
        cs_lane_named_of_gpu(device, lane.tid, name, true);
    }
}

/* --- begin --- */

/* CUDA has this one flag of a stream. */
static struct cs_draft flags_arg(struct cs_draft e, const char *key, unsigned flags)
{
    e = cs_arg_named(e, key);
    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return cs_value_hex(e, flags);
    return cs_value_word(e, flags ? "non-blocking" : "blocking");
}

static struct cs_draft rule_arg(struct cs_draft e, cs_u16 rule)
{
    char text[32];
    snprintf(text, sizeof text, "rules[%u]", rule - 1u);
    return cs_arg_word(e, "rule", text);
}

/* What a policy made of the stream: asked and given stand beside each other. */
static struct cs_draft policy_args(struct cs_draft e, const struct cs_stream *stream, cs_u16 rule)
{
    if (stream->flags_asked != stream->flags) e = flags_arg(e, "requested flags", stream->flags_asked);
    if (rule) e = rule_arg(e, rule);
    if (cs_load(&stream->steered)) e = cs_arg_bool(e, "changed by policy", true);
    if (stream->share_place) e = cs_arg_uint(e, "pool place", stream->share_place);
    if (stream->serial) e = cs_arg_word(e, "serial", "its work is the carrier's");
    if (stream->ours) e = cs_arg_word(e, "serial", "carrier");
    if (cs_load(&stream->redirected)) e = cs_arg_bool(e, "redirected", true);
    if (cs_load(&stream->muted)) e = cs_arg_bool(e, "recorded", false);
    return e;
}

static const char *const origins[] = {"created", "adopted: first seen in use", "legacy default", "per-thread default"};

static struct cs_draft life_args(struct cs_draft e, const struct cs_stream *stream, const struct row *row)
{
    e = cs_arg_uint(e, "cs.stream", stream->lane);
    e = cs_arg_word(e, "origin", origins[cs_load(&stream->origin)]);
    if (cs_load(&stream->origin) <= CS_STREAM_ADOPTED) {
        e = cs_arg_hex(e, "handle", stream->key);
        if (!cs_load_acq(&stream->unasked)) e = flags_arg(e, "flags", stream->flags);
        e = cs_arg_int(e, "priority", cs_load(&stream->priority));
        e = cs_arg_int(e, "requested priority", stream->priority_asked);
    }
    if (stream->call) {
        e = cs_arg_word(e, "created by", cs_call_info[stream->call].name);
        e = cs_arg_text(e, "library", cs_name_text(stream->library), 256);
    }
    e = policy_args(e, stream, row->rule_shown);
    if (stream->green) e = cs_arg_hex(e, "green context", stream->green);
    if (row->continued) e = cs_arg_bool(e, "continued", true);
    return cs_arg_uint(e, "thread", stream->tid);
}

static void begin_write(struct cs_stream *stream, struct row *row, cs_name given)
{
    char name[512], title[48];
    row->announced = true;
    shown++;
    if (!row->shown_from_ns) row->shown_from_ns = cs_clock_ns(stream->created);
    row->name_shown = given;
    row->rule_shown = cs_load_acq(&stream->rule); /* before what it has set */
    const struct cs_lane lane = marks_lane((cs_u32)stream->device);
    lives[stream->device].streams++;
    row->marked_ns = mark_place((cs_u32)stream->device, row->shown_from_ns);
    put_name(stream, given, name, sizeof name);
    snprintf(title, sizeof title, "stream %u begins", stream->lane);
    struct cs_draft e = cs_instant(cs_draft(), CS_INSTANT_THREAD, "cs_stream", cs_title(title), lane, row->marked_ns);
    e = cs_arg_text(e, "name", name, sizeof name);
    cs_commit(cs_args_end(life_args(e, stream, row)));
}

void cs_stream_life_begins(struct cs_stream *stream)
{
    struct row *row = row_of(stream);
    const cs_name given = cs_load_acq(&stream->name);
    const bool has_lane = row->lane_file == cs_lanes_file();
    if (CS_LIKELY(row->announced && given == row->name_shown && (!has_lane || row->naming == naming.way))) return;
    if (!has_life(stream)) return;
    if (!row->announced) begin_write(stream, row, given);
    else if (has_lane) lane_write(stream, row, given);
    row->name_shown = given;
}

void cs_lane_stream(struct cs_stream *stream)
{
    cs_stream_life_begins(stream);
    struct row *row = row_of(stream);
    if (row->lane_file != cs_lanes_file()) lane_write(stream, row, cs_load_acq(&stream->name));
}

void cs_stream_lives_go_on(void)
{
    for (cs_u32 i = 0; i < streams_high() && cs_output_roomy(); i++) {
        struct cs_stream *stream = stream_at(i);
        if (stream && row_of(stream)->continued && !row_of(stream)->over) cs_stream_life_begins(stream);
    }
}

/* --- what goes through --- */

void cs_stream_life_works(const struct cs_stream *stream, const struct cs_record *r)
{
    static const unsigned char work_of[CS_KIND_COUNT] = {
#define KIND(name, text, implies, hook, jitter, counts, ...) CS_WORK_##counts,
#include "shim/calls/kinds.def"
#undef KIND
    };
    if (r->result != CUDA_SUCCESS) return;
    const struct cs_call_info *info = &cs_call_info[r->call];
    struct row *row = row_of(stream);
    row->work[work_of[info->kind]]++;
    if (info->kind == CS_KIND_COPY && info->shown[0].format == CS_FORMAT_SIZE) row->bytes_copied += r->value[0];
}

/* The writer goes on counting meanwhile. */
void cs_stream_life_history(cs_ref stream, cs_u64 work[CS_WORK_KINDS], cs_u64 *bytes_copied)
{
    const struct row *row = cs_load_acq(&has_rows) ? &rows[stream % CS_STREAMS] : NULL;
    bool its = row && __atomic_load_n(&row->ref, __ATOMIC_RELAXED) == stream;
    for (int i = 0; i < CS_WORK_KINDS; i++) work[i] = its ? __atomic_load_n(&row->work[i], __ATOMIC_RELAXED) : 0;
    *bytes_copied = its ? __atomic_load_n(&row->bytes_copied, __ATOMIC_RELAXED) : 0;
}

/* --- end --- */

enum how { DESTROYED, NEVER_DESTROYED, CONTINUES };

static struct cs_draft work_args(struct cs_draft e, const struct row *row)
{
    static const char *const names[CS_WORK_KINDS] = {"launches", "copies", "memsets", "event records", "waits", "synchronisations", "graphs", "other calls"};
    for (int i = 0; i < CS_WORK_KINDS; i++)
        if (row->work[i]) e = cs_value_uint(cs_arg_named(e, names[i]), row->work[i]);
    return row->bytes_copied ? cs_arg_uint(e, "bytes copied", row->bytes_copied) : e;
}

/* The end of a stream's life in this file: there it begins anew, should it come again. */
static void life_ends(struct cs_stream *stream, cs_u64 ns, enum how how)
{
    struct row *row = row_of(stream);
    const struct cs_lane lane = marks_lane((cs_u32)stream->device);
    char title[48], name[512];
    if (ns <= row->marked_ns) ns = row->marked_ns + 1;
    lives[stream->device].idle += row->lane_file != cs_lanes_file();
    snprintf(title, sizeof title, "stream %u %s", stream->lane, how == CONTINUES ? "goes on" : "ends");
    struct cs_draft e = cs_instant(cs_draft(), CS_INSTANT_THREAD, "cs_stream", cs_title(title), lane, mark_place((cs_u32)stream->device, ns));
    put_name(stream, row->name_shown, name, sizeof name);
    e = cs_arg_text(e, "name", name, sizeof name); /* which may be another by now */
    e = work_args(cs_arg_uint(e, "cs.stream", stream->lane), row);
    if (stream->share_place) e = cs_arg_uint(e, "shared by", cs_load(&stream->shares_most));
    const cs_u16 rule = cs_load_acq(&stream->rule);
    if (rule != row->rule_shown) e = cs_arg_int(rule_arg(e, rule), "priority", cs_load(&stream->priority)); /* it matched by the name that it got */
    if (row->name_shown) e = cs_arg_text(e, "application name", cs_name_text(row->name_shown), 512);
    e = how == CONTINUES ? cs_arg_bool(e, "continues", true) : cs_arg_bool(e, "destroyed", how == DESTROYED);
    cs_commit(cs_args_end(e));
    memset(row->work, 0, sizeof row->work);
    row->bytes_copied = 0;
    row->continued = true;
    shown -= row->announced;
    row->announced = false;
    row->shown_from_ns = ns;
}

void cs_stream_life_ended(struct cs_stream *stream, cs_u64 ended)
{
    struct row *row = row_of(stream);
    /* Nobody has seen it, or could; or an earlier part has its end. */
    bool hidden = !row->announced && (!has_life(stream) || stream->unseen || row->over || cs_windows_within(stream->created, ended));
    if (cs_output_full() || hidden) return;
    cs_u64 to = cs_clock_ns(ended), filled = cs_match_filled(stream);
    cs_stream_life_begins(stream);
    cs_gpu_trace_stream_ends(stream);
    life_ends(stream, filled > to ? filled : to, cs_load(&stream->ended) ? DESTROYED : NEVER_DESTROYED); /* its work went on */
    row->over = true;
}

/* The writer may be far behind the program: what has ended there may go on here, so lives are cut where the records are, and not at the present time. */
void cs_stream_lives_part_end(cs_u64 reached_ns)
{
    for (cs_u32 i = 0; i < streams_high(); i++) {
        struct cs_stream *stream = stream_at(i);
        if (!stream || !row_of(stream)->announced || cs_output_full()) continue;
        cs_u64 ended = cs_load(&stream->ended), ended_ns = ended ? cs_clock_ns(ended) : UINT64_MAX;
        bool awaited;
        cs_gpu_trace_stream_ends(stream);
        cs_u64 cut = cs_match_cut(stream, ended_ns < reached_ns ? ended_ns : reached_ns, &awaited);
        bool over = row_of(stream)->over = ended_ns <= reached_ns && !awaited;
        life_ends(stream, cut, over ? DESTROYED : CONTINUES);
    }
    cs_stream_lives_summed_up();
}
