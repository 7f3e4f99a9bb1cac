#include "tools/custream/watch/inside.h"

#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/watch.h"
#include "tools/custream/verdict.h"

/* LINES_MOST: how many traces get a line of their own; whole traces beyond these are told as one
 * sum. REPORTS_MOST: how many traces get a report. */
enum { LINE_MOST = 8192, LINES_MOST = 8, REPORTS_MOST = LINES_MOST };

#define IS_APART "The program has mounts of its own: the file has that name in them"

static void put_line(char *line, size_t n)
{
    text_clean(line);
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, n) < 0) {} /* nobody reads stderr */
}

CS_PRINTF(1, 2) static void say(const char *format, ...)
{
    char line[LINE_MOST + 1];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, LINE_MOST, format, args);
    va_end(args);
    if (n > 0) put_line(line, n < LINE_MOST ? (size_t)n : LINE_MOST - 1);
}

/* --- one trace --- */

/* Whether the process became another program and had written all its calls before that. */
static bool is_exec(const struct cs_verdict *v)
{
    return !v->complete && v->ended_by && !strcmp(v->ended_by, "exec") &&
           (!v->recovered || v->all_calls) && !v->no_memory_for;
}

static bool is_whole(const struct cs_verdict *v)
{
    return (v->complete || is_exec(v)) && !v->ended && !v->lost_calls && !v->lost_work &&
           !v->untimed && !cs_verdict_has_gaps(v) && !v->gpu_cause;
}

/* Tells the default-stream audit of a process that could not tell the audit itself. `brief`: only
 * lost orders. */
static void tell_audit(const cJSON *trailer, bool brief)
{
    const cJSON *audit = member_of(trailer, "defaultStreamAudit");
    const char *verdict = text_member(audit, "verdict");
    const cJSON *lost = member_of(audit, "lost_orders");
    if (!verdict) return;
    if (cJSON_IsNumber(lost) && lost->valuedouble > 0)
        say("custream: audit: %s for per-thread default streams, as far as was recorded: %.0f "
            "order%s would be lost; the trace lists them",
            verdict, lost->valuedouble, lost->valuedouble == 1 ? "" : "s");
    else if (!brief) {
        const char *doubt = cJSON_GetStringValue(cJSON_GetArrayItem(member_of(audit, "doubts"), 0));
        if (doubt) say("custream: audit: %s for per-thread default streams: %s", verdict, doubt);
        else say("custream: audit: %s, as far as was recorded", verdict);
    }
}

/* Counts a trace that did not use the rule. tell_end() names a rule if no trace used it, so only
 * the first trace adds rules. */
static void unused_add(struct told *told, int rule, const char *match)
{
    for (size_t i = 0; i < told->unused_count; i++) {
        if (told->unused[i].rule != rule || strcmp(told->unused[i].match, match)) continue;
        told->unused[i].traces++;
        return;
    }
    char *copy = told->traces == 1 ? strdup(match) : NULL;
    if (!copy) return;
    array_add(
        told->unused, told->unused_count, told->unused_capacity, (struct unused){rule, copy, 1});
}

void tell_trace(struct told *told, const struct told_trace *trace)
{
    const cJSON *trailer = trace->trailer;
    struct cs_verdict verdict;
    char room[512];
    const char *shown = cs_path_from(trace->path, told->folder);
    char *copy = !trace->apart && trace->there ? strdup(trace->path) : NULL;
    if (copy) array_add(told->files, told->file_count, told->file_capacity, copy);
    if (trace->quiet || told->quiet) return;
    if (!trailer) { /* `custream check` needs a path that leads the watcher to the file */
        const char *by = trace->by;
        say("custream: %s: %s%s%s%s%s", shown, by ? "ended by " : "", by ? by : "", by ? "; " : "",
            !trace->there  ? "the file of the trace has another name, was removed, or is in mounts "
                             "of the program's own"
            : trace->apart ? "it has no end that can be read. " IS_APART
                           : "it has no end that can be read: custream check ",
            trace->there && !trace->apart ? shown : "");
        return;
    }
    const cJSON *one;
    told->traces++;
    cJSON_ArrayForEach(one, member_of(trailer, "unusedRules")) {
        const cJSON *rule = member_of(one, "rule");
        const char *match = text_member(one, "match");
        if (cJSON_IsNumber(rule) && match) unused_add(told, rule->valueint, match);
    }
    told->per_thread |= cJSON_IsTrue(member_of(trailer, "perThreadDefaultStreams"));
    verdict_read(&verdict, trailer, room, sizeof room);
    const bool in_sum = told->lines >= LINES_MOST && is_whole(&verdict);
    if (trace->by && !verdict.complete) tell_audit(trailer, in_sum);
    if (!in_sum) {
        char line[LINE_MOST + 1];
        size_t n = cs_verdict_put(line, LINE_MOST, 0, "custream: %s: ", shown);
        n = cs_verdict_sentence(line, LINE_MOST, n, &verdict);
        n = cs_verdict_put(line, LINE_MOST, n, ". ");
        put_line(line, trace->apart ? cs_verdict_put(line, LINE_MOST, n, IS_APART)
                                    : cs_verdict_advice(line, LINE_MOST, n, shown));
        told->lines++;
        return;
    }
    told->more.files++;
    told->more.calls += verdict.calls;
    told->more.operations += verdict.operations;
    told->more.execs += is_exec(&verdict);
}

/* --- the run --- */

void tell_end(struct told *told, bool met, const struct watch_plan *plan)
{
    if (told->quiet) return;
    if (told->more.files) {
        char execs[64] = ", nothing lost";
        if (told->more.execs)
            snprintf(execs, sizeof execs, "; incomplete: %llu ended by exec", told->more.execs);
        say("custream: %llu more trace%s: %llu calls, %llu GPU operations%s", told->more.files,
            told->more.files == 1 ? "" : "s", told->more.calls, told->more.operations, execs);
    }
    for (size_t i = 0; i < told->unused_count; i++)
        if (told->unused[i].traces == told->traces)
            say("custream: policy: " CS_UNUSED_RULE, told->unused[i].rule, told->unused[i].match);
    if (told->per_thread) say("custream: per-thread default streams: " CS_NOT_AUDITED);
    if (told->stranger)
        say("custream: process %d is another user's and was not watched: 'custream recover' "
            "finishes its trace after a kill",
            (int)told->stranger);
    else if (!met && !plan->unseen) say("custream: no CUDA was called: no trace");
}

/* Makes a report in a new process: a report keeps what it has read until its process ends. */
static void report_one(char *path)
{
    static char name[] = "report", brief[] = "--brief", end[] = "--";
    char *argv[] = {name, brief, end, path, NULL};
    const pid_t pid = fork();
    if (pid > 0) waitpid(pid, NULL, 0);
    if (pid < 0) say("custream: no process could be made that reports on %s", path);
    if (pid) return;
    optind = 0; /* getopt has read the words of `run`, and starts anew */
    const int status = command_report((int)CS_COUNT(argv) - 1, argv);
    fflush(stdout);
    _exit(status);
}

void tell_report(const struct told *told)
{
    for (size_t i = 0; i < told->file_count && i < REPORTS_MOST; i++) {
        if (write(STDERR_FILENO, "\n", 1) < 0) {}
        if (told->file_count > 1)
            say("custream: report of %s:", cs_path_from(told->files[i], told->folder));
        report_one(told->files[i]);
    }
    if (told->file_count > REPORTS_MOST)
        say("custream: no report of %zu more trace%s: custream report FILE",
            told->file_count - REPORTS_MOST, told->file_count == REPORTS_MOST + 1 ? "" : "s");
}
