/* What was running when the process ended without meaning to, or is now: streams with unfinished
 * work, threads inside of calls. */
#include <math.h>
#include <stdlib.h>

#include "tools/custream/command.h"
#include "tools/custream/model/table.h"
#include "tools/custream/model/unfinished.h"
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"
#include "tools/custream/show.h"

static const struct column running_columns[] = {
    {"verdict", "verdict", UNIT_TEXT, 0},
    {"as_of_ns", "as of", UNIT_NS, 0},
    {"gpu_age_ns", "GPU records are older by", UNIT_NS, 0},
    {"ended_ago_ns", "the last work ended before", UNIT_NS, 0},
    {"unfinished_streams", "with unfinished work", UNIT_COUNT, 0},
    {"idle_streams", "idle", UNIT_COUNT, 0},
    {"circles", "circles", UNIT_COUNT, 0},
    {"threads", "threads in a call", UNIT_COUNT, 0},
    {"capturing", "capturing", UNIT_TEXT, COLUMN_BELOW},
    {"not_known", "not known", UNIT_TEXT, COLUMN_BELOW},
};

static const struct column stream_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES},
    {"stream", "stream", UNIT_TEXT, COLUMN_NAMES | COLUMN_CUT_END},
    {"circle", "circle", UNIT_COUNT, 0},
    {"last", "last that ended", UNIT_TEXT, 0},
    {"ended_ago_ns", "ended before", UNIT_NS, 0},
    {"call", "first unfinished call", UNIT_TEXT, 0},
    {"kernel", "kernel", UNIT_TEXT, 0},
    {"grid", "grid, block", UNIT_TEXT, COLUMN_BELOW},
    {"called_ago_ns", "called before", UNIT_NS, 0},
    {"thread", "by thread", UNIT_TEXT, COLUMN_CUT_END},
    {"behind", "behind it", UNIT_COUNT, 0},
    {"held_by", "held by", UNIT_TEXT, 0},
    {"on", "on stream", UNIT_TEXT, COLUMN_CUT_END},
    {"waits_for", "waits for", UNIT_TEXT, COLUMN_BELOW},
    {"chain", "chain", UNIT_TEXT, COLUMN_BELOW},
};

static const struct column thread_columns[] = {
    {"thread", "thread", UNIT_TEXT, COLUMN_NAMES | COLUMN_CUT_END},
    {"tid", "number", UNIT_COUNT, COLUMN_NAMES},
    {"call", "is in", UNIT_TEXT, 0},
    {"for_ns", "for", UNIT_NS, 0},
    {"device", "GPU", UNIT_COUNT, 0},
    {"stream", "of stream", UNIT_TEXT, COLUMN_CUT_END},
    {"event", "of event", UNIT_COUNT, 0},
    {"waits_for", "waits for", UNIT_TEXT, COLUMN_BELOW},
};

static const char *const held_by_key[HELD_BY_COUNT] = {
    [HELD_BY_NOTHING] = "nothing",
    [HELD_BY_EVENT] = "event",
    [HELD_BY_LEGACY] = "legacy",
    [HELD_BY_VALUE] = "value",
    [HELD_BY_FUNCTION] = "host_function",
    [HELD_BY_CONTEXT] = "nothing_or_legacy",
    [HELD_BY_NOT_KNOWN] = "not_known",
};

struct running {
    struct report *report;
    const struct run *run;
    bool asked; /* what was running is of interest, and told */
    struct unfinished unfinished;
    const char *unread;       /* which calls are not there; NULL: none that is known */
    const struct work **last; /* by stream: the work that ended last */
    const struct work *last_of_all;
    int64_t as_of, gpu_as_of; /* gpu_as_of: INT64_MIN: not known */
};

/* --- words --- */

static const char *stream_of(const struct running *r, uint32_t stream)
{
    return stream_label(r->report, r->run, stream);
}

/* What a call is to people: its kernel, or its name. */
static const char *call_label(const struct running *r, uint32_t index)
{
    const struct call *call = &r->run->calls[index];
    return text_in(
        r->run, call_kind(call) == CS_KIND_LAUNCH && call->what ? call->what : call->name);
}

static double ago(const struct running *r, int64_t ns)
{
    return ns == INT64_MIN ? NAN : ns > r->as_of ? 0 : (double)(r->as_of - ns);
}

