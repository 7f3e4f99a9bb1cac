#include "tools/custream/model/unfinished.h"

#include "tools/custream/model/views.h"

#include <math.h>

/* --- queues: a stream's operations in the order of their calls, and how many have ended --- */

struct queues {
    const struct run *run;
    struct groups operations; /* the calls that are operations, by stream */
    uint32_t *done;           /* by stream: how many of its operations have ended */
    bool *ended;              /* by call: it is an operation that has ended */
};

static uint32_t queue_length(const struct queues *q, uint32_t stream)
{
    return q->operations.begins[stream + 1] - q->operations.begins[stream];
}
static uint32_t queue_call(const struct queues *q, uint32_t stream, uint32_t n)
{
    return q->operations.members[q->operations.begins[stream] + n];
}
static bool queue_is_open(const struct queues *q, uint32_t stream)
{
    return q->done[stream] < queue_length(q, stream);
}
static uint32_t queue_head(const struct queues *q, uint32_t stream)
{
    return queue_call(q, stream, q->done[stream]);
}
/* --- which calls are operations of a stream --- */

static bool is_operation(const struct call *call)
{
    if (call->stream == NONE || call->result || call->captured) return false;
    switch (call_kind(call)) {
    case CS_KIND_EVENT: return call_how(call, CS_HOW_RECORDS);
    case CS_KIND_WAIT:
    case CS_KIND_HOSTFN:
    case CS_KIND_MEMOP: return true;
    default: return cs_call_enqueues(call->call);
    }
}

/* Returns the operation that recorded the call's event; NONE. */
static uint32_t record_of(const struct run *run, const struct call *call)
{
    return call->record != NONE && is_operation(&run->calls[call->record]) ? call->record : NONE;
}

/* --- what has ended --- */

/* The pass over the calls, from the last to the first: what ends an operation comes behind it. */
struct pass {
    uint32_t *functions; /* by call: its host function that ran; NONE. NULL: none ran */
    /* by a graph's number: the most nodes that a launch had; a launch with fewer has not ended */
    struct numbers nodes;
    /* the stream's operations whose calls returned up to `stream` (by stream) or `all` have ended
     */
    int64_t *stream, all;
    bool *sides; /* by side of the legacy default stream's order: an operation there has ended */
};

/* Returns the graph of a launch whose nodes are shown one by one; 0: the nodes are not shown, or
 * the call launches no graph. */
static uint32_t graph_of_nodes(const struct run *run, const struct call *call)
{
    const struct work *work = call->works ? &run->works[run->works_of[call->work]] : NULL;
    return work && work->node ? work->graph : 0;
}

/* Whether a record of the operation itself shows that it has ended. */
static bool is_shown(const struct run *run, const struct pass *pass, uint32_t index)
{
    const struct call *call = &run->calls[index];
    const uint32_t graph = graph_of_nodes(run, call);
    if (call->ended && (!graph || call->works >= numbers_get(&pass->nodes, graph, 0))) return true;
    if (call_kind(call) == CS_KIND_HOSTFN) return pass->functions && pass->functions[index] != NONE;
    /* a copy to the host returns when the bytes are there */
    return call_kind(call) == CS_KIND_COPY && call_how(call, CS_HOW_BLOCKS) &&
           cs_call_way(call->call) == CS_WAY_DtoH;
}

/* Notes what a wait or query of the host has shown: the operations whose calls had returned when it
 * began have ended. */
static void host_shows(struct queues *q, struct pass *pass, const struct call *call, bool one)
{
    const enum cs_kind kind = call_kind(call);
    if (call->result || call->captured || (kind != CS_KIND_SYNC && kind != CS_KIND_QUERY)) return;
    /* A wait for a whole context tells of all streams if there is only one context. */
    if (kind == CS_KIND_SYNC && call_how(call, CS_HOW_WIDE) && one && call->begin > pass->all)
        pass->all = call->begin;
    if (call->stream != NONE && call->begin > pass->stream[call->stream])
        pass->stream[call->stream] = call->begin;
    if (call->stream == NONE && call->record != NONE) q->ended[call->record] = true;
}

