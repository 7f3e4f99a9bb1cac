/* Rules about calls: objects that are made again and again, queries in a loop, failed calls, and
 * waits for events that order nothing or wait for too little. */
#include "tools/custream/report/inside.h"

/* --- CS110: streams and events --- */

/* MANY_OBJECTS: so many objects are too many if they were made one by one with work between, or
 * never destroyed. A pool is made in at most GOES_OF_A_POOL goes, and may live as long as the
 * program. */
enum { MANY_OBJECTS = 100, GOES_OF_A_POOL = 10 };

static bool makes_stream(const struct call *call)
{
    return call_kind(call) == CS_KIND_STREAM && call_how(call, CS_HOW_CREATES);
}
static bool makes_event(const struct call *call) { return call->call == CS_CALL_cuEventCreate; }

static void report_makings(
    struct findings *to, const char *objects, bool (*makes)(const struct call *), double leaked)
{
    const struct run *run = &to->of->run;
    uint64_t all = 0, between = 0; /* between: made after streams were used anew */
    bool used = false;
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        used |= call->works || call_how(call, CS_HOW_RECORDS) || call_kind(call) == CS_KIND_WAIT;
        if (call->result || !makes(call)) continue;
        all++;
        between += used;
        used = false;
    }
    const bool in_a_loop = between >= MANY_OBJECTS,
               never_destroyed = leaked >= MANY_OBJECTS && between > GOES_OF_A_POOL;
    if (!in_a_loop && !never_destroyed) return;
    finding(to, OF_WORDS(objects), TIMES(in_a_loop ? between : (uint64_t)leaked),
        "%lu %s made, %lu of them after streams were used since the one before; %.0f never "
        "destroyed",
        (unsigned long)all, objects, (unsigned long)between, leaked);
}

void look_objects(struct findings *to)
{
    report_makings(
        to, "streams", makes_stream, run_number(&to->of->run, "totals.leaked_streams", 0));
    report_makings(to, "events", makes_event, run_number(&to->of->run, "totals.leaked_events", 0));
}

/* --- CS113: queries --- */

/* The least queries a second, and in all, of a loop that does nothing but ask. */
enum { QUERIES_A_SECOND = 1000, QUERIES = 100 };

/* Consecutive queries of one thing by one thread. */
struct spin {
    const struct call *first, *last;
    uint64_t queries;
};

struct spun {
    uint64_t queries, loops;
    int64_t time;
};

static void end_spin(struct spun *spun, struct spin *spin)
{
    if (spin->queries >= QUERIES &&
        (double)(spin->queries - 1) * 1e9 >
            (double)(spin->last->begin - spin->first->begin) * QUERIES_A_SECOND) {
        spun->queries += spin->queries;
        spun->time += spin->last->end - spin->first->begin;
        spun->loops++;
    }
    *spin = (struct spin){0};
}

void look_spinning(struct findings *to)
{
    const struct run *run = &to->of->run;
    for (uint32_t thread = 0; thread < run->thread_count; thread++) {
        struct spun spun = {0};
        struct spin spin = {0};
        for (uint32_t i = run->thread_calls.begins[thread];
            i < run->thread_calls.begins[thread + 1]; i++) {
            const struct call *call = &run->calls[run->thread_calls.members[i]];
            const struct call *first = spin.first;
            if (spin.queries && (first->call != call->call || first->stream != call->stream ||
                                    first->what != call->what))
                end_spin(&spun, &spin);
            if (call_kind(call) != CS_KIND_QUERY) continue;
            if (!spin.queries++) spin.first = call;
            spin.last = call;
        }
        end_spin(&spun, &spin);
        if (spun.loops)
            finding(to, OF(THREAD, thread), TIMES(spun.loops),
                "queries: %lu, in %s of the thread's time", (unsigned long)spun.queries,
                SHOWN(UNIT_NS, spun.time));
    }
}

/* --- CS115: failed calls --- */

/* Results that are no failure. A query and cuEventElapsedTime may answer that work is not done yet.
 * Libraries that free their objects while the process ends are told that the driver has ended. */
struct expected {
    text not_ready, deinitialized;
};

