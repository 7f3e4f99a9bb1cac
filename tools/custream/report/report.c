/*
 * custream report: reads the files of one run, has each section say what it found, and prints that. Options are judged before any file is read.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/custream/command.h"
#include "tools/custream/report/fail_if.h"
#include "tools/custream/report/metrics.h"
#include "tools/custream/report/print.h"
#include "tools/custream/report/show.h"

enum { COLUMNS_DEFAULT = 100, COLUMNS_MIN = 20, COLUMNS_MAX = 10000 };

/* The forms of a report. Text is what standard output gets unless another form takes it. */
enum form { FORM_TEXT, FORM_JSON, FORM_CSV, FORM_HTML, FORMS };
static printer *const printers[FORMS] = {print_text, print_json, print_csv, print_html};

/* What was asked for. */
struct request {
    const char *to[FORMS]; /* NULL: not wanted; "-": standard output */
    struct condition *conditions;
    size_t condition_count, condition_capacity;
    const char **sections;
    size_t section_count, section_capacity;
    bool no_color;
    char **files;
    int file_count;
};

static int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int complain(const char *format, ...)
{
    char line[CONDITION_MAX * 2];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fputs("custream report: ", stderr);
    text_put(stderr, line);
    fputc('\n', stderr);
    return STATUS_UNUSABLE;
}

/* --- options --- */

static int form_add(struct request *request, enum form form, const char *to)
{
    static const char *const names[FORMS] = {"text", "--json", "--csv", "--html"};
    if (!to) to = "-";
    if (!*to) return complain("%s= needs the name of a file", names[form]);
    request->to[form] = to;
    for (int other = 0; other < FORMS; other++)
        if (other != (int)form && request->to[other] && !strcmp(to, request->to[other]))
            return complain("%s and %s cannot both go to %s", names[other], names[form], strcmp(to, "-") ? to : "standard output");
    return STATUS_OK;
}

static int condition_add(struct request *request, const char *text)
{
    char error[CONDITION_MAX];
    request->conditions = array_room(request->conditions, request->condition_count, &request->condition_capacity, sizeof *request->conditions);
    if (condition_read(&request->conditions[request->condition_count++], text, error)) return STATUS_OK;
    return complain("--fail-if='%.100s': %s", text, error);
}

static int section_add(struct request *request, const char *key)
{
    request->sections = array_room(request->sections, request->section_count, &request->section_capacity, sizeof *request->sections);
    request->sections[request->section_count++] = key;
    return STATUS_OK;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return !stat(a, &of_a) && !stat(b, &of_b) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

static bool is_stdout(const char *to)
{
    return to && !strcmp(to, "-");
}

/* What takes more than one option to see. */
static int request_judge(struct request *request)
{
    if (!request->file_count) return complain("which file? 'custream help report' says more");
    for (int form = 0; form < FORMS; form++)
        for (int i = 0; request->to[form] && i < request->file_count; i++)
            if (is_same_file(request->to[form], request->files[i]))
                return complain("%s: is the trace itself; a report needs a file of its own", request->files[i]);
    const bool taken = is_stdout(request->to[FORM_JSON]) || is_stdout(request->to[FORM_CSV]) || is_stdout(request->to[FORM_HTML]);
    if (!taken) request->to[FORM_TEXT] = "-";
    if (taken && request->section_count) return complain("--section is of the text, and another form takes standard output");
    return STATUS_OK;
}

static int request_read(struct request *request, int argc, char **argv)
{
    enum { OPTION_FORM = 'A', OPTION_FAIL = 'f', OPTION_SECTION = 's', OPTION_NO_COLOR = 'n' };
    static const struct option options[] = {{"json", optional_argument, NULL, OPTION_FORM + FORM_JSON},
                                            {"csv", optional_argument, NULL, OPTION_FORM + FORM_CSV},
                                            {"html", required_argument, NULL, OPTION_FORM + FORM_HTML},
                                            {"fail-if", required_argument, NULL, OPTION_FAIL},
                                            {"section", required_argument, NULL, OPTION_SECTION},
                                            {"no-color", no_argument, NULL, OPTION_NO_COLOR},
                                            {0}};
    int option, status = STATUS_OK;
    while (status == STATUS_OK && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == OPTION_FAIL) status = condition_add(request, optarg);
        else if (option == OPTION_SECTION) status = section_add(request, optarg);
        else if (option == OPTION_NO_COLOR) request->no_color = true;
        else if (option == '?') status = STATUS_UNUSABLE;
        else status = form_add(request, (enum form)(option - OPTION_FORM), optarg);
    }
    request->files = argv + optind;
    request->file_count = argc - optind;
    return status == STATUS_OK ? request_judge(request) : status;
}

