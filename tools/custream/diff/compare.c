#include "tools/custream/diff/diff.h"

#include <math.h>

#include "tools/custream/command.h"

const struct subject subjects[] = {
    {"kernels", "kernel", LIST_CHANGED, .steady = true, .value = "total_ns", .times = "times",
        .gpu = true},
    {"copies", "copy", LIST_CHANGED, .steady = true, .value = "total_ns", .times = "times",
        .gpu = true},
    {"graphs", "graph", LIST_CHANGED, .steady = true, .value = "total_ns", .times = "times",
        .gpu = true},
    {"idle", "idle", LIST_CHANGED, .label = "why", .value = "idle_ns", .times = "times",
        .gpu = true},
    {"idle_host", "host", LIST_HOST, .value = "idle_ns", .times = "times", .gpu = true},
    {"streams", "stream", LIST_FOLLOWS, .steady = true, .value = "busy_ns", .times = "works",
        .gpu = true},
    {"ranges", "range", LIST_FOLLOWS, .value = "total_ns", .times = "times"},
    {"steps", "step", LIST_FOLLOWS, .value = "mean_ns", .times = "times", .mean = true},
    {"host_waits", "wait", LIST_FOLLOWS, .value = "blocked_ns", .times = "times", .gpu = true},
    {"calls", "call", LIST_FOLLOWS, .value = "total_ns", .times = "times"},
    {"metrics", "metric", LIST_METRICS, .value = "value"},
    {"findings", "finding", LIST_FINDINGS, .value = "gain_high_ns", .times = "times", .gpu = true},
};
const size_t subject_count = sizeof subjects / sizeof *subjects;

const char *const side_name[SIDES] = {"before", "after"};

static text keep(struct comparison *to, const char *words)
{
    return *words ? text_number(&to->texts, words, strlen(words)) : 0;
}

void comparison_init(struct comparison *comparison)
{
    *comparison = (struct comparison){0};
    texts_init(&comparison->texts);
}

void comparison_free(struct comparison *comparison)
{
    for (int side = 0; side < SIDES; side++) report_free(&comparison->reports[side]);
    texts_free(&comparison->texts);
    numbers_free(&comparison->index);
    for (size_t e = 0; e < comparison->entry_count; e++)
        for (int side = 0; side < SIDES; side++)
            free(comparison->entries[e].sides[side].values.values);
    for (size_t d = 0; d < comparison->device_count; d++)
        for (int side = 0; side < SIDES; side++) free(comparison->devices[d].sides[side]);
    free_all(comparison->entries, comparison->runs, comparison->devices);
}

/* --- rows --- */

/* Adds a row to its entry. Rows with the same key are summed: threads of one name, for example. */
static void row_add(struct comparison *to, const struct names *names, const struct subject *subject,
    const struct table *table, size_t row)
{
    char words[NAME_MAX_BYTES];
    names_key(names, table, row, words);
    uint32_t *at = numbers_at(&to->index, keep(to, words), NONE);
    if (*at == NONE) {
        *at = (uint32_t)to->entry_count;
        array_add(
            to->entries, to->entry_count, to->entry_capacity, (struct entry){.subject = subject});
    }
    struct entry *entry = &to->entries[*at];
    const double times = subject->times ? table_number(table, row, subject->times) : NAN;
    entry->now += table_number(table, row, subject->value) * (subject->mean ? times : 1);
    entry->now_times += isnan(times) ? 0 : times;
    entry->is_now = true;
    entry->device = table_number(table, row, "device");
    names_label(table, row, words);
    entry->label = keep(to, subject->label ? table_text(table, row, subject->label) : words);
    if (subject->list == LIST_METRICS) entry->unit = keep(to, table_text(table, row, "unit"));
    if (subject->list != LIST_FINDINGS) return;
    entry->id = keep(to, table_text(table, row, "id"));
    entry->place = keep(to, table_text(table, row, "stream"));
    entry->title = keep(to, table_text(table, row, "title"));
    entry->evidence = keep(to, table_text(table, row, "evidence"));
    entry->remedy = keep(to, table_text(table, row, "remedy"));
    entry->page = keep(to, table_text(table, row, "page"));
}

static void run_end(struct comparison *to, enum side side)
{
    for (size_t e = 0; e < to->entry_count; e++) {
        struct entry *entry = &to->entries[e];
        struct numbers_of_runs *values = &entry->sides[side].values;
        if (!entry->is_now) continue;
        array_add(values->values, values->count, values->capacity, entry->now);
        entry->sides[side].total += entry->now;
        entry->sides[side].times += entry->now_times;
        entry->now = entry->now_times = 0;
        entry->is_now = false;
    }
}

