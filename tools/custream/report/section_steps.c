/*
 * Steps: the ranges that repeat on one thread, at the outermost level where any does. Of each: how
 * long a step takes, which was the slowest, and what took longer in it than in the others.
 */
#include <math.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/model/table.h"
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

static const struct column step_columns[] = {
    {"name", "step", UNIT_TEXT, COLUMN_NAMES},
    {"times", "times", UNIT_COUNT, 0},
    {"mean_ns", "mean", UNIT_NS, 0},
    {"spread_ns", "standard deviation", UNIT_NS, 0},
    {"slowest", "slowest", UNIT_COUNT, 0},
    {"slowest_ns", "it took", UNIT_NS, 0},
    {"different", "what was different in it", UNIT_TEXT, COLUMN_BELOW},
};

enum {
    NUMBERED_TIMES = 3, /* "step 1", "step 2", ...: names that differ in a number at their end are
                           one step where there are at least so many of them */
    ROWS_SHOWN = 20,
};

struct steps {
    const struct run *run;
    struct report *report;
    struct step_reader reader;
    struct numbers stem_of_text, stem_of_hash;
    struct thread_ranges ranges;
    uint32_t *levels; /* by place in `ranges`: how many are open around each */
    struct step {
        const char *name;
        uint32_t thread, times, slowest; /* slowest: from 0 */
        double total, mean, spread;
        int64_t slowest_ns;
        const char *different;
    } *rows;
    size_t count, capacity;
};

/* --- names --- */

/* Of "ProfilerStep#12" and "step 12": the length without the number. Of a name without a number
 * that is set off from the word before it: all of it. */
static size_t stem_length(const char *name)
{
    const size_t all = strlen(name);
    size_t length = all;
    while (length && name[length - 1] >= '0' && name[length - 1] <= '9') length--;
    return length && length < all && strchr(" #_:=-/.", name[length - 1]) ? length : all;
}

/* A number that names with the same stem share. Each text is looked at once. */
static uint32_t stem_of(struct steps *steps, text name)
{
    uint32_t *known = numbers_at(&steps->stem_of_text, name, NONE);
    if (*known != NONE) return *known;
    const char *word = text_in(steps->run, name);
    const size_t length = stem_length(word);
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)word[i]) * 0x100000001b3;
    if (word[length]) hash ^= 1; /* "step " is not "step 1" */
    return *known = *numbers_at(&steps->stem_of_hash, hash, (uint32_t)steps->stem_of_hash.count);
}

/* --- which ranges are steps --- */

/* The outermost level at which a name comes twice, or a numbered one NUMBERED_TIMES times; NONE. */
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

static bool same_name(const struct run *run, const uint32_t *ranges, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (run->ranges[ranges[i]].name != run->ranges[ranges[0]].name) return false;
    return true;
}

/* A row of ranges with one stem, in order. */
static void step_add(struct steps *steps, uint32_t thread, const uint32_t *ranges, uint32_t count)
{
    const struct run *run = steps->run;
    const char *name = text_in(run, run->ranges[ranges[0]].name);
    struct step step = {.name = name, .thread = thread, .times = count};
    const bool same = same_name(run, ranges, count);
    if (count < (same ? 2 : NUMBERED_TIMES)) return;
    if (!same) step.name = report_text(steps->report, "%.*sN", (int)stem_length(name), name);
    step_measure(&step, run, ranges);
    step.different = step_difference(&steps->reader, steps->report, ranges, count, step.slowest);
    steps->rows = array_room(steps->rows, steps->count, &steps->capacity, sizeof *steps->rows);
    steps->rows[steps->count++] = step;
}

/* The steps of a thread: its ranges at one level, those with one stem together, in order. */
static void thread_steps(struct steps *steps, uint32_t thread)
{
    const uint32_t first = steps->ranges.by_thread.begins[thread],
                   count = steps->ranges.by_thread.begins[thread + 1] - first;
    const uint32_t *ranges = steps->ranges.by_thread.members + first,
                   *levels = steps->levels + first;
    const uint32_t level = level_of_steps(steps, ranges, levels, count);
    struct tallies stems = {0};
    for (uint32_t i = 0; i < count; i++)
        if (levels[i] == level)
            tally_of(&stems, stem_of(steps, steps->run->ranges[ranges[i]].name))->times++;
    uint32_t *sorted = array_zeros(count, sizeof *sorted),
             *end = array_zeros(stems.count + 1, sizeof *end);
    for (size_t s = 0; s < stems.count; s++) end[s + 1] = end[s] + (uint32_t)stems.rows[s].times;
    for (uint32_t i = 0; i < count; i++)
        if (levels[i] == level)
            sorted[end[tally_of(&stems, stem_of(steps, steps->run->ranges[ranges[i]].name)) -
                       stems.rows]++] = ranges[i];
    for (size_t s = 0; s < stems.count; s++)
        step_add(
            steps, thread, sorted + end[s] - stems.rows[s].times, (uint32_t)stems.rows[s].times);
    free(sorted);
    free(end);
    tallies_free(&stems);
}

static int longest_first(const void *a, const void *b)
{
    const struct step *one = a, *other = b;
    if (one->total != other->total) return one->total < other->total ? 1 : -1;
    return one->thread < other->thread ? -1 : one->thread > other->thread;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct step *)a)->name, ((const struct step *)b)->name);
}

/* Steps of several threads with one name get their threads' names behind it. */
static void tell_threads(struct steps *steps)
{
    struct step *rows = steps->rows;
    if (steps->count) qsort(rows, steps->count, sizeof *rows, by_name);
    for (size_t i = 0, end; i < steps->count; i = end) {
        for (end = i + 1; end < steps->count && !strcmp(rows[end].name, rows[i].name);) end++;
        const char *name = rows[i].name;
        for (size_t s = i; s < end && end - i > 1; s++)
            rows[s].name = report_text(steps->report, "%s, %s", name,
                thread_label(steps->report, steps->run, rows[s].thread));
    }
    if (steps->count) qsort(rows, steps->count, sizeof *rows, longest_first);
}

void section_steps(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table = TABLE_NEW(report, "steps", "The steps that repeat", step_columns);
    struct steps steps = {.run = run,
        .report = report,
        .reader = step_reader_make(run, &of->idles),
        .levels = array_zeros(run->range_count, sizeof(uint32_t))};
    thread_ranges_make(&steps.ranges, run);
    for (uint32_t place = 0; place < steps.ranges.by_thread.begins[run->thread_count]; place++) {
        const uint32_t parent = steps.ranges.parent[place];
        if (parent != NONE) steps.levels[place] = steps.levels[parent] + 1;
    }
    for (uint32_t t = 0; t < run->thread_count; t++) thread_steps(&steps, t);
    tell_threads(&steps);
    for (size_t i = 0; i < steps.count; i++) {
        const struct step *step = &steps.rows[i];
        TABLE_PUT(table, step_columns, CELL_TEXT(step->name), CELL_NUMBER(step->times),
            CELL_NUMBER(step->mean), CELL_NUMBER(step->spread), CELL_NUMBER(step->slowest + 1),
            CELL_NUMBER(step->slowest_ns), CELL_TEXT(step->different));
    }
    table->shown = ROWS_SHOWN;
    thread_ranges_free(&steps.ranges);
    step_reader_free(&steps.reader);
    numbers_free(&steps.stem_of_text);
    numbers_free(&steps.stem_of_hash);
    free(steps.levels);
    free(steps.rows);
}
