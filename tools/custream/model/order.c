/* Finds the obstacles of work and what the host waited for, in one pass over the calls in the order
 * in which the host made them. The pass keeps, for each stream, until when new work is held: by the
 * stream's own order, by events, by host functions and by the legacy default stream. These moments
 * are known, since the trace has the ends of everything. */
#include "tools/custream/model/model.h"

#include "tools/custream/model/views.h"

const struct cause_info cause_info[CAUSES] = {
    [CAUSE_HOST] = {"host", "the host had not enqueued it"},
    [CAUSE_LAUNCH] = {"launch", "on its way from the call to the GPU"},
    [CAUSE_EVENT] = {"event", "a wait for an event"},
    [CAUSE_LEGACY] = {"legacy", "the legacy default stream"},
    [CAUSE_ORDER] = {"order", "work before it on its own stream"},
    [CAUSE_HOST_FUNCTION] = {"host_function", "a host function before it on its stream"},
    [CAUSE_MEMORY_VALUE] = {"memory_value", "a value in memory (cuStreamWaitValue)"},
    [CAUSE_GRAPH_EDGE] = {"graph_edge", "an edge inside its graph"},
    [CAUSE_COPY_ENGINE] = {"copy_engine", "another copy in the same direction"},
    [CAUSE_DEVICE_FULL] = {"device_full", "kernels that filled the device"},
    [CAUSE_HARDWARE_QUEUE] = {"hardware_queue", "more streams with work than hardware queues"},
    [CAUSE_UNKNOWN] = {"unknown", "not known"},
};

/* The error of converting between the clocks of host and GPU. What seems to have ended more than
 * SKEW_NS after a piece of work began did not hold that work. */
enum { SKEW_NS = 5000 };

/* A moment before which something cannot begin, and the reason. */
struct point {
    int64_t at, without_legacy; /* INT64_MIN: nothing */
    uint32_t blocker;           /* the work that ended last, at or before `at`; NONE */
    uint32_t function;          /* the host function that returned at `at`; NONE */
    uint32_t record;            /* the call that recorded the event; NONE */
    enum cause cause;
    struct value {
        bool awaited;    /* a value in memory is, too, and that may end later than `at` */
        uint32_t record; /* the event's record behind the wait for the value; NONE */
    } value;
};
static const struct value no_value = {false, NONE};
static const struct point nothing = {
    INT64_MIN, INT64_MIN, NONE, NONE, NONE, CAUSE_UNKNOWN, {false, NONE}};

/* Return the point at which a piece of work ends, or a host function behind `before` returns. */
static struct point work_ends(const struct run *run, uint32_t work)
{
    const int64_t end = run->works[work].end;
    return (struct point){end, end, work, NONE, NONE, CAUSE_ORDER, no_value};
}
static struct point function_returns(
    const struct run *run, uint32_t function, const struct point *before)
{
    const int64_t end = run->callbacks[function].end;
    return (struct point){end, end, before->blocker, function, NONE, CAUSE_HOST_FUNCTION, no_value};
}

/* The points that new work on a stream has before it, one for each kind of obstacle. */
struct front {
    struct point own, event;
};

/* One side of the legacy default stream's order (struct stream's `side`). */
struct side {
    struct point front;
    uint32_t value_stream; /* the stream on which front.value waits */
};

struct order {
    const struct run *run;
    struct hold *holds;
    struct waits *waits;
    struct front *fronts;
    struct side *sides;
    struct on_device {
        struct point all, blocking; /* of all streams, and of those that are not non-blocking */
    } *devices;
    struct point *records; /* the last record of each event, by the index in `events` */
    size_t record_count, record_capacity;
    struct numbers events; /* index in `records`, by an event's number */
};

static struct point later(struct point a, struct point b)
{
    struct point chosen = b.at > a.at ? b : a;
    chosen.without_legacy =
        a.without_legacy > b.without_legacy ? a.without_legacy : b.without_legacy;
    chosen.value = a.value.awaited ? a.value : b.value;
    return chosen;
}