static const struct unfinished_stream *row_of(const struct running *r, uint32_t stream)
{
    const uint32_t row = stream == NONE ? NONE : r->unfinished.row_of[stream];
    return row == NONE ? NULL : &r->unfinished.streams[row];
}

static const char *event_words(const struct running *r, const struct unfinished_stream *u)
{
    if (u->via == NONE)
        return report_text(r->report,
            "event %u, which a graph, a launch or another process records; if it has, what is "
            "behind the wait runs",
            r->run->calls[u->call].what);
    const struct unfinished_stream *there = row_of(r, u->on);
    const char *text = report_text(
        r->report, "event %u, recorded on %s", r->run->calls[u->call].what, stream_of(r, u->on));
    return there ? report_text(r->report, "%s behind %s", text, call_label(r, there->call)) : text;
}

static const char *value_words(const struct running *r, const struct unfinished_stream *u)
{
    const struct call *call = &r->run->calls[u->call];
    const char *at = call->what
                         ? report_text(r->report, "a value at %s", text_in(r->run, call->what))
                         : "values in memory";
    if (u->via == NONE)
        return report_text(r->report,
            "%s, which no call in the trace is to write; if the host or a kernel has written it, "
            "what is behind it runs",
            at);
    const struct unfinished_stream *there = row_of(r, u->on);
    if (!there || there->call == u->via)
        return report_text(r->report, "%s, which %s is to write", at, stream_of(r, u->on));
    return report_text(r->report, "%s, which %s is to write behind %s", at, stream_of(r, u->on),
        call_label(r, there->call));
}

static const char *legacy_words(const struct running *r, const struct unfinished_stream *u)
{
    const bool on_legacy = r->run->streams[u->on].origin == ORIGIN_LEGACY;
    const char *text =
        report_text(r->report, "%s %s: %s", on_legacy ? "the legacy default stream," : "blocking",
            stream_of(r, u->on), call_label(r, u->via));
    return u->on_more ? report_text(r->report, "%s; and %u more stream%s", text, u->on_more,
                            u->on_more == 1 ? "" : "s")
                      : text;
}

static const char *waits_for(const struct running *r, const struct unfinished_stream *u)
{
    switch (u->by) {
    case HELD_BY_EVENT: return event_words(r, u);
    case HELD_BY_VALUE: return value_words(r, u);
    case HELD_BY_LEGACY: return legacy_words(r, u);
    case HELD_BY_FUNCTION: return "its host function, which has not returned";
    case HELD_BY_CONTEXT:
        return "not known: it runs, or waits in the order of the legacy default stream; which "
               "streams are of its context is not in the trace";
    case HELD_BY_NOT_KNOWN:
        return "not known: GPU times of it were not taken, so it may have ended";
    default: return "nothing that the trace shows: it runs, or is about to";
    }
}

/* What a stream does at the end of a chain. */
static const char *end_words(const struct running *r, const struct unfinished_stream *u)
{
    switch (u->by) {
    case HELD_BY_NOTHING: return report_text(r->report, "which runs %s", call_label(r, u->call));
    case HELD_BY_VALUE: return "which waits for a value in memory";
    case HELD_BY_FUNCTION: return "which waits for its host function";
    default:
        return report_text(
            r->report, "of which %s is not known to have ended", call_label(r, u->call));
    }
}

/* "a waits for b, which waits for c, which runs k"; NULL: it waits for no other stream. */
static const char *chain_of(const struct running *r, const struct unfinished_stream *u)
{
    enum { HOPS = 8 };
    const struct unfinished_stream *at = row_of(r, u->on);
    if (!at) return NULL;
    const char *text = report_text(
        r->report, "%s waits for %s", stream_of(r, u->stream), stream_of(r, at->stream));
    for (int hop = 0; at != u; hop++) {
        const struct unfinished_stream *next = row_of(r, at->on);
        if (!next) return report_text(r->report, "%s, %s", text, end_words(r, at));
        text = report_text(r->report, "%s, which waits for %s", text, stream_of(r, next->stream));
        if (hop == HOPS || (next->circle && next->circle == at->circle && !u->circle))
            return report_text(r->report, "%s, and so on", text);
        at = next;
    }
    return text;
}

/* By its GPU's ordinal and its number; NONE. */
static uint32_t stream_named(const struct run *run, double device, double lane)
{
    for (uint32_t s = 0; s < run->stream_count; s++)
        if (run->streams[s].lane == lane && run->devices[run->streams[s].device].ordinal == device)
            return s;
    return NONE;
}

