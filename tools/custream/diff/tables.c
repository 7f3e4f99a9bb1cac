#include "tools/custream/diff/diff.h"

#include <math.h>

#include "tools/custream/command.h"

static const struct column run_columns[] = {
    {"side", "side", UNIT_TEXT, COLUMN_NAMES, 0},
    {"run", "run", UNIT_COUNT, COLUMN_NAMES, 0},
    {"program", "program", UNIT_TEXT, 0, 0},
    {"pid", "process", UNIT_COUNT, 0, 0},
    {"files", "files", UNIT_COUNT, 0, 0},
    {"wall_ns", "duration", UNIT_NS, 0, 0},
    {"whole", "whole", UNIT_TEXT, 0, 0},
    {"host", "host", UNIT_TEXT, 0, 0},
    {"gpu", "GPU", UNIT_TEXT, 0, 0},
};

static const struct column device_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"name", "name", UNIT_TEXT, 0, 0},
    {"before_span_ns", "before", UNIT_NS, 0, 0},
    {"after_span_ns", "after", UNIT_NS, 0, 0},
    {"span_change_ns", "change", UNIT_CHANGE_NS, 0, 0},
    {"span_change", "change", UNIT_CHANGE_SHARE, 0, 0},
    {"before_busy_ns", "busy before", UNIT_NS, 0, 0},
    {"after_busy_ns", "busy after", UNIT_NS, 0, 0},
    {"busy_change_ns", "change", UNIT_CHANGE_NS, 0, 0},
    {"before_idle_ns", "idle before", UNIT_NS, 0, 0},
    {"after_idle_ns", "idle after", UNIT_NS, 0, 0},
    {"idle_change_ns", "change", UNIT_CHANGE_NS, 0, 0},
    {"before_lowest_ns", "lowest before", UNIT_NS, 0, 0},
    {"before_highest_ns", "highest before", UNIT_NS, 0, 0},
    {"after_lowest_ns", "lowest after", UNIT_NS, 0, 0},
    {"after_highest_ns", "highest after", UNIT_NS, 0, 0},
};

static const struct column change_columns[] = {
    {"what", "what", UNIT_TEXT, COLUMN_NAMES, 0},
    {"name", "name", UNIT_TEXT, COLUMN_NAMES, 0},
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"state", "state", UNIT_TEXT, 0, 0},
    {"change_ns", "change", UNIT_CHANGE_NS, 0, 0},
    {"change", "change", UNIT_CHANGE_SHARE, 0, 0},
    {"before_ns", "before", UNIT_NS, 0, 0},
    {"after_ns", "after", UNIT_NS, 0, 0},
    {"before_times", "times before", UNIT_COUNT, 0, 0},
    {"after_times", "times after", UNIT_COUNT, 0, 0},
    {"before_mean_ns", "mean before", UNIT_NS, 0, 0},
    {"after_mean_ns", "mean after", UNIT_NS, 0, 0},
    {"before_lowest_ns", "lowest before", UNIT_NS, 0, 0},
    {"before_highest_ns", "highest before", UNIT_NS, 0, 0},
    {"after_lowest_ns", "lowest after", UNIT_NS, 0, 0},
    {"after_highest_ns", "highest after", UNIT_NS, 0, 0},
    {"mostly", "mostly", UNIT_TEXT, COLUMN_BELOW, 0},
};

static const struct column finding_columns[] = {
    {"id", "finding", UNIT_TEXT, COLUMN_NAMES, 0},
    {"stream", "where", UNIT_TEXT, COLUMN_NAMES, 0},
    {"state", "state", UNIT_TEXT, 0, 0},
    {"title", "title", UNIT_TEXT, 0, 0},
    {"gain_high_ns", "gain", UNIT_NS, 0, 0},
    {"times", "times", UNIT_COUNT, 0, 0},
    {"evidence", "evidence", UNIT_TEXT, 0, 0},
    {"remedy", "remedy", UNIT_TEXT, 0, 0},
    {"page", "page", UNIT_TEXT, 0, 0},
};

