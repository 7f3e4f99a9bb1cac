/* Keeps the slices of lanes, and judges whether they nest. */
#include "tools/custream/check/check.h"

#include <search.h>

static int lane_compare(const void *left, const void *right)
{
    const struct lane *a = left, *b = right;
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    return a->tid == b->tid ? 0 : a->tid < b->tid ? -1 : 1;
}

static struct lane *lane_create(struct check *check, const struct lane *key)
{
    /* array_room(), though for one element: it exits if there is no memory. */
    size_t capacity = 0;
    struct lane *lane = array_room(NULL, 0, &capacity, sizeof *lane);
    *lane = *key;
    if (!tsearch(lane, &check->lane_tree, lane_compare)) abort();
    *check->lanes_end = lane;
    check->lanes_end = &lane->next;
    return lane;
}

struct lane *lane_of(struct check *check, uint32_t pid, uint32_t tid)
{
    struct lane key = {.pid = pid, .tid = tid};
    /* The last lane is tried first: events of one thread come in runs. */
    if (check->lane_last && !lane_compare(check->lane_last, &key)) return check->lane_last;
    struct lane **found = tfind(&key, &check->lane_tree, lane_compare);
    return check->lane_last = found ? *found : lane_create(check, &key);
}

void lane_add(struct lane *lane, struct slice slice)
{
    array_add(lane->slices, lane->count, lane->capacity, slice);
}

void lanes_free(struct check *check)
{
    while (check->lanes) {
        struct lane *lane = check->lanes;
        check->lanes = lane->next;
        tdelete(lane, &check->lane_tree, lane_compare);
        free(lane->slices);
        free(lane);
    }
}

static int slice_compare(const void *left, const void *right)
{
    const struct slice *a = left, *b = right;
    if (a->ts != b->ts) return a->ts < b->ts ? -1 : 1;
    if (a->end != b->end) return a->end > b->end ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

void lanes_sort(struct check *check)
{
    for (struct lane *lane = check->lanes; lane; lane = lane->next)
        if (lane->count) qsort(lane->slices, lane->count, sizeof *lane->slices, slice_compare);
}

/* Finds two slices on lines up to `limit` that overlap partly. `stack` has room for all slices. */
static bool lane_overlap(const struct lane *lane, uint64_t limit, const struct slice **stack,
    const struct slice *pair[2])
{
    size_t depth = 0;
    for (const struct slice *slice = lane->slices; slice < lane->slices + lane->count; slice++) {
        if (slice->line > limit) continue;
        while (depth && stack[depth - 1]->end <= slice->ts) depth--;
        if (depth && slice->end > stack[depth - 1]->end) {
            pair[0] = stack[depth - 1];
            pair[1] = slice;
            return true;
        }
        stack[depth++] = slice;
    }
    return false;
}

/* Reports the overlap on the lowest line. lane_overlap() finds any pair: bisecting over its `limit`
 * finds this one. */
static void lane_judge_overlap(struct check *check, const struct lane *lane)
{
    size_t capacity = lane->count; /* "full", so that array_room() doubles it */
    const struct slice **stack = array_room(NULL, lane->count, &capacity, sizeof *stack), *pair[2];
    if (lane_overlap(lane, UINT64_MAX, stack, pair)) {
        uint64_t good = 0, bad = pair[0]->line > pair[1]->line ? pair[0]->line : pair[1]->line;
        while (bad - good > 1) {
            uint64_t middle = good + (bad - good) / 2;
            if (lane_overlap(lane, middle, stack, pair)) bad = middle;
            else good = middle;
        }
        lane_overlap(lane, bad, stack, pair);
        uint64_t other = pair[0]->line == bad ? pair[1]->line : pair[0]->line;
        check_breach(check, bad, 4,
            "overlaps the slice on line %llu partly: slices of pid %u tid %u must nest",
            (unsigned long long)other, lane->pid, lane->tid);
    }
    free(stack);
}

/* Judges that of two slices that start at the same ts the longer one is on the lower line. */
static void lane_judge_order(struct check *check, const struct lane *lane)
{
    /* Shorter slices stand behind longer ones: the loop goes backwards. */
    uint64_t lowest_shorter = 0; /* the lowest line of a shorter slice at this ts; 0: none */
    int64_t ts = 0, end = 0;
    uint64_t lowest = 0; /* the lowest line of a slice at this ts that is not longer */
    for (size_t i = lane->count; i-- > 0;) {
        const struct slice *slice = &lane->slices[i];
        if (slice->ts != ts || !lowest) lowest_shorter = lowest = 0;
        else if (slice->end != end) lowest_shorter = lowest;
        ts = slice->ts;
        end = slice->end;
        if (lowest_shorter && lowest_shorter < slice->line)
            check_breach(check, slice->line, 4,
                "comes after the slice on line %llu, which starts at the same ts and is shorter",
                (unsigned long long)lowest_shorter);
        if (!lowest || slice->line < lowest) lowest = slice->line;
    }
}

void lanes_judge(struct check *check)
{
    for (struct lane *lane = check->lanes; lane; lane = lane->next) {
        if (!lane->count) continue;
        lane_judge_overlap(check, lane);
        lane_judge_order(check, lane);
    }
}

const struct slice *lane_slice_at(const struct lane *lane, int64_t ts)
{
    size_t low = 0, high = lane->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lane->slices[middle].ts < ts) low = middle + 1;
        else high = middle;
    }
    const struct slice *first = NULL;
    for (; low < lane->count && lane->slices[low].ts == ts; low++)
        if (!first || lane->slices[low].line < first->line) first = &lane->slices[low];
    return first;
}

const struct slice *lane_slice_around(const struct lane *lane, int64_t ts)
{
    size_t low = 0, high = lane->count;
    while (low < high) { /* `low` ends behind the last slice that starts at ts or before */
        size_t middle = low + (high - low) / 2;
        if (lane->slices[middle].ts <= ts) low = middle + 1;
        else high = middle;
    }
    /* The last of them may have ended before ts: a slice that encloses it stands a few places
     * before. */
    for (int steps = 0; low-- > 0 && steps < 4096; steps++)
        if (lane->slices[low].end > ts) return &lane->slices[low];
    return NULL;
}