static double awaited_number(const struct run *run, unsigned n, const char *member)
{
    char path[64];
    snprintf(path, sizeof path, "totals.awaited.%u.%s", n, member);
    return run_number(run, path, NAN);
}

/* The trailer tells how the oldest launch of a stream was launched, while its kernel has not ended.
 */
static bool awaited_shape(const struct run *run, uint32_t stream, struct shape *shape)
{
    static const char *const members[] = {
        "grid.0", "grid.1", "grid.2", "block.0", "block.1", "block.2"};
    for (unsigned n = 0;; n++) {
        const double lane = awaited_number(run, n, "stream");
        if (isnan(lane)) return false;
        if (lane != run->streams[stream].lane ||
            awaited_number(run, n, "device") != run->devices[run->streams[stream].device].ordinal)
            continue;
        for (int i = 0; i < 6; i++)
            (i < 3 ? shape->grid : shape->block)[i % 3] =
                (uint32_t)fmax(0, fmin(awaited_number(run, n, members[i]), UINT32_MAX));
        return true;
    }
}

static const char *grid_of(const struct running *r, uint32_t index)
{
    const struct call *call = &r->run->calls[index];
    struct shape shape;
    if (call_kind(call) != CS_KIND_LAUNCH) return NULL;
    if (call->shape != NONE) shape = r->run->shapes[call->shape];
    else if (!awaited_shape(r->run, call->stream, &shape)) return NULL;
    return report_text(r->report, "%u x %u x %u, %u x %u x %u", shape.grid[0], shape.grid[1],
        shape.grid[2], shape.block[0], shape.block[1], shape.block[2]);
}

/* --- streams --- */

static void stream_put(
    const struct running *r, struct table *table, const struct unfinished_stream *u)
{
    const struct run *run = r->run;
    const struct call *call = &run->calls[u->call];
    const struct work *last = r->last[u->stream];
    const char *ended = last              ? work_label(r->report, run, last)
                        : u->last != NONE ? call_label(r, u->last)
                                          : NULL;
    TABLE_PUT(table, stream_columns,
        CELL_NUMBER(run->devices[run->streams[u->stream].device].ordinal),
        CELL_TEXT(stream_of(r, u->stream)), CELL_NUMBER(u->circle ? u->circle : NAN),
        CELL_TEXT(ended), CELL_NUMBER(last ? ago(r, last->end) : NAN),
        CELL_TEXT(text_in(run, call->name)),
        CELL_TEXT(
            call_kind(call) == CS_KIND_LAUNCH && call->what ? text_in(run, call->what) : NULL),
        CELL_TEXT(grid_of(r, u->call)), CELL_NUMBER(ago(r, call->begin)),
        CELL_TEXT(thread_label(r->report, run, call->thread)), CELL_NUMBER(u->behind),
        CELL_TEXT(held_by_key[u->by]), CELL_TEXT(u->on != NONE ? stream_of(r, u->on) : NULL),
        CELL_TEXT(waits_for(r, u)), CELL_TEXT(chain_of(r, u)));
}

/* --- threads --- */

static const struct fact *inside_fact(const struct run *run, unsigned n, const char *member)
{
    char path[64];
    snprintf(path, sizeof path, "totals.inside.%u.%s", n, member);
    return run_fact(run, path);
}

static double inside_number(const struct run *run, unsigned n, const char *member)
{
    const struct fact *fact = inside_fact(run, n, member);
    return fact && !fact->value ? fact->number : NAN;
}

static const char *inside_text(const struct run *run, unsigned n, const char *member)
{
    const struct fact *fact = inside_fact(run, n, member);
    return fact && fact->value ? text_in(run, fact->value) : NULL;
}

/* A blocking stream with unfinished work, for which a call on the legacy default stream (NONE:
 * whose stream is not known) waits: what that is about to do there has made no record. NULL: none.
 */
static const struct unfinished_stream *blocking_row(const struct running *r, uint32_t legacy)
{
    for (size_t i = 0; i < r->unfinished.count; i++) {
        const struct stream *stream = &r->run->streams[r->unfinished.streams[i].stream];
        const bool same = legacy == NONE || stream->device == r->run->streams[legacy].device;
        if (stream->known && !stream->non_blocking && same) return &r->unfinished.streams[i];
    }
    return NULL;
}