static bool failed(const struct call *call, const struct expected *expected)
{
    const enum cs_kind kind = call_kind(call);
    if (!call->result || call->result == expected->deinitialized) return false;
    return call->result != expected->not_ready || (kind != CS_KIND_QUERY && kind != CS_KIND_EVENT);
}

void look_failed(struct findings *to)
{
    const struct run *run = &to->of->run;
    const struct expected expected = {text_find(&run->texts, "CUDA_ERROR_NOT_READY"),
        text_find(&run->texts, "CUDA_ERROR_DEINITIALIZED")};
    struct tallies failures = {0}; /* sum[0]: the index of the first call */
    for (size_t i = 0; i < run->call_count; i++) {
        if (!failed(&run->calls[i], &expected)) continue;
        struct tally *tally = tally_of(&failures, key_of(run->calls[i].name, run->calls[i].result));
        if (!tally->times++) tally->sum[0] = (double)i;
    }
    tallies_sort(&failures);
    for (size_t i = 0; i < failures.count; i++) {
        const struct call *first = &run->calls[(size_t)failures.rows[i].sum[0]];
        finding(to, OF_WORDS(text_in(run, first->name)), TIMES(failures.rows[i].times),
            "it returned %s, the first time to %s, %s after the trace's begin",
            text_in(run, first->result), find_thread(to, first->thread),
            SHOWN(UNIT_NS, first->begin - run->begin));
    }
    tallies_free(&failures);
}

/* --- CS108, CS109: waits for events --- */

enum verdict { WAIT_ORDERS, WAIT_NOTHING, WAIT_STALE, WAIT_NEVER };

/* A stream's wait for an event, if the wait orders nothing or too little. */
struct bad_wait {
    uint32_t call, record; /* record: the call that recorded the event; NONE: none */
    enum verdict verdict;
    uint32_t missed; /* for STALE: pieces of work behind the record on its stream */
};

struct bad_waits {
    struct bad_wait *rows; /* in order of call */
    size_t count, capacity;
};

struct watch {
    const struct run *run;
    bool whole;            /* the trace has all records of events */
    struct numbers waited; /* by both streams: the latest record on one stream for which the other
                              has waited */
    uint32_t *enqueued;    /* by stream: pieces of work so far */
    struct numbers behind; /* by event: `enqueued` of the recording stream at its last record */
};

static struct bad_wait judge(struct watch *watch, uint32_t number)
{
    const struct call *call = &watch->run->calls[number];
    const uint32_t record = call->record;
    struct bad_wait bad = {.call = number, .record = record};
    if (call->external) return bad;
    if (record == NONE) bad.verdict = watch->whole ? WAIT_NEVER : WAIT_ORDERS;
    if (record == NONE) return bad;
    const uint32_t recording = watch->run->calls[record].stream;
    if (recording == call->stream) bad.verdict = WAIT_NOTHING;
    if (recording == NONE || recording == call->stream) return bad;
    uint32_t *latest = numbers_at(&watch->waited, key_of(recording, call->stream), NONE);
    if (*latest == NONE || *latest < record) {
        *latest = record;
        return bad;
    }
    bad.missed = watch->enqueued[recording] - numbers_get(&watch->behind, call->what, 0);
    bad.verdict = *latest == record && bad.missed ? WAIT_STALE : WAIT_NOTHING;
    return bad;
}

/* The bad waits of a stream. `nothing`: waits that order nothing, in the GPU's idle time. */
struct bad_stream {
    uint64_t never, stale, nothing;
    int64_t cost;  /* ns of idle time in the waits of `nothing` */
    uint32_t last; /* the index in bads->rows of the last stale wait */
};