static void pass_over(struct queues *q)
{
    const struct run *run = q->run;
    const bool one = run->device_count < 2 && !run_has_contexts(run);
    struct pass pass = {.functions = host_functions_of(run),
        .stream = array_zeros(run->stream_count, sizeof *pass.stream),
        .all = INT64_MIN,
        .sides = array_zeros(run->side_count, sizeof *pass.sides)};
    for (size_t s = 0; s < run->stream_count; s++) pass.stream[s] = INT64_MIN;
    for (size_t i = 0; i < run->call_count; i++) {
        const uint32_t graph = graph_of_nodes(run, &run->calls[i]);
        uint32_t *most = graph ? numbers_at(&pass.nodes, graph, 0) : NULL;
        if (most && run->calls[i].works > *most) *most = run->calls[i].works;
    }
    for (uint32_t i = (uint32_t)run->call_count; i-- > 0;) {
        const struct call *call = &run->calls[i];
        host_shows(q, &pass, call, one);
        if (!is_operation(call)) continue;
        const uint32_t side = run->streams[call->stream].side;
        if (!q->ended[i] && call->end > pass.stream[call->stream] && call->end > pass.all &&
            (side == NONE || !pass.sides[side ^ 1]) && !is_shown(run, &pass, i))
            continue;
        q->ended[i] = true;
        q->done[call->stream]++;
        pass.stream[call->stream] = INT64_MAX; /* all before it have ended */
        if (side != NONE) pass.sides[side] = true;
        if (call_kind(call) == CS_KIND_WAIT && call->record != NONE) q->ended[call->record] = true;
    }
    numbers_free(&pass.nodes);
    free_all(pass.functions, pass.stream, pass.sides);
}

/* --- operations that nothing holds --- */

/* Returns a stream, from number `from` on, for which the stream's first unfinished operation waits
 * in the order of the legacy default stream; NONE. */
static uint32_t queue_legacy(const struct queues *q, uint32_t stream, uint32_t from)
{
    const struct stream *streams = q->run->streams;
    const uint32_t side = streams[stream].side, head = queue_head(q, stream);
    for (uint32_t s = from; side != NONE && s < q->run->stream_count; s++)
        if (streams[s].side == (side ^ 1) && queue_is_open(q, s) && queue_head(q, s) < head)
            return s;
    return NONE;
}

/* Whether the stream's first unfinished operation is over: it is instant, and nothing holds it. */
static bool is_over(const struct queues *q, uint32_t stream)
{
    const struct call *call = &q->run->calls[queue_head(q, stream)];
    const uint32_t record = record_of(q->run, call);
    const enum cs_kind kind = call_kind(call);
    if (kind == CS_KIND_WAIT && call->external && q->done[stream] + 1 < queue_length(q, stream))
        return false; /* the event may not be recorded, which matters to what is behind the wait */
    if (kind == CS_KIND_WAIT
            ? record != NONE && !q->ended[record]
            : kind != CS_KIND_EVENT && (kind != CS_KIND_MEMOP || call_how(call, CS_HOW_WAITS)))
        return false;
    return queue_legacy(q, stream, 0) == NONE;
}

/* --- all queues --- */

static void queues_make(struct queues *q, const struct run *run)
{
    *q = (struct queues){.run = run,
        .done = array_zeros(run->stream_count, sizeof *q->done),
        .ended = array_zeros(run->call_count, sizeof *q->ended)};
    uint32_t *stream_of = array_none(run->call_count);
    for (uint32_t i = 0; i < run->call_count; i++)
        if (is_operation(&run->calls[i])) stream_of[i] = run->calls[i].stream;
    q->operations =
        groups_make(run->stream_count, stream_of, run->call_count, sizeof *stream_of, 0);
    free(stream_of);
    pass_over(q);
    for (uint32_t i = 0; i < run->call_count; i++) {
        const uint32_t s = run->calls[i].stream;
        if (!is_operation(&run->calls[i]) || q->ended[i] || queue_head(q, s) != i || !is_over(q, s))
            continue;
        q->ended[i] = true;
        q->done[s]++;
    }
}

/* --- unfinished --- */

bool unfinished_is_asked(const struct run *run)
{
    const bool whole = run_number(run, "totals.complete", 0) != 0 && !run->cut,
               other_end =
                   run_fact(run, "totals.ended") || run_number(run, "totals.continues", 0) != 0;
    return run->ours && !whole && !other_end && run_cut_seconds(run) <= 0;
}

