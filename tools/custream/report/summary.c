/* A report's words: the first screen, and the lines about the run behind the findings. */
#include "shim/base/verdict.h"
#include "tools/custream/report/inside.h"

#include <limits.h>
#include <unistd.h>

/* The most devices that have a sentence of their own. */
enum { DEVICES_TOLD = 8 };
/* The least share of the run that something must take to be told. */
static const double LEAST_TOLD = 0.1;
/* A start that long is told, however small a share of the run it is. */
static const double LONG_NS = 1e9;

/* --- the first screen --- */

/* Tells what took half or more of the time before something, as columns before_* have it. */
static void spent_tell(struct line *line, const struct table *table, size_t row, double before)
{
    const double no_call = table_number(table, row, "before_no_call_ns"),
                 in_call = table_number(table, row, "before_call_ns"),
                 times = table_number(table, row, "before_call_times");
    if (no_call >= before / 2)
        line_add(line, "; for %s of that no thread was in a call that is recorded",
            SHOWN(UNIT_NS, no_call));
    else if (in_call >= before / 2)
        line_add(line, "; %s of that went to %.60s (%s time%s)", SHOWN(UNIT_NS, in_call),
            table_text(table, row, "before_call"), SHOWN(UNIT_COUNT, times), plural(times));
}

/* Tells how long the run and its steady part were, and the steps in it. */
static void length_tell(struct line *line, const struct report *report)
{
    const struct table *run = report_find(report, "run"), *steady = report_find(report, "steady");
    const char *program = table_text(run, 0, "program");
    const double rank = table_number(run, 0, "rank"), pid = table_number(run, 0, "pid"),
                 length = table_number(steady, 0, "steady_ns"),
                 steps = table_number(steady, 0, "steps");
    line_add(line, "%s (", *program ? program : "The program");
    if (!isnan(rank)) line_add(line, "rank %.0f, ", rank);
    if (isnan(pid)) line_add(line, "process not known");
    else line_add(line, "process %.0f", pid);
    line_add(line, ") ran for %s", SHOWN(UNIT_NS, table_number(run, 0, "wall_ns")));
    if (!isnan(length))
        line_add(line, "; its %s took %s",
            *table_text(steady, 0, "kernel") ? "steady part" : "GPU work, from its first call on,",
            SHOWN(UNIT_NS, length));
    if (!isnan(steps))
        line_add(line, ": %s steps of about %s", SHOWN(UNIT_COUNT, steps),
            SHOWN(UNIT_NS, table_number(steady, 0, "step_ns")));
    if (table_number(steady, 0, "range") > 0)
        line_add(line, " (range %.60s)", table_text(steady, 0, "step"));
    line_add(line, ".");
}

/* Tells how much of the steady part a device computed. */
static void computing_tell(struct line *line, const struct report *report, size_t row)
{
    static const char *const parts[][2] = {{"copies_ns", "only copied or set memory"},
        {"unknown_ns", "was inside of graphs or other work that is not known further"},
        {"gone_ns", "was not recorded"}, {"nothing_ns", "did nothing"}};
    const struct table *computing = report_find(report, "computing");
    const double all = table_number(report_find(report, "steady"), 0, "steady_ns"),
                 kernels = table_number(computing, row, "kernels_ns");
    line_add(line, "%sGPU %.0f computed for %s (%s)", row ? "" : "In that time ",
        table_number(computing, row, "device"), SHOWN(UNIT_SHARE, kernels / all),
        SHOWN(UNIT_NS, kernels));
    for (size_t i = 0; i < CS_COUNT(parts); i++) {
        const bool last = i + 1 == CS_COUNT(parts);
        const double ns = table_number(computing, row, parts[i][0]);
        if (ns > 0 || last)
            line_add(line, "%s %s for %s (%s)", last ? " and" : ",", parts[i][1],
                SHOWN(UNIT_SHARE, ns / all), SHOWN(UNIT_NS, ns));
    }
    line_add(line, ".");
    if (table_number(computing, row, "unknown_ns") >= LEAST_TOLD * all)
        line_add(line, " CUSTREAM_GRAPH=node records what is inside of graphs.");
}

