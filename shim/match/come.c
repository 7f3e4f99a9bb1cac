#include "shim/match/come.h"

#include "shim/match/state.h"

struct cs_since cs_since_now(void) { return cs_match.now; }

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