/* Does the same, but the blocker is the work of both that ended last. */
static struct point later_ended(const struct run *run, struct point a, struct point b)
{
    struct point chosen = later(a, b);
    const uint32_t other = chosen.blocker == a.blocker ? b.blocker : a.blocker;
    if (other != NONE &&
        (chosen.blocker == NONE || run->works[other].end > run->works[chosen.blocker].end))
        chosen.blocker = other;
    return chosen;
}

/* --- what the legacy default stream orders --- */

/* Returns what work on the stream has to wait for because of the legacy default stream. */
static struct point barrier(const struct order *o, uint32_t stream)
{
    const uint32_t side = o->run->streams[stream].side;
    struct point p = side == NONE ? nothing : o->sides[side ^ 1].front;
    if (p.at == INT64_MIN && !p.value.awaited) return nothing;
    p.cause = CAUSE_LEGACY;
    p.without_legacy = INT64_MIN;
    return p;
}

/* Notes a point of the stream, for waits for its device and for the other side of the legacy
 * default stream. The legacy default stream has to wait for points of blocking streams, and
 * blocking streams for those of the legacy default stream. */
static void enqueue(struct order *o, uint32_t stream, struct point p)
{
    const struct stream *is = &o->run->streams[stream];
    struct on_device *device = &o->devices[is->device];
    device->all = later_ended(o->run, device->all, p);
    if (!is->non_blocking) device->blocking = later_ended(o->run, device->blocking, p);
    if (is->side == NONE) return;
    struct side *side = &o->sides[is->side];
    if (side->value_stream == stream)
        side->front.value = no_value; /* p tells whether the value still holds the stream */
    if (!side->front.value.awaited) side->value_stream = p.value.awaited ? stream : NONE;
    side->front = later(side->front, p);
}

static struct point front_of(const struct order *o, uint32_t stream)
{
    const struct front *front = &o->fronts[stream];
    return later(later(front->own, front->event), barrier(o, stream));
}

/* --- calls --- */

/* Keeps the later of two points. A moment more than SKEW_NS after the work's begin did not hold the
 * work. */
static void consider(struct point *chosen, struct point p, int64_t begin)
{
    if (p.at == INT64_MIN || p.at > begin + SKEW_NS) return;
    if (p.at > begin) p.at = begin;
    if (p.without_legacy > begin) p.without_legacy = begin;
    *chosen = later(*chosen, p);
}

static void hold_work(
    struct order *o, const struct call *call, uint32_t index, const struct front *front)
{
    const struct work *work = &o->run->works[index];
    const struct point legacy = barrier(o, call->stream);
    struct point p = nothing;
    consider(&p, front->own, work->begin);
    consider(&p, front->event, work->begin);
    consider(&p, legacy, work->begin);
    /* Work that began later than its known obstacles explain may have waited for a value in memory.
     * That wait was on the work's own stream, before the event for which the work waited, or before
     * what the legacy default stream puts in front of the work. */
    const int64_t begin = work->begin;
    const struct value *event = &front->event.value;
    const bool late = begin - (p.at > call->begin ? p.at : call->begin) > LATENCY_NS;
    if (late && front->own.value.awaited)
        p = (struct point){begin, begin, NONE, NONE, NONE, CAUSE_MEMORY_VALUE, no_value};
    else if (late && event->awaited)
        p = (struct point){begin, begin, NONE, NONE, event->record, CAUSE_EVENT, no_value};
    else if (late && legacy.value.awaited)
        p = (struct point){begin, p.without_legacy, NONE, NONE, NONE, CAUSE_LEGACY, no_value};
    o->holds[index] = (struct hold){call->begin, p.at, p.without_legacy,
        p.function == NONE ? p.blocker : NONE, p.record, p.cause};
}

struct ended {
    int64_t at;
    uint32_t work;
};

COMPARES(by_end, struct ended, ORDER(a->at, b->at))

/* Sets the holds of a graph launch's nodes. The graph's edges are not known, so each node is held
 * by the last node that ended before it began, if any did. */