/* Tells why nothing is known of the GPU. */
static void no_computing_tell(struct line *line, const struct table *run)
{
    const double sample = table_number(run, 0, "sample");
    if (sample > 0)
        line_add(line,
            "GPU times are those of one call in %.0f, so how much the GPU computed, why it was "
            "idle and most findings are not known.",
            sample);
    else if (!strcmp(table_text(run, 0, "source"), "none"))
        line_add(line, "No GPU times were taken, so nothing is known of what the GPU did.");
    else line_add(line, "The trace has no GPU work.");
}

/* Adds a gain: "about 3.205 ms, 10.2 % of the run, 320.5 us of each step". */
static void gain_tell(struct line *line, const struct report *report, size_t row)
{
    const struct table *findings = report_find(report, "findings");
    const double low = table_number(findings, row, "gain_low_ns"),
                 high = table_number(findings, row, "gain_high_ns"),
                 step = table_number(findings, row, "gain_step_ns"),
                 wall = table_number(report_find(report, "run"), 0, "wall_ns");
    if (isnan(high)) line_add(line, "not known");
    else if (low < 0.95 * high)
        line_add(line, "%s to %s", SHOWN(UNIT_NS, low), SHOWN(UNIT_NS, high));
    else line_add(line, "about %s", SHOWN(UNIT_NS, high));
    if (!isnan(high) && wall > 0)
        line_add(line, ", %s%s of the run", low < 0.95 * high ? "up to " : "",
            SHOWN(UNIT_SHARE, high / wall));
    if (!isnan(step)) line_add(line, ", %s of each step", SHOWN(UNIT_NS, step));
}

/* Tells what costs most, and what mending it wins. Findings come in the order of their gains. */
static void costs_tell(struct line *line, const struct report *report)
{
    const struct table *findings = report_find(report, "findings"),
                       *idle = report_find(report, "idle");
    const struct table *devices = report_find(report, "computing");
    bool full = false;
    for (size_t row = 0; findings && row < findings->row_count; row++) {
        const char *place = table_text(findings, row, "stream");
        if (strcmp(table_text(findings, row, "id"), "CS123") != 0) continue;
        line_add(line,
            full ? " %s's own work: %.200s." : "What costs most is %s's own work: %.200s.",
            devices->row_count > 1 ? place : "the GPU", table_text(findings, row, "evidence"));
        full = true;
    }
    if (full) return;
    if (table_number(findings, 0, "gain_high_ns") > 0) {
        line_add(line, "What costs most: %.200s (%.100s). Mending that wins ",
            table_text(findings, 0, "title"), table_text(findings, 0, "stream"));
        gain_tell(line, report, 0);
        line_add(line, ".");
    } else if (idle && idle->row_count)
        line_add(line,
            "No finding has a gain. Of its idle time, GPU %.0f had %s for this reason: %s.",
            table_number(idle, 0, "device"), SHOWN(UNIT_SHARE, table_number(idle, 0, "share")),
            table_text(idle, 0, "why"));
}

/* Tells where the time before the steady part went, if it is 10 % of the run, or long. */
static void start_tell(struct line *line, const struct report *report)
{
    const struct table *run = report_find(report, "run"), *steady = report_find(report, "steady");
    const double before = table_number(steady, 0, "begin_ns");
    if (!(before >= LONG_NS || before >= LEAST_TOLD * table_number(run, 0, "wall_ns"))) return;
    line_add(line, "Before its %s came %s",
        *table_text(steady, 0, "kernel") ? "steady part" : "GPU work", SHOWN(UNIT_NS, before));
    spent_tell(line, steady, 0, before);
    line_add(line, ".");
}