static const struct column metric_columns[] = {
    {"key", "metric", UNIT_TEXT, COLUMN_NAMES, 0},
    {"unit", "unit", UNIT_TEXT, 0, 0},
    {"before", "before", UNIT_COUNT, 0, 0},
    {"after", "after", UNIT_COUNT, 0, 0},
};

static double share(double part, double whole) { return whole > 0 ? part / whole : NAN; }

/* --- what was compared --- */

static void runs_table(struct report *report, const struct comparison *of)
{
    struct table *table = TABLE_NEW(report, "runs", "The runs", run_columns);
    unsigned number[SIDES] = {0};
    for (size_t r = 0; r < of->run_count; r++) {
        const struct ran *ran = &of->runs[r];
        TABLE_PUT(table, run_columns, CELL(side_name[ran->side]), CELL(++number[ran->side]),
            CELL(comparison_text(of, ran->program)), CELL(ran->pid), CELL(ran->files),
            CELL(ran->wall), CELL(comparison_text(of, ran->whole)),
            CELL(comparison_text(of, ran->host)), CELL(comparison_text(of, ran->gpu)));
    }
}

static void devices_table(struct report *report, const struct comparison *of)
{
    struct table *table = TABLE_NEW(report, "devices", "The GPUs", device_columns);
    for (size_t d = 0; d < of->device_count && !of->no_times; d++) {
        const struct device_times *device = &of->devices[d];
        const struct device_run before = device_middle(of, device, BEFORE),
                                after = device_middle(of, device, AFTER);
        const double change = after.span - before.span, busy_change = after.busy - before.busy;
        const size_t last[SIDES] = {device->counts[BEFORE] - 1, device->counts[AFTER] - 1};
        TABLE_PUT(table, device_columns, CELL(device->ordinal),
            CELL(comparison_text(of, device->name)), CELL(before.span), CELL(after.span),
            CELL(change), CELL(share(change, before.span)), CELL(before.busy), CELL(after.busy),
            CELL(busy_change), CELL(before.span - before.busy), CELL(after.span - after.busy),
            CELL(change - busy_change), CELL(device->sides[BEFORE][0].span),
            CELL(device->sides[BEFORE][last[BEFORE]].span), CELL(device->sides[AFTER][0].span),
            CELL(device->sides[AFTER][last[AFTER]].span));
    }
}

/* --- what is different --- */

struct ranked {
    const struct entry *entry;
    double weight; /* larger weights come first */
};

/* Equal weights are in the order of the reports. */
COMPARES(heavier_first, struct ranked, ORDER(b->weight, a->weight) ?: ORDER(a->entry, b->entry))

/* Entries in the order of the output. */
struct ranking {
    struct ranked *rows;
    size_t count, capacity;
};

/* Adds the entries of a list that have that verdict, the largest change first. */
static void ranking_add(
    struct ranking *ranking, const struct comparison *of, enum list list, enum verdict verdict)
{
    const size_t first = ranking->count;
    for (size_t e = 0; e < of->entry_count; e++) {
        const struct entry *entry = &of->entries[e];
        if (entry->subject->list != list || entry_verdict(of, entry) != verdict) continue;
        const double change = entry_change(of, entry);
        array_add(ranking->rows, ranking->count, ranking->capacity,
            (struct ranked){entry, isnan(change) ? -1 : fabs(change)});
    }
    if (ranking->count > first)
        qsort(ranking->rows + first, ranking->count - first, sizeof *ranking->rows, heavier_first);
}

/* For an entry of idle time by the host: returns the host's activity that explains most of the
 * change. NULL: no activity does, or the entry is of another kind. */
static const char *mostly_of(
    struct report *report, const struct comparison *of, const struct entry *entry)
{
    const struct entry *most = NULL;
    const double all = entry_change(of, entry);
    char shown[SHOWN_MAX];
    if (strcmp(entry->subject->table, "idle") ||
        strcmp(comparison_text(of, entry->label), cause_info[CAUSE_HOST].title))
        return NULL;
    for (size_t e = 0; e < of->entry_count; e++) {
        const struct entry *part = &of->entries[e];
        if (part->subject->list != LIST_HOST || part->device != entry->device ||
            entry_change(of, part) * all <= 0)
            continue;
        if (!most || fabs(entry_change(of, part)) > fabs(entry_change(of, most))) most = part;
    }
    if (!most) return NULL;
    return report_text(report, "%s (%s)", comparison_text(of, most->label),
        value_show(shown, UNIT_CHANGE_NS, entry_change(of, most)));
}

