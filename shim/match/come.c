#include "shim/match/come.h"

#include "shim/match/state.h"

/* One time beside the flushes, for what does not hang on the profiler. */
static const struct patience {
    cs_u64 flushes, ns;
} patience[CS_PATIENCES] = {
    [CS_FOR_RECORD] = {.flushes = 1},
    [CS_FOR_CALL] = {.flushes = 2},
    [CS_FOR_EDGE] = {.ns = 500000000},
    [CS_FOR_WORK] = {.flushes = 25},
    [CS_FOR_ROOM] = {.flushes = 5},
};

struct cs_since cs_since_now(void) { return cs_match.now; }

bool cs_is_over(const struct cs_since *since, enum cs_patience what)
{
    const struct patience *p = &patience[what];
    return p->ns ? cs_match.now.ns - since->ns >= p->ns : cs_match.now.flushes - since->flushes > p->flushes;
}

enum cs_come cs_op_come(cs_u64 id, const struct cs_since *since)
{
    const struct cs_op *op = cs_op_get(id);
    if (!op) return CS_LOST;
    if (op->works) return CS_CAME;
    if (op->left || !cs_lane_get(op->lane)) return CS_NONE;
    return since && cs_is_over(since, CS_FOR_WORK) ? CS_LOST : CS_AWAITED;
}

enum cs_come cs_lane_come(const struct cs_match_lane *lane, const struct cs_since *since)
{
    if (!lane) return CS_NONE;
    if (!lane->first) return CS_CAME;
    return since && cs_is_over(since, CS_FOR_WORK) ? CS_LOST : CS_AWAITED;
}