/* --- reading --- */

/* How far reading is, for somebody at a terminal. */
struct progress {
    const char *path;
    double size;
    int percent; /* as shown; -1: nothing is */
};

static void progress_show(void *of, uint64_t bytes)
{
    struct progress *progress = of;
    const int percent = progress->size > 0 ? (int)(100 * (double)bytes / progress->size) : 0;
    if (percent == progress->percent) return;
    progress->percent = percent;
    fputs("\rreading ", stderr);
    text_put_cut(stderr, progress->path, 60, CUT_MIDDLE);
    fprintf(stderr, " %d %%", percent);
}

static bool file_read(struct run *run, const char *path)
{
    struct stat stat_of;
    char error[256];
    struct progress progress = {.path = path, .size = stat(path, &stat_of) ? 0 : (double)stat_of.st_size, .percent = -1};
    const bool cut_before = run->cut, read = run_load(run, path, isatty(STDERR_FILENO) ? progress_show : NULL, &progress, error);
    if (progress.percent >= 0) fputs("\r\033[K", stderr);
    if (!read) complain("%s: %s", path, error);
    else if (run->cut && !cut_before)
        complain("%s: truncated, as when a process is killed while it writes; the report is of what is before that", path);
    return read;
}

static void analyse(struct report *report, const struct analysis *of)
{
    section_run(report, of);
    section_idle(report, of);
    section_overlap(report, of);
    section_tables(report, of);
    section_findings(report, of);
    metrics_make(report, of);
}

/* --- printing --- */

static int columns_of_terminal(void)
{
    struct winsize window;
    const char *text = getenv("COLUMNS");
    const bool known = isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) && window.ws_col;
    const long columns = known ? window.ws_col : text ? strtol(text, NULL, 10) : 0;
    if (columns <= 0) return COLUMNS_DEFAULT;
    return columns < COLUMNS_MIN ? COLUMNS_MIN : columns > COLUMNS_MAX ? COLUMNS_MAX : (int)columns;
}

/* https://no-color.org: set, and not empty. */
static bool wants_color(const struct request *request)
{
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !request->no_color && !(no_color && *no_color) && isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb");
}

static int form_print(const struct print *print, enum form form, const char *to)
{
    if (is_stdout(to)) {
        printers[form](stdout, print);
        return STATUS_OK;
    }
    FILE *file = fopen(to, "w");
    if (!file) return complain("%s: cannot be written: %s", to, strerror(errno));
    printers[form](file, print);
    const bool failed = ferror(file);
    errno = 0;
    if (!fclose(file) && !failed) return STATUS_OK;
    return complain("%s: cannot be written: %s", to, errno ? strerror(errno) : "write error");
}

static int sections_judge(const struct request *request, const struct report *report)
{
    for (size_t s = 0; s < request->section_count; s++) {
        char keys[CONDITION_MAX] = "";
        size_t n = 0;
        if (report_find(report, request->sections[s])) continue;
        for (size_t t = 0; t < report->table_count && n < sizeof keys; t++)
            n += (size_t)snprintf(keys + n, sizeof keys - n, "%s%s", t ? ", " : "", report->tables[t].key);
        return complain("--section='%.100s': no such table; allowed: %s", request->sections[s], keys);
    }
    return STATUS_OK;
}

