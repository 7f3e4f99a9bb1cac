/* The work that was running when the process ended unexpectedly, or that is running now. */
#include "tools/custream/model/unfinished.h"
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

#define SAY(...) report_text(r->report, __VA_ARGS__)

static const struct column running_columns[] = {{"verdict", "verdict", UNIT_TEXT, 0, 0},
    {"as_of_ns", "as of", UNIT_NS, 0, 0}, {"gpu_age_ns", "GPU records are older by", UNIT_NS, 0, 0},
    {"ended_ago_ns", "the last work ended before", UNIT_NS, 0, 0},
    {"unfinished_streams", "with unfinished work", UNIT_COUNT, 0, 0},
    {"idle_streams", "idle", UNIT_COUNT, 0, 0}, {"circles", "circles", UNIT_COUNT, 0, 0},
    {"threads", "threads in a call", UNIT_COUNT, 0, 0},
    {"capturing", "capturing", UNIT_TEXT, COLUMN_BELOW, 0},
    {"not_known", "not known", UNIT_TEXT, COLUMN_BELOW, 0}};

static const struct column stream_columns[] = {{"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"stream", "stream", UNIT_TEXT, COLUMN_NAMES | COLUMN_CUT_END, 0},
    {"circle", "circle", UNIT_COUNT, 0, 0}, {"last", "last that ended", UNIT_TEXT, 0, 0},
    {"ended_ago_ns", "ended before", UNIT_NS, 0, 0},
    {"call", "first unfinished call", UNIT_TEXT, 0, 0}, {"kernel", "kernel", UNIT_TEXT, 0, 0},
    {"grid", "grid, block", UNIT_TEXT, COLUMN_BELOW, 0},
    {"called_ago_ns", "called before", UNIT_NS, 0, 0},
    {"thread", "by thread", UNIT_TEXT, COLUMN_CUT_END, 0},
    {"behind", "behind it", UNIT_COUNT, 0, 0}, {"held_by", "held by", UNIT_TEXT, 0, 0},
    {"on", "on stream", UNIT_TEXT, COLUMN_CUT_END, 0},
    {"waits_for", "waits for", UNIT_TEXT, COLUMN_BELOW, 0},
    {"chain", "chain", UNIT_TEXT, COLUMN_BELOW, 0}};

static const struct column thread_columns[] = {
    {"thread", "thread", UNIT_TEXT, COLUMN_NAMES | COLUMN_CUT_END, 0},
    {"tid", "number", UNIT_COUNT, COLUMN_NAMES, 0}, {"call", "is in", UNIT_TEXT, 0, 0},
    {"for_ns", "for", UNIT_NS, 0, 0}, {"device", "GPU", UNIT_COUNT, 0, 0},
    {"stream", "of stream", UNIT_TEXT, COLUMN_CUT_END, 0}, {"event", "of event", UNIT_COUNT, 0, 0},
    {"waits_for", "waits for", UNIT_TEXT, COLUMN_BELOW, 0}};

/* For each enum held_by: its key, the words for what a stream waits for, and a chain's end. */
static const struct {
    const char *key, *words, *end;
} held_by[HELD_BY_COUNT] = {
    [HELD_BY_NOTHING] = {.key = "nothing",
        .words = "nothing that the trace shows: it runs, or is about to"},
    [HELD_BY_EVENT] = {.key = "event"},
    [HELD_BY_LEGACY] = {.key = "legacy"},
    [HELD_BY_VALUE] = {"value", NULL, "which waits for a value in memory"},
    [HELD_BY_FUNCTION] = {"host_function", "its host function, which has not returned",
        "which waits for its host function"},
    [HELD_BY_CONTEXT] = {.key = "nothing_or_legacy",
        .words = "not known: it runs, or waits in the order of the legacy default stream; which "
                 "streams are "
                 "of its context is not in the trace"},
    [HELD_BY_NOT_KNOWN] = {.key = "not_known",
        .words = "not known: GPU times of it were not taken, so it may have ended"},
};

struct running {
    struct report *report;
    const struct run *run;
    bool asked; /* unfinished work of the run is to be told (unfinished_is_asked()) */
    struct unfinished unfinished;
    struct inside *threads;
    size_t thread_count;
    /* words about the calls that are missing; NULL: no call is known to be missing */
    const char *unread;
    const struct work **last; /* by stream: the work that ended last */
    const struct work *last_of_all;
    /* gpu_as_of: the time up to which GPU work was reported; INT64_MIN: not known */
    int64_t as_of, gpu_as_of;
};

/* --- words --- */

static const char *stream_of(const struct running *r, uint32_t stream)
{
    return stream_label(r->report, r->run, stream);
}

/* Returns the name of a call for people: its kernel's or its own. */
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

/* Says what the stream waits for. */
static const char *waits_for(const struct running *r, const struct unfinished_stream *u)
{
    const struct call *call = &r->run->calls[u->call];
    const struct unfinished_stream *there = row_of(r, u->on);
    const char *on = u->on != NONE ? stream_of(r, u->on) : NULL,
               *behind = there && there->call != u->via
                             ? SAY(" behind %s", call_label(r, there->call))
                             : "";
    if (u->by == HELD_BY_EVENT && u->via == NONE)
        return SAY("event %u, which a graph, a launch or another process records; if it has, what "
                   "is behind the wait runs",
            call->what);
    if (u->by == HELD_BY_EVENT)
        return SAY("event %u, recorded on %s%s", call->what, on,
            there ? SAY(" behind %s", call_label(r, there->call)) : "");
    if (u->by == HELD_BY_VALUE) {
        const char *at =
            call->what ? SAY("a value at %s", text_in(r->run, call->what)) : "values in memory";
        if (u->via != NONE) return SAY("%s, which %s is to write%s", at, on, behind);
        return SAY("%s, which no call in the trace is to write; if the host or a kernel has "
                   "written it, what is behind it runs",
            at);
    }
    if (u->by == HELD_BY_LEGACY) {
        const bool on_legacy = r->run->streams[u->on].origin == ORIGIN_LEGACY;
        return SAY("%s %s: %s%s", on_legacy ? "the legacy default stream," : "blocking", on,
            call_label(r, u->via),
            u->on_more ? SAY("; and %u more stream%s", u->on_more, plural(u->on_more)) : "");
    }
    return held_by[u->by].words;
}

/* Describes a chain: "a waits for b, which waits for c, which runs k"; NULL: there is none. */
static const char *chain_of(const struct running *r, const struct unfinished_stream *u)
{
    enum { HOPS = 8 };
    const struct unfinished_stream *at = row_of(r, u->on);
    if (!at) return NULL;
    const char *text = SAY("%s waits for %s", stream_of(r, u->stream), stream_of(r, at->stream));
    for (int hop = 0; at != u; hop++) {
        const struct unfinished_stream *next = row_of(r, at->on);
        if (!next && held_by[at->by].end) return SAY("%s, %s", text, held_by[at->by].end);
        if (!next)
            return SAY(at->by == HELD_BY_NOTHING ? "%s, which runs %s"
                                                 : "%s, of which %s is not known to have ended",
                text, call_label(r, at->call));
        text = SAY("%s, which waits for %s", text, stream_of(r, next->stream));
        if (hop == HOPS || (next->circle && next->circle == at->circle && !u->circle))
            return SAY("%s, and so on", text);
        at = next;
    }
    return text;
}

/* Returns grid and block of a launch; NULL: not known. The trailer has them until the stream's
 * oldest launch has ended. */
static const char *grid_of(const struct running *r, const struct call *call)
{
    static const char *const members[] = {
        "grid.0", "grid.1", "grid.2", "block.0", "block.1", "block.2"};
    struct shape shape;
    unsigned n = 0;
    if (call_kind(call) != CS_KIND_LAUNCH) return NULL;
    if (call->shape != NONE) shape = r->run->shapes[call->shape];
    while (call->shape == NONE && listed_stream(r->run, "awaited", n) != call->stream)
        if (isnan(listed_number(r->run, "awaited", n++, "stream"))) return NULL;
    for (int i = 0; i < 6 && call->shape == NONE; i++)
        (i < 3 ? shape.grid : shape.block)[i % 3] =
            (uint32_t)fmax(0, fmin(listed_number(r->run, "awaited", n, members[i]), UINT32_MAX));
    return SAY("%u x %u x %u, %u x %u x %u", shape.grid[0], shape.grid[1], shape.grid[2],
        shape.block[0], shape.block[1], shape.block[2]);
}

static void stream_put(
    const struct running *r, struct table *table, const struct unfinished_stream *u)
{
    const struct run *run = r->run;
    const struct call *call = &run->calls[u->call];
    const struct work *last = r->last[u->stream];
    const char *ended = last              ? work_label(r->report, run, last)
                        : u->last != NONE ? call_label(r, u->last)
                                          : NULL,
               *kernel = call_kind(call) == CS_KIND_LAUNCH && call->what ? text_in(run, call->what)
                                                                         : NULL;
    TABLE_PUT(table, stream_columns, CELL(run->devices[run->streams[u->stream].device].ordinal),
        CELL(stream_of(r, u->stream)), CELL(u->circle ? u->circle : NAN), CELL(ended),
        CELL(last ? ago(r, last->end) : NAN), CELL(text_in(run, call->name)), CELL(kernel),
        CELL(grid_of(r, call)), CELL(ago(r, call->begin)),
        CELL(thread_label(r->report, run, call->thread)), CELL(u->behind), CELL(held_by[u->by].key),
        CELL(u->on != NONE ? stream_of(r, u->on) : NULL), CELL(waits_for(r, u)),
        CELL(chain_of(r, u)));
}

/* --- threads --- */

static bool is_blocking_copy(const struct cs_call_info *call)
{
    return call->kind == CS_KIND_COPY && call->how & CS_HOW_BLOCKS;
}

/* Whether the call only enqueues work: to be in such a call for long is remarkable. */
static bool only_enqueues(const struct cs_call_info *call)
{
    return (cs_kind_info[call->kind].implies & CS_NODE ||
               (call->kind == CS_KIND_GRAPH && call->how & CS_HOW_LAUNCHES)) &&
           !is_blocking_copy(call);
}

/* Returns the words for a thread: "waiter 4250". */
static const char *thread_words(const struct running *r, const struct inside *thread)
{
    const bool named = thread->name && *thread->name;
    return SAY("%s %.0f", named ? thread->name : "thread", thread->tid);
}

/* Returns the thread in the host function that holds up the stream; NULL. */
static const struct inside *function_before(
    const struct running *r, const struct unfinished_stream *u)
{
    for (size_t hop = 0; u && u->by != HELD_BY_FUNCTION && hop <= r->unfinished.count; hop++)
        u = row_of(r, u->on);
    for (size_t n = 0; u && u->by == HELD_BY_FUNCTION && n < r->thread_count; n++)
        if (r->threads[n].function && row_of(r, r->threads[n].stream) == u) return &r->threads[n];
    return NULL;
}

/* Returns the stream with the full queue that the thread seems to wait for; NULL. Other reasons can
 * take as long, so the device must have much unfinished work: an H200's queue took 1,021 launches.
 */
static const struct unfinished_stream *full_queue(
    const struct running *r, const struct inside *thread)
{
    enum { CROWDED = 500 };
    const struct unfinished_stream *u =
        only_enqueues(thread->info) ? row_of(r, thread->stream) : NULL;
    const struct stream *streams = r->run->streams;
    size_t unfinished = 0;
    for (size_t i = 0; u && i < r->unfinished.count; i++)
        if (streams[r->unfinished.streams[i].stream].device == streams[u->stream].device)
            unfinished += r->unfinished.streams[i].behind + 1;
    return unfinished >= CROWDED ? u : NULL;
}

/* Returns the first thread in a host function; NULL. */
static const struct inside *any_function(const struct running *r)
{
    for (size_t n = 0; n < r->thread_count; n++)
        if (r->threads[n].function) return &r->threads[n];
    return NULL;
}

/* Says which host function may keep the thread from going on. If the GPU's records are old, they do
 * not show that the queue is behind the function; then any thread's function is named. */
static const char *behind_function(const struct running *r, const struct unfinished_stream *u)
{
    const struct inside *function = function_before(r, u), *beside = any_function(r);
    if (!beside) return "";
    if (!function)
        return SAY(". Meanwhile %s is in a host function. If that waits for what this thread "
                   "holds, such as a lock, neither goes on",
            thread_words(r, beside));
    return SAY(". That is behind the host function in which %s is. If the function waits for what "
               "this thread holds, such as a lock, neither goes on",
        thread_words(r, function));
}

/* Whether the thread is in a call that creates, allocates, destroys or frees: such a call is
 * short. */
static bool is_soon_over(const struct inside *thread)
{
    const struct cs_call_info *call = thread->info;
    if (call->kind == CS_KIND_MEMORY) return thread->stream == NONE;
    return call->kind != CS_KIND_NONE && call->kind != CS_KIND_SYNC && !is_blocking_copy(call) &&
           !only_enqueues(call);
}

/* Returns a thread that waits for room in a launch queue; NULL. Such a thread holds a lock that
 * creations of streams and events need (seen on an H200). */
static const struct inside *any_launcher(const struct running *r)
{
    for (size_t n = 0; n < r->thread_count; n++)
        if (full_queue(r, &r->threads[n])) return &r->threads[n];
    return NULL;
}

/* Says which threads may hold what a host function waits for; NULL: none. */
static const char *function_words(const struct running *r, const struct inside *function)
{
    const char *held_up = NULL;
    for (size_t i = 0; i < r->thread_count; i++) {
        const struct inside *t = &r->threads[i];
        const bool short_call = is_soon_over(t);
        const struct inside *launcher = full_queue(r, t) ? t
                                        : short_call     ? any_launcher(r)
                                                         : NULL,
                            *before = launcher ? function_before(r, full_queue(r, launcher)) : NULL;
        /* A thread that is held up behind another host function does not count. */
        if (launcher ? !before || before == function : short_call)
            held_up = SAY(
                "%s%s%s is in %s", held_up ?: "", held_up ? ", " : "", thread_words(r, t), t->call);
    }
    return held_up ? SAY("what the trace does not show; %s meanwhile, perhaps because of this, and "
                         "may hold it",
                         held_up)
                   : NULL;
}

/* Says what the thread waits for; NULL: not known. For a stream or an event, this is the first
 * unfinished call of that stream, or of the event's stream. */
static const char *thread_waits_for(const struct running *r, const struct inside *thread)
{
    const struct run *run = r->run;
    uint32_t stream = thread->stream;
    if (thread->function) return function_words(r, thread);
    if (thread->all) return "all streams of its context";
    if (is_soon_over(thread)) {
        /* On an H200, cuStreamCreate also waited behind a host function while no queue was full. */
        const struct inside *launcher = any_launcher(r);
        if (launcher)
            return SAY("the driver, it seems: %s is in %s meanwhile, which waits for room in a "
                       "launch queue%s",
                thread_words(r, launcher), launcher->call,
                behind_function(r, full_queue(r, launcher)));
        return any_function(r) ? SAY("what the trace does not show%s", behind_function(r, NULL))
                               : NULL;
    }
    const struct unfinished_stream *full = full_queue(r, thread);
    if (full)
        return SAY("room in the launch queue, it seems: %u operation%s of %s %s unfinished, first "
                   "%s%s",
            full->behind + 1, plural(full->behind + 1), stream_of(r, full->stream),
            full->behind ? "are" : "is", call_label(r, full->call), behind_function(r, full));
    if (only_enqueues(thread->info)) return NULL;
    if (isfinite(thread->event))
        for (size_t i = run->call_count; i-- > 0 && stream == NONE;)
            if (call_kind(&run->calls[i]) == CS_KIND_EVENT && run->calls[i].what == thread->event) {
                if (run->calls[i].external) return NULL;
                stream = run->calls[i].stream;
            }
    const struct unfinished_stream *u = row_of(r, stream);
    const bool on_legacy = stream != NONE
                               ? run->streams[stream].origin == ORIGIN_LEGACY
                               : is_blocking_copy(thread->info) && !thread->info->per_thread;
    for (size_t i = 0; !u && on_legacy && i < r->unfinished.count; i++) {
        const struct stream *is = &run->streams[r->unfinished.streams[i].stream];
        if (is->known && !is->non_blocking &&
            (stream == NONE || is->device == run->streams[stream].device))
            u = &r->unfinished.streams[i]; /* the legacy default stream waits for this stream */
    }
    return u ? SAY("%s: %s", stream_of(r, u->stream), call_label(r, u->call)) : NULL;
}

static void thread_put(const struct running *r, struct table *table, const struct inside *thread)
{
    const struct run *run = r->run;
    const double since = thread->since_us * 1000;
    const char *name = thread->name;
    for (size_t t = 0; t < run->thread_count; t++)
        if (run->threads[t].tid == thread->tid && run->threads[t].name)
            name = text_in(run, run->threads[t].name);
    TABLE_PUT(table, thread_columns, CELL(name), CELL(thread->tid),
        CELL(thread->function ? SAY("host function %s", thread->function) : thread->call),
        CELL(isfinite(since) ? ago(r, (int64_t)since) : NAN), CELL(thread->device),
        CELL(thread->stream != NONE ? stream_of(r, thread->stream) : NULL), CELL(thread->event),
        CELL(thread_waits_for(r, thread)));
}

/* --- the tables --- */

/* Names streams whose oldest launch has no kernel yet and of which nothing else is unfinished. */
static const char *awaited_elsewhere(const struct running *r)
{
    const char *text = NULL;
    unsigned more = 0;
    double lane;
    for (unsigned n = 0; isfinite(lane = listed_number(r->run, "awaited", n, "stream")); n++) {
        const uint32_t stream = listed_stream(r->run, "awaited", n);
        if (row_of(r, stream)) continue;
        more += text != NULL;
        if (!text) text = stream != NONE ? stream_of(r, stream) : SAY("stream %.0f", lane);
    }
    return text ? SAY("; of %s%s, the trailer has a launch whose kernel has not come", text,
                      more ? SAY(" and of %u more", more) : "")
                : "";
}

/* Says which calls are missing from the trace, though their work may still run; NULL: none. */
static const char *unread(const struct running *r)
{
    const struct run *run = r->run;
    const double lost = parts_lost_in_all(run).calls;
    const char *const why[] = {
        run->end_only ? "only the end of the trace was read" : NULL,
        parts_all(run) ? NULL : "parts of the trace were deleted, or not read",
        lost > 0 ? SAY("%.0f call%s lost", lost, lost == 1 ? " was" : "s were") : NULL,
        run_fact(run, "totals.windows.opened") ? "calls outside of windows are not recorded" : NULL,
    };
    const char *text = NULL;
    for (size_t i = 0; i < sizeof why / sizeof *why; i++)
        if (why[i]) text = text ? SAY("%s; %s", text, why[i]) : why[i];
    return text ? SAY("not all calls are here, and more may run: %s%s", text, awaited_elsewhere(r))
                : NULL;
}

/* Says why listed work may have ended after all; NULL: nothing suggests that. */
static const char *not_told(const struct running *r)
{
    const struct run *run = r->run;
    if (run_sample(run))
        return SAY("GPU times are those of one call in %u: other work counts as ended only if the "
                   "host has waited for it, or timed work behind it has ended",
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

/* Names the streams whose captures have not ended: captured calls do not run. NULL: none. */
static const char *capturing(const struct running *r)
{
    enum { SHOWN = 8 };
    const struct run *run = r->run;
    const char *text = NULL;
    uint32_t *began = array_none(run->stream_count),
             shown = 0; /* began: by stream, the call that began its capture */
    for (uint32_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        const bool destroys =
            call->call == CS_CALL_cuStreamDestroy_v2 || call->call == CS_CALL_cuStreamDestroy;
        if ((call_kind(call) != CS_KIND_CAPTURE && !destroys) || call->stream == NONE) continue;
        if (call_how(call, CS_HOW_ENDS) || (destroys && !call->result)) began[call->stream] = NONE;
        else if (call_how(call, CS_HOW_BEGINS) && !call->result) began[call->stream] = i;
    }
    for (uint32_t s = 0; s < run->stream_count && shown <= SHOWN; s++) {
        if (began[s] == NONE || run->streams[s].destroyed) continue;
        const struct call *call = &run->calls[began[s]];
        const char *one = shown++ == SHOWN ? "and more"
                                           : SAY("%s, begun %s before by %s", stream_of(r, s),
                                                 SHOWN(UNIT_NS, ago(r, call->begin)),
                                                 thread_label(r->report, run, call->thread));
        text = text ? SAY("%s; %s", text, one) : one;
    }
    free(began);
    return text;
}

static int64_t time_fact(const struct run *run, const char *path, int64_t otherwise)
{
    const double us = run_number(run, path, NAN);
    return isfinite(us) && fabs(us) < 1e15 ? (int64_t)(us * 1000) : otherwise;
}

void section_running(struct report *report, const struct run *run)
{
    struct running of = {.report = report, .run = run, .asked = unfinished_is_asked(run)}, *r = &of;
    const struct unfinished *u = &r->unfinished;
    r->as_of = time_fact(run, "totals.as_of_us", run->end);
    r->gpu_as_of = time_fact(run, "totals.gpu_as_of_us", INT64_MIN);
    if (r->asked) {
        const struct work *works = run_sample(run) ? run->sampled : run->works;
        const size_t count = run_sample(run) ? run->sampled_count : run->work_count;
        r->last = array_zeros(run->stream_count, sizeof *r->last);
        for (size_t i = 0; i < count; i++) {
            const struct work *work = &works[i], **last = &r->last[work->stream];
            if (!*last || work->end >= (*last)->end) *last = work;
            if (!r->last_of_all || work->end >= r->last_of_all->end) r->last_of_all = work;
        }
        unfinished_make(&r->unfinished, run);
        r->unread = unread(r);
        r->threads = inside_read(run, &r->thread_count);
    }
    struct table *table = TABLE_NEW(report, "running", "What was running", running_columns);
    const double more = run_number(run, "totals.inside_more", 0);
    bool known = false; /* some stream is known to be unfinished */
    for (size_t i = 0; i < u->count; i++) known |= u->streams[i].by != HELD_BY_NOT_KNOWN;
    const char *verdict = u->circles        ? "circle"
                          : known           ? "unfinished"
                          : u->count        ? "not_known"
                          : r->thread_count ? "in_a_call"
                          : r->unread       ? "not_known"
                                            : "idle";
    const char *told = not_told(r);
    if (r->asked)
        TABLE_PUT(table, running_columns, CELL(verdict), CELL(r->as_of),
            CELL(ago(r, r->gpu_as_of)), CELL(r->last_of_all ? ago(r, r->last_of_all->end) : NAN),
            CELL(u->count), CELL(u->idle), CELL(u->circles), CELL((double)r->thread_count + more),
            CELL(capturing(r)),
            CELL(told && r->unread ? SAY("%s. And %s", told, r->unread) : told ?: r->unread));
    table = TABLE_NEW(report, "running_streams", "Streams with unfinished work", stream_columns);
    table->shown = 20;
    for (size_t i = 0; i < u->count; i++) stream_put(r, table, &u->streams[i]);
    table = TABLE_NEW(report, "running_threads", "Threads in a call", thread_columns);
    for (size_t n = 0; n < r->thread_count; n++) thread_put(r, table, &r->threads[n]);
    unfinished_free(&r->unfinished);
    free(r->threads);
    free(r->last);
}