/* Tells what the trace lacks, as column "whole" has it. */
static void missing_tell(struct line *line, const struct table *run)
{
    const char *whole = table_text(run, 0, "whole");
    if (!*whole || !strcmp(whole, "yes")) return;
    if (!strcmp(whole, WHOLE_NOT_SAID))
        line_add(line, "Whether anything is missing, " WHOLE_NOT_SAID ".");
    else line_add(line, "Missing from the trace: %s.", whole);
}

bool first_line(const struct report *report, size_t number, char text[SUMMARY_MAX])
{
    const struct table *run = report_find(report, "run"),
                       *computing = report_find(report, "computing");
    const size_t devices = computing ? computing->row_count : 0,
                 told = devices < DEVICES_TOLD ? devices : DEVICES_TOLD;
    struct line line = {text, SUMMARY_MAX};
    *text = 0;
    if (!run || !run->row_count) return false;
    if (number == 0) length_tell(&line, report);
    else if (number <= told) computing_tell(&line, report, number - 1);
    else if (number == told + 1 && !devices) no_computing_tell(&line, run);
    else if (number == told + 1 && devices > told)
        line_add(&line, "There are %zu more GPUs: --section=computing.", devices - told);
    else if (number == told + 2) costs_tell(&line, report);
    else if (number == told + 3) start_tell(&line, report);
    else if (number == told + 4) missing_tell(&line, run);
    return number <= told + 4;
}

/* --- where to look next --- */

/* Writes the files' names as a shell takes them, seen from this folder. */
static void files_put(FILE *file, const struct print *print)
{
    char folder[PATH_MAX] = "", name[4 * PATH_MAX];
    if (!getcwd(folder, sizeof folder)) *folder = 0;
    for (int i = 0; i < print->file_count; i++) {
        cs_verdict_file(name, sizeof name, 0, cs_path_from(print->files[i], folder));
        fprintf(file, " %s", name);
    }
}

char *next_command(const struct print *print, size_t number, const char **what)
{
    const struct report *report = print->report;
    const struct table *findings = report_find(report, "findings");
    const bool piped = print->file_count == 1 && !strcmp(print->files[0], "-");
    const char *change = "", *id = table_text(findings, 0, "id");
    for (size_t row = 0; findings && row < findings->row_count && !*change; row++)
        change = table_text(findings, row, "what_if");
    const struct {
        bool applies, of_files;
        const char *command, *word, *what;
    } rows[] = {
        {*id, false, "custream explain ", id, "what that is, and how to mend it"},
        {*change, true, "custream report --critical-path", "", "what the run's time went to"},
        {*change, true, "custream report --what-if=", change, "what a change gains"},
        {true, true, "custream open", "", "the timeline, in a browser"},
    };
    for (size_t i = 0; i < CS_COUNT(rows); i++) {
        char *text = NULL;
        size_t size;
        if (!rows[i].applies || (rows[i].of_files && piped) || number--) continue;
        FILE *file = open_memstream(&text, &size);
        if (!file) out_of_memory();
        const char *quote = strchr(rows[i].word, ' ') ? "'" : "";
        fprintf(file, "%s%s%s%s", rows[i].command, quote, rows[i].word, quote);
        if (rows[i].of_files) files_put(file, print);
        if (fclose(file)) out_of_memory();
        *what = rows[i].what;
        return text;
    }
    return NULL;
}

/* --- the run, behind the findings --- */

static void run_tell(struct line *line, const struct table *run)
{
    const char *source = table_text(run, 0, "source");
    const double calls = table_number(run, 0, "calls"), threads = table_number(run, 0, "threads"),
                 streams = table_number(run, 0, "streams"),
                 unused = table_number(run, 0, "unused_streams"),
                 works = table_number(run, 0, "works");
    const bool times = works > 0 || strcmp(source, "none");
    line_add(line, "%s call%s on %s thread%s, ", SHOWN(UNIT_COUNT, calls), plural(calls),
        SHOWN(UNIT_COUNT, threads), plural(threads));
    if (times) line_add(line, "%s pieces of GPU work on ", SHOWN(UNIT_COUNT, works));
    line_add(line, "%s stream%s", SHOWN(UNIT_COUNT, streams), plural(streams));
    if (unused > 0) line_add(line, " (%s more without work)", SHOWN(UNIT_COUNT, unused));
    if (*source && times) line_add(line, "; GPU times from %s", source);
    line_add(line, ".");
}