/* --- what the head of a stream waits for --- */

/* Returns the unfinished call that writes the value in memory; NONE. */
static uint32_t writer_of(const struct queues *q, uint32_t wait)
{
    const struct run *run = q->run;
    const text address = run->calls[wait].what;
    for (uint32_t s = 0; address && s < run->stream_count; s++)
        for (uint32_t n = q->done[s]; n < queue_length(q, s); n++) {
            const uint32_t call = queue_call(q, s, n);
            if (call_kind(&run->calls[call]) == CS_KIND_MEMOP &&
                !call_how(&run->calls[call], CS_HOW_WAITS) && run->calls[call].what == address)
                return call;
        }
    return NONE;
}

static void hold(const struct queues *q, struct unfinished_stream *row)
{
    const struct call *call = &q->run->calls[row->call];
    if ((row->on = queue_legacy(q, row->stream, 0)) != NONE) {
        row->by = HELD_BY_LEGACY;
        row->via = queue_head(q, row->on);
        for (uint32_t s = row->on; (s = queue_legacy(q, row->stream, s + 1)) != NONE;)
            row->on_more++;
        return;
    }
    bool untimed = !call->awaited; /* the call gets no GPU record */
    for (size_t i = 0; i < q->run->loss_count; i++) {
        const struct loss *loss = &q->run->losses[i];
        untimed |= loss->no_times && !loss->closed && call->begin >= loss->begin &&
                   call->begin <= loss->end;
    }
    const struct stream *own = &q->run->streams[row->stream];
    bool perhaps = false; /* contexts are not known: the legacy default stream may hold the call */
    for (uint32_t s = 0; own->known && !own->non_blocking && s < q->run->stream_count; s++) {
        const struct stream *other = &q->run->streams[s];
        perhaps |= other->known && !other->non_blocking && own->device == other->device &&
                   (own->origin == ORIGIN_LEGACY) != (other->origin == ORIGIN_LEGACY) &&
                   (other->side == NONE || own->side == NONE) && queue_is_open(q, s) &&
                   queue_head(q, s) < row->call;
    }
    switch (call_kind(call)) {
    case CS_KIND_WAIT:
        row->by = HELD_BY_EVENT;
        row->via = record_of(q->run, call);
        break;
    case CS_KIND_MEMOP:
        row->by = HELD_BY_VALUE;
        row->via = writer_of(q, row->call);
        break;
    case CS_KIND_HOSTFN: row->by = HELD_BY_FUNCTION; break;
    default: row->by = untimed ? HELD_BY_NOT_KNOWN : perhaps ? HELD_BY_CONTEXT : HELD_BY_NOTHING;
    }
    if (row->via != NONE) row->on = q->run->calls[row->via].stream;
}

/* --- circles --- */

/* PATH: the row is on the path being walked. FREE: the row goes on once running work has ended.
 * STUCK: the row is in a circle, or waits for a row of a circle. */
enum mark { MARK_NEW, MARK_PATH, MARK_FREE, MARK_STUCK };

struct walk {
    const struct queues *q;
    struct unfinished *of;
    unsigned char *marks; /* by row: enum mark */
    uint32_t *path;       /* the rows of the path */
    size_t length;
};

static void path_put(struct walk *w, uint32_t row)
{
    w->marks[row] = MARK_PATH;
    w->path[w->length++] = row;
}

static void walk_from(struct walk *w, uint32_t row)
{
    w->length = 0;
    for (path_put(w, row); w->length;) {
        const uint32_t at = w->path[w->length - 1];
        const struct unfinished_stream *r = &w->of->streams[at];
        uint32_t next = NONE; /* the first row for which this one waits and that may not be free */
        for (uint32_t s = r->on; s != NONE && next == NONE;
            s = r->by == HELD_BY_LEGACY ? queue_legacy(w->q, r->stream, s + 1) : NONE) {
            next = w->of->row_of[s];
            if (next != NONE && w->marks[next] == MARK_FREE) next = NONE;
        }
        if (next == NONE) w->marks[at] = MARK_FREE, w->length--;
        else if (w->marks[next] == MARK_NEW) path_put(w, next);
        else {
            if (w->marks[next] == MARK_PATH) w->of->circles++;
            for (size_t i = w->length; w->marks[next] == MARK_PATH && i-- > 0;) {
                w->of->streams[w->path[i]].circle = w->of->circles;
                if (w->path[i] == next) break;
            }
            while (w->length) w->marks[w->path[--w->length]] = MARK_STUCK;
        }
    }
}

