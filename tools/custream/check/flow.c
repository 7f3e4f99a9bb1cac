/* Judges flows: arrows from the slice of an `s` to the slice of an `f`, or from a slice with
 * flow_out to each slice with flow_in and the same bind_id. A slice with flow_out is kept as an s
 * at its begin, a slice with flow_in as an f. */
#include "tools/custream/check/check.h"

#define LINE(number) ((unsigned long long)(number))

/* Orders flow ends: those of rows before those of slices; then by id, by s, t, f, and by line. */
static const char phases[] = "stf";
COMPARES(flow_compare, struct flow_end,
    ORDER(a->bound, b->bound) ?: ORDER(a->id, b->id)
        ?: ORDER(strchr(phases, a->phase), strchr(phases, b->phase)) ?: ORDER(a->line, b->line))

static void flow_judge_place(struct check *check, const struct flow_end *end)
{
    const struct lane *lane = end->lane;
    const int64_t ts = end->ts;
    const struct slice *slice = NULL;
    if (end->bound) return;
    /* Of the slices that begin at `ts`, the one on the lowest line. */
    for (size_t at = FIRST_NOT(i, 0, lane->count, lane->slices[i].ts < ts);
        at < lane->count && lane->slices[at].ts == ts; at++)
        if (!slice || lane->slices[at].line < slice->line) slice = &lane->slices[at];
    /* The last slice that begins before `ts` may have ended by `ts`. The slice around `ts` then
     * stands a few places earlier in the lane. */
    size_t behind = FIRST_NOT(i, 0, lane->count, lane->slices[i].ts <= ts);
    for (int steps = 0; !slice && behind-- > 0 && steps < 4096; steps++)
        if (lane->slices[behind].end > ts) slice = &lane->slices[behind];
    if (!slice)
        check_breach(check, end->line, 6, "the flow's ts lies in no slice of pid %u tid %u",
            lane->pid, lane->tid);
    else if (slice->line > end->line)
        check_breach(check, end->line, 6, "comes before its slice, which is on line %llu",
            LINE(slice->line));
}

/* Judges that a flow has an s before this end. `start`: the flow's s, or NULL. In a file with only
 * a window of a trace, the slice with flow_out may lie outside the window. */
static void flow_judge_order(
    struct check *check, const struct flow_end *start, const struct flow_end *end, bool complete)
{
    if (!start) {
        if (complete && !(end->bound && check->windowed))
            check_breach(check, end->line, 6, "flow %llu has no s", LINE(end->id));
    } else if (end->ts < start->ts) {
        check_breach(check, end->line > start->line ? end->line : start->line, 6,
            "flow %llu: the %c lies before its s in time (lines %llu and %llu)", LINE(end->id),
            end->phase, LINE(end->line), LINE(start->line));
    } else if (end->bound && end->ts == start->ts) {
        check_breach(check, end->line, 6,
            "flow %llu: both slices begin at one ts, and Perfetto takes the longer one for the "
            "first (line %llu)",
            LINE(end->id), LINE(start->line));
    } else if (end->ts == start->ts && end->line < start->line) {
        check_breach(check, start->line, 6,
            "flow %llu: at one ts the s comes first, and its %c is on line %llu", LINE(end->id),
            end->phase, LINE(end->line));
    }
}

void flows_judge(struct check *check, bool complete)
{
    if (!check->flow_count) return;
    qsort(check->flows, check->flow_count, sizeof *check->flows, flow_compare);
    const struct flow_end *start = NULL;
    for (size_t i = 0; i < check->flow_count; i++) {
        const struct flow_end *end = &check->flows[i], *before = i ? end - 1 : NULL;
        const bool same = before && before->id == end->id && before->bound == end->bound;
        if (!same) start = end->phase == 's' ? end : NULL;
        if (same && before->phase == end->phase && end->phase != 't' &&
            !(end->bound && end->phase == 'f'))
            check_breach(check, end->line, 6,
                "flow %llu has an %c on line %llu already: ids are unique in the file",
                LINE(end->id), end->phase, LINE(before->line));
        if (end->phase != 's') flow_judge_order(check, start, end, complete);
        flow_judge_place(check, end);
    }
}

/* --- async spans: a b and an e of one category, name, id and process; and streams' lives --- */

/* Orders ends by span, then by time, then b before e, then by line. */
COMPARES(async_compare, struct async_end,
    ORDER(a->span, b->span) ?: ORDER(a->ts, b->ts) ?: ORDER(a->phase, b->phase)
        ?: ORDER(a->line, b->line))

void asyncs_judge(struct check *check, bool ended)
{
    if (!check->async_count) return;
    qsort(check->asyncs, check->async_count, sizeof *check->asyncs, async_compare);
    const struct async_end *open = NULL; /* the outermost begin that has no end yet */
    size_t depth = 0;
    for (size_t i = 0; i < check->async_count; i++) {
        const struct async_end *end = &check->asyncs[i],
                               *next = i + 1 < check->async_count ? end + 1 : NULL;
        if (end->phase == 'b' && !depth++) open = end;
        if (end->phase == 'e' && !depth)
            check_breach(check, end->line, 4,
                end->life ? "the end of a stream's life that has not begun"
                          : "e without a b before it in time that has its cat, name, id and pid");
        if (end->phase == 'e' && depth) depth--;
        if (next && next->span == end->span) continue;
        if (depth && ended)
            check_breach(check, open->line, 4,
                open->life ? "a stream's life without its end" : "b without its e");
        depth = 0;
    }
}
