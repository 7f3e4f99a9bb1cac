/* A report's first words: the tables "run", "devices" and "findings" in sentences. */
#include "tools/custream/report/inside.h"

/* The most devices that have a sentence of their own. */
enum { DEVICES_TOLD = 8 };
/* The part of the run, or of a device's busy time, from which on something is told. */
static const double LEAST_TOLD = 0.1;

static void run_tell(struct line *line, const struct table *run)
{
    const char *source = table_text(run, 0, "source"), *program = table_text(run, 0, "program");
    const double rank = table_number(run, 0, "rank"), pid = table_number(run, 0, "pid"),
                 calls = table_number(run, 0, "calls"), threads = table_number(run, 0, "threads"),
                 streams = table_number(run, 0, "streams"),
                 unused = table_number(run, 0, "unused_streams"),
                 works = table_number(run, 0, "works"), sample = table_number(run, 0, "sample");
    const bool times = works > 0 || strcmp(source, "none");
    line_add(line, "%s (", *program ? program : "The program");
    if (!isnan(rank)) line_add(line, "rank %.0f, ", rank);
    if (isnan(pid)) line_add(line, "process not known");
    else line_add(line, "process %.0f", pid);
    line_add(line, ") ran for %s: %s call%s on %s thread%s, ",
        SHOWN(UNIT_NS, table_number(run, 0, "wall_ns")), SHOWN(UNIT_COUNT, calls), plural(calls),
        SHOWN(UNIT_COUNT, threads), plural(threads));
    if (times) line_add(line, "%s pieces of GPU work on ", SHOWN(UNIT_COUNT, works));
    line_add(line, "%s stream%s", SHOWN(UNIT_COUNT, streams), plural(streams));
    if (unused > 0) line_add(line, " (%s more without work)", SHOWN(UNIT_COUNT, unused));
    if (*source && times) line_add(line, "; GPU times from %s", source);
    if (sample > 0)
        line_add(line,
            ", of one call in %.0f: busy and idle time, overlap and most findings need those of "
            "all, and are absent",
            sample);
    line_add(line, ".");
}

/* Tells where most of a device's idle time went, from the rows of a table with their shares of that
 * time. `put` writes what a row is about. */
static void shares_tell(struct line *line, const char *before, const struct table *table,
    double device, void (*put)(struct line *, const struct table *, size_t row))
{
    enum { MOST = 3 };
    const double least = 0.05;
    int told = 0;
    for (size_t row = 0; table && row < table->row_count && told < MOST; row++) {
        const double share = table_number(table, row, "share");
        if (table_number(table, row, "device") != device || !(share >= least)) continue;
        line_add(line, "%s", told++ ? ", " : before);
        put(line, table, row);
        line_add(line, " (%s)", SHOWN(UNIT_SHARE, share));
    }
    if (told) line_add(line, ".");
}

static void cause_put(struct line *line, const struct table *idle, size_t row)
{
    line_add(line, "%.100s", table_text(idle, row, "why"));
}

/* Names what the host did: "own code on thread main 4250", "blocked in cuCtxSynchronize on ...". */
static void doing_put(struct line *line, const struct table *idle_host, size_t row)
{
    const char *call = table_text(idle_host, row, "call"),
               *doing = table_text(idle_host, row, "doing"),
               *thread = table_text(idle_host, row, "thread"),
               *range = table_text(idle_host, row, "range");
    if (*call)
        line_add(line, "%s %.60s on thread %.60s", strcmp(doing, "blocked") ? "in" : "blocked in",
            call, thread);
    else line_add(line, "%s on thread %.60s", doing, thread);
    if (*range) line_add(line, " in range %.60s", range);
}

/* Tells the time before a device's first work, if it is at least 10 % of the run. */
static bool before_tell(
    struct line *line, const struct table *run, const struct table *devices, size_t row)
{
    const double before = table_number(devices, row, "before_ns"),
                 no_call = table_number(devices, row, "before_no_call_ns"),
                 in_call = table_number(devices, row, "before_call_ns"),
                 times = table_number(devices, row, "before_call_times");
    if (!(before > 0 && before >= LEAST_TOLD * table_number(run, 0, "wall_ns"))) return false;
    line_add(line, " began its first work %s after the trace began", SHOWN(UNIT_NS, before));
    if (no_call >= before / 2)
        line_add(line, "; for %s of that no thread was in a call that is recorded",
            SHOWN(UNIT_NS, no_call));
    else if (in_call >= before / 2)
        line_add(line, "; %s of that went to %.60s (%s time%s)", SHOWN(UNIT_NS, in_call),
            table_text(devices, row, "before_call"), SHOWN(UNIT_COUNT, times), plural(times));
    line_add(line, ".");
    return true;
}