static const struct cs_call_info *call_named(const char *name)
{
    for (uint32_t i = 1; name && i < CS_CALL_COUNT; i++)
        if (!strcmp(cs_call_info[i].name, name)) return &cs_call_info[i];
    return &cs_call_info[0];
}

static bool is_blocking_copy(const struct cs_call_info *call)
{
    return call->kind == CS_KIND_COPY && call->how & CS_HOW_BLOCKS;
}

/* Of a call that only puts work on a stream, it is remarkable that a thread is in it for long. */
static bool only_enqueues(const struct cs_call_info *call)
{
    return (cs_kind_info[call->kind].implies & CS_NODE ||
               (call->kind == CS_KIND_GRAPH && call->how & CS_HOW_LAUNCHES)) &&
           !is_blocking_copy(call);
}

/* A copy that blocks is on a default stream. */
static bool is_on_legacy(const struct running *r, uint32_t stream, const char *call)
{
    if (stream != NONE) return r->run->streams[stream].origin == ORIGIN_LEGACY;
    return is_blocking_copy(call_named(call)) && !call_named(call)->per_thread;
}

/* "waiter 4250" */
static const char *thread_words(const struct running *r, unsigned n)
{
    const char *name = inside_text(r->run, n, "name");
    return report_text(
        r->report, "%s %.0f", name && *name ? name : "thread", inside_number(r->run, n, "thread"));
}

static uint32_t inside_stream(const struct running *r, unsigned n)
{
    return stream_named(
        r->run, inside_number(r->run, n, "device"), inside_number(r->run, n, "stream"));
}

/* The n-th of the list is in a host function that the first unfinished operation of its stream
 * waits for. */
static const struct unfinished_stream *held_by_function(const struct running *r, unsigned n)
{
    const struct unfinished_stream *u =
        inside_text(r->run, n, "function") ? row_of(r, inside_stream(r, n)) : NULL;
    return u && u->by == HELD_BY_FUNCTION ? u : NULL;
}

/* Whoever holds up a stream, or all streams if it is NONE, and has begun: its place in the list of
 * threads; -1. */
static int function_before(const struct running *r, const struct unfinished_stream *u)
{
    for (size_t hop = 0; u && u->by != HELD_BY_FUNCTION && hop <= r->unfinished.count; hop++)
        u = row_of(r, u->on);
    for (unsigned n = 0; isfinite(inside_number(r->run, n, "thread")); n++) {
        const struct unfinished_stream *held = held_by_function(r, n);
        if (held && held == u) return (int)n;
    }
    return -1;
}

/* Where a thread that is in a call that only puts work on a stream seems to wait, for long: other
 * things than a full queue can take as long (a copy of ordinary memory, a kernel that is loaded),
 * so it takes that much unfinished work on the device. Streams share queues: an H200's took 1,021
 * launches on one stream. */
static const struct unfinished_stream *full_queue(const struct running *r, unsigned n)
{
    enum { CROWDED = 500 };
    const struct unfinished_stream *u = only_enqueues(call_named(inside_text(r->run, n, "call")))
                                            ? row_of(r, inside_stream(r, n))
                                            : NULL;
    size_t unfinished = 0;
    for (size_t i = 0; u && i < r->unfinished.count; i++)
        if (r->run->streams[r->unfinished.streams[i].stream].device ==
            r->run->streams[u->stream].device)
            unfinished += r->unfinished.streams[i].behind + 1;
    return unfinished >= CROWDED ? u : NULL;
}

/* The first thread in a host function; -1: none is. */
static int any_function(const struct running *r)
{
    for (unsigned n = 0; isfinite(inside_number(r->run, n, "thread")); n++)
        if (inside_text(r->run, n, "function")) return (int)n;
    return -1;
}

/* Where the GPU's records are old, or streams share queues of the device, the trace does not show
 * that the queue is behind the function. */
static const char *behind_function(const struct running *r, const struct unfinished_stream *u)
{
    const int function = function_before(r, u), beside = any_function(r);
    if (beside < 0) return "";
    if (function < 0)
        return report_text(r->report,
            ". Meanwhile %s is in a host function. If that waits for what this thread holds, such "
            "as a lock, neither goes on",
            thread_words(r, (unsigned)beside));
    return report_text(r->report,
        ". That is behind the host function in which %s is. If the function waits for what this "
        "thread holds, such as a lock, neither goes on",
        thread_words(r, (unsigned)function));
}

/* A launch returns at once, unless the queue of its stream is full. If that is behind a host
 * function, the two threads may wait for each other. */
