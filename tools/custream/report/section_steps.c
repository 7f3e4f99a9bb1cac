/* Steps: the ranges that repeat on one thread, at the outermost level that has such ranges. The
 * section tells for each how long a step takes, which step was the slowest, and what took longer in
 * the slowest than in the others. */
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

static const struct column step_columns[] = {
    {"name", "step", UNIT_TEXT, COLUMN_NAMES, 0},
    {"times", "times", UNIT_COUNT, 0, 0},
    {"mean_ns", "mean", UNIT_NS, 0, 0},
    {"spread_ns", "standard deviation", UNIT_NS, 0, 0},
    {"slowest", "slowest", UNIT_COUNT, 0, 0},
    {"slowest_ns", "it took", UNIT_NS, 0, 0},
    {"different", "what was different in it", UNIT_TEXT, COLUMN_BELOW, 0},
};

enum {
    NUMBERED_TIMES = 3, /* so many "step 1", "step 2" count as one step */
    ROWS_SHOWN = 20,
};

/* --- what was different in a step --- */

struct step_reader {
    const struct run *run;
    const struct idles *idles;
    size_t *device_idles; /* by device: the index in idles of its first row; its last row stands
                             right before the first row of the next device */
};

/* The share of the mean by which the slowest step must be longer: less may be chance. */
#define CHANCE 0.01

/* The items that a range's time consists of. WAIT: a call that waits. */
enum item { ITEM_WORK, ITEM_CALL, ITEM_IDLE, ITEM_WAIT };

/* The items of all ranges. A tally's sum[0] is the time in the slowest range. */
struct items {
    const struct step_reader *reader;
    struct tallies tallies;
    bool slowest; /* the range that is being added is the slowest */
};

static void item_add(struct items *items, enum item item, uint32_t what, int64_t amount)
{
    struct tally *tally = tally_of(&items->tallies, key_of(item, what));
    tally_add(tally, amount);
    if (items->slowest) tally->sum[0] += (double)amount;
}

static void items_of_calls(struct items *items, const struct range *range)
{
    const struct run *run = items->reader->run;
    const struct groups *calls = &run->thread_calls;
    const size_t end = calls->begins[range->thread + 1];
    for (size_t i = FIRST_NOT(n, calls->begins[range->thread], end,
             run->calls[calls->members[n]].begin < range->begin);
        i < end; i++) {
        const struct call *call = &run->calls[calls->members[i]];
        if (call->begin >= range->end) break;
        item_add(
            items, call_waits(call) ? ITEM_WAIT : ITEM_CALL, call->name, call->end - call->begin);
        for (uint32_t w = 0; w < call->works; w++) {
            const struct work *work = &run->works[run->works_of[call->work + w]];
            item_add(items, ITEM_WORK, work->name, work->end - work->begin);
        }
    }
}

static void items_of_idles(struct items *items, const struct range *range)
{
    const struct step_reader *reader = items->reader;
    for (size_t d = 0; d < reader->run->device_count; d++) {
        const size_t end = reader->device_idles[d + 1];
        const struct idle *rows = reader->idles->rows;
        for (size_t i = FIRST_NOT(n, reader->device_idles[d], end, rows[n].end <= range->begin);
            i < end; i++) {
            const struct idle *idle = &rows[i];
            if (idle->begin >= range->end) break;
            const int64_t from = idle->begin > range->begin ? idle->begin : range->begin,
                          to = idle->end < range->end ? idle->end : range->end;
            item_add(items, ITEM_IDLE, idle->cause, to - from);
        }
    }
}

/* Returns the item whose time in the slowest range exceeds its mean the most. `more`: how much
 * longer the slowest range took than the mean range. */
static const char *largest_excess(
    const struct items *items, struct report *report, uint32_t count, double more)
{
    const struct tally *largest[2] = {
        NULL, NULL}; /* [0]: among items that are no waits, [1]: among waits */
    double excess[2] = {0, 0};
    for (size_t i = 0; i < items->tallies.count; i++) {
        const struct tally *item = &items->tallies.rows[i];
        const bool wait = key_high(item->key) == ITEM_WAIT;
        const double its = item->sum[0] - (double)item->total / count;
        if (its > excess[wait]) largest[wait] = item, excess[wait] = its;
    }
    const bool wait = excess[0] < more / 2 && excess[1] > excess[0];
    const struct tally *item = largest[wait];
    if (!item) return NULL;
    const bool idle = key_high(item->key) == ITEM_IDLE;
    return report_text(report, "%s%s: %.3f ms, on average %.3f ms", idle ? "idle, " : "",
        idle ? cause_info[key_low(item->key)].title
             : text_in(items->reader->run, key_low(item->key)),
        item->sum[0] / 1e6, (double)item->total / count / 1e6);
}

/* Returns the kernel, copy, call or cause of idle time whose time in ranges[slowest] exceeds its
 * mean in the `count` ranges the most. All ranges are of one thread. NULL: no time exceeds its
 * mean, or the range was hardly longer than the others.
 *
 * A call that waits is only named if no other item explains half of the difference. */
