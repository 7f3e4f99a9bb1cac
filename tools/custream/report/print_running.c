/* Prints the tables "running..." in words, to tell people what hangs. */
#include <stdarg.h>

#include "tools/custream/report/inside.h"

enum { INDENT = 7, LINE = 4096 };

/* Writes a paragraph, behind its label unless the label is ""; writes nothing if the text is
 * empty. */
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

static void verdict_put(FILE *file, const struct print *print, const struct table *running)
{
    const char *verdict = table_text(running, 0, "verdict");
    const double streams = table_number(running, 0, "unfinished_streams"),
                 idle = table_number(running, 0, "idle_streams"),
                 circles = table_number(running, 0, "circles");
    const bool not_known = !strcmp(verdict, "not_known");
    if (!strcmp(verdict, "idle"))
        line_put(file, print, "",
            "Nothing was running: all GPU work had ended, and no thread was in a call.");
    else if (!strcmp(verdict, "in_a_call"))
        line_put(file, print, "", "All GPU work in the trace had ended. Threads were in calls.");
    else if (not_known && !streams)
        line_put(file, print, "", "Nothing unfinished is in the trace, which has not all calls.");
    else if (circles > 0)
        line_put(file, print, "",
            "%.0f stream%s had unfinished work; %.0f had none. %.0f circle%s: streams that wait "
            "for each other, and cannot go on.",
            streams, plural(streams), idle, circles, plural(circles));
    else
        line_put(file, print, "", "%.0f stream%s had %s; %.0f had none.", streams, plural(streams),
            not_known ? "work that is not known to have ended" : "unfinished work", idle);
}

static void moment_put(FILE *file, const struct print *print, const struct table *running)
{
    const double age = table_number(running, 0, "gpu_age_ns"),
                 ended = table_number(running, 0, "ended_ago_ns");
    const char *not_known = table_text(running, 0, "not_known"),
               *capturing = table_text(running, 0, "capturing");
    if (isfinite(ended))
        line_put(file, print, "", "The last GPU work that was reported ended %s before.",
            SHOWN(UNIT_NS, ended));
    if (isfinite(age))
        line_put(file, print, "",
            "GPU work was last reported %s before; what has ended since is not known.",
            SHOWN(UNIT_NS, age));
    if (*capturing)
        line_put(file, print, "", "Capturing, so that nothing of it runs: %s.", capturing);
    if (*not_known) line_put(file, print, "", "Not known: %s.", not_known);
}

static void stream_put(
    FILE *file, const struct print *print, const struct table *streams, size_t row)
{
    const char *call = table_text(streams, row, "call"),
               *kernel = table_text(streams, row, "kernel"),
               *last = table_text(streams, row, "last");
    const double circle = table_number(streams, row, "circle"),
                 behind = table_number(streams, row, "behind"),
                 ended = table_number(streams, row, "ended_ago_ns");
    char in_circle[SHOWN_MAX] = "";
    if (isfinite(circle)) snprintf(in_circle, sizeof in_circle, ", in circle %.0f", circle);
    fputc('\n', file);
    line_put(file, print, "", "%s, GPU %.0f%s", table_text(streams, row, "stream"),
        table_number(streams, row, "device"), in_circle);
    if (isfinite(ended))
        line_put(file, print, "Ended: ", "%s, %s before", last, SHOWN(UNIT_NS, ended));
    else line_put(file, print, "Ended: ", "%s", *last ? last : "nothing that the trace shows");
    line_put(file, print,
        "Unfinished: ", "%s%s%s, called %s before by %s; %.0f operation%s behind it",
        *kernel ? kernel : call, *kernel ? " by " : "", *kernel ? call : "",
        SHOWN(UNIT_NS, table_number(streams, row, "called_ago_ns")),
        table_text(streams, row, "thread"), behind, plural(behind));
    line_put(file, print, "Grid, block: ", "%s", table_text(streams, row, "grid"));
    line_put(file, print, "Waits for: ", "%s", table_text(streams, row, "waits_for"));
    line_put(file, print, "Chain: ", "%s", table_text(streams, row, "chain"));
}

static void thread_put(
    FILE *file, const struct print *print, const struct table *threads, size_t row)
{
    const char *name = table_text(threads, row, "thread"),
               *stream = table_text(threads, row, "stream"),
               *waits_for = table_text(threads, row, "waits_for");
    const double event = table_number(threads, row, "event");
    char what[LINE] = "";
    if (*stream) snprintf(what, sizeof what, " of %s", stream);
    else if (isfinite(event)) snprintf(what, sizeof what, " of event %.0f", event);
    line_put(file, print, "", "%s %.0f has been in %s%s for %s%s%s", *name ? name : "thread",
        table_number(threads, row, "tid"), table_text(threads, row, "call"), what,
        SHOWN(UNIT_NS, table_number(threads, row, "for_ns")), *waits_for ? "; it waits for " : "",
        waits_for);
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