static const char *room_words(const struct running *r, unsigned n)
{
    const struct unfinished_stream *u = full_queue(r, n);
    if (!u) return NULL;
    return report_text(r->report,
        "room in the launch queue, it seems: %u operation%s of %s %s unfinished, first %s%s",
        u->behind + 1, u->behind ? "s" : "", stream_of(r, u->stream), u->behind ? "are" : "is",
        call_label(r, u->call), behind_function(r, u));
}

/* A call that is over soon as a rule: a creation, an allocation, an end of one. */
static bool is_soon_over(const struct running *r, unsigned n)
{
    const struct cs_call_info *call = call_named(inside_text(r->run, n, "call"));
    if (call->kind == CS_KIND_MEMORY) return inside_stream(r, n) == NONE;
    return call->kind != CS_KIND_NONE && call->kind != CS_KIND_SYNC && !is_blocking_copy(call) &&
           !only_enqueues(call);
}

/* A thread that waits for room in a queue. It keeps a lock of the driver's, which creations and
 * destructions of streams and events need (seen on an H200). -1: none. */
static int any_launcher(const struct running *r)
{
    for (unsigned n = 0; isfinite(inside_number(r->run, n, "thread")); n++)
        if (full_queue(r, n)) return (int)n;
    return -1;
}

/* An H200's cuStreamCreate did not return either where no queue was full, and many streams that had
 * been destroyed had work behind a host function. */
static const char *driver_words(const struct running *r)
{
    const int launcher = any_launcher(r);
    if (launcher < 0)
        return any_function(r) < 0 ? NULL
                                   : report_text(r->report, "what the trace does not show%s",
                                         behind_function(r, NULL));
    return report_text(r->report,
        "the driver, it seems: %s is in %s meanwhile, which waits for room in a launch queue%s",
        thread_words(r, (unsigned)launcher), inside_text(r->run, (unsigned)launcher, "call"),
        behind_function(r, full_queue(r, (unsigned)launcher)));
}

/* The n-th thread may hold what the host function waits for: it is held up itself, and not by
 * another function. */
static bool may_hold(const struct running *r, unsigned n, unsigned function)
{
    const int launcher = full_queue(r, n) ? (int)n : is_soon_over(r, n) ? any_launcher(r) : -1;
    if (launcher < 0) return is_soon_over(r, n);
    const int before = function_before(r, full_queue(r, (unsigned)launcher));
    return before < 0 || before == (int)function;
}

/* The other side of it: the threads that may hold what the function waits for. */
static const char *function_words(const struct running *r, unsigned function)
{
    const char *held_up = NULL;
    for (unsigned n = 0; isfinite(inside_number(r->run, n, "thread")); n++)
        if (may_hold(r, n, function))
            held_up = report_text(r->report, "%s%s%s is in %s", held_up ?: "", held_up ? ", " : "",
                thread_words(r, n), inside_text(r->run, n, "call"));
    return held_up ? report_text(r->report,
                         "what the trace does not show; %s meanwhile, perhaps because of this, and "
                         "may hold it",
                         held_up)
                   : NULL;
}

/* What the thread waits for, by what its stream, or the stream of its event, has before it. */
static const char *thread_waits_for(
    const struct running *r, unsigned n, uint32_t stream, double event)
{
    const struct run *run = r->run;
    if (inside_fact(run, n, "all")) return "all streams of its context";
    if (is_soon_over(r, n)) return driver_words(r);
    if (only_enqueues(call_named(inside_text(run, n, "call")))) return room_words(r, n);
    if (isfinite(event))
        for (size_t i = run->call_count; i-- > 0 && stream == NONE;)
            if (call_kind(&run->calls[i]) == CS_KIND_EVENT && run->calls[i].what == event) {
                if (run->calls[i].external) return NULL;
                stream = run->calls[i].stream;
            }
    const struct unfinished_stream *u = row_of(r, stream);
    if (!u && is_on_legacy(r, stream, inside_text(run, n, "call"))) u = blocking_row(r, stream);
    if (!u) return NULL;
    stream = u->stream;
    return report_text(r->report, "%s: %s", stream_of(r, stream), call_label(r, u->call));
}