static const char *step_difference(const struct step_reader *reader, struct report *report,
    const uint32_t *ranges, uint32_t count, uint32_t slowest)
{
    struct items items = {.reader = reader};
    double mean = 0, more = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct range *range = &reader->run->ranges[ranges[i]];
        const double length = (double)(range->end - range->begin);
        items.slowest = i == slowest;
        mean += length / count;
        if (items.slowest) more = length;
        items_of_calls(&items, range);
        items_of_idles(&items, range);
    }
    more -= mean;
    const char *text = more > mean * CHANCE ? largest_excess(&items, report, count, more) : NULL;
    tallies_free(&items.tallies);
    return text;
}

/* --- steps --- */

struct steps {
    const struct run *run;
    struct report *report;
    struct step_reader reader;
    struct numbers stem_of_text;
    struct texts stems;
    struct steady steady;
    struct repeats in_steady; /* the longest of the steps that fill the steady part; zeros: none */
    const char *in_steady_name;
    double in_steady_total;
    uint32_t *levels; /* by place in run->thread_ranges: how many ranges enclose each */
    struct step {
        const char *name;
        /* slowest: the number of the slowest of these steps, from 0 */
        uint32_t thread, times, slowest;
        double total, mean, spread;
        int64_t slowest_ns;
        const char *different;
    } *rows;
    size_t count, capacity;
};

/* --- names --- */

/* Returns the length of a name without the number at its end, for "ProfilerStep#12" and "step 12".
 * Returns the whole length if no number is set off from the word before it. */
static size_t stem_length(const char *name)
{
    const size_t all = strlen(name);
    size_t length = all;
    while (length && name[length - 1] >= '0' && name[length - 1] <= '9') length--;
    return length && length < all && strchr(" #_:=-/.", name[length - 1]) ? length : all;
}

/* Returns a number that all names with the same stem share. Each text is looked at once. */
static uint32_t stem_of(struct steps *steps, text name)
{
    uint32_t *known = numbers_at(&steps->stem_of_text, name, NONE);
    const char *word = text_in(steps->run, name);
    if (*known != NONE) return *known;
    const size_t length = stem_length(word);
    /* "step " is not "step 1" */
    return *known = text_number(&steps->stems, word, length) * 2 + (word[length] != 0);
}

/* --- which ranges are steps --- */

/* Returns the outermost level at which one name occurs twice, or NUMBERED_TIMES names differ only
 * in their number; NONE: there is none. */
static uint32_t level_of_steps(
    struct steps *steps, const uint32_t *ranges, const uint32_t *levels, size_t count)
{
    struct tallies names = {0}, stems = {0};
    uint32_t outermost = NONE;
    for (size_t i = 0; i < count; i++) {
        const uint32_t level = levels[i];
        const text name = steps->run->ranges[ranges[i]].name;
        if (level >= outermost) continue;
        const bool repeats = ++tally_of(&names, key_of(level, name))->times >= 2;
        const bool counts_up =
            ++tally_of(&stems, key_of(level, stem_of(steps, name)))->times >= NUMBERED_TIMES;
        if (repeats || counts_up) outermost = level;
    }
    tallies_free(&names);
    tallies_free(&stems);
    return outermost;
}

/* --- rows --- */

static void step_measure(struct step *step, const struct run *run, const uint32_t *ranges)
{
    double squares = 0;
    for (uint32_t i = 0; i < step->times; i++) {
        const int64_t length = run->ranges[ranges[i]].end - run->ranges[ranges[i]].begin;
        step->total += (double)length;
        if (!i || length > step->slowest_ns) step->slowest = i, step->slowest_ns = length;
    }
    step->mean = step->total / step->times;
    for (uint32_t i = 0; i < step->times; i++) {
        const double off =
            (double)(run->ranges[ranges[i]].end - run->ranges[ranges[i]].begin) - step->mean;
        squares += off * off;
    }
    step->spread = sqrt(squares / step->times);
}

/* Takes these steps as those of the steady part if they fill half of it or more, and took longer
 * than the steps taken before. */
static void steady_look(struct steps *steps, const struct step *step, const uint32_t *ranges)
{
    uint32_t times = 0;
    int64_t first = 0, last = 0, covered = 0;
    for (uint32_t i = 0; i < step->times; i++) {
        const struct range *range = &steps->run->ranges[ranges[i]];
        if (range->end <= steps->steady.begin || range->begin >= steps->steady.end) continue;
        if (!times++) first = range->begin;
        last = range->begin;
        covered += range->end - range->begin;
    }
    const struct repeats repeats = repeats_make(&steps->steady, times, first, last, 0);
    if (repeats.times < NUMBERED_TIMES || 2 * (double)covered < times * repeats.period ||
        step->total <= steps->in_steady_total)
        return;
    steps->in_steady = repeats;
    steps->in_steady_name = step->name;
    steps->in_steady_total = step->total;
}

