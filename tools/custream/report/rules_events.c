/* Rules about waits for events: those that order nothing, and those that wait for too little. */
#include <math.h>

#include "tools/custream/command.h"
#include "tools/custream/report/inside.h"
#include "tools/custream/trace/numbers.h"

enum verdict { WAIT_ORDERS, WAIT_NOTHING, WAIT_STALE, WAIT_NEVER };

/* A wait of a stream for an event that does not do what waits are for. */
struct bad_wait {
    uint32_t call, record; /* record: the call that recorded the event; NONE: none did */
    enum verdict verdict;
    uint32_t missed; /* by STALE: pieces of work that came behind the record on its stream */
};

struct bad_waits {
    struct bad_wait *rows; /* in order of call */
    size_t count, capacity;
};

struct watch {
    const struct run *run;
    bool whole;              /* all records of events are in the trace */
    struct numbers recorded; /* the call of its last record, by event */
    struct numbers
        waited;         /* the latest record that the one stream waited for on the other, by both */
    uint32_t *enqueued; /* pieces of work so far, by stream */
    struct numbers behind; /* `enqueued` of the event's stream when it was recorded, by event */
};

static uint64_t both(uint32_t recording, uint32_t waiting)
{
    return (uint64_t)recording << 32 | waiting;
}

/* A part, a window of time, a loss or another process's event: an event may have been recorded
 * where the trace does not show it. */
static bool records_are_whole(const struct run *run)
{
    if (!run->ours || run->loss_count || run_number(run, "part", 1) > 1 ||
        run_fact(run, "totals.windows.opened") || run_cut_seconds(run) > 0)
        return false;
    for (size_t i = 0; i < run->call_count; i++) switch (run->calls[i].call) {
        case CS_CALL_cuIpcOpenEventHandle:
        case CS_CALL_cuGraphAddEventRecordNode:
        case CS_CALL_cuGraphAddNode:
        case CS_CALL_cuGraphAddNode_v2:
        case CS_CALL_cuGraphAddNode_v3: return false;
        default: break;
        }
    return true;
}

static struct bad_wait judge(struct watch *watch, uint32_t number)
{
    const struct call *call = &watch->run->calls[number];
    const uint32_t record = numbers_get(&watch->recorded, call->what, NONE);
    struct bad_wait bad = {.call = number, .record = record};
    if (call->external) return bad;
    if (record == NONE) {
        bad.verdict = watch->whole ? WAIT_NEVER : WAIT_ORDERS;
        return bad;
    }
    const uint32_t recording = watch->run->calls[record].stream;
    if (recording == NONE) return bad;
    if (recording == call->stream) {
        bad.verdict = WAIT_NOTHING;
        return bad;
    }
    uint32_t *latest = numbers_at(&watch->waited, both(recording, call->stream), NONE);
    if (*latest == NONE || *latest < record) {
        *latest = record;
        return bad;
    }
    bad.missed = watch->enqueued[recording] - numbers_get(&watch->behind, call->what, 0);
    bad.verdict = *latest == record && bad.missed ? WAIT_STALE : WAIT_NOTHING;
    return bad;
}

static void watch_call(struct watch *watch, struct bad_waits *bads, uint32_t number)
{
    const struct call *call = &watch->run->calls[number];
    if (call->stream != NONE) watch->enqueued[call->stream] += call->works;
    if (call->result) return;
    if (call_kind(call) == CS_KIND_EVENT && call_how(call, CS_HOW_RECORDS)) {
        *numbers_at(&watch->recorded, call->what, NONE) = number;
        *numbers_at(&watch->behind, call->what, 0) =
            call->stream == NONE ? 0 : watch->enqueued[call->stream];
    } else if (call_kind(call) == CS_KIND_WAIT && call->stream != NONE && call->what) {
        const struct bad_wait bad = judge(watch, number);
        if (bad.verdict == WAIT_ORDERS) return;
        bads->rows = array_room(bads->rows, bads->count, &bads->capacity, sizeof *bads->rows);
        bads->rows[bads->count++] = bad;
    }
}