/* Standard output comes last: its reader may have seen enough (| head), which ends the process. The first form that cannot be written ends it too. */
static int forms_print(const struct request *request, const struct report *report, const struct analysis *of)
{
    const struct print print = {.report = report,
                                .of = of,
                                .files = request->files,
                                .file_count = request->file_count,
                                .sections = request->sections,
                                .section_count = (int)request->section_count,
                                .columns = columns_of_terminal(),
                                .color = wants_color(request)};
    int status = sections_judge(request, report);
    for (int to_stdout = 0; to_stdout < 2; to_stdout++)
        for (int form = 0; form < FORMS && status == STATUS_OK; form++)
            if (request->to[form] && is_stdout(request->to[form]) == to_stdout) status = form_print(&print, (enum form)form, request->to[form]);
    return status;
}

static int conditions_judge(const struct request *request, const struct report *report)
{
    int status = STATUS_OK;
    char reason[CONDITION_MAX];
    for (size_t i = 0; i < request->condition_count; i++) {
        if (!condition_holds(&request->conditions[i], report, reason)) continue;
        complain("--fail-if='%.100s' holds: %s", request->conditions[i].text, reason);
        status = STATUS_CONDITION;
    }
    return status;
}

static int run_report(const struct request *request, struct run *run)
{
    struct idles idles;
    struct overlap overlap;
    struct report report = {0};
    run_settle(run);
    struct hold *holds = order_make(run);
    idles_init(&idles, run);
    overlap_make(&overlap, run, holds, &idles);
    idles_make(&idles, run, holds);
    const struct analysis of = {.run = run, .holds = holds, .idles = &idles, .overlap = &overlap};
    analyse(&report, &of);
    int status = forms_print(request, &report, &of);
    if (status == STATUS_OK) status = conditions_judge(request, &report);
    report_free(&report);
    overlap_free(&overlap);
    idles_free(&idles);
    free(holds);
    return status;
}

void report_usage(void)
{
    puts("usage: custream report [OPTION...] FILE...\n\n"
         "Reads a trace (.json or .json.gz; several files: the parts of one run) and says what keeps its GPU work from running at once, what\n"
         "that costs and what to change; then where the GPU was idle, and tables of streams, kernels, copies, calls and ranges.\n\n"
         "  --json[=FILE]        as JSON, to standard output or to FILE\n"
         "  --csv[=FILE]         as CSV, likewise\n"
         "  --html=FILE          as a page that needs no network, with lanes and tables to sort\n"
         "  --section=TABLE      this table alone, as text; may be given several times\n"
         "  --fail-if=CONDITION  exit with 3 if it holds, as in 'idle_host > 20%', 'gpu_idle > 5ms', 'default_stream_work > 0' or\n"
         "                       'finding CS101'; may be given several times\n"
         "  --no-color           no colours, as with NO_COLOR in the environment\n\n"
         "Where neither --json nor --csv takes standard output, it gets the text. docs/report.md has every table, column and metric.\n\n"
         "Exit status: 0 reported, 2 a file cannot be read or is no trace, or wrong usage, 3 a condition holds.");
}

int command_report(int argc, char **argv)
{
    struct request request = {0};
    struct run run;
    argv[0] = (char[]){"custream report"};
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        report_usage();
        return STATUS_OK;
    }
    int status = request_read(&request, argc, argv);
    if (status == STATUS_OK) {
        run_init(&run);
        for (int i = 0; i < request.file_count && status == STATUS_OK; i++)
            if (!file_read(&run, request.files[i])) status = STATUS_UNUSABLE;
        if (status == STATUS_OK) status = run_report(&request, &run);
        run_free(&run);
    }
    free(request.conditions);
    free(request.sections);
    return status;
}