/* Adds a row for `count` ranges with one stem, in order. */
static void step_add(struct steps *steps, uint32_t thread, const uint32_t *ranges, uint32_t count)
{
    const struct run *run = steps->run;
    const char *name = text_in(run, run->ranges[ranges[0]].name);
    struct step step = {.name = name, .thread = thread, .times = count};
    bool same = true;
    for (uint32_t i = 1; i < count; i++)
        same &= run->ranges[ranges[i]].name == run->ranges[ranges[0]].name;
    if (count < (same ? 2u : NUMBERED_TIMES)) return;
    if (!same) step.name = report_text(steps->report, "%.*sN", (int)stem_length(name), name);
    step_measure(&step, run, ranges);
    steady_look(steps, &step, ranges);
    step.different = step_difference(&steps->reader, steps->report, ranges, count, step.slowest);
    array_add(steps->rows, steps->count, steps->capacity, step);
}

/* Adds the steps of a thread: its ranges at one level, grouped by stem, in order. */
static void thread_steps(struct steps *steps, uint32_t thread)
{
    const uint32_t first = steps->run->thread_ranges.by_thread.begins[thread],
                   count = steps->run->thread_ranges.by_thread.begins[thread + 1] - first;
    const uint32_t *ranges = steps->run->thread_ranges.by_thread.members + first,
                   *levels = steps->levels + first;
    const uint32_t level = level_of_steps(steps, ranges, levels, count);
    struct numbers stems = {0};
    uint32_t *stem = array_none(count);
    for (uint32_t i = 0; i < count; i++)
        if (levels[i] == level)
            stem[i] = *numbers_at(
                &stems, stem_of(steps, steps->run->ranges[ranges[i]].name), (uint32_t)stems.count);
    struct groups by_stem = groups_make(stems.count, stem, count, sizeof *stem, 0);
    for (uint32_t i = 0; i < by_stem.begins[stems.count]; i++)
        by_stem.members[i] = ranges[by_stem.members[i]];
    for (size_t s = 0; s < stems.count; s++)
        step_add(steps, thread, by_stem.members + by_stem.begins[s],
            by_stem.begins[s + 1] - by_stem.begins[s]);
    groups_free(&by_stem);
    free(stem);
    numbers_free(&stems);
}

COMPARES(longest_first, struct step, ORDER(b->total, a->total) ?: ORDER(a->thread, b->thread))

/* Appends the thread's name to steps that several threads have under one name. */
static void tell_threads(struct steps *steps)
{
    struct step *rows = steps->rows;
    struct numbers times = {0}; /* by the name's text: in how many rows it is */
    for (size_t i = 0; i < steps->count; i++)
        ++*numbers_at(&times, text_number(&steps->stems, rows[i].name, strlen(rows[i].name)), 0);
    for (size_t i = 0; i < steps->count; i++)
        if (numbers_get(&times, text_find(&steps->stems, rows[i].name), 0) > 1)
            rows[i].name = report_text(steps->report, "%s, %s", rows[i].name,
                thread_label(steps->report, steps->run, rows[i].thread));
    numbers_free(&times);
    if (steps->count) qsort(rows, steps->count, sizeof *rows, longest_first);
}

void section_steps(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table = TABLE_NEW(report, "steps", "The steps that repeat", step_columns);
    struct steps steps = {.run = run,
        .report = report,
        .steady = of->steady,
        .reader = {run, &of->idles, array_zeros(run->device_count + 1, sizeof(size_t))},
        .levels = array_zeros(run->range_count, sizeof(uint32_t))};
    size_t *device_idles = steps.reader.device_idles;
    for (size_t i = 0; i < of->idles.count; i++) device_idles[of->idles.rows[i].device + 1] = i + 1;
    for (size_t d = 0; d < run->device_count; d++)
        if (device_idles[d + 1] < device_idles[d]) device_idles[d + 1] = device_idles[d];
    texts_init(&steps.stems);
    for (uint32_t place = 0; place < run->thread_ranges.by_thread.begins[run->thread_count];
        place++) {
        const uint32_t parent = run->thread_ranges.parent[place];
        if (parent != NONE) steps.levels[place] = steps.levels[parent] + 1;
    }
    for (uint32_t t = 0; t < run->thread_count; t++) thread_steps(&steps, t);
    tell_threads(&steps);
    for (size_t i = 0; i < steps.count; i++) {
        const struct step *step = &steps.rows[i];
        TABLE_PUT(table, step_columns, CELL(step->name), CELL(step->times), CELL(step->mean),
            CELL(step->spread), CELL(step->slowest + 1), CELL(step->slowest_ns),
            CELL(step->different));
    }
    table->shown = ROWS_SHOWN;
    section_steady(report, of, &steps.in_steady, steps.in_steady_name);
    free(device_idles);
    numbers_free(&steps.stem_of_text);
    texts_free(&steps.stems);
    free(steps.levels);
    free(steps.rows);
}