/* --- runs, devices --- */

static void devices_add(struct comparison *to, enum side side, const struct report *report)
{
    const struct table *table = report_find(report, "devices");
    for (size_t row = 0; table && row < table->row_count; row++) {
        const double ordinal = table_number(table, row, "device");
        size_t d = 0;
        while (d < to->device_count && to->devices[d].ordinal != ordinal) d++;
        if (d == to->device_count)
            array_add(to->devices, to->device_count, to->device_capacity,
                (struct device_times){.ordinal = ordinal});
        struct device_times *device = &to->devices[d];
        device->name = keep(to, table_text(table, row, "name"));
        array_add(device->sides[side], device->counts[side], device->capacities[side],
            (struct device_run){
                table_number(table, row, "span_ns"), table_number(table, row, "busy_ns")});
    }
}

void comparison_add(struct comparison *to, enum side side, struct made *made, unsigned files)
{
    struct names names;
    names_make(&names, &made->report, &made->model.run);
    for (size_t s = 0; s < subject_count; s++) {
        const struct table *table = report_find(&made->report, subjects[s].table);
        for (size_t row = 0; table && row < table->row_count; row++)
            row_add(to, &names, &subjects[s], table, row);
    }
    run_end(to, side);
    const struct table *run = report_find(&made->report, "run");
    array_add(to->runs, to->run_count, to->run_capacity,
        (struct ran){.side = side,
            .files = files,
            .program = keep(to, table_text(run, 0, "program")),
            .whole = keep(to, table_text(run, 0, "whole")),
            .host = keep(to, table_text(run, 0, "host")),
            .gpu = keep(to, table_text(report_find(&made->report, "devices"), 0, "name")),
            .pid = table_number(run, 0, "pid"),
            .wall = table_number(run, 0, "wall_ns")});
    to->side_runs[side]++;
    to->no_times |= !run_has_times(&made->model.run);
    devices_add(to, side, &made->report);
    names_free(&names);
}

/* --- reports for --fail-if --- */

static const struct column metric_columns[] = {{"key", "metric", UNIT_TEXT, COLUMN_NAMES, 0},
    {"unit", "unit", UNIT_TEXT, 0, 0}, {"value", "value", UNIT_COUNT, 0, 0}};
static const struct column finding_columns[] = {{"id", "id", UNIT_TEXT, COLUMN_NAMES, 0},
    {"title", "finding", UNIT_TEXT, 0, 0}, {"gain_high_ns", "gain", UNIT_NS, 0, 0},
    {"times", "times", UNIT_COUNT, 0, 0}};

static void report_end(struct comparison *of, enum side side)
{
    struct report *report = &of->reports[side];
    struct table *metrics = TABLE_NEW(report, "metrics", "Metrics", metric_columns);
    for (size_t e = 0; e < of->entry_count; e++) {
        const struct entry *entry = &of->entries[e];
        if (entry->subject->list != LIST_METRICS) continue;
        TABLE_PUT(metrics, metric_columns, CELL(comparison_text(of, entry->label)),
            CELL(comparison_text(of, entry->unit)), CELL(entry_side(of, entry, side).value));
    }
    struct table *findings = TABLE_NEW(report, "findings", "Findings", finding_columns);
    for (size_t e = 0; e < of->entry_count; e++) {
        const struct entry *entry = &of->entries[e];
        if (entry->subject->list != LIST_FINDINGS || !entry->sides[side].values.count) continue;
        TABLE_PUT(findings, finding_columns, CELL(comparison_text(of, entry->id)),
            CELL(comparison_text(of, entry->title)), CELL(entry_side(of, entry, side).value),
            CELL(entry_side(of, entry, side).times));
    }
}

/* --- after the last run --- */

COMPARES(by_size, double, ORDER(*a, *b))
COMPARES(by_span, struct device_run, ORDER(a->span, b->span))