static void hold_nodes(struct order *o, const struct call *call)
{
    const struct run *run = o->run;
    const uint32_t *nodes = run->works_of + call->work;
    struct ended *ended = array_zeros(call->works, sizeof *ended);
    for (uint32_t i = 0; i < call->works; i++)
        ended[i] = (struct ended){run->works[nodes[i]].end, nodes[i]};
    qsort(ended, call->works, sizeof *ended, by_end);
    for (uint32_t i = 0, before = 0; i < call->works; i++) {
        const struct work *work = &run->works[nodes[i]];
        while (before < call->works && ended[before].at <= work->begin) before++;
        if (!before) continue;
        const struct ended *last = &ended[before - 1];
        o->holds[nodes[i]] =
            (struct hold){call->begin, last->at, last->at, last->work, NONE, CAUSE_GRAPH_EDGE};
    }
    free(ended);
}

/* Notes something on the stream that ended at this point. */
static void own_ends(struct order *o, uint32_t stream, struct point p)
{
    struct point *own = &o->fronts[stream].own;
    *own = later(*own, p);
    enqueue(o, stream, *own);
}

static void order_works(struct order *o, const struct call *call)
{
    const struct run *run = o->run;
    struct front *front = &o->fronts[call->stream];
    struct point own = nothing;
    for (uint32_t i = 0; i < call->works; i++) {
        const uint32_t index = run->works_of[call->work + i];
        hold_work(o, call, index, front);
        if (run->works[index].end > own.at) own = work_ends(run, index);
    }
    if (call->works > 1) hold_nodes(o, call);
    front->own.value = no_value;
    front->event = nothing;
    own_ends(o, call->stream, own);
}

static void order_function(struct order *o, uint32_t function)
{
    const uint32_t stream = o->run->callbacks[function].stream;
    struct front *front = &o->fronts[stream];
    front->own.value = front->event.value = no_value;
    own_ends(o, stream, function_returns(o->run, function, &front->own));
}

static void order_record(struct order *o, const struct call *call)
{
    if (!call->what || call->external) return;
    struct point p = nothing;
    if (call->stream != NONE) p = front_of(o, call->stream);
    else /* cuCtxRecordEvent */
        for (uint32_t s = 0; s < o->run->stream_count; s++) p = later(p, front_of(o, s));
    /* on the legacy default stream a record is a barrier, as work is */
    if (call->stream != NONE) enqueue(o, call->stream, p);
    const uint32_t at = *numbers_at(&o->events, call->what, (uint32_t)o->record_count);
    if (at == o->record_count) array_add(o->records, o->record_count, o->record_capacity, p);
    o->records[at] = p;
}

/* Returns the point at which the record that the call waits for is reached. */
static struct point recorded(const struct order *o, const struct call *call)
{
    const uint32_t at = call->record == NONE ? NONE : numbers_get(&o->events, call->what, NONE);
    return at == NONE ? nothing : o->records[at];
}

static void stream_waits(struct order *o, uint32_t stream, struct point p)
{
    struct front *front = &o->fronts[stream];
    front->event = later(front->event, p);
    enqueue(o, stream, front_of(o, stream));
}

static void order_wait(struct order *o, const struct call *call)
{
    struct point p = recorded(o, call);
    if (p.at == INT64_MIN && !p.value.awaited) return;
    p.cause = CAUSE_EVENT;
    p.record = p.value.record = call->record;
    if (call->stream != NONE) stream_waits(o, call->stream, p);
    else /* cuCtxWaitEvent */
        for (uint32_t s = 0; s < o->run->stream_count; s++) stream_waits(o, s, p);
}

