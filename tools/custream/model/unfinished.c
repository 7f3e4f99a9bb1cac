#include "tools/custream/model/unfinished.h"

#include <stdlib.h>
#include <string.h>

#include "tools/custream/model/queues.h"
#include "tools/custream/model/room.h"

bool unfinished_is_asked(const struct run *run)
{
    const bool whole = run_number(run, "totals.complete", 0) != 0 && !run->cut, other_end = run_fact(run, "totals.ended") || run_number(run, "totals.continues", 0) != 0;
    return run->ours && !whole && !other_end && run_cut_seconds(run) <= 0;
}

/* --- what the head of a stream waits for --- */

/* A value in memory is written by a call that has not had its turn: where; NONE. */
static uint32_t writer_of(const struct queues *q, uint32_t wait)
{
    const struct run *run = q->run;
    const text address = run->calls[wait].what;
    for (uint32_t s = 0; address && s < run->stream_count; s++)
        for (uint32_t n = q->done[s]; n < queue_length(q, s); n++) {
            const uint32_t call = queue_call(q, s, n);
            if (call_kind(&run->calls[call]) == CS_KIND_MEMOP && !call_how(&run->calls[call], CS_HOW_WAITS) && run->calls[call].what == address) return call;
        }
    return NONE;
}

/* No GPU record was to come of it, or none at that time. */
static bool is_untimed(const struct run *run, const struct call *call)
{
    if (!call->awaited) return true;
    for (size_t i = 0; i < run->loss_count; i++)
        if (run->losses[i].no_times && !run->losses[i].closed && call->begin >= run->losses[i].begin && call->begin <= run->losses[i].end) return true;
    return false;
}

static void hold_legacy(const struct queues *q, struct unfinished_stream *row)
{
    row->by = HELD_BY_LEGACY;
    row->via = queue_head(q, row->on);
    for (uint32_t s = row->on; (s = queue_legacy(q, row->stream, s + 1)) != NONE;) row->on_more++;
}

static void hold(const struct queues *q, struct unfinished_stream *row)
{
    const struct call *call = &q->run->calls[row->call];
    if ((row->on = queue_legacy(q, row->stream, 0)) != NONE) {
        hold_legacy(q, row);
        return;
    }
    switch (call_kind(call)) {
    case CS_KIND_WAIT:
        row->by = HELD_BY_EVENT;
        row->via = q->record[row->call];
        break;
    case CS_KIND_MEMOP:
        row->by = HELD_BY_VALUE;
        row->via = writer_of(q, row->call);
        break;
    case CS_KIND_HOSTFN: row->by = HELD_BY_FUNCTION; break;
    default: row->by = is_untimed(q->run, call) ? HELD_BY_NOT_KNOWN : queue_legacy_perhaps(q, row->stream) != NONE ? HELD_BY_CONTEXT : HELD_BY_NOTHING;
    }
    if (row->via != NONE) row->on = q->run->calls[row->via].stream;
}

/* --- circles --- */

/* FREE: it goes on once what runs has ended. STUCK: it is part of a circle, or waits for one. */
enum mark { MARK_NEW, MARK_PATH, MARK_FREE, MARK_STUCK };

struct walk {
    const struct queues *q;
    struct unfinished *of;
    unsigned char *marks; /* by row */
    uint32_t *path;       /* rows */
    size_t length;
};

/* The first stream that the row waits for and that is not known to be free, as a row; NONE. */
static uint32_t next_of(const struct walk *w, uint32_t row)
{
    const struct unfinished_stream *r = &w->of->streams[row];
    for (uint32_t s = r->on; s != NONE; s = r->by == HELD_BY_LEGACY ? queue_legacy(w->q, r->stream, s + 1) : NONE) {
        const uint32_t next = w->of->row_of[s];
        if (next != NONE && w->marks[next] != MARK_FREE) return next;
    }
    return NONE;
}

static void circle_end(struct walk *w, uint32_t first)
{
    w->of->circles++;
    for (size_t i = w->length; i-- > 0;) {
        w->of->streams[w->path[i]].circle = w->of->circles;
        if (w->path[i] == first) return;
    }
}

static void path_put(struct walk *w, uint32_t row)
{
    w->marks[row] = MARK_PATH;
    w->path[w->length++] = row;
}

static void walk_from(struct walk *w, uint32_t row)
{
    w->length = 0;
    for (path_put(w, row); w->length;) {
        const uint32_t at = w->path[w->length - 1], next = next_of(w, at);
        if (next == NONE) w->marks[at] = MARK_FREE, w->length--;
        else if (w->marks[next] == MARK_NEW) path_put(w, next);
        else {
            if (w->marks[next] == MARK_PATH) circle_end(w, next);
            while (w->length) w->marks[w->path[--w->length]] = MARK_STUCK;
        }
    }
}

static void circles_find(struct unfinished *of, const struct queues *q)
{
    struct walk w = {.q = q, .of = of, .marks = room_for(of->count, 1), .path = room_for(of->count, sizeof *w.path)};
    for (uint32_t row = 0; row < of->count; row++)
        if (w.marks[row] == MARK_NEW) walk_from(&w, row);
    free(w.marks);
    free(w.path);
}

/* --- all of it --- */

static int by_circle_and_call(const void *a, const void *b)
{
    const struct unfinished_stream *x = a, *y = b;
    const uint32_t cx = x->circle - 1, cy = y->circle - 1; /* none: the last */
    if (cx != cy) return cx < cy ? -1 : 1;
    return x->call < y->call ? -1 : x->call > y->call;
}

static void rows_index(struct unfinished *u)
{
    for (uint32_t i = 0; i < u->count; i++) u->row_of[u->streams[i].stream] = i;
}

void unfinished_make(struct unfinished *u, const struct run *run)
{
    struct queues q;
    queues_make(&q, run);
    *u = (struct unfinished){.streams = room_for(run->stream_count, sizeof *u->streams), .row_of = room_for(run->stream_count, sizeof *u->row_of)};
    for (uint32_t s = 0; s < run->stream_count; s++) {
        u->row_of[s] = NONE;
        const uint32_t length = queue_length(&q, s), done = q.done[s];
        if (done == length) {
            u->idle += length > 0;
            continue;
        }
        struct unfinished_stream *row = &u->streams[u->count++];
        *row = (struct unfinished_stream){.stream = s, .call = queue_head(&q, s), .behind = length - done - 1, .last = done ? queue_call(&q, s, done - 1) : NONE, .on = NONE, .via = NONE};
        hold(&q, row);
    }
    rows_index(u);
    circles_find(u, &q);
    qsort(u->streams, u->count, sizeof *u->streams, by_circle_and_call);
    rows_index(u);
    queues_free(&q);
}

void unfinished_free(struct unfinished *u)
{
    free(u->streams);
    free(u->row_of);
    *u = (struct unfinished){0};
}
