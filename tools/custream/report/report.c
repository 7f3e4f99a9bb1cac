/* custream report. All options but the names of sections are judged before any trace is read. */

#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/append.h"
#include "tools/custream/flags.h"
#include "tools/custream/report/inside.h"
#include "tools/custream/trace/newest.h"

static const char NAME[] = "custream report";
static printer *const printers[FORMS] = {print_text, print_json, print_csv, print_html};

/* The options and files of the command line. */
struct request {
    struct output output;
    struct conditions conditions;
    const char **sections;
    size_t section_count, section_capacity;
    const char **changes; /* the words of --what-if */
    size_t change_count, change_capacity;
    bool brief, path;
    char **files;
    int file_count;
};

/* --- options --- */

#define SECTION_ADD(request, key) array_add((request)->sections, (request)->section_count, \
    (request)->section_capacity, key)

/* Checks what needs more than one option. */
static int request_judge(struct request *request)
{
    if (!files_or_newest(NAME, &request->files, &request->file_count)) return STATUS_UNUSABLE;
    const int status = output_judge(&request->output, request->files, request->file_count);
    if (status == STATUS_OK && request->section_count && !request->output.to[FORM_TEXT])
        return complain(NAME, "--section is of the text, and another form takes standard output");
    if (status == STATUS_OK && request->brief &&
        (request->section_count || !request->output.to[FORM_TEXT]))
        return complain(
            NAME, "--brief is of the whole text: give it without --section, --json and --csv");
    return status;
}

static int request_read(struct request *request, int argc, char **argv)
{
    int flag, status = STATUS_OK;
    while (status == STATUS_OK && (flag = flags_next(argc, argv, 0)) != -1) {
        if (flag == FLAG_FAIL_IF)
            status = conditions_add(&request->conditions, NAME, optarg, false);
        else if (flag == FLAG_SECTION) SECTION_ADD(request, optarg);
        else if (flag == FLAG_WHAT_IF)
            array_add(request->changes, request->change_count, request->change_capacity, optarg);
        else if (flag == FLAG_CRITICAL_PATH) request->path = true;
        else if (flag == FLAG_BRIEF) request->brief = true;
        else if (flag == FLAG_NO_COLOR) request->output.no_color = true;
        else
            status = output_add(&request->output,
                flag == FLAG_JSON  ? FORM_JSON
                : flag == FLAG_CSV ? FORM_CSV
                                   : FORM_HTML,
                optarg);
    }
    request->files = argv + optind;
    request->file_count = argc - optind;
    return status == STATUS_OK ? request_judge(request) : status;
}

/* --- reading --- */

/* The progress of reading a file, which is shown on a terminal. */
struct progress {
    const char *path;
    double size;
    int percent; /* the percentage on the terminal; -1: none */
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

static bool file_read(struct run *run, const char *command, const char *path)
{
    struct stat stat_of;
    char error[256];
    struct progress progress = {
        .path = path, .size = stat(path, &stat_of) ? 0 : (double)stat_of.st_size, .percent = -1};
    const struct trace_left left = run->left;
    const bool cut_before = run->cut,
               read = run_load(
                   run, path, isatty(STDERR_FILENO) ? progress_show : NULL, &progress, error);
    if (progress.percent >= 0) fputs("\r\033[K", stderr);
    if (!read) complain(command, "%s: %s", path, error);
    else if (run->cut && !cut_before)
        complain(command,
            "%s: truncated, as when a process is killed while it writes; the report is of what is "
            "before that",
            path);
    const struct {
        uint64_t events;
        const char *lack;
    } lacks[] = {{run->left.times - left.times, "a usable time"},
        {run->left.others - left.others, "a phase"}};
    for (size_t i = 0; read && i < 2; i++)
        if (lacks[i].events)
            complain(command, "%s: %llu event%s without %s %s left out", path,
                (unsigned long long)lacks[i].events, plural((double)lacks[i].events), lacks[i].lack,
                lacks[i].events == 1 ? "is" : "are");
    if (read && run_cut_seconds(run) > 0)
        complain(command,
            "%s: a cut of %.3f s out of a trace; the report's totals are those of the cut", path,
            run_cut_seconds(run));
    return read;
}

bool made_make(struct made *made, const char *command, char *const *files, int file_count)
{
    model_init(&made->model);
    for (int i = 0; i < file_count; i++)
        if (!file_read(&made->model.run, command, files[i])) {
            model_free(&made->model);
            return false;
        }
    model_settle(&made->model);
    struct report *report = &made->report;
    *report = (struct report){0};
    section_run(report, &made->model);
    section_running(report, &made->model.run);
    section *const sections[] = {section_idle, section_host, section_streams, section_work,
        section_calls, section_ranges, section_steps, section_findings, metrics_make};
    for (size_t s = 0; s < CS_COUNT(sections); s++) sections[s](report, &made->model);
    return true;
}

void made_free(struct made *made)
{
    report_free(&made->report);
    model_free(&made->model);
}

/* --- printing --- */

static int sections_judge(const struct request *request, const struct report *report)
{
    for (size_t s = 0; s < request->section_count; s++) {
        char keys[CONDITION_MAX] = "";
        size_t n = 0;
        if (report_find(report, request->sections[s])) continue;
        for (size_t t = 0; t < report->table_count; t++)
            n = cs_append(keys, sizeof keys, n, "%s%s", t ? ", " : "", report->tables[t].key);
        return complain(
            NAME, "--section='%.100s': no such table; allowed: %s", request->sections[s], keys);
    }
    return STATUS_OK;
}

static int report_print(struct request *request, struct made *made)
{
    /* Without --section, text shows only the tables that --critical-path and --what-if ask for;
     * without these too, all tables. */
    const bool all = !request->section_count;
    int status = STATUS_OK;
    if (request->path) section_critical_path(&made->report, &made->model);
    if (request->path && all) SECTION_ADD(request, "critical_path");
    if (request->change_count && !section_what_if(&made->report, &made->model, NAME,
                                     request->changes, request->change_count))
        return STATUS_UNUSABLE;
    if (request->change_count && all) SECTION_ADD(request, "what_if");
    if (status == STATUS_OK) status = sections_judge(request, &made->report);
    struct print print = {.report = &made->report,
        .of = &made->model,
        .files = request->files,
        .file_count = request->file_count,
        .sections = request->sections,
        .section_count = (int)request->section_count,
        .brief = request->brief};
    if (status == STATUS_OK) status = output_print(&request->output, printers, &print);
    return status == STATUS_OK ? conditions_judge(&request->conditions, NAME, NULL, &made->report)
                               : status;
}

int command_report(int argc, char **argv)
{
    struct request request = {.output.command = NAME};
    struct made made;
    int status = request_read(&request, argc, argv);
    if (status == STATUS_OK) {
        const bool read = made_make(&made, NAME, request.files, request.file_count);
        status = read ? report_print(&request, &made) : STATUS_UNUSABLE;
        if (read) made_free(&made);
    }
    conditions_free(&request.conditions);
    free(request.sections);
    free(request.changes);
    return status;
}
