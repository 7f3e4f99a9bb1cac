/*
 * Which work released a wait of the host: of the calls that had been enqueued before it, the one whose work ended last, within the wait. What had ended before
 * the wait held nobody up.
 *
 * Where one of those calls is not known, since a table was full, none is named: it may have been that one. Such waits are counted.
 *
 * Those calls are looked for one round after the wait was read: another thread may have been in one of them when the wait ended. Their work comes later still.
 */
#include "shim/base/no_room.h"
#include "shim/gpu/mark.h"
#include "shim/match/state.h"

static bool may_hold_up(const struct cs_match_lane *lane, const struct cs_match_wait *wait)
{
    return lane->worked_ns > wait->begin_ns || cs_lane_come(lane, NULL) == CS_AWAITED;
}

/* For all that has been read so far, it waits for something. */
static bool waits_for_work(const struct cs_match_wait *wait, const struct cs_match_lane *lane, cs_u32 device)
{
    if (lane) return may_hold_up(lane, wait);
    for (cs_u32 i = 1; i <= cs_match_lanes_high() && !lane; i++) {
        lane = cs_lane_get(i);
        if (lane && (lane->device != device || !may_hold_up(lane, wait))) lane = NULL;
    }
    return lane;
}

/* Where a program asks again and again, the second half of the room is for waits that something is known to hold up. Such a one is missed where all is full. */
void cs_match_wait(struct cs_match_wait wait, const struct cs_match_lane *lane, cs_u32 device, cs_u64 ticks)
{
    if (cs_gpu_samples()) return; /* what was enqueued last may have no times */
    if (cs_match.wait_count >= CS_WAITS / 2 && !waits_for_work(&wait, lane, device)) return;
    if (cs_match.wait_count == CS_WAITS) {
        cs_no_room(CS_NO_ROOM_FOR_WAITS, 1);
        return;
    }
    cs_match.table.waits[cs_match.wait_count++] = (struct cs_waiting){.wait = wait, .lane = lane ? lane->number : 0, .serial = lane ? lane->serial : 0,
                                                                      .device = device, .ticks = ticks, .since = cs_since_now()};
}

static void candidate(struct cs_waiting *w, const struct cs_match_lane *lane)
{
    bool known;
    const struct cs_op *op = cs_op_before(lane->last, w->ticks, &known);
    if (!known) w->no_room |= may_hold_up(lane, &w->wait);
    if (!op || (op->works && op->work_end_ns <= w->wait.begin_ns)) return;
    if (cs_match.candidate_count == CS_CANDIDATES) w->no_room = true;
    else cs_match.table.candidates[cs_match.candidate_count++] = op->id, w->ops++;
}

/* The stream may be gone: then all of its work has come, and none was within the wait. */
static void choose(struct cs_waiting *w)
{
    const struct cs_match_lane *lane = cs_lane_get(w->lane);
    w->chosen = true;
    w->first = cs_match.candidate_count;
    if (lane && lane->serial == w->serial) candidate(w, lane);
    for (cs_u32 i = 1; !w->lane && !w->no_room && i <= cs_match_lanes_high(); i++) {
        lane = cs_lane_get(i);
        if (lane && lane->device == w->device && may_hold_up(lane, &w->wait)) candidate(w, lane);
    }
    if (w->no_room) cs_match.candidate_count = w->first, w->ops = 0;
}

/* The op whose work ended last, in the wait; NULL where one is still out, or not known. A call that made no work gives way to the one before it. */
static struct cs_op *releaser(struct cs_waiting *w, bool all, bool *out)
{
    const cs_u64 *ids = &cs_match.table.candidates[w->first];
    struct cs_op *best = NULL;
    for (cs_u32 i = 0; i < w->ops; i++) {
        *out = !all && cs_op_come(ids[i], &w->since) == CS_AWAITED;
        if (*out) return NULL;
        struct cs_op *op = cs_op_get(ids[i]);
        w->no_room |= !op; /* it has been forgotten meanwhile */
        for (int steps = 0; op && !op->works && steps < 16; steps++) op = cs_op_get(op->before);
        if (w->no_room || (op && !op->works)) return NULL;
        bool within = op && op->work_end_ns > w->wait.begin_ns && op->work_end_ns <= w->wait.end_ns;
        if (within && (!best || op->work_end_ns > best->work_end_ns)) best = op;
    }
    return best;
}

/* Those that are kept stay in their order, and so do their candidates. */
static void keep(struct cs_waiting w)
{
    cs_u64 *ids = cs_match.table.candidates;
    for (cs_u32 i = 0; i < w.ops; i++) ids[cs_match.candidate_count + i] = ids[w.first + i];
    w.first = cs_match.candidate_count;
    cs_match.candidate_count += w.ops;
    cs_match.table.waits[cs_match.wait_count++] = w;
}

void cs_waits_settle(bool all)
{
    struct cs_waiting *waits = cs_match.table.waits;
    const cs_u32 count = cs_match.wait_count;
    for (cs_u32 i = 0; i < count; i++) {
        if (!waits[i].chosen && (waits[i].due || all)) choose(&waits[i]);
        waits[i].due = true;
    }
    cs_match.wait_count = cs_match.candidate_count = 0;
    for (cs_u32 i = 0; i < count; i++) {
        bool out = !waits[i].chosen;
        const struct cs_op *op = out ? NULL : releaser(&waits[i], all, &out);
        if (out) keep(waits[i]);
        else if (waits[i].no_room) cs_no_room(CS_NO_ROOM_FOR_WAITS, 1);
        else if (op) cs_match.sink->released(&waits[i].wait, op);
    }
}
