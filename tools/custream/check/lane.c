/* Keeps the slices of lanes, and judges whether they nest; and the clocks of threads. */
#include "tools/custream/check/check.h"
#include "tools/custream/lanes.h"
#include "tools/custream/trace/foreign.h"

struct lane *lane_of(struct check *check, uint32_t pid, uint32_t tid)
{
    uint32_t *at =
        numbers_at(&check->lane_places, (uint64_t)pid << 32 | tid, (uint32_t)check->lane_count);
    if (*at == check->lane_count) {
        struct lane *lane = array_zeros(1, sizeof *lane);
        *lane = (struct lane){.pid = pid, .tid = tid, .gpu = TRACE_NO_GPU};
        if (check->merged == (pid >= MERGED_GPUS)) lane->gpu = gpu_of_process(true, pid, "");
        array_add(check->lanes, check->lane_count, check->lane_capacity, lane);
    }
    return check->lanes[*at];
}

COMPARES(slice_compare, struct slice,
    ORDER(a->ts, b->ts) ?: ORDER(b->end, a->end) ?: ORDER(a->line, b->line))

void lanes_sort(struct check *check)
{
    for (size_t i = 0; i < check->lane_count; i++) {
        const struct lane *lane = check->lanes[i];
        if (lane->count) qsort(lane->slices, lane->count, sizeof *lane->slices, slice_compare);
    }
}

/* Finds two slices on lines up to `limit` that overlap partly. `stack` has room for all slices. */
static bool lane_overlap(const struct lane *lane, uint64_t limit, const struct slice **stack,
    const struct slice *pair[2])
{
    size_t depth = 0;
    for (size_t i = 0; i < lane->count; i++) {
        const struct slice *slice = &lane->slices[i];
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

/* Reports the overlap on the lowest line. lane_overlap() finds any pair, so its `limit` is bisected
 * until the pair is the lowest. */
static void lane_judge_overlap(struct check *check, const struct lane *lane)
{
    const struct slice **stack = array_zeros(lane->count, sizeof *stack), *pair[2];
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
    /* lanes_sort() has put the longer slices of one ts first. The loop goes backwards, so that it
     * meets the shorter ones first. */
    uint64_t lowest_shorter = 0; /* the lowest line of a shorter slice at this ts; 0: none */
    int64_t ts = 0, end = 0;
    uint64_t lowest = 0; /* the lowest line of the slices at this ts so far */
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

COMPARES(reading_compare, struct reading,
    ORDER(a->at, b->at) ?: ORDER(a->cpu, b->cpu) ?: ORDER(a->line, b->line))

/* Return the earliest and the latest time at which a reading may have been made. */
static int64_t read_since(const struct lane *lane, const struct reading *reading)
{
    const size_t own = FIRST_NOT(i, 0, lane->count, lane->slices[i].ts < reading->at);
    if (reading->at == reading->end) return reading->at;
    if (!own) return INT64_MIN / 4;
    const struct slice *before = &lane->slices[own - 1]; /* or a call in which this one was made */
    return before->end <= reading->at ? before->end : before->ts;
}
static int64_t read_until(const struct lane *lane, const struct reading *reading)
{
    const size_t next = FIRST_NOT(i, 0, lane->count, lane->slices[i].ts < reading->end);
    return next < lane->count ? lane->slices[next].ts : INT64_MAX / 4;
}

/* Judges a thread's processor time: it never goes back, and passes no faster than time. A later
 * thread may have the number of an ended one; then the clock begins anew behind the last reading.
 * Between a call's time and the reading, the library and a handler may work for long. */
static void lane_judge_clock(struct check *check, struct lane *lane)
{
    enum { GRAIN_NS = 200000, SHARE = 1000 };
    struct reading *readings = lane->readings;
    if (lane->reading_count)
        qsort(readings, lane->reading_count, sizeof *readings, reading_compare);
    for (size_t i = 1; i < lane->reading_count; i++) {
        const int64_t passed = read_until(lane, &readings[i]) - read_since(lane, &readings[i - 1]),
                      cpu = readings[i].cpu, before = readings[i - 1].cpu,
                      used = cpu < before ? cpu : cpu - before;
        if (used <= passed + passed / SHARE + GRAIN_NS) continue;
        check_breach(check, readings[i].line, 13,
            cpu < before ? "the thread's processor time goes back by %.0f us"
                         : "the thread's processor time passes by %.0f us more than time does",
            (double)(cpu < before ? before - cpu : used - passed) / 1000);
    }
}

void lanes_judge(struct check *check)
{
    for (size_t i = 0; i < check->lane_count; i++) {
        lane_judge_clock(check, check->lanes[i]);
        lane_judge_overlap(check, check->lanes[i]);
        lane_judge_order(check, check->lanes[i]);
    }
}