static void thread_put(const struct running *r, struct table *table, unsigned n)
{
    const struct run *run = r->run;
    const double tid = inside_number(run, n, "thread"), since = inside_number(run, n, "since_us"),
                 event = inside_number(run, n, "event"), device = inside_number(run, n, "device");
    const char *call = inside_text(run, n, "call"), *function = inside_text(run, n, "function"),
               *name = inside_text(run, n, "name");
    for (size_t t = 0; t < run->thread_count; t++)
        if (run->threads[t].tid == tid && run->threads[t].name)
            name = text_in(run, run->threads[t].name);
    const uint32_t stream = stream_named(run, device, inside_number(run, n, "stream"));
    TABLE_PUT(table, thread_columns, CELL_TEXT(name), CELL_NUMBER(tid),
        CELL_TEXT(function ? report_text(r->report, "host function %s", function) : call),
        CELL_NUMBER(isfinite(since) ? ago(r, (int64_t)(since * 1000)) : NAN), CELL_NUMBER(device),
        CELL_TEXT(stream != NONE ? stream_of(r, stream) : NULL), CELL_NUMBER(event),
        CELL_TEXT(function ? function_words(r, n) : thread_waits_for(r, n, stream, event)));
}

/* --- all of it --- */

static const char *verdict_of(const struct running *r, size_t threads)
{
    if (r->unfinished.circles) return "circle";
    for (size_t i = 0; i < r->unfinished.count; i++)
        if (r->unfinished.streams[i].by != HELD_BY_NOT_KNOWN) return "unfinished";
    return r->unfinished.count ? "not_known"
           : threads           ? "in_a_call"
           : r->unread         ? "not_known"
                               : "idle";
}

/* Streams whose oldest launch has no kernel yet, by the trailer, and of which nothing unfinished is
 * known otherwise. NULL: none. */
static const char *awaited_elsewhere(const struct running *r)
{
    const char *text = NULL;
    unsigned more = 0;
    for (unsigned n = 0; isfinite(awaited_number(r->run, n, "stream")); n++) {
        const uint32_t stream = stream_named(
            r->run, awaited_number(r->run, n, "device"), awaited_number(r->run, n, "stream"));
        if (row_of(r, stream)) continue;
        if (text) more++;
        else
            text = stream != NONE
                       ? stream_of(r, stream)
                       : report_text(r->report, "stream %.0f", awaited_number(r->run, n, "stream"));
    }
    if (!text) return NULL;
    const char *others = more ? report_text(r->report, " and of %u more", more) : "";
    return report_text(
        r->report, "; of %s%s, the trailer has a launch whose kernel has not come", text, others);
}

/* Which calls are not there, though work of theirs may be under way. NULL: none. */
static const char *unread(const struct running *r)
{
    const struct run *run = r->run;
    const double lost = parts_lost_in_all(run).calls;
    const char *const why[] = {
        run->end_only ? "only the end of the trace was read" : NULL,
        parts_all(run) ? NULL : "parts of the trace were deleted, or not read",
        lost > 0 ? report_text(r->report, "%.0f call%s lost", lost, lost == 1 ? " was" : "s were")
                 : NULL,
        run_fact(run, "totals.windows.opened") ? "calls outside of windows are not recorded" : NULL,
    };
    const char *text = NULL;
    for (size_t i = 0; i < sizeof why / sizeof *why; i++)
        if (why[i]) text = text ? report_text(r->report, "%s; %s", text, why[i]) : why[i];
    return text ? report_text(r->report, "not all calls are here, and more may run: %s%s", text,
                      awaited_elsewhere(r) ?: "")
                : NULL;
}

/* Why work that is here may be listed though it has ended. NULL: it is not. */
static const char *not_told(const struct running *r)
{
    const struct run *run = r->run;
    if (run_sample(run))
        return report_text(r->report,
            "GPU times are those of one call in %u: other work counts as ended only if the host "
            "has waited for it, or timed work behind it has ended",
            run_sample(run));
    if (!run_has_times(run))
        return "no GPU times were taken: work counts as ended only if the host has waited for it";
    if (run_number(run, "totals.gpu.lost", 0) > 0)
        return "GPU records were lost: work whose record was lost may be listed, though it has "
               "ended";
    return r->gpu_as_of == INT64_MIN ? "the trace does not say as of when GPU work was reported: "
                                       "some may have ended since its last record"
                                     : NULL;
}

static const char *not_known(const struct running *r)
{
    const char *told = not_told(r);
    return told && r->unread ? report_text(r->report, "%s. And %s", told, r->unread) : told ?: r->unread;
}

