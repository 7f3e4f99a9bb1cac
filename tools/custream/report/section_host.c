/* The host's waits for a device, and the work for which the host waited. One pass over the calls in
 * their order keeps, for each stream, event and device, the work so far that ends last. This is the
 * work for which a wait for the stream, event or device waits. */
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

static const struct column wait_columns[] = {
    {"call", "call", UNIT_TEXT, COLUMN_NAMES, 0},
    {"thread", "thread", UNIT_TEXT, COLUMN_NAMES, 0},
    {"for", "for", UNIT_TEXT, COLUMN_NAMES, 0},
    {"times", "times", UNIT_COUNT, 0, CELL_TIMES},
    {"blocked_ns", "blocked", UNIT_NS, 0, CELL_TOTAL},
    {"longest_ns", "longest", UNIT_NS, 0, CELL_LONGEST},
};

enum {
    COPY_BLOCKS_NS = 20000, /* a synchronous copy this short is taken to have waited for nothing */
    CLOCKS_NS = 20000,      /* the error of times on the GPU if they come from events */
    ROWS_SHOWN = 20,
};

/* The work enqueued so far that ends last, for each stream, device and event for which the host can
 * wait; NONE. */
struct front {
    const struct run *run;
    uint32_t *streams; /* by stream, with the work that the stream itself waits for */
    uint32_t *devices;
    uint32_t *blocking;    /* by device: of all streams for which the legacy default stream waits */
    struct numbers events; /* by an event's number: the work that its last record stands for */
    struct numbers recorded; /* by an event's number: the stream of its last record */
};

static uint32_t later(const struct run *run, uint32_t one, uint32_t other)
{
    if (one == NONE || other == NONE) return one == NONE ? other : one;
    return run->works[other].end > run->works[one].end ? other : one;
}

static void front_work(struct front *front, uint32_t stream, uint32_t work)
{
    const struct run *run = front->run;
    const struct stream *s = &run->streams[stream];
    front->streams[stream] = later(run, front->streams[stream], work);
    front->devices[s->device] = later(run, front->devices[s->device], work);
    if (!s->non_blocking) front->blocking[s->device] = later(run, front->blocking[s->device], work);
}

static uint32_t front_of_stream(const struct front *front, uint32_t stream)
{
    const struct stream *s = &front->run->streams[stream];
    return s->origin == ORIGIN_LEGACY
               ? later(front->run, front->streams[stream], front->blocking[s->device])
               : front->streams[stream];
}

/* Adds a call to the front: the call's work, an event's record, or a wait for an event. Work counts
 * on the stream that the call names, even if nodes of a graph ran on others. */
static void front_call(struct front *front, const struct call *call)
{
    const enum cs_kind kind = call_kind(call);
    for (uint32_t i = 0; i < call->works; i++) {
        const uint32_t work = front->run->works_of[call->work + i];
        front_work(
            front, call->stream == NONE ? front->run->works[work].stream : call->stream, work);
    }
    if (call->stream == NONE || call->result) return;
    if (kind == CS_KIND_EVENT && call_how(call, CS_HOW_RECORDS)) {
        *numbers_at(&front->events, call->what, NONE) =
            call->external ? NONE : front_of_stream(front, call->stream);
        *numbers_at(&front->recorded, call->what, NONE) = call->external ? NONE : call->stream;
    }
    if (kind != CS_KIND_WAIT || call->external) return;
    const uint32_t waited = numbers_get(&front->events, call->what, NONE);
    front->streams[call->stream] = later(front->run, front->streams[call->stream], waited);
}

static bool ended_in(const struct work *work, const struct call *call)
{
    return work->end > call->begin && work->end <= call->end + CLOCKS_NS;
}

/* Returns the work that a wait waited for; NONE: nothing that still ran. Work that ends after the
 * wait does not count: another thread enqueued it meanwhile, or the work is another device's. */
static uint32_t ended_wait(const struct front *front, const struct call *call)
{
    const struct run *run = front->run;
    uint32_t work = NONE;
    if (call_kind(call) == CS_KIND_COPY && call->works)
        return run->works_of[call->work + call->works - 1];
    if (call->stream != NONE) work = front_of_stream(front, call->stream);
    else if (call->what) work = numbers_get(&front->events, call->what, NONE);
    else
        for (size_t d = 0; d < run->device_count; d++)
            if (front->devices[d] != NONE && ended_in(&run->works[front->devices[d]], call))
                work = later(run, work, front->devices[d]);
    return work != NONE && ended_in(&run->works[work], call) ? work : NONE;
}

/* --- waits for something else than work --- */

/* The cause of a wait for which neither work nor a host function is found. OTHER_NOTHING: nothing,
 * as all work had ended. OTHER_UNKNOWN: the trace does not tell. */
enum other { OTHER_NOTHING, OTHER_UNKNOWN };

