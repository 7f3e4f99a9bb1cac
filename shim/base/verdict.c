#include "shim/base/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t cs_verdict_put(char *text, size_t size, size_t n, const char *format, ...)
{
    va_list args;
    if (n + 1 >= size) return n;
    va_start(args, format);
    const int more = vsnprintf(text + n, size - n, format, args);
    va_end(args);
    if (more < 0) return n;
    return n + (size_t)more < size ? n + (size_t)more : size - 1;
}

static const char *plural(cs_u64 count) { return count == 1 ? "" : "s"; }

bool cs_verdict_has_gaps(const struct cs_verdict *v)
{
    bool full = false;
    for (int i = 0; i < CS_NO_ROOM_KINDS; i++) full |= v->no_room[i] != 0;
    return full || v->without_call;
}

static size_t put_end_of_file(char *text, size_t size, size_t n, const struct cs_verdict *v)
{
    n = cs_verdict_put(text, size, n, strncmp(v->ended, "its size limit", 14) ? "ended: %.200s" : "ended at %.200s", v->ended);
    n = cs_verdict_put(text, size, n, ": %llu calls and %llu pieces of GPU work not written, later ones not counted", (unsigned long long)v->calls_not_written,
                       (unsigned long long)v->work_not_written);
    if (v->no_memory_for) n = cs_verdict_put(text, size, n, "; no memory for %s", v->no_memory_for);
    if (v->ended_by) n = cs_verdict_put(text, size, n, "; ended by %.64s", v->ended_by);
    return n;
}

size_t cs_verdict_state(char *text, size_t size, size_t n, const struct cs_verdict *v)
{
    if (v->ended) return put_end_of_file(text, size, n, v);
    if (v->complete) return cs_verdict_put(text, size, n, cs_verdict_has_gaps(v) ? "incomplete" : "ok"); /* the losses say what of */
    if (v->ended_by) n = cs_verdict_put(text, size, n, "incomplete: ended by %.64s", v->ended_by);
    if (v->all_calls) return cs_verdict_put(text, size, n, v->ended_by ? "; all calls up to then are there" : "incomplete: the process was killed; all calls up to then are there");
    if (v->ended_by && strcmp(v->ended_by, "exec")) n = cs_verdict_put(text, size, n, ", and what came in the last half second may be missing");
    if (v->no_memory_for) n = cs_verdict_put(text, size, n, v->ended_by ? "; no memory for %s" : "incomplete: no memory for %s", v->no_memory_for);
    if (v->recovered) n = cs_verdict_put(text, size, n, v->ended_by || v->no_memory_for ? "; %s" : "incomplete: %s", "recovered up to the last whole event");
    if (v->ended_by || v->no_memory_for || v->recovered) return n;
    return cs_verdict_put(text, size, n, "incomplete: %s", v->cause ? v->cause : "the process had not ended when the trailer was written");
}

static size_t put_gaps(char *text, size_t size, size_t n, const struct cs_verdict *v)
{
    if (v->no_gpu_times) n = cs_verdict_put(text, size, n, ", no GPU times");
    else if (v->sample) n = cs_verdict_put(text, size, n, ", GPU times of one call in %llu", (unsigned long long)v->sample);
    if (!v->no_gpu_times && v->gpu_cause) n = cs_verdict_put(text, size, n, ", GPU times missing");
    if (v->gpu_cause) n = cs_verdict_put(text, size, n, ": %.300s", v->gpu_cause);
    if (v->untimed) n = cs_verdict_put(text, size, n, ", %llu GPU operation%s without times", (unsigned long long)v->untimed, plural(v->untimed));
    if (v->without_call)
        n = cs_verdict_put(text, size, n, ", %llu GPU operation%s without %s", (unsigned long long)v->without_call, plural(v->without_call), v->without_call == 1 ? "its call" : "their calls");
    for (int i = 0; i < CS_NO_ROOM_KINDS; i++)
        if (v->no_room[i]) n = cs_verdict_put(text, size, n, ", %llu %s", (unsigned long long)v->no_room[i], v->no_room[i] == 1 ? cs_no_room_info[i].one : cs_no_room_info[i].several);
    return n;
}

static size_t put_lost_work(char *text, size_t size, size_t n, const struct cs_verdict *v)
{
    return v->lost_work ? cs_verdict_put(text, size, n, ", lost GPU work %llu", (unsigned long long)v->lost_work) : n;
}

size_t cs_verdict_losses(char *text, size_t size, size_t n, const struct cs_verdict *v)
{
    n = cs_verdict_put(text, size, n, "lost records %llu", (unsigned long long)v->lost_calls);
    return put_gaps(text, size, put_lost_work(text, size, n, v), v);
}

size_t cs_verdict_sentence(char *text, size_t size, size_t n, const struct cs_verdict *v)
{
    n = cs_verdict_put(text, size, n, "%llu call%s", (unsigned long long)v->calls, plural(v->calls));
    if (!v->no_gpu_times) n = cs_verdict_put(text, size, n, ", %llu GPU operation%s", (unsigned long long)v->operations, plural(v->operations));
    if (v->lost_calls || v->lost_work) n = put_lost_work(text, size, cs_verdict_put(text, size, n, ", lost records %llu", (unsigned long long)v->lost_calls), v);
    else if (v->complete && !v->untimed && !cs_verdict_has_gaps(v) && !v->gpu_cause) n = cs_verdict_put(text, size, n, ", nothing lost");
    n = put_gaps(text, size, n, v);
    return v->complete && !v->ended ? n : cs_verdict_state(text, size, cs_verdict_put(text, size, n, "; "), v);
}

static bool is_control(char c) { return (unsigned char)c < ' ' || c == 0x7f; }

/* A name that a shell would take apart stands in single quotes, which it has instead of its own. One
 * with control characters stands in $'', with numbers for these: they would break the line. */
size_t cs_verdict_file(char *text, size_t size, size_t n, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
    if (!path[strspn(path, plain)]) return cs_verdict_put(text, size, n, "%s%s", *path == '-' ? "./" : "", path);
    bool controls = false;
    for (const char *p = path; *p; p++) controls |= is_control(*p);
    n = cs_verdict_put(text, size, n, controls ? "$'" : "'");
    for (const char *p = path; *p; p++) {
        const bool number = controls && (is_control(*p) || *p == '\\' || *p == '\'');
        n = number        ? cs_verdict_put(text, size, n, "\\%03o", *p)
            : *p == '\'' ? cs_verdict_put(text, size, n, "'\\''")
                         : cs_verdict_put(text, size, n, "%c", *p);
    }
    return cs_verdict_put(text, size, n, "'");
}

size_t cs_verdict_advice(char *text, size_t size, size_t n, const char *path)
{
    n = cs_verdict_file(text, size, cs_verdict_put(text, size, n, "Next: custream report "), path);
    return cs_verdict_file(text, size, cs_verdict_put(text, size, n, "; custream open "), path);
}

const char *cs_path_from(const char *path, const char *folder)
{
    const size_t n = strlen(folder);
    return n > 1 && !strncmp(path, folder, n) && path[n] == '/' ? path + n + 1 : path;
}