/* Tells the time before a device's first work, if it is at least 10 % of the run. */
static bool before_tell(
    struct line *line, const struct table *run, const struct table *devices, size_t row)
{
    const double before = table_number(devices, row, "before_ns");
    if (!(before > 0 && before >= LEAST_TOLD * table_number(run, 0, "wall_ns"))) return false;
    line_add(line, " began its first work %s after the trace began", SHOWN(UNIT_NS, before));
    spent_tell(line, devices, row, before);
    line_add(line, ".");
    return true;
}

static void device_tell(struct line *line, const struct report *report, size_t row)
{
    const struct table *run = report_find(report, "run"), *devices = report_find(report, "devices");
    const char *name = table_text(devices, row, "name");
    const double at_once = table_number(devices, row, "at_once"),
                 after = table_number(devices, row, "after_ns");
    line_add(line, "GPU %.0f%s%s%s", table_number(devices, row, "device"), *name ? " (" : "", name,
        *name ? ")" : "");
    if (!(table_number(devices, row, "works") > 0)) {
        line_add(line, " did no work.");
        return;
    }
    const bool later = before_tell(line, run, devices, row);
    line_add(line, "%s had work for %s of %s", later ? " From then on it" : "",
        SHOWN(UNIT_SHARE, table_number(devices, row, "busy")),
        SHOWN(UNIT_NS, table_number(devices, row, "span_ns")));
    if (!isnan(at_once)) line_add(line, ", on %.2f streams at once", at_once);
    line_add(line, ".");
    if (after >= LEAST_TOLD * table_number(run, 0, "wall_ns"))
        line_add(line, " It did nothing in the last %s of the run.", SHOWN(UNIT_NS, after));
}

bool run_line(const struct report *report, size_t number, char text[SUMMARY_MAX])
{
    const struct table *run = report_find(report, "run"), *devices = report_find(report, "devices");
    const size_t all = devices ? devices->row_count : 0,
                 told = all < DEVICES_TOLD ? all : DEVICES_TOLD;
    struct line line = {text, SUMMARY_MAX};
    if (!run || !run->row_count || number > told) return false;
    if (number == 0) run_tell(&line, run);
    else device_tell(&line, report, number - 1);
    return true;
}

struct finding finding_at(const struct report *report, size_t row)
{
    const struct table *findings = report_find(report, "findings");
    struct finding finding = {.id = table_text(findings, row, "id"),
        .title = table_text(findings, row, "title"),
        .place = table_text(findings, row, "stream"),
        .evidence = table_text(findings, row, "evidence"),
        .remedy = table_text(findings, row, "remedy")};
    const double times = table_number(findings, row, "times");
    struct line line = {finding.gain, sizeof finding.gain};
    snprintf(finding.more, sizeof finding.more, "custream explain %s", finding.id);
    gain_tell(&line, report, row);
    if (times > 0) line_add(&line, " (%s time%s)", SHOWN(UNIT_COUNT, times), plural(times));
    return finding;
}

const char *findings_heading(const struct report *report)
{
    const struct table *findings = report_find(report, "findings");
    return findings->row_count || !findings->none ? findings->title : findings->none;
}

bool is_told(const struct table *table, bool page)
{
    static const char *const told[] = {"run", "steady", "computing", "findings", "devices",
        "metrics", "running", "running_streams", "running_threads"};
    enum { ON_THE_PAGE = 4 };
    for (size_t i = 0; i < (page ? ON_THE_PAGE : CS_COUNT(told)); i++)
        if (!strcmp(table->key, told[i])) return true;
    return false;
}