void comparison_end(struct comparison *of)
{
    for (size_t e = 0; e < of->entry_count; e++)
        for (int side = 0; side < SIDES; side++) {
            struct numbers_of_runs *values = &of->entries[e].sides[side].values;
            if (values->count)
                qsort(values->values, values->count, sizeof *values->values, by_size);
        }
    for (int side = 0; side < SIDES; side++) {
        /* A GPU's span is 0 in runs that do not have this GPU. */
        for (size_t d = 0; d < of->device_count; d++) {
            struct device_times *device = &of->devices[d];
            while (device->counts[side] < of->side_runs[side])
                array_add(device->sides[side], device->counts[side], device->capacities[side],
                    (struct device_run){0, 0});
            qsort(device->sides[side], device->counts[side], sizeof *device->sides[side], by_span);
            of->span = fmax(of->span, device_middle(of, device, (enum side)side).span);
        }
        report_end(of, (enum side)side);
    }
    if (of->span > 0) return;
    for (size_t r = 0; r < of->run_count; r++) of->span = fmax(of->span, of->runs[r].wall);
}

/* --- what counts --- */

/* Returns value number `rank` of the side's runs, counted from 0 in order of size. Runs without the
 * row count as 0 and come first. */
static double ranked(
    const struct comparison *of, const struct entry *entry, enum side side, size_t rank)
{
    const struct numbers_of_runs *values = &entry->sides[side].values;
    const size_t without = of->side_runs[side] - values->count;
    return rank < without ? 0 : values->values[rank - without];
}

static size_t middle(const struct comparison *of, enum side side)
{
    return (of->side_runs[side] - 1) / 2;
}

struct entry_side entry_side(const struct comparison *of, const struct entry *entry, enum side side)
{
    const struct numbers_of_runs *values = &entry->sides[side].values;
    const double total = entry->sides[side].total, times = entry->sides[side].times;
    return (struct entry_side){
        .value = isnan(total) ? NAN : ranked(of, entry, side, middle(of, side)),
        .lowest = ranked(of, entry, side, 0),
        .highest = values->count ? values->values[values->count - 1] : 0,
        .times = times / of->side_runs[side],
        .mean = times > 0 ? total / times : NAN};
}

double entry_change(const struct comparison *of, const struct entry *entry)
{
    return entry_side(of, entry, AFTER).value - entry_side(of, entry, BEFORE).value;
}

struct device_run device_middle(
    const struct comparison *of, const struct device_times *device, enum side side)
{
    return device->sides[side][middle(of, side)];
}

/* The runs that each side needs for a sure verdict. With 4 runs a side, is_apart(by 1) is true by
 * chance once in 100 times; with 6, once in 300. */
enum { RUNS_ENOUGH = 4 };

/* Whether all runs of the slower side lie above those of the faster side, by more than `by` times
 * the faster side's spread. A disturbance makes a run longer, so the longest runs of the faster
 * side are left out: half as many as it has beyond RUNS_ENOUGH. */
static bool is_apart(const struct comparison *of, const struct entry *entry, double by)
{
    const enum side faster = entry_change(of, entry) > 0 ? BEFORE : AFTER,
                    slower = faster == BEFORE ? AFTER : BEFORE;
    const size_t runs = of->side_runs[faster],
                 disturbed = runs > RUNS_ENOUGH ? (runs - RUNS_ENOUGH) / 2 : 0;
    const double low = ranked(of, entry, faster, 0),
                 high = ranked(of, entry, faster, runs - 1 - disturbed);
    return ranked(of, entry, slower, 0) - high > by * (high - low);
}

enum verdict entry_verdict(const struct comparison *of, const struct entry *entry)
{
    /* a change below 1 % of the span is too small for anybody to notice */
    static const double span_share = 0.01;
    /* a GPU's clocks and memory make the same kernels differ by some percent */
    static const double row_share = 0.05;
    const double change = fabs(entry_change(of, entry));
    if (of->no_times && entry->subject->gpu) return VERDICT_SAME;
    const bool enough = of->side_runs[BEFORE] >= RUNS_ENOUGH && of->side_runs[AFTER] >= RUNS_ENOUGH;
    const size_t had = entry->sides[BEFORE].values.count, has = entry->sides[AFTER].values.count;
    const bool finding = entry->subject->list == LIST_FINDINGS,
               new = !had &&has == of->side_runs[AFTER], gone = !has &&had == of->side_runs[BEFORE];
    if (finding && !new && !gone) return VERDICT_SAME;
    if (isnan(change)) return finding ? VERDICT_CHANGED : VERDICT_SAME;
    if (change == 0 || change < span_share * of->span || !is_apart(of, entry, enough ? 1 : 0))
        return VERDICT_SAME;
    if (enough) return VERDICT_CHANGED;
    if (change <
        row_share * fmax(entry_side(of, entry, BEFORE).value, entry_side(of, entry, AFTER).value))
        return VERDICT_SAME;
    return entry->subject->steady || finding ? VERDICT_CHANGED : VERDICT_PERHAPS;
}