static void order_call(struct order *o, const struct call *call)
{
    if (call->result || call->captured || (call->stream == NONE && !call_how(call, CS_HOW_WIDE)))
        return;
    if (call->works) {
        order_works(o, call);
        return;
    }
    switch (call_kind(call)) {
    case CS_KIND_EVENT:
        if (call_how(call, CS_HOW_RECORDS)) order_record(o, call);
        break;
    case CS_KIND_WAIT: order_wait(o, call); break;
    case CS_KIND_MEMOP:
        if (call->stream == NONE || !call_how(call, CS_HOW_WAITS)) break;
        o->fronts[call->stream].own.value.awaited = true;
        enqueue(o, call->stream, front_of(o, call->stream));
        break;
    default: break;
    }
}

/* --- what the host waited for --- */

/* Keeps the later of two points, if the wait may have ended because of it. What ends after the call
 * does not count: another thread enqueued it meanwhile, or it is of another device. */
static void wait_considers(
    const struct run *run, const struct call *call, struct point *chosen, struct point p)
{
    enum { CLOCKS_NS = 20000 }; /* the error of times on the GPU if they come from events */
    if (p.at > call->begin && p.at <= call->end + CLOCKS_NS) *chosen = later_ended(run, *chosen, p);
}

static void host_waits(struct order *o, uint32_t index)
{
    const struct run *run = o->run;
    const struct call *call = &run->calls[index];
    struct point p = nothing;
    if (call_kind(call) == CS_KIND_COPY && call->works)
        p = work_ends(run, run->works_of[call->work + call->works - 1]);
    else if (call->stream != NONE) {
        const struct front *front = &o->fronts[call->stream];
        const struct stream *stream = &run->streams[call->stream];
        wait_considers(run, call, &p, front->own);
        wait_considers(run, call, &p, front->event);
        if (stream->origin == ORIGIN_LEGACY) /* also a wait for the blocking streams */
            wait_considers(run, call, &p,
                stream->side == NONE ? o->devices[stream->device].blocking
                                     : barrier(o, call->stream));
    } else if (call->what) wait_considers(run, call, &p, recorded(o, call));
    else
        for (size_t d = 0; d < run->device_count; d++)
            wait_considers(run, call, &p, o->devices[d].all);
    const bool ended = p.blocker != NONE && run->works[p.blocker].end > call->begin;
    array_add(o->waits->rows, o->waits->count, o->waits->capacity,
        ended ? (struct wait){index, p.blocker, NONE} : (struct wait){index, NONE, p.function});
}

/* --- the pass over all calls --- */

void order_make(const struct run *run, struct hold **holds, struct waits *waits)
{
    struct order o = {
        .run = run,
        .holds = *holds = array_zeros(run->work_count, sizeof *o.holds),
        .waits = waits,
        .fronts = array_zeros(run->stream_count, sizeof *o.fronts),
        .sides = array_zeros(run->side_count, sizeof *o.sides),
        .devices = array_zeros(run->device_count, sizeof *o.devices),
    };
    for (size_t i = 0; i < run->work_count; i++)
        o.holds[i] =
            (struct hold){run->works[i].begin, INT64_MIN, INT64_MIN, NONE, NONE, CAUSE_UNKNOWN};
    for (size_t i = 0; i < run->side_count; i++) o.sides[i] = (struct side){nothing, NONE};
    for (size_t s = 0; s < run->stream_count; s++) o.fronts[s] = (struct front){nothing, nothing};
    for (size_t d = 0; d < run->device_count; d++)
        o.devices[d] = (struct on_device){nothing, nothing};
    uint32_t work = 0, function = 0;
    for (uint32_t i = 0; i < run->call_count; i++) {
        const int64_t begin = run->calls[i].begin;
        for (; work < run->work_count && run->works[work].begin <= begin; work++)
            if (run->works[work].call == NONE) /* it was enqueued before it began */
                own_ends(&o, run->works[work].stream, work_ends(run, work));
        for (; function < run->callback_count && run->callbacks[function].enqueued <= begin;
            function++)
            if (run->callbacks[function].stream != NONE) order_function(&o, function);
        order_call(&o, &run->calls[i]);
        if (call_waits(&run->calls[i])) host_waits(&o, i);
    }
    numbers_free(&o.events);
    free_all(o.records, o.sides, o.fronts, o.devices);
}