static void device_tell(
    struct line *line, const struct report *report, const struct table *devices, size_t row)
{
    const char *name = table_text(devices, row, "name");
    const double at_once = table_number(devices, row, "at_once"),
                 device = table_number(devices, row, "device");
    line_add(line, "GPU %.0f%s%s%s", device, *name ? " (" : "", name, *name ? ")" : "");
    if (!(table_number(devices, row, "works") > 0)) {
        line_add(line, " did no work.");
        return;
    }
    const bool later = before_tell(line, report_find(report, "run"), devices, row);
    line_add(line, "%s was busy for %s of %s and idle for %s", later ? " From then on it" : "",
        SHOWN(UNIT_SHARE, table_number(devices, row, "busy")),
        SHOWN(UNIT_NS, table_number(devices, row, "span_ns")),
        SHOWN(UNIT_NS, table_number(devices, row, "idle_ns")));
    if (!isnan(at_once)) line_add(line, "; while busy it worked on %.2f streams at once", at_once);
    line_add(line, ".");
    const double busy = table_number(devices, row, "busy_ns"),
                 graphs = table_number(devices, row, "graphs_ns"),
                 after = table_number(devices, row, "after_ns"),
                 wall = table_number(report_find(report, "run"), 0, "wall_ns");
    if (graphs >= LEAST_TOLD * busy)
        line_add(line,
            " For %s of that it was inside of graphs; what ran there is not in the trace "
            "(CUSTREAM_GRAPH=node).",
            SHOWN(UNIT_NS, graphs));
    if (after >= LEAST_TOLD * wall)
        line_add(line, " It did nothing in the last %s of the run.", SHOWN(UNIT_NS, after));
    shares_tell(line, " Why it was idle: ", report_find(report, "idle"), device, cause_put);
    shares_tell(
        line, " What the host did then: ", report_find(report, "idle_host"), device, doing_put);
}

bool summary_line(const struct report *report, size_t number, char text[SUMMARY_MAX])
{
    const struct table *run = report_find(report, "run"), *devices = report_find(report, "devices");
    const size_t runs = run && run->row_count, all = devices ? devices->row_count : 0,
                 told = all < DEVICES_TOLD ? all : DEVICES_TOLD;
    struct line line = {text, SUMMARY_MAX};
    if (number < runs) run_tell(&line, run);
    else if (number - runs < told) device_tell(&line, report, devices, number - runs);
    else if (number == runs + told && all > told)
        line_add(&line, "There are %zu more GPUs: --section=devices.", all - told);
    else { /* what the trace lacks */ const char *whole = table_text(run, 0, "whole");
        if (number != runs + told + (all > told) || !*whole || !strcmp(whole, "yes")) return false;
        if (!strcmp(whole, WHOLE_NOT_SAID))
            line_add(&line, "Whether anything is missing, " WHOLE_NOT_SAID ".");
        else line_add(&line, "Missing from the trace: %s.", whole);
    }
    return true;
}

struct finding finding_at(const struct report *report, size_t row)
{
    const struct table *findings = report_find(report, "findings");
    struct finding finding = {.id = table_text(findings, row, "id"),
        .title = table_text(findings, row, "title"),
        .place = table_text(findings, row, "stream"),
        .evidence = table_text(findings, row, "evidence"),
        .remedy = table_text(findings, row, "remedy"),
        .page = table_text(findings, row, "page")};
    const double low = table_number(findings, row, "gain_low_ns"),
                 high = table_number(findings, row, "gain_high_ns"),
                 times = table_number(findings, row, "times"),
                 wall = table_number(report_find(report, "run"), 0, "wall_ns");
    struct line line = {finding.gain, sizeof finding.gain};
    if (isnan(high)) line_add(&line, "not known");
    else if (low < 0.95 * high)
        line_add(&line, "%s to %s", SHOWN(UNIT_NS, low), SHOWN(UNIT_NS, high));
    else line_add(&line, "about %s", SHOWN(UNIT_NS, high));
    if (!isnan(high) && wall > 0)
        line_add(&line, ", %s of the run", SHOWN(UNIT_SHARE, high / wall));
    if (times > 0) line_add(&line, " (%s time%s)", SHOWN(UNIT_COUNT, times), plural(times));
    return finding;
}

const char *findings_heading(const struct report *report)
{
    const struct table *findings = report_find(report, "findings");
    return findings->row_count || !findings->none ? findings->title : findings->none;
}

bool is_told(const struct table *table)
{
    return ONE_OF(table->key, "run", "devices", "findings", "metrics", "running", "running_streams",
        "running_threads");
}