static void bad_waits_make(struct bad_waits *bads, const struct run *run)
{
    struct watch watch = {.run = run,
        .whole = records_are_whole(run),
        .enqueued = array_zeros(run->stream_count, sizeof *watch.enqueued)};
    *bads = (struct bad_waits){0};
    for (uint32_t i = 0; i < run->call_count; i++) watch_call(&watch, bads, i);
    numbers_free(&watch.recorded);
    numbers_free(&watch.waited);
    numbers_free(&watch.behind);
    free(watch.enqueued);
}

/* --- waits for too little --- */

/* Once or twice a program may mean to wait for the same record again: several streams have a
 * beginning in common. */
enum { STALE_TIMES = 3 };

struct stale_tally {
    uint64_t never, stale;
    uint32_t last; /* of the stale ones: of bads.rows */
};

static void report_stale(struct findings *to, uint32_t stream, const struct stale_tally *tally,
    const struct bad_waits *bads)
{
    const struct run *run = &to->of->run;
    if (tally->never)
        finding(to, NONE, find_stream(to, stream), NAN, tally->never,
            report_text(to->report, "the event had not been recorded when the stream was told to "
                                    "wait for it, so it waits for nothing"));
    if (tally->stale < STALE_TIMES) return;
    const struct bad_wait *last = &bads->rows[tally->last];
    const struct call *wait = &run->calls[last->call], *record = &run->calls[last->record];
    finding(to, NONE, find_stream(to, stream), NAN, tally->stale,
        report_text(to->report,
            "the stream had waited for the same record before; the last time it was event %u, "
            "recorded %s before on %s (work enqueued "
            "there since: %u)",
            wait->what, find_time(to, (double)(wait->begin - record->begin)),
            find_stream(to, record->stream), last->missed));
}

void look_stale_waits(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct bad_waits bads;
    bad_waits_make(&bads, run);
    struct stale_tally *tallies = array_zeros(run->stream_count, sizeof *tallies);
    for (uint32_t i = 0; i < bads.count; i++) {
        struct stale_tally *tally = &tallies[run->calls[bads.rows[i].call].stream];
        if (bads.rows[i].verdict == WAIT_NEVER) tally->never++;
        if (bads.rows[i].verdict == WAIT_STALE) tally->stale++, tally->last = i;
    }
    for (uint32_t i = 0; i < run->stream_count; i++) report_stale(to, i, &tallies[i], &bads);
    free(tallies);
    free(bads.rows);
}

/* --- waits that order nothing --- */

static int by_call(const void *key, const void *row)
{
    const uint32_t call = *(const uint32_t *)key, other = ((const struct bad_wait *)row)->call;
    return call < other ? -1 : call > other;
}

struct idle_tally {
    int64_t cost;
    uint64_t times;
};

void look_idle_waits(struct findings *to)
{
    const struct model *of = to->of;
    struct bad_waits bads;
    bad_waits_make(&bads, &of->run);
    struct idle_tally *tallies = array_zeros(of->run.stream_count, sizeof *tallies);
    for (size_t i = 0; bads.count && i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        if (idle->cause != CAUSE_HOST || idle->call == NONE) continue;
        const struct bad_wait *bad =
            bsearch(&idle->call, bads.rows, bads.count, sizeof *bads.rows, by_call);
        if (!bad || bad->verdict != WAIT_NOTHING) continue;
        struct idle_tally *tally = &tallies[of->run.calls[bad->call].stream];
        tally->cost += idle->end - idle->begin;
        tally->times++;
    }
    for (uint32_t i = 0; i < of->run.stream_count; i++) {
        if (!tallies[i].times) continue;
        finding(to, of->run.streams[i].device, find_stream(to, i), (double)tallies[i].cost,
            tallies[i].times,
            report_text(to->report, "waits, in idle time of the GPU, for records on the same "
                                    "stream or records that the stream had waited for"));
    }
    free(tallies);
    free(bads.rows);
}
