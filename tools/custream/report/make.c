#include "tools/custream/report/inside.h"

#include <sys/stat.h>
#include <unistd.h>

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

static void left_out_say(const char *command, const char *path, uint64_t events, const char *lack)
{
    if (events)
        complain(command, "%s: %llu event%s without %s %s left out", path,
            (unsigned long long)events, events == 1 ? "" : "s", lack, events == 1 ? "is" : "are");
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
    if (read) left_out_say(command, path, run->left.times - left.times, "a usable time");
    if (read) left_out_say(command, path, run->left.others - left.others, "a phase");
    if (read && run_cut_seconds(run) > 0)
        complain(command,
            "%s: a cut of %.3f s out of a trace; the report's totals are those of the cut", path,
            run_cut_seconds(run));
    return read;
}

static void analyse(struct report *report, const struct model *of)
{
    section_run(report, of);
    section_running(report, &of->run);
    section_idle(report, of);
    section_overlap(report, of);
    section_host(report, of);
    section_streams(report, of);
    section_work(report, of);
    section_calls(report, of);
    section_ranges(report, of);
    section_steps(report, of);
    section_findings(report, of);
    metrics_make(report, of);
}

bool made_make(struct made *made, const char *command, char *const *files, int file_count)
{
    model_init(&made->model);
    for (int i = 0; i < file_count; i++)
        if (!file_read(&made->model.run, command, files[i])) {
            model_free(&made->model);
            return false;
        }
    model_settle(&made->model, true);
    made->report = (struct report){0};
    analyse(&made->report, &made->model);
    return true;
}

void made_free(struct made *made)
{
    report_free(&made->report);
    model_free(&made->model);
}
