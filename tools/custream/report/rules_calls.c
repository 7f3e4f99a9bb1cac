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

/* A stream's waits for events that order nothing or too little. */
struct bad_waits {
    uint64_t never, stale, nothing; /* nothing: in the GPU's idle time */
    int64_t cost;                   /* ns of idle time in the waits of `nothing` */
    uint32_t last, missed; /* the last stale wait, and the pieces of work behind its record */
};

struct watch {
    const struct run *run;
    bool whole;            /* the trace has all records of events */
    struct numbers waited; /* by both streams: the latest record on one stream for which the other
                              has waited */
    uint32_t *enqueued;    /* by stream: pieces of work so far */
    struct numbers behind; /* by event: `enqueued` of the recording stream at its last record */
    struct bad_waits *streams;
    uint32_t *nothing; /* calls that wait for nothing, in their order */
    size_t count, capacity;
};

static void watch_wait(struct watch *watch, uint32_t index)
{
    const struct call *call = &watch->run->calls[index];
    struct bad_waits *bad = &watch->streams[call->stream];
    if (call->external) return;
    if (call->record == NONE) {
        bad->never += watch->whole;
        return;
    }
    const uint32_t recording = watch->run->calls[call->record].stream;
    if (recording == NONE) return;
    if (recording != call->stream) {
        uint32_t *latest = numbers_at(&watch->waited, key_of(recording, call->stream), NONE);
        if (*latest == NONE || *latest < call->record) {
            *latest = call->record;
            return;
        }
        const uint32_t missed =
            watch->enqueued[recording] - numbers_get(&watch->behind, call->what, 0);
        if (*latest == call->record && missed) {
            bad->stale++;
            bad->last = index;
            bad->missed = missed;
            return;
        }
    }
    array_add(watch->nothing, watch->count, watch->capacity, index);
}

/* Whether the trace has all records of events. A later part, a cut, and a trace with windows or a
 * loss may lack some. Graphs and other processes may record events too. */
static bool has_records(const struct run *run)
{
    bool whole = run->ours && !run->loss_count && run_number(run, "part", 1) <= 1 &&
                 !run_fact(run, "totals.windows.opened") && run_cut_seconds(run) <= 0;
    for (size_t i = 0; i < run->call_count; i++)
        whole &= run->calls[i].call != CS_CALL_cuIpcOpenEventHandle &&
                 run->calls[i].call != CS_CALL_cuGraphAddEventRecordNode &&
                 run->calls[i].call != CS_CALL_cuGraphAddNode &&
                 run->calls[i].call != CS_CALL_cuGraphAddNode_v2 &&
                 run->calls[i].call != CS_CALL_cuGraphAddNode_v3;
    return whole;
}

/* Finds the waits that order nothing or too little, and adds them up by stream. */
static struct bad_waits *bad_waits_make(const struct model *of)
{
    const struct run *run = &of->run;
    struct watch watch = {.run = run,
        .whole = has_records(run),
        .enqueued = array_zeros(run->stream_count, sizeof *watch.enqueued),
        .streams = array_zeros(run->stream_count, sizeof *watch.streams)};
    for (uint32_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        if (call->stream != NONE) watch.enqueued[call->stream] += call->works;
        if (call->result) continue;
        if (call_kind(call) == CS_KIND_EVENT && call_how(call, CS_HOW_RECORDS))
            *numbers_at(&watch.behind, call->what, 0) =
                call->stream == NONE ? 0 : watch.enqueued[call->stream];
        else if (call_kind(call) == CS_KIND_WAIT && call->stream != NONE && call->what)
            watch_wait(&watch, i);
    }
    for (size_t i = 0; i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        if (idle->cause != CAUSE_HOST || idle->call == NONE) continue;
        const size_t at = FIRST_NOT(n, 0, watch.count, watch.nothing[n] < idle->call);
        if (at == watch.count || watch.nothing[at] != idle->call) continue;
        struct bad_waits *bad = &watch.streams[run->calls[idle->call].stream];
        bad->cost += idle->end - idle->begin;
        bad->nothing++;
    }
    numbers_free(&watch.waited);
    numbers_free(&watch.behind);
    free_all(watch.enqueued, watch.nothing);
    return watch.streams;
}

void look_event_waits(struct findings *to)
{
    enum { STALE_TIMES = 3 }; /* fewer are none: several streams may begin behind one record */
    const struct run *run = &to->of->run;
    struct bad_waits *streams = bad_waits_make(to->of);
    for (uint32_t i = 0; i < run->stream_count; i++) {
        const struct bad_waits *bad = &streams[i];
        if (bad->never)
            finding(to, OF(STREAM, i), TIMES(bad->never),
                "the event had not been recorded when the stream was told to wait for it, so it "
                "waits for nothing");
        if (bad->stale < STALE_TIMES) continue;
        const struct call *wait = &run->calls[bad->last], *record = &run->calls[wait->record];
        finding(to, OF(STREAM, i), TIMES(bad->stale),
            "the stream had waited for the same record before; the last time it was event %u, "
            "recorded %s before on %s (work enqueued there since: %u)",
            wait->what, SHOWN(UNIT_NS, wait->begin - record->begin),
            find_stream(to, record->stream), bad->missed);
    }
    rule_is(to, "CS109");
    for (uint32_t i = 0; i < run->stream_count; i++)
        if (streams[i].nothing)
            finding(to, OF(STREAM, i),
                (struct extent){streams[i].nothing, .waited = 0, .most = (double)streams[i].cost},
                "waits, in idle time of the GPU, for records on the same stream or records that "
                "the stream had waited for");
    free(streams);
}
