/*
 * The calls on a stream whose work has not come, in the order in which they began: whatever thread made them, and whichever ended first. That is the order of
 * their work, but for calls of two threads at the same moment.
 */
#include "shim/gpu/backend.h"
#include "shim/match/state.h"

enum { STEPS = 4096 };

/* Else the depth of streams need not be known. */
static bool is_counted(void) { return cs_match.sink->depth; }

static void joins(struct cs_match_lane *lane, struct cs_op *op)
{
    op->counted = true;
    cs_count_depth(lane, op->begin_ns, 1);
}

void cs_queue_add(struct cs_match_lane *lane, struct cs_op *op)
{
    struct cs_op *after = NULL, *before = cs_op_get(lane->last);
    for (int i = 0; before && before->begin > op->begin && i < STEPS; i++) after = before, before = cs_op_get(before->before);
    op->before = before ? before->id : 0;
    op->after = after ? after->id : 0;
    if (before) before->after = op->id;
    if (after) after->before = op->id;
    else lane->last = op->id;
    struct cs_op *first = cs_op_get(lane->first), *counted = cs_op_get(lane->counted);
    if (!lane->first || (first && first->begin > op->begin)) lane->first = op->id;
    if (after && counted && counted->begin >= op->begin) joins(lane, op); /* later ones have */
}

/* Past those that are through. */
static void advance(struct cs_match_lane *lane)
{
    for (struct cs_op *op = cs_op_get(lane->first); op && op->left; op = cs_op_get(lane->first)) lane->first = op->after;
}

/* Calls made before some work ended join the depth. */
static void count_until(struct cs_match_lane *lane, struct cs_op *arrived, cs_u64 end_ticks)
{
    struct cs_op *counted = cs_op_get(lane->counted), *next = counted ? cs_op_get(counted->after) : cs_op_get(lane->first);
    if (!counted && !next) next = arrived;
    for (; next && next->begin <= end_ticks; next = cs_op_get(next->after)) {
        if (!next->counted && !next->left) joins(lane, next);
        lane->counted = next->id;
    }
}

/* The ring of ops went on, and the depth counts some that nobody knows any more. */
static cs_u32 forgotten(struct cs_match_lane *lane)
{
    cs_u32 known = 0;
    for (struct cs_op *op = cs_op_get(lane->first); op; op = cs_op_get(op->after)) known += op->counted && !op->left;
    return lane->depth > known ? lane->depth - known : 0;
}

static enum cs_gpu_kind kind_of(const struct cs_op *op) { return cs_gpu_kind_of(cs_call_info[op->call].kind); }

/* Nothing of it has come. Events tell of several calls at once. */
static bool lacks_work(const struct cs_op *op) { return !op->came && !op->unsure && !cs_gpu_marks() && kind_of(op) != CS_GPU_NONE; }

/* A launch makes a kernel without doubt. */
static bool lacks_kernel(const struct cs_op *op) { return kind_of(op) == CS_GPU_KERNEL && lacks_work(op); }

static void miss(struct cs_op *op)
{
    if (!lacks_kernel(op)) return;
    op->missed = cs_match.file;
    cs_match.sink->missed(1);
}

/* Launches that no later work of their stream has overtaken, and all that was enqueued behind the end of times. Work may have come without a call: it may be that
 * of a launch before it. */
void cs_queue_ends(const struct cs_match_lane *lane, cs_u64 ended)
{
    for (struct cs_op *op = cs_op_get(lane->last); op; op = cs_op_get(op->before)) {
        if (op->left) continue;
        op->left = true;
        const bool lacks = op->end > ended ? lacks_work(op) : lacks_kernel(op);
        if (!lacks || op->begin_ns <= lane->stray_ns) continue;
        op->missed = cs_match.file;
        op->untimed = true;
        cs_match.sink->without_times(1);
    }
}

void cs_queue_unsure(const struct cs_match_lane *lane, cs_u64 from, cs_u64 until)
{
    for (struct cs_op *op = cs_op_get(lane->last); op && op->begin >= from; op = cs_op_get(op->before))
        if (op->begin < until && !op->works) op->unsure = true;
}

void cs_queue_came(struct cs_op *op)
{
    op->came = true;
    if (op->missed && op->missed != cs_match.file) cs_match.sink->came_after_all(op->untimed);
    else if (op->missed) (op->untimed ? cs_match.sink->without_times : cs_match.sink->missed)(-1); /* it was late */
    op->missed = 0;
}

void cs_queue_arrived(struct cs_match_lane *lane, struct cs_op *op, cs_u64 end_ticks, cs_u64 end_ns)
{
    if (!lane || op->works > 1) return;
    if (is_counted()) count_until(lane, op, end_ticks);
    struct cs_op *first = cs_op_get(lane->first);
    bool lost = !first && lane->first;
    cs_u32 gone = 0;
    if (lost) lane->first = op->id, first = op;
    for (struct cs_op *past = first; past && past->begin <= op->begin; past = past == op ? NULL : cs_op_get(past->after)) {
        if (past->left || (past != op && past->end > op->begin)) continue; /* what was enqueued before it without doubt made no work */
        past->left = true;
        gone += past->counted;
        miss(past);
    }
    advance(lane);
    if (lost && is_counted()) gone = forgotten(lane);
    if (gone) cs_count_depth(lane, end_ns, -(int)gone);
}

void cs_queue_remove(struct cs_match_lane *lane, cs_u64 from, cs_u64 until)
{
    struct cs_op *op = cs_op_get(lane->last);
    cs_u64 ns = op ? op->begin_ns : 0;
    cs_u32 gone = 0;
    while (op && op->begin >= from) {
        struct cs_op *before = cs_op_get(op->before), *after = cs_op_get(op->after);
        if (op->begin < until && !op->works) {
            gone += op->counted && !op->left;
            op->left = true;
            op->lane = 0;
            if (op->missed) cs_queue_came(op); /* it was captured */
            if (before) before->after = op->after;
            if (after) after->before = op->before;
            if (lane->last == op->id) lane->last = op->before;
            if (lane->first == op->id) lane->first = op->after;
            if (lane->counted == op->id) lane->counted = op->before;
        }
        op = before;
    }
    advance(lane);
    if (gone) cs_count_depth(lane, ns, -(int)gone);
}
