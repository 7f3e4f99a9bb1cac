/* Prints a report made by hand, whose values are hard to print: tool_report FORM COLUMNS
 * [color|SECTION...], FORM being text, json or csv. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/report/report.h"

static const struct column run_columns[] = {
    {"program", "program", UNIT_TEXT, COLUMN_NAMES, 0},
    {"pid", "process", UNIT_COUNT, COLUMN_NAMES, 0},
    {"rank", "rank", UNIT_COUNT, 0, 0},
    {"source", "GPU times", UNIT_TEXT, 0, 0},
    {"wall_ns", "ran for", UNIT_NS, 0, 0},
    {"calls", "calls", UNIT_COUNT, 0, 0},
    {"works", "GPU work", UNIT_COUNT, 0, 0},
    {"threads", "threads", UNIT_COUNT, 0, 0},
    {"streams", "streams", UNIT_COUNT, 0, 0},
    {"unused_streams", "unused", UNIT_COUNT, 0, 0},
    {"whole", "whole", UNIT_TEXT, 0, 0},
};
static const struct column device_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"name", "name", UNIT_TEXT, 0, 0},
    {"span_ns", "span", UNIT_NS, 0, 0},
    {"busy", "busy", UNIT_SHARE, 0, 0},
    {"idle_ns", "idle", UNIT_NS, 0, 0},
    {"at_once", "at once", UNIT_COUNT, 0, 0},
    {"works", "work", UNIT_COUNT, 0, 0},
};
static const struct column steady_columns[] = {{"steady_ns", "steady part", UNIT_NS, 0, 0},
    {"kernel", "told by", UNIT_TEXT, 0, 0}, {"steps", "steps", UNIT_COUNT, 0, 0},
    {"step_ns", "a step", UNIT_NS, 0, 0}};
static const struct column computing_columns[] = {{"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"kernels_ns", "computed", UNIT_NS, 0, 0}, {"copies_ns", "only copied", UNIT_NS, 0, 0},
    {"nothing_ns", "did nothing", UNIT_NS, 0, 0}};
static const struct column finding_columns[] = {
    {"id", "finding", UNIT_TEXT, COLUMN_NAMES, 0},
    {"title", "title", UNIT_TEXT, 0, 0},
    {"stream", "stream", UNIT_TEXT, COLUMN_NAMES, 0},
    {"gain_low_ns", "gains", UNIT_NS, 0, 0},
    {"gain_high_ns", "at most", UNIT_NS, 0, 0},
    {"gain_step_ns", "of a step", UNIT_NS, 0, 0},
    {"times", "times", UNIT_COUNT, 0, 0},
    {"evidence", "seen", UNIT_TEXT, 0, 0},
    {"remedy", "to do", UNIT_TEXT, 0, 0},
    {"what_if", "experiment", UNIT_TEXT, 0, 0},
    {"page", "page", UNIT_TEXT, 0, 0},
};
static const struct column kernel_columns[] = {
    {"name", "kernel", UNIT_TEXT, COLUMN_NAMES, 0},
    {"times", "times", UNIT_COUNT, 0, 0},
    {"total_ns", "total", UNIT_NS, 0, 0},
    {"fills", "fills", UNIT_SHARE, 0, 0},
    {"bytes", "bytes", UNIT_BYTES, 0, 0},
    {"rate", "rate", UNIT_GBPS, 0, 0},
    {"nothing", "nothing", UNIT_COUNT, 0, 0},
};
static const struct column idle_columns[] = {{"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"why", "why", UNIT_TEXT, COLUMN_NAMES, 0}, {"share", "share", UNIT_SHARE, 0, 0}};
static const struct column host_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"thread", "thread", UNIT_TEXT, COLUMN_NAMES, 0},
    {"doing", "it was", UNIT_TEXT, COLUMN_NAMES, 0},
    {"call", "call", UNIT_TEXT, COLUMN_NAMES, 0},
    {"share", "share", UNIT_SHARE, 0, 0},
};
static const struct column empty_columns[] = {{"key", "key", UNIT_TEXT, COLUMN_NAMES, 0}};
#define COLUMNS(of) of, sizeof of / sizeof *of

static void add_run(struct report *report)
{
    struct cell *row = table_row(report_table(report, "run", "The run", COLUMNS(run_columns)));
    const double numbers[] = {0, 4242, NAN, 0, 12345678, 214, 203, 1, 3, 1};
    for (size_t c = 0; c < sizeof numbers / sizeof *numbers; c++) row[c].number = numbers[c];
    row[0].text = "app";
    row[3].text = "cupti";
    row[10].text = "the file is truncated";
    struct table *devices = report_table(report, "devices", "Devices", COLUMNS(device_columns));
    const double device[] = {0, 0, 10e6, 0.612, 3.88e6, 1.37, 203};
    row = table_row(devices);
    for (size_t c = 0; c < sizeof device / sizeof *device; c++) row[c].number = device[c];
    row[1].text = "NVIDIA H200";
    row = table_row(devices);
    row[0].number = 1;
    row[6].number = 0;
}

static void add_steady(struct report *report)
{
    struct cell *row =
        table_row(report_table(report, "steady", "The steady part", COLUMNS(steady_columns)));
    const double steady[] = {9876543, 0, 12, 823045};
    for (size_t c = 0; c < sizeof steady / sizeof *steady; c++) row[c].number = steady[c];
    row[1].text = "k";
    const double computing[] = {0, 5e6, 1e6, 3876543};
    row = table_row(report_table(report, "computing", "Computing", COLUMNS(computing_columns)));
    for (size_t c = 0; c < sizeof computing / sizeof *computing; c++) row[c].number = computing[c];
}

static void add_idle(struct report *report)
{
    struct table *idle = report_table(report, "idle", "Idle", COLUMNS(idle_columns));
    const struct {
        double device;
        const char *why;
        double share;
    } rows[] = {{0, "the host had not enqueued it", 0.8}, {1, "another GPU", 1},
        {0, "a wait for an event", 0.06}, {0, "too little to say", 0.04}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cell *row = table_row(idle);
        row[0].number = rows[i].device;
        row[1].text = rows[i].why;
        row[2].number = rows[i].share;
    }
    struct table *host = report_table(report, "idle_host", "Idle host", COLUMNS(host_columns));
    static const char *const texts[][3] = {{"main 4250", "own code", ""},
        {"main 4250", "blocked", "cuCtxSynchronize"}, {"loader 4251", "in a call", "cuMemAlloc_v2"},
        {"x", "y", ""}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct cell *row = table_row(host);
        for (size_t c = 0; c < 3; c++) row[c + 1].text = texts[i][c];
        row[0].number = 0;
        row[4].number = 0.2;
    }
}

static void add_findings(struct report *report)
{
    struct table *findings = report_table(
        report, "findings", "What to change, the most expensive first", COLUMNS(finding_columns));
    static const char *const texts[] = {"CS101",
        "Work on the default stream holds other streams back", "stream 7 (default)", "", "", "", "",
        "The kernel \"k\" on stream 13 was ready and waited for Memcpy HtoD on the legacy default "
        "stream, which nothing else asked for.",
        "Name a stream in the copy, or run with CUSTREAM_DEFAULT_STREAM=per-thread.", "no legacy",
        "docs/findings.md#cs101"};
    for (int i = 0; i < 2; i++) {
        struct cell *row = table_row(findings);
        for (size_t c = 0; c < sizeof texts / sizeof *texts; c++) row[c].text = texts[c];
        row[3].number = 1204567;
        row[4].number = 3204567;
        row[5].number = 267047;
        row[6].number = 12;
    }
    findings->note = "Gains do not add up.";
    findings->shown = 1;
}

static void add_kernel(struct table *kernels, const char *name, double times, double total,
    double fills, double bytes, double rate)
{
    struct cell *row = table_row(kernels);
    row[0].text = name;
    const double numbers[] = {times, total, fills, bytes, rate};
    for (size_t c = 0; c < sizeof numbers / sizeof *numbers; c++) row[c + 1].number = numbers[c];
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        printer *print;
    } forms[] = {{"text", print_text}, {"json", print_json}, {"csv", print_csv}};
    struct report report = {0};
    const struct model of = {.run.base = INT64_C(1760000000000000001)};
    if (argc < 3) return 2;
    add_run(&report);
    add_steady(&report);
    add_findings(&report);
    add_idle(&report);
    struct table *kernels = report_table(&report, "kernels", "Kernels", COLUMNS(kernel_columns));
    kernels->note = "The time of a kernel is from its begin to its end on the GPU.";
    kernels->shown = 4;
    add_kernel(kernels,
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
        "std::array<char*, 1ul>>(int)",
        1234567, 999.96e3, 1, 4096, 3350.5);
    add_kernel(kernels, "q\"uote, and \xe4\xb8\xad\xe6\x96\x87", 1.5, 999, 0.0001, 1023, 0);
    add_kernel(kernels, "bad \xff\x1b[31m\r\nUTF-8", 0, 1.5e11, 0, 1536, INFINITY);
    add_kernel(kernels, NULL, NAN, NAN, NAN, NAN, NAN);
    add_kernel(kernels, "not shown", 1, 1, 1, 1, 1);
    report_table(&report, "empty", "Empty", COLUMNS(empty_columns));
    const bool color = argc > 3 && !strcmp(argv[3], "color");
    const struct print print = {.report = &report,
        .of = &of,
        .files = (char *[]){(char[]){"t.json"}},
        .file_count = 1,
        .columns = atoi(argv[2]),
        .color = color,
        .sections = (const char *const *)argv + 3,
        .section_count = color ? 0 : argc - 3};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(argv[1], forms[i].name)) forms[i].print(stdout, &print);
    report_free(&report);
    return 0;
}
