/* Prints a comparison for a terminal, and as JSON. */
#include <locale.h>
#include <math.h>

#include "shim/base/append.h"
#include "tools/custream/diff/diff.h"
#include "tools/custream/command.h"

/* --- words --- */

enum { SENTENCE_MAX = 1024 };

static void side_put(
    FILE *file, const struct print *print, const struct table *runs, enum side side)
{
    char line[SENTENCE_MAX];
    const char *title = side == BEFORE ? "Before" : "After";
    size_t count = 0, first = 0;
    for (size_t row = runs->row_count; row--;)
        if (!strcmp(table_text(runs, row, "side"), side_name[side])) count++, first = row;
    const char *program = table_text(runs, first, "program");
    const double pid = table_number(runs, first, "pid");
    if (count == 1 && !isnan(pid))
        snprintf(line, sizeof line, "%s: %s (process %.0f).", title, program, pid);
    else if (count == 1) snprintf(line, sizeof line, "%s: %s (process not known).", title, program);
    else
        snprintf(line, sizeof line, "%s: %zu runs of %s; times are those of the middle one.", title,
            count, program);
    text_put_wrapped(file, line, print->columns, 0, 0);
    for (size_t row = 0; row < runs->row_count; row++) {
        const char *whole = table_text(runs, row, "whole");
        if (strcmp(table_text(runs, row, "side"), side_name[side]) || !*whole ||
            !strcmp(whole, "yes"))
            continue;
        if (!strcmp(whole, WHOLE_NOT_SAID)) continue;
        snprintf(line, sizeof line, "Missing from the trace of run %.0f %s: %s.",
            table_number(runs, row, "run"), side_name[side], whole);
        text_put_wrapped(file, line, print->columns, 0, 0);
    }
}

/* How long the runs of a side took, in ns. */
struct walls {
    double least, middle, most;
};

COMPARES(by_number, double, ORDER(*a, *b))

static struct walls walls_of(const struct table *runs, enum side side)
{
    double *walls = array_zeros(runs->row_count + 1, sizeof *walls);
    size_t count = 0;
    for (size_t row = 0; row < runs->row_count; row++)
        if (!strcmp(table_text(runs, row, "side"), side_name[side]))
            walls[count++] = table_number(runs, row, "wall_ns");
    qsort(walls, count, sizeof *walls, by_number);
    const struct walls found = {walls[0], walls[count / 2], walls[count ? count - 1 : 0]};
    free(walls);
    return found;
}

/* Says how much faster or slower the program is, and what a finding that is gone or new is worth.
 * False: nothing is said, as not every run of one side is at least 1.1 times as long as every run
 * of the other. */
static bool speed_put(FILE *file, const struct print *print, const struct table *runs)
{
    const double much = 1.1;
    const struct walls before = walls_of(runs, BEFORE), after = walls_of(runs, AFTER);
    const bool faster = after.most * much < before.least, slower = before.most * much < after.least;
    const struct table *findings = report_find(print->report, "findings");
    char line[SENTENCE_MAX], shown[2][SHOWN_MAX];
    if (!faster && !slower) return false;
    size_t n = cs_append(line, sizeof line, 0, "After took %s, Before %s: %.2f times as %s.",
        value_show(shown[0], UNIT_NS, after.middle), value_show(shown[1], UNIT_NS, before.middle),
        faster ? before.middle / after.middle : after.middle / before.middle,
        faster ? "fast" : "long");
    for (size_t row = 0; findings && row < findings->row_count; row++) {
        const bool is_gone = !strcmp(table_text(findings, row, "state"), "gone");
        const double gain = table_number(findings, row, "gain_high_ns");
        if (is_gone != faster || isnan(gain)) continue;
        cs_append(line, sizeof line, n, " %s is %s (%s), alone worth %s.", is_gone ? "Gone" : "New",
            table_text(findings, row, "id"), table_text(findings, row, "title"),
            value_show(shown[0], UNIT_NS, gain));
        break;
    }
    text_put_wrapped(file, line, print->columns, 0, 0);
    return true;
}

/* Says on which machines the two sides ran, if these differ. */
static void machines_put(FILE *file, const struct print *print, const struct table *runs)
{
    static const char *const keys[][2] = {{"host", "hosts"}, {"gpu", "GPUs"}};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const char *one = "", *other = "";
        for (size_t row = 0; row < runs->row_count; row++) {
            const char *name = table_text(runs, row, keys[k][0]);
            if (!*one) one = name;
            if (*name && strcmp(name, one) != 0) other = name;
        }
        char line[SENTENCE_MAX];
        snprintf(line, sizeof line, "The runs are of different %s: %.100s and %.100s.", keys[k][1],
            one, other);
        if (*other) text_put_wrapped(file, line, print->columns, 0, 0);
    }
}

/* A unit for times. All are rounded to its thousandths, so that shown busy and idle times add
 * up. */
struct scale {
    const char *unit;
    double ns; /* nanoseconds in a thousandth of the unit */
};

struct times {
    long long before, after; /* in thousandths */
};

static struct times times_of(const struct table *devices, size_t row, const char *before,
    const char *after, const struct scale *scale)
{
    return (struct times){llround(table_number(devices, row, before) / scale->ns),
        llround(table_number(devices, row, after) / scale->ns)};
}