/* Streams on which a capture was begun and not ended: what was called on them is in a graph, and
 * does not run. NULL: none. */
static const char *capturing(const struct running *r)
{
    enum { SHOWN = 8 };
    const struct run *run = r->run;
    const char *text = NULL;
    uint32_t *began = array_zeros(run->stream_count, sizeof *began),
             shown = 0; /* the call, from 1 */
    for (uint32_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        const bool destroys =
            call->call == CS_CALL_cuStreamDestroy_v2 || call->call == CS_CALL_cuStreamDestroy;
        if ((call_kind(call) != CS_KIND_CAPTURE && !destroys) || call->stream == NONE) continue;
        if (call_how(call, CS_HOW_ENDS) || (destroys && !call->result)) began[call->stream] = 0;
        else if (call_how(call, CS_HOW_BEGINS) && !call->result) began[call->stream] = i + 1;
    }
    for (uint32_t s = 0; s < run->stream_count && shown <= SHOWN; s++) {
        if (!began[s] || run->streams[s].destroyed) continue;
        const struct call *call = &run->calls[began[s] - 1];
        const char *one = shown++ == SHOWN
                              ? "and more"
                              : report_text(r->report, "%s, begun %s before by %s", stream_of(r, s),
                                    value_show((char[SHOWN_MAX]){0}, UNIT_NS, ago(r, call->begin)),
                                    thread_label(r->report, run, call->thread));
        text = text ? report_text(r->report, "%s; %s", text, one) : one;
    }
    free(began);
    return text;
}

static void last_works(struct running *r)
{
    const struct run *run = r->run;
    const struct work *works = run_sample(run) ? run->sampled : run->works;
    const size_t count = run_sample(run) ? run->sampled_count : run->work_count;
    r->last = array_zeros(run->stream_count, sizeof *r->last);
    for (size_t i = 0; i < count; i++) {
        const struct work *work = &works[i], **last = &r->last[work->stream];
        if (!*last || work->end >= (*last)->end) *last = work;
        if (!r->last_of_all || work->end >= r->last_of_all->end) r->last_of_all = work;
    }
}

static int64_t time_fact(const struct run *run, const char *path, int64_t otherwise)
{
    const double us = run_number(run, path, NAN);
    return isfinite(us) && fabs(us) < 1e15 ? (int64_t)(us * 1000) : otherwise;
}

static void running_table(const struct running *r, unsigned threads)
{
    struct table *table = TABLE_NEW(r->report, "running", "What was running", running_columns);
    const double more = run_number(r->run, "totals.inside_more", 0);
    if (!r->asked) return;
    TABLE_PUT(table, running_columns, CELL_TEXT(verdict_of(r, threads)), CELL_NUMBER(r->as_of),
        CELL_NUMBER(ago(r, r->gpu_as_of)),
        CELL_NUMBER(r->last_of_all ? ago(r, r->last_of_all->end) : NAN),
        CELL_NUMBER(r->unfinished.count), CELL_NUMBER(r->unfinished.idle),
        CELL_NUMBER(r->unfinished.circles), CELL_NUMBER(threads + more), CELL_TEXT(capturing(r)),
        CELL_TEXT(not_known(r)));
}

static void stream_table(const struct running *r)
{
    struct table *table =
        TABLE_NEW(r->report, "running_streams", "Streams with unfinished work", stream_columns);
    table->shown = 20;
    for (size_t i = 0; i < r->unfinished.count; i++)
        stream_put(r, table, &r->unfinished.streams[i]);
}

static void thread_table(const struct running *r, unsigned threads)
{
    struct table *table =
        TABLE_NEW(r->report, "running_threads", "Threads in a call", thread_columns);
    for (unsigned n = 0; n < threads; n++) thread_put(r, table, n);
}

void section_running(struct report *report, const struct run *run)
{
    struct running r = {.report = report, .run = run, .asked = unfinished_is_asked(run)};
    unsigned threads = 0;
    r.as_of = time_fact(run, "totals.as_of_us", run->end);
    r.gpu_as_of = time_fact(run, "totals.gpu_as_of_us", INT64_MIN);
    if (r.asked) {
        last_works(&r);
        unfinished_make(&r.unfinished, run);
        r.unread = unread(&r);
        while (isfinite(inside_number(run, threads, "thread"))) threads++;
    }
    running_table(&r, threads);
    stream_table(&r);
    thread_table(&r, threads);
    unfinished_free(&r.unfinished);
    free(r.last);
}
