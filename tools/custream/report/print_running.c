/* The tables "running", "running_streams" and "running_threads" in words, for people who want to
 * know what hangs. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "tools/custream/report/inside.h"
#include "tools/custream/show.h"

enum { INDENT = 7, LINE = 4096 };

static __attribute__((format(printf, 4, 5))) void line_put(
    FILE *file, const struct print *print, const char *label, const char *format, ...)
{
    char line[LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (!*line) return;
    fprintf(file, "%*s%s", *label ? INDENT : 0, "", label);
    text_put_wrapped(file, line, print->columns, *label ? INDENT + 2 : 2,
        *label ? INDENT + text_columns(label) : 0);
}

/* "3.200 s"; NULL: it is not known. */
static const char *time_of(
    char shown[SHOWN_MAX], const struct table *table, size_t row, const char *column)
{
    const double ns = table_number(table, row, column);
    return isfinite(ns) ? value_show(shown, UNIT_NS, ns) : NULL;
}

static void verdict_put(FILE *file, const struct print *print, const struct table *running)
{
    const char *verdict = table_text(running, 0, "verdict");
    const double streams = table_number(running, 0, "unfinished_streams"),
                 idle = table_number(running, 0, "idle_streams"),
                 circles = table_number(running, 0, "circles");
    const char *s = streams == 1 ? "" : "s";
    if (!strcmp(verdict, "idle"))
        line_put(file, print, "",
            "Nothing was running: all GPU work had ended, and no thread was in a call.");
    else if (!strcmp(verdict, "in_a_call"))
        line_put(file, print, "", "All GPU work in the trace had ended. Threads were in calls.");
    else if (!strcmp(verdict, "circle"))
        line_put(file, print, "",
            "%.0f stream%s had unfinished work; %.0f had none. %.0f circle%s: streams that wait "
            "for each other, and cannot go on.",
            streams, s, idle, circles, circles == 1 ? "" : "s");
    else if (!strcmp(verdict, "not_known") && !streams)
        line_put(file, print, "", "Nothing unfinished is in the trace, which has not all calls.");
    else if (!strcmp(verdict, "not_known"))
        line_put(file, print, "",
            "%.0f stream%s had work that is not known to have ended; %.0f had none.", streams, s,
            idle);
    else
        line_put(
            file, print, "", "%.0f stream%s had unfinished work; %.0f had none.", streams, s, idle);
}

static void moment_put(FILE *file, const struct print *print, const struct table *running)
{
    char age[SHOWN_MAX], ended[SHOWN_MAX];
    const char *gpu = time_of(age, running, 0, "gpu_age_ns"),
               *last = time_of(ended, running, 0, "ended_ago_ns"),
               *not_known = table_text(running, 0, "not_known"),
               *capturing = table_text(running, 0, "capturing");
    if (last)
        line_put(file, print, "", "The last GPU work that was reported ended %s before.", last);
    if (gpu)
        line_put(file, print, "",
            "GPU work was last reported %s before; what has ended since is not known.", gpu);
    if (*capturing)
        line_put(file, print, "", "Capturing, so that nothing of it runs: %s.", capturing);
    if (*not_known) line_put(file, print, "", "Not known: %s.", not_known);
}

static void stream_put(
    FILE *file, const struct print *print, const struct table *streams, size_t row)
{
    char called[SHOWN_MAX], ended[SHOWN_MAX];
    const char *call = table_text(streams, row, "call"),
               *kernel = table_text(streams, row, "kernel"),
               *last = table_text(streams, row, "last");
    const char *ended_ago = time_of(ended, streams, row, "ended_ago_ns");
    const double circle = table_number(streams, row, "circle"),
                 behind = table_number(streams, row, "behind");
    fputc('\n', file);
    if (isfinite(circle))
        line_put(file, print, "", "%s, GPU %.0f, in circle %.0f",
            table_text(streams, row, "stream"), table_number(streams, row, "device"), circle);
    else
        line_put(file, print, "", "%s, GPU %.0f", table_text(streams, row, "stream"),
            table_number(streams, row, "device"));
    if (ended_ago) line_put(file, print, "Ended: ", "%s, %s before", last, ended_ago);
    else line_put(file, print, "Ended: ", "%s", *last ? last : "nothing that the trace shows");
    line_put(file, print,
        "Unfinished: ", "%s%s%s, called %s before by %s; %.0f operation%s behind it",
        *kernel ? kernel : call, *kernel ? " by " : "", *kernel ? call : "",
        time_of(called, streams, row, "called_ago_ns") ?: "-", table_text(streams, row, "thread"),
        behind, behind == 1 ? "" : "s");
    line_put(file, print, "Grid, block: ", "%s", table_text(streams, row, "grid"));
    line_put(file, print, "Waits for: ", "%s", table_text(streams, row, "waits_for"));
    line_put(file, print, "Chain: ", "%s", table_text(streams, row, "chain"));
}

static void thread_put(
    FILE *file, const struct print *print, const struct table *threads, size_t row)
{
    char lasted[SHOWN_MAX];
    const char *name = table_text(threads, row, "thread"),
               *stream = table_text(threads, row, "stream"),
               *for_ns = time_of(lasted, threads, row, "for_ns");
    const char *waits_for = table_text(threads, row, "waits_for");
    const double event = table_number(threads, row, "event");
    char what[LINE] = "";
    if (*stream) snprintf(what, sizeof what, " of %s", stream);
    else if (isfinite(event)) snprintf(what, sizeof what, " of event %.0f", event);
    line_put(file, print, "", "%s %.0f has been in %s%s for %s%s%s", *name ? name : "thread",
        table_number(threads, row, "tid"), table_text(threads, row, "call"), what,
        for_ns ? for_ns : "-", *waits_for ? "; it waits for " : "", waits_for);
}

void running_put(FILE *file, const struct print *print)
{
    const struct table *running = report_find(print->report, "running"),
                       *streams = report_find(print->report, "running_streams"),
                       *threads = report_find(print->report, "running_threads");
    if (!running || !running->row_count) return;
    verdict_put(file, print, running);
    moment_put(file, print, running);
    if (threads->row_count) fputc('\n', file);
    for (size_t row = 0; row < threads->row_count; row++) thread_put(file, print, threads, row);
    const double more = table_number(running, 0, "threads") - (double)threads->row_count;
    if (more > 0) fprintf(file, "and %.0f more threads\n", more);
    const size_t shown = rows_shown(streams);
    for (size_t row = 0; row < shown; row++) stream_put(file, print, streams, row);
    if (shown < streams->row_count)
        fprintf(file, "\nand %zu more streams with unfinished work: --json has all\n",
            streams->row_count - shown);
}