/* Finds the bad waits, and adds them up by stream. */
static struct bad_stream *bad_streams_make(struct bad_waits *bads, const struct model *of)
{
    const struct run *run = &of->run;
    struct bad_stream *streams = array_zeros(run->stream_count, sizeof *streams), *at;
    /* A later part, a cut, and a trace with windows or a loss may lack records of events. Graphs
     * and other processes may record events too. */
    bool whole = run->ours && !run->loss_count && run_number(run, "part", 1) <= 1 &&
                 !run_fact(run, "totals.windows.opened") && run_cut_seconds(run) <= 0;
    for (size_t i = 0; i < run->call_count; i++)
        whole &= run->calls[i].call != CS_CALL_cuIpcOpenEventHandle &&
                 run->calls[i].call != CS_CALL_cuGraphAddEventRecordNode &&
                 run->calls[i].call != CS_CALL_cuGraphAddNode &&
                 run->calls[i].call != CS_CALL_cuGraphAddNode_v2 &&
                 run->calls[i].call != CS_CALL_cuGraphAddNode_v3;
    struct watch watch = {.run = run,
        .whole = whole,
        .enqueued = array_zeros(run->stream_count, sizeof *watch.enqueued)};
    for (uint32_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        if (call->stream != NONE) watch.enqueued[call->stream] += call->works;
        if (call->result) continue;
        if (call_kind(call) == CS_KIND_EVENT && call_how(call, CS_HOW_RECORDS)) {
            *numbers_at(&watch.behind, call->what, 0) =
                call->stream == NONE ? 0 : watch.enqueued[call->stream];
        } else if (call_kind(call) == CS_KIND_WAIT && call->stream != NONE && call->what) {
            const struct bad_wait bad = judge(&watch, i);
            if (bad.verdict != WAIT_ORDERS) array_add(bads->rows, bads->count, bads->capacity, bad);
        }
    }
    for (uint32_t i = 0; i < bads->count; i++) {
        at = &streams[run->calls[bads->rows[i].call].stream];
        if (bads->rows[i].verdict == WAIT_NEVER) at->never++;
        if (bads->rows[i].verdict == WAIT_STALE) at->stale++, at->last = i;
    }
    for (size_t i = 0; i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        if (idle->cause != CAUSE_HOST || idle->call == NONE) continue;
        const size_t bad = FIRST_NOT(b, 0, bads->count, bads->rows[b].call < idle->call);
        if (bad == bads->count || bads->rows[bad].call != idle->call ||
            bads->rows[bad].verdict != WAIT_NOTHING)
            continue;
        at = &streams[run->calls[idle->call].stream];
        at->cost += idle->end - idle->begin;
        at->nothing++;
    }
    numbers_free(&watch.waited);
    numbers_free(&watch.behind);
    free(watch.enqueued);
    return streams;
}

/* --- waits for too little --- */

/* The least stale waits for a finding: several streams may begin behind one record. */
enum { STALE_TIMES = 3 };

void look_stale_waits(struct findings *to)
{
    struct bad_waits bads = {0};
    struct bad_stream *streams = bad_streams_make(&bads, to->of);
    const struct run *run = &to->of->run;
    for (uint32_t i = 0; i < run->stream_count; i++) {
        if (streams[i].never)
            finding(to, OF(STREAM, i), TIMES(streams[i].never),
                "the event had not been recorded when the stream was told to wait for it, so it "
                "waits for nothing");
        if (streams[i].stale < STALE_TIMES) continue;
        const struct bad_wait *last = &bads.rows[streams[i].last];
        const struct call *wait = &run->calls[last->call], *record = &run->calls[last->record];
        finding(to, OF(STREAM, i), TIMES(streams[i].stale),
            "the stream had waited for the same record before; the last time it was event %u, "
            "recorded %s before on %s (work enqueued there since: %u)",
            wait->what, SHOWN(UNIT_NS, wait->begin - record->begin),
            find_stream(to, record->stream), last->missed);
    }
    free(streams);
    free(bads.rows);
}

/* --- waits that order nothing --- */

void look_idle_waits(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct bad_waits bads = {0};
    struct bad_stream *streams = bad_streams_make(&bads, to->of);
    for (uint32_t i = 0; i < run->stream_count; i++)
        if (streams[i].nothing)
            finding(to, OF(STREAM, i),
                (struct extent){streams[i].nothing, .waited = 0, .most = (double)streams[i].cost},
                "waits, in idle time of the GPU, for records on the same stream or records that "
                "the stream had waited for");
    free(streams);
    free(bads.rows);
}