static size_t times_show(
    char *out, size_t size, size_t at, const struct times *times, const char *unit)
{
    const double before = (double)times->before / 1e3, after = (double)times->after / 1e3,
                 change = (double)(times->after - times->before) / 1e3;
    return cs_append(out, size, at, "%.3f -> %.3f %s (%+.3f %s", before, after, unit, change, unit);
}

static void device_put(
    FILE *file, const struct print *print, const struct table *devices, size_t row)
{
    const double longest = fmax(
        table_number(devices, row, "before_span_ns"), table_number(devices, row, "after_span_ns"));
    const struct scale scale = longest >= 1e9   ? (struct scale){"s", 1e6}
                               : longest >= 1e6 ? (struct scale){"ms", 1e3}
                                                : (struct scale){"us", 1};
    const struct times span = times_of(devices, row, "before_span_ns", "after_span_ns", &scale);
    const struct times busy = times_of(devices, row, "before_busy_ns", "after_busy_ns", &scale);
    const struct times idle = {span.before - busy.before, span.after - busy.after};
    const double share = table_number(devices, row, "span_change");
    const char *name = table_text(devices, row, "name");
    char line[SENTENCE_MAX], shown[SHOWN_MAX];
    size_t n = cs_append(line, sizeof line / 2, 0,
        "GPU %.0f%s%.200s%s: ", table_number(devices, row, "device"), *name ? " (" : "", name,
        *name ? ")" : "");
    n = times_show(line, sizeof line, n, &span, scale.unit);
    if (!isnan(share))
        n = cs_append(line, sizeof line, n, ", %s", value_show(shown, UNIT_CHANGE_SHARE, share));
    n = cs_append(line, sizeof line, n, "); of it busy ");
    n = times_show(line, sizeof line, n, &busy, scale.unit);
    n = cs_append(line, sizeof line, n, "), idle ");
    n = times_show(line, sizeof line, n, &idle, scale.unit);
    cs_append(line, sizeof line, n, ").");
    text_put_wrapped(file, line, print->columns, 0, 0);
}

/* --- tables --- */

enum { COLUMNS_MAX = 16 };

/* Puts a table's columns `keys` (ends with NULL), as a terminal's line has no room for all. */
static void part_put(
    FILE *file, const struct print *print, const struct table *table, const char *const *keys)
{
    struct column columns[COLUMNS_MAX];
    size_t from[COLUMNS_MAX], count = 0;
    struct report report = {0};
    for (; *keys; keys++)
        for (size_t c = 0; c < table->column_count; c++)
            if (!strcmp(table->columns[c].key, *keys))
                from[count] = c, columns[count++] = table->columns[c];
    struct table *part = report_table(&report, table->key, table->title, columns, count);
    part->note = table->note;
    part->shown = table->shown;
    for (size_t row = 0; row < table->row_count; row++) {
        struct cell *cells = table_row(part);
        for (size_t c = 0; c < count; c++)
            cells[c] = table->cells[row * table->column_count + from[c]];
    }
    if (part->row_count) text_table_put(file, print, part);
    report_free(&report);
}

static void changes_put(FILE *file, const struct print *print, const char *key)
{
    static const char *const of_one[] = {"device", "what", "name", "change_ns", "before_ns",
        "after_ns", "before_times", "after_times", "before_mean_ns", "after_mean_ns", "mostly",
        NULL};
    static const char *const of_several[] = {"device", "what", "name", "change_ns", "before_ns",
        "before_lowest_ns", "before_highest_ns", "after_ns", "after_lowest_ns", "after_highest_ns",
        "mostly", NULL};
    const struct table *table = report_find(print->report, key);
    const bool several = report_find(print->report, "runs")->row_count > SIDES,
               one_device = report_find(print->report, "devices")->row_count < 2;
    part_put(file, print, table, (several ? of_several : of_one) + one_device);
}

void print_diff_text(FILE *file, const struct print *print)
{
    static const char *const of_finding[] = {
        "state", "id", "title", "stream", "gain_high_ns", "times", NULL};
    const struct report *report = print->report;
    const struct table *runs = report_find(report, "runs"),
                       *devices = report_find(report, "devices"),
                       *changed = report_find(report, "changed");
    setlocale(LC_CTYPE, "C.UTF-8"); /* wcwidth() needs it for characters outside ASCII */
    const bool speed = speed_put(file, print, runs);
    for (int side = 0; side < SIDES; side++) side_put(file, print, runs, (enum side)side);
    machines_put(file, print, runs);
    for (size_t row = 0; row < devices->row_count; row++) device_put(file, print, devices, row);
    if (!devices->row_count)
        text_put_wrapped(file, "GPU work is not compared: not every run has some in its trace.",
            print->columns, 0, 0);
    if (!changed->row_count)
        text_heading_put(file, print,
            speed                                       ? "What else changed is not certain."
            : report_find(report, "perhaps")->row_count ? "Nothing is certain to have changed."
                                                        : "Nothing changed.");
    changes_put(file, print, "changed");
    changes_put(file, print, "follows");
    changes_put(file, print, "perhaps");
    part_put(file, print, report_find(report, "findings"), of_finding);
}

void print_diff_json(FILE *file, const struct print *print)
{
    fprintf(file,
        "{\"custream_diff\":%d,\"tool\":\"custream " CUSTREAM_VERSION_STRING "\",\"tables\":{\n",
        DIFF_VERSION);
    json_tables_put(file, print->report);
    fputs("}}\n", file);
}