/* --- all unfinished streams --- */

/* circle 0 comes last */
COMPARES(by_circle_and_call, struct unfinished_stream,
    ORDER(a->circle - 1, b->circle - 1) ?: ORDER(a->call, b->call))

static void rows_index(struct unfinished *u)
{
    for (uint32_t i = 0; i < u->count; i++) u->row_of[u->streams[i].stream] = i;
}

void unfinished_make(struct unfinished *u, const struct run *run)
{
    struct queues q;
    queues_make(&q, run);
    *u = (struct unfinished){.streams = array_zeros(run->stream_count, sizeof *u->streams),
        .row_of = array_none(run->stream_count)};
    for (uint32_t s = 0; s < run->stream_count; s++) {
        const uint32_t length = queue_length(&q, s), done = q.done[s];
        if (done == length) {
            u->idle += length > 0;
            continue;
        }
        struct unfinished_stream *row = &u->streams[u->count++];
        *row = (struct unfinished_stream){.stream = s,
            .call = queue_head(&q, s),
            .behind = length - done - 1,
            .last = done ? queue_call(&q, s, done - 1) : NONE,
            .on = NONE,
            .via = NONE};
        hold(&q, row);
    }
    rows_index(u);
    struct walk w = {.q = &q,
        .of = u,
        .marks = array_zeros(u->count, 1),
        .path = array_zeros(u->count, sizeof *w.path)};
    for (uint32_t row = 0; row < u->count; row++)
        if (w.marks[row] == MARK_NEW) walk_from(&w, row);
    free_all(w.marks, w.path);
    qsort(u->streams, u->count, sizeof *u->streams, by_circle_and_call);
    rows_index(u);
    free_all(q.done, q.ended);
    groups_free(&q.operations);
}

void unfinished_free(struct unfinished *u)
{
    free(u->streams);
    free(u->row_of);
    *u = (struct unfinished){0};
}

/* --- what the trailer lists --- */

static struct fact listed(const struct run *run, const char *list, unsigned n, const char *member)
{
    char path[64];
    snprintf(path, sizeof path, "totals.%s.%u.%s", list, n, member);
    const struct fact *fact = run_fact(run, path);
    return (struct fact){
        .value = fact ? fact->value : 0, .number = fact && !fact->value ? fact->number : NAN};
}

double listed_number(const struct run *run, const char *list, unsigned n, const char *member)
{
    return listed(run, list, n, member).number;
}

uint32_t listed_stream(const struct run *run, const char *list, unsigned n)
{
    const double device = listed_number(run, list, n, "device"),
                 lane = listed_number(run, list, n, "stream");
    for (uint32_t s = 0; s < run->stream_count; s++)
        if (run->streams[s].lane == lane && run->devices[run->streams[s].device].ordinal == device)
            return s;
    return NONE;
}

static const char *listed_text(const struct run *run, unsigned n, const char *member)
{
    const text value = listed(run, "inside", n, member).value;
    return value ? text_in(run, value) : NULL;
}

struct inside *inside_read(const struct run *run, size_t *count)
{
    struct inside *threads = NULL;
    size_t found = 0, capacity = 0;
    double tid;
    for (unsigned n = 0; isfinite(tid = listed_number(run, "inside", n, "thread")); n++) {
        const struct fact all = listed(run, "inside", n, "all");
        const char *call = listed_text(run, n, "call");
        array_add(threads, found, capacity,
            (struct inside){.name = listed_text(run, n, "name"),
                .call = call,
                .function = listed_text(run, n, "function"),
                .info = call_named(call),
                .tid = tid,
                .since_us = listed_number(run, "inside", n, "since_us"),
                .device = listed_number(run, "inside", n, "device"),
                .event = listed_number(run, "inside", n, "event"),
                .stream = listed_stream(run, "inside", n),
                .all = all.value || isfinite(all.number)});
    }
    *count = found;
    return threads;
}
