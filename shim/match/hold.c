/*
 * What a piece of work waited for after its call: the work before it on its stream, the work before an event that its stream waits for, or the other side of
 * the legacy default stream. Of these the one that ended last, unless most of the wait came after that. What the viewer shows at once; `custream report` looks closer.
 */
#include "shim/base/clock.h"
#include "shim/match/state.h"

enum { SOON_NS = 50000, STEPS = 16 };

void cs_match_stream_waits(struct cs_match_lane *lane, cs_u64 ticks, const cs_u64 *cause)
{
    const struct cs_stream *recorded = cs_pool_get(&cs_streams, (cs_ref)(cause[1] >> 32));
    const struct cs_match_lane *of = recorded ? cs_match_lane_made(recorded) : NULL;
    bool known;
    const struct cs_op *op = of && of != lane ? cs_op_before(of->last, cause[0], &known) : NULL;
    if (!lane || !op) return;
    cs_match.table.event_waits[cs_match.event_wait_count++ % CS_EVENT_WAITS] = (struct cs_event_wait){ticks, op->id, lane->event_wait, of->tid};
    lane->event_wait = cs_match.event_wait_count;
}

/* By its number, while it is kept. */
static const struct cs_event_wait *wait_at(cs_u64 number)
{
    return number && number + CS_EVENT_WAITS > cs_match.event_wait_count ? &cs_match.table.event_waits[(number - 1) % CS_EVENT_WAITS] : NULL;
}

/* A call that made no work gives way to the one before it. */
static const struct cs_op *that_worked(const struct cs_op *op)
{
    for (int steps = 0; op && !op->works && steps < STEPS; steps++) op = cs_op_get(op->before);
    return op && op->works ? op : NULL;
}

struct holding {
    struct cs_hold *hold;
    cs_u64 end_ns, start_ns;
};

/* It could not begin before that work had ended, whether or not that held it up. */
static void comes_after(struct holding *h, cs_u64 op)
{
    struct cs_hold *hold = h->hold;
    for (cs_u32 i = 0; i < hold->count; i++)
        if (hold->after[i] == op) return;
    if (op && op <= UINT32_MAX && hold->count < CS_HOLD_AFTER) hold->after[hold->count++] = (cs_u32)op;
}

static void candidate(struct holding *h, cs_u64 end_ns, enum cs_hold_why why, cs_u32 stream)
{
    if (!h->hold->ns || end_ns <= h->end_ns || end_ns > h->start_ns) return;
    h->end_ns = end_ns;
    h->hold->why = why;
    h->hold->stream = stream;
}

/* The events that the stream was to wait for since its work before: for the earlier ones that has waited too. False: one of them is not kept any more. */
static bool candidates_by_event(struct holding *h, const struct cs_op *op, const struct cs_op *before)
{
    const struct cs_op *awaited;
    const struct cs_event_wait *wait;
    const cs_u64 past = before ? before->event_wait : 0;
    cs_u64 n = op->event_wait;
    for (; n != past && (wait = wait_at(n)) && (!before || wait->ticks > before->begin); n = wait->before)
        if (wait->ticks <= op->begin && (awaited = that_worked(cs_op_get(wait->op)))) {
            comes_after(h, awaited->id);
            candidate(h, awaited->work_end_ns, CS_HOLD_EVENT, wait->stream);
        }
    return !n || n == past || wait;
}

static const struct cs_last_work *other_side(const struct cs_match_lane *lane)
{
    const struct cs_stream *stream = cs_pool_get(&cs_streams, lane->stream);
    const struct cs_default_work *works = &cs_match.default_work[lane->device % CS_GPU_PIDS];
    if (!stream) return NULL;
    return cs_load(&stream->origin) == CS_STREAM_LEGACY ? &works->blocking : stream->flags & CU_STREAM_NON_BLOCKING ? NULL : &works->legacy;
}

void cs_match_hold(struct cs_hold *hold, const struct cs_match_found *found)
{
    const struct cs_op *op = found->op;
    const struct cs_match_lane *lane = found->lane;
    hold->ns = hold->stream = hold->count = 0;
    hold->why = CS_HOLD_LAUNCH;
    if (!op || op->works) return; /* nobody knows, or it is a further piece */
    const struct cs_op *before = that_worked(cs_op_get(op->before)); /* what that waited for, this has waited for too */
    const cs_u64 called_ns = cs_clock_ns(op->end);
    struct holding h = {.hold = hold, .end_ns = called_ns, .start_ns = found->start_ns};
    hold->ns = found->start_ns > called_ns ? found->start_ns - called_ns : 0;
    candidate(&h, lane->worked_ns, CS_HOLD_STREAM, 0);
    const bool known = candidates_by_event(&h, op, before);
    const struct cs_last_work *other = other_side(lane);
    if (other && other->context == lane->context && other->begin < op->begin) {
        if (!before || before->begin < other->begin) comes_after(&h, other->op);
        candidate(&h, other->end_ns, CS_HOLD_DEFAULT, other->lane);
    }
    const cs_u64 after_ns = found->start_ns - h.end_ns;
    if (hold->ns && (!known || (after_ns > SOON_NS && after_ns > hold->ns / 2))) hold->why = CS_HOLD_UNKNOWN, hold->stream = 0;
}

void cs_hold_worked(struct cs_match_lane *lane, const struct cs_op *op, cs_u64 end_ns)
{
    const struct cs_stream *stream = cs_pool_get(&cs_streams, lane->stream);
    if (end_ns > lane->worked_ns) lane->worked_ns = end_ns;
    if (!stream || lane->device >= CS_GPU_PIDS || (cs_load(&stream->origin) != CS_STREAM_LEGACY && stream->flags & CU_STREAM_NON_BLOCKING)) return;
    struct cs_default_work *works = &cs_match.default_work[lane->device];
    struct cs_last_work *last = cs_load(&stream->origin) == CS_STREAM_LEGACY ? &works->legacy : &works->blocking;
    if (end_ns >= last->end_ns) *last = (struct cs_last_work){op->begin, end_ns, op->id, lane->context, lane->tid};
}