static const char *state_of(const struct entry *entry)
{
    if (!entry->sides[BEFORE].values.count) return "new";
    return entry->sides[AFTER].values.count ? NULL : "gone";
}

static struct table *changes_table(struct report *report, const struct comparison *of,
    const struct ranking *ranking, const char *key, const char *title)
{
    struct table *table = TABLE_NEW(report, key, title, change_columns);
    for (size_t i = 0; i < ranking->count; i++) {
        const struct entry *entry = ranking->rows[i].entry;
        const struct entry_side before = entry_side(of, entry, BEFORE),
                                after = entry_side(of, entry, AFTER);
        const double change = after.value - before.value;
        TABLE_PUT(table, change_columns, CELL(entry->subject->what),
            CELL(comparison_text(of, entry->label)), CELL(entry->device), CELL(state_of(entry)),
            CELL(change), CELL(share(change, before.value)), CELL(before.value), CELL(after.value),
            CELL(before.times), CELL(after.times), CELL(before.mean), CELL(after.mean),
            CELL(before.lowest), CELL(before.highest), CELL(after.lowest), CELL(after.highest),
            CELL(mostly_of(report, of, entry)));
    }
    table->shown = 20;
    return table;
}

static void differences(struct report *report, const struct comparison *of)
{
    struct ranking changed = {0}, perhaps = {0}, follows = {0};
    ranking_add(&changed, of, LIST_CHANGED, VERDICT_CHANGED);
    ranking_add(&follows, of, LIST_FOLLOWS, VERDICT_CHANGED);
    ranking_add(&perhaps, of, LIST_CHANGED, VERDICT_PERHAPS);
    ranking_add(&perhaps, of, LIST_FOLLOWS, VERDICT_PERHAPS);
    changes_table(report, of, &changed, "changed", "What changed");
    changes_table(report, of, &follows, "follows", "What follows from it");
    struct table *table = changes_table(report, of, &perhaps, "perhaps", "What may have changed");
    table->note = "Times of the host differ from run to run. Four or more runs on each side, made "
                  "by turns, tell this from chance.";
    free_all(changed.rows, follows.rows, perhaps.rows);
}

static void findings_table(struct report *report, const struct comparison *of)
{
    struct table *table =
        TABLE_NEW(report, "findings", "Findings that are new or gone", finding_columns);
    struct ranking ranking = {0};
    ranking_add(&ranking, of, LIST_FINDINGS, VERDICT_CHANGED);
    for (size_t i = 0; i < ranking.count; i++) {
        const struct entry *entry = ranking.rows[i].entry;
        const enum side side = entry->sides[AFTER].values.count ? AFTER : BEFORE;
        TABLE_PUT(table, finding_columns, CELL(comparison_text(of, entry->id)),
            CELL(comparison_text(of, entry->place)), CELL(state_of(entry)),
            CELL(comparison_text(of, entry->title)), CELL(entry_side(of, entry, side).value),
            CELL(entry_side(of, entry, side).times), CELL(comparison_text(of, entry->evidence)),
            CELL(comparison_text(of, entry->remedy)), CELL(comparison_text(of, entry->page)));
    }
    table->shown = 20;
    free(ranking.rows);
}

void diff_tables(struct report *report, const struct comparison *of)
{
    runs_table(report, of);
    devices_table(report, of);
    differences(report, of);
    findings_table(report, of);
    struct table *metrics = TABLE_NEW(report, "metrics", "Metrics", metric_columns);
    const struct table *before = report_find(&of->reports[BEFORE], "metrics"),
                       *after = report_find(&of->reports[AFTER], "metrics");
    for (size_t row = 0; row < before->row_count; row++)
        TABLE_PUT(metrics, metric_columns, CELL(table_text(before, row, "key")),
            CELL(table_text(before, row, "unit")), CELL(table_number(before, row, "value")),
            CELL(table_number(after, row, "value")));
}