/* Returns a stream on which a host function returned during the wait; NONE. */
static uint32_t function_in(
    const struct front *front, const struct call *call, const struct callback *by_end)
{
    const struct run *run = front->run;
    const uint32_t stream = call->stream != NONE ? call->stream
                            : call->what         ? numbers_get(&front->recorded, call->what, NONE)
                                                 : NONE;
    size_t low = FIRST_NOT(i, 0, run->callback_count, by_end[i].end <= call->end);
    for (; low && by_end[low - 1].end > call->begin; low--) {
        const struct callback *function = &by_end[low - 1];
        if (function->enqueued <= call->begin && function->stream != NONE &&
            (stream == NONE || function->stream == stream))
            return function->stream;
    }
    return NONE;
}

COMPARES(by_callback_end, struct callback, ORDER(a->end, b->end))

/* What a row keeps of its first wait, in tally->sum. WAIT_CALL: the call's index. WAIT_WORK: the
 * index of the work that it waited for; NONE. WAIT_STREAM: the stream of that work, or of the host
 * function that it waited for instead; NONE. WAIT_OTHER: an enum other; counts if WAIT_STREAM is
 * NONE. */
enum { WAIT_CALL, WAIT_WORK, WAIT_OTHER, WAIT_STREAM };

static void wait_add(
    struct tallies *waits, const struct front *front, uint32_t index, const struct callback *by_end)
{
    const struct run *run = front->run;
    const struct call *call = &run->calls[index];
    const uint32_t work = ended_wait(front, call),
                   function =
                       work == NONE && !call->external ? function_in(front, call, by_end) : NONE,
                   stream = work != NONE ? run->works[work].stream : function;
    bool unseen = !run_has_times(run); /* work that ran during the call may be missing */
    for (size_t i = 0; i < run->loss_count && run->losses[i].begin < call->end; i++)
        unseen |=
            run->losses[i].end > call->begin && (run->losses[i].no_times || run->losses[i].works);
    const enum other other = call->external || unseen ? OTHER_UNKNOWN : OTHER_NOTHING;
    struct tally *tally = TALLY_OF(waits, call->name, call->thread,
        work != NONE     ? run->works[work].name
        : stream == NONE ? other
                         : 0,
        stream);
    if (!tally->times) {
        tally->sum[WAIT_CALL] = index;
        tally->sum[WAIT_WORK] = work;
        tally->sum[WAIT_OTHER] = other;
        tally->sum[WAIT_STREAM] = stream;
    }
    tally_add(tally, call->end - call->begin);
}

static void wait_own(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row)
{
    const struct run *run = &of->run;
    const struct call *call = &run->calls[(size_t)tally->sum[WAIT_CALL]];
    const uint32_t work = (uint32_t)tally->sum[WAIT_WORK],
                   stream = (uint32_t)tally->sum[WAIT_STREAM];
    row[0].text = text_in(run, call->name);
    row[1].text = thread_label(report, run, call->thread);
    row[2].text = tally->sum[WAIT_OTHER] == OTHER_UNKNOWN ? "not known" : "nothing that still ran";
    if (stream != NONE)
        row[2].text = report_text(report, "%s on %s",
            work == NONE ? "a host function" : text_in(run, run->works[work].name),
            stream_label(report, run, stream));
}

void section_host(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table =
        TABLE_NEW(report, "host_waits", "Where the host waited for the GPU", wait_columns);
    struct front front = {.run = run,
        .streams = array_none(run->stream_count),
        .devices = array_none(run->device_count),
        .blocking = array_none(run->device_count)};
    struct tallies found = {0};
    uint32_t loose = 0; /* the works up to this index that lack a call are in the front */
    struct callback *by_end = array_zeros(run->callback_count, sizeof *by_end);
    if (run->callback_count) {
        memcpy(by_end, run->callbacks, run->callback_count * sizeof *by_end);
        qsort(by_end, run->callback_count, sizeof *by_end, by_callback_end);
    }
    for (uint32_t c = 0; c < run->call_count; c++) {
        const struct call *call = &run->calls[c];
        /* Work that lacks a call counts as enqueued when it began. */
        for (; loose < run->work_count && run->works[loose].begin <= call->begin; loose++)
            if (run->works[loose].call == NONE) front_work(&front, run->works[loose].stream, loose);
        front_call(&front, call);
        const bool short_copy =
            call_kind(call) == CS_KIND_COPY && call->end - call->begin <= COPY_BLOCKS_NS;
        if (call_waits(call) && !short_copy) wait_add(&found, &front, c, by_end);
    }
    tallies_put(report, of, &found, table, wait_own);
    table->shown = ROWS_SHOWN;
    free_all(front.streams, front.devices, front.blocking, by_end);
    numbers_free(&front.events);
    numbers_free(&front.recorded);
}
