/*
 * Which work released a wait of the host: of the calls that had been enqueued before it, the one whose work ended last, within the wait. That call is known
 * when the wait is recorded, its work comes later. What had ended before the wait held nobody up.
 */
#include "shim/gpu/backend.h"
#include "shim/match/state.h"

static void candidate(struct cs_waiting *w, cs_u64 last, cs_u64 ticks)
{
    struct cs_op *op = cs_op_before(last, ticks);
    if (!op || w->ops == CS_CANDIDATES || (op->works && op->work_end_ns <= w->wait.begin_ns)) return;
    w->op[w->ops++] = op->id;
}

void cs_match_wait(struct cs_match_wait wait, const struct cs_match_lane *lane, cs_u32 device, cs_u64 ticks)
{
    if (cs_match.wait_count == CS_WAITS || !cs_gpu_is_on()) return;
    struct cs_waiting *w = &cs_match.table.waits[cs_match.wait_count];
    *w = (struct cs_waiting){.wait = wait, .since = cs_since_now()};
    if (lane) candidate(w, lane->last, ticks);
    for (cs_u32 i = 1; !lane && i <= cs_match_lanes_high(); i++) {
        const struct cs_match_lane *l = cs_match_lane_get(i);
        if (l && l->device == device && cs_lane_come(l, NULL) == CS_AWAITED) candidate(w, l->last, ticks);
    }
    if (w->ops) cs_match.wait_count++;
}

/* The op whose work ended last, in the wait; NULL where one is still out. A call that made no work gives way to the one before it. */
static struct cs_op *releaser(const struct cs_waiting *w, bool all, bool *out)
{
    struct cs_op *best = NULL;
    for (int i = 0; i < w->ops; i++) {
        *out = !all && cs_op_come(w->op[i], &w->since) == CS_AWAITED;
        if (*out) return NULL;
        struct cs_op *op = cs_op_get(w->op[i]);
        for (int steps = 0; op && !op->works && steps < 16; steps++) op = cs_op_get(op->before);
        bool within = op && op->works && op->work_end_ns > w->wait.begin_ns && op->work_end_ns <= w->wait.end_ns;
        if (within && (!best || op->work_end_ns > best->work_end_ns)) best = op;
    }
    return best;
}

void cs_waits_settle(bool all)
{
    struct cs_waiting *waits = cs_match.table.waits;
    cs_u32 kept = 0;
    for (cs_u32 i = 0; i < cs_match.wait_count; i++) {
        bool out = false;
        const struct cs_op *op = releaser(&waits[i], all, &out);
        if (out) waits[kept++] = waits[i];
        else if (op) cs_match.sink->released(&waits[i].wait, op);
    }
    cs_match.wait_count = kept;
}
