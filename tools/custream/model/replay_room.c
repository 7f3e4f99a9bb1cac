/* Judges from the times of a trace how much of its device each kernel takes. */
#include <math.h>

#include "tools/custream/model/replay_graph.h"
#include "tools/custream/model/views.h"

struct tie *way_of(const struct replay *r, uint32_t node)
{
    return &r->ties[(node + 1 < r->node_count ? r->nodes[node + 1].ties : r->tie_count) - 1];
}

/* Whether two works compete, for the multiprocessors or for one direction of copies. */
static bool compete(const struct run *run, const struct work *a, const struct work *b)
{
    return a->kind == b->kind && work_device(run, a) == work_device(run, b) &&
           (a->kind == WORK_KERNEL || (a->kind == WORK_COPY && a->way == b->way));
}

void room_judge(struct making *m, struct active *active, uint32_t index)
{
    const struct run *run = m->run;
    const struct work *work = &run->works[index];
    struct node *node = &m->replay->nodes[m->replay->node_of[index]];
    double filled = 0, left = 0; /* filled: of works that go on; left: of works just ended */
    bool unknown = false, ended = false, in_turn = false;
    size_t kept = 0;
    for (size_t a = 0; a < active->count; a++) {
        const struct work *other = &run->works[active->works[a]];
        if (other->end < work->begin - SOON_NS) continue;
        active->works[kept++] = active->works[a];
        if (!compete(run, other, work)) continue;
        struct node *is = &m->replay->nodes[m->replay->node_of[active->works[a]]];
        const bool goes_on = other->end > work->begin + SKEW_NS;
        /* The two works ran at once, so each left room. */
        if (goes_on && (isnan(is->fills) || work->kind == WORK_COPY)) is->fills = 0;
        if (goes_on && (isnan(node->fills) || work->kind == WORK_COPY)) node->fills = 0;
        ended |= !goes_on;
        in_turn |= !goes_on && work->kind == WORK_COPY && other->end >= work->begin - BEHIND_NS;
        if (!isnan(is->fills)) *(goes_on ? &filled : &left) += is->fills;
        else unknown = true;
    }
    active->count = kept;
    if (kept < ACTIVE) active->works[active->count++] = index;
    const bool full = work->kind != WORK_KERNEL || unknown || isnan(node->fills) ||
                      filled + left + node->fills > 1;
    if (work->kind == WORK_KERNEL && node->fills > 1 - filled)
        node->fills = filled < 0.95 ? (float)(1 - filled) : 0.05F;
    struct tie *way = way_of(m->replay, m->replay->node_of[index]);
    if (in_turn && node->rest + way->delay > BEHIND_NS) { /* the copy was ready before its turn */
        const struct call *call = &run->calls[work->call];
        uint32_t *takes = &m->replay->nodes[way->from].takes;
        const int32_t usual = way->kind == TIE_ENQUEUE ? STAGED_NS : LAUNCH_NS;
        if (node->rest > BEHIND_NS) node->rest = BEHIND_NS;
        way->delay = usual - node->rest;
        if (*takes > WAIT_NS && time_unpack(*takes) < call->end - call->begin) *takes = WAIT_NS;
        return;
    }
    const int64_t rest =
        node->rest > way->delay + node->rest ? node->rest : way->delay + node->rest;
    if (rest <= SOON_NS || node->pageable) return;
    if (ended && full) {
        if (node->rest > SKEW_NS) node->rest = SKEW_NS;
        way->delay = LAUNCH_NS - node->rest;
    } else {
        m->replay->unexplained += rest - SOON_NS;
        node->late = true;
    }
}
