/*
 * What `custream ctl` asks for, and the answers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/append.h"
#include "shim/base/clock.h"
#include "shim/base/control.h"
#include "shim/base/environment.h"
#include "shim/base/options.h"
#include "shim/gpu/backend.h"
#include "shim/object/stream.h"
#include "shim/out/output.h"
#include "shim/out/path.h"
#include "shim/policy/load.h"
#include "shim/process/inside.h"
#include "shim/trace/totals.h"
#include "shim/trace/writer.h"

enum { GPU_MS = 2000, WRITER_MS = 10000, SHOWN_POLICY = 400 };

/* Whatever was put into it. */
static void one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) *text = '?';
}

/* One line: how it is (control.def), a blank, and the text. */
CS_PRINTF(4, 5) static void say(char *answer, size_t room, const char *how, const char *format, ...)
{
    const size_t before = cs_append(answer, room, 0, "%s ", how);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(answer + before, room - before - 1, format, args);
    va_end(args);
    size_t length = n < 0 ? before : before + (size_t)n < room - 1 ? before + (size_t)n : room - 2;
    answer[length] = 0;
    one_line(answer);
    answer[length] = '\n';
    answer[length + 1] = 0;
}

/* --- recording --- */

bool cs_ctl_bring_up_to_date(void)
{
    cs_gpu_flush(GPU_MS);
    return cs_writer_flush(WRITER_MS);
}

static void answer_on(char *given, char *answer, size_t room)
{
    const char *why;
    (void)given;
    if (cs_window_say(true, &why)) say(answer, room, cs_answer_ok, "%s: %s", cs_ask_on, cs_output_path());
    else say(answer, room, cs_answer_error, "%s", why);
}

static void answer_off(char *given, char *answer, size_t room)
{
    const char *why;
    (void)given;
    cs_window_say(false, &why);
    cs_ctl_bring_up_to_date();
    if (*cs_output_path()) say(answer, room, cs_answer_ok, "%s: %s", cs_ask_off, cs_output_path());
    else say(answer, room, cs_answer_ok, "%s", cs_ask_off);
}

static void answer_flush(char *given, char *answer, size_t room)
{
    (void)given;
    const bool all = cs_ctl_bring_up_to_date();
    if (*cs_output_path() && !all) say(answer, room, cs_answer_error, "not all of the trace could be written within %d s; the library goes on with it: %s", WRITER_MS / 1000, cs_output_path());
    else if (*cs_output_path()) say(answer, room, cs_answer_ok, "%s", cs_output_path());
    else say(answer, room, cs_answer_error, "nothing was recorded, so there is no file");
}

/* --- policy --- */

static char shown_policy[SHOWN_POLICY]; /* that came last, blanks outside of strings taken out */

static void shorten(const char *json)
{
    size_t n = 0;
    bool quoted = false;
    for (const char *p = json; *p && n < sizeof shown_policy - 4; p++) {
        if (*p == '"' && !(p > json && p[-1] == '\\')) quoted = !quoted;
        if (quoted || !strchr(" \t\r\n", *p)) shown_policy[n++] = *p;
    }
    strcpy(shown_policy + n, n == sizeof shown_policy - 4 ? "..." : "");
}

/* What a policy does to single operations it does whatever stream they are on. */
static bool acts_at_once(void)
{
    const struct cs_policy *p = cs_load_acq(&cs_policy_now);
    return p && (p->jitter.on || p->sharing.kind == CS_SHARING_SYNC);
}

bool cs_ctl_policy(const char *json, char *error, size_t room)
{
    if (!cs_policy_replace(json, error, room)) return false;
    if (!cs_mode_steer(cs_mode_of_policy(cs_policy_reach(cs_load_acq(&cs_policy_now))))) return snprintf(error, room, "the process is ending"), false;
    shorten(json);
    cs_window_policy(cs_name_text(cs_name_add_guest(shown_policy)));
    return true;
}

static void answer_policy(char *given, char *answer, size_t room)
{
    char error[1024] = "";
    if (!*given) say(answer, room, cs_answer_error, "%s: no JSON", cs_ask_policy);
    else if (!cs_ctl_policy(given, error, sizeof error)) say(answer, room, cs_answer_error, "%s", error);
    else say(answer, room, cs_answer_ok, "in force for streams that are made from now on%s", acts_at_once() ? "; waits and delays, for all" : "");
}

/* --- status --- */

static unsigned live_streams(void)
{
    unsigned n = 0;
    for (cs_u32 i = 0; i < cs_load(&cs_streams.high) && i < cs_streams.capacity; i++) {
        struct cs_stream *s = (struct cs_stream *)cs_pool_slot(&cs_streams, i);
        n += cs_load_acq(&s->object.ref) && cs_load_acq(&s->filled) && !cs_load(&s->object.ended) && cs_load(&s->origin) <= CS_STREAM_ADOPTED;
    }
    return n;
}

static const char *policy_in_words(char *text, size_t room)
{
    const struct cs_policy *p = cs_load_acq(&cs_policy_now);
    static const char *const defaults[] = {"", "", "per-thread default streams, ", "legacy default stream, "};
    if (!p) return "none";
    if (*shown_policy) return shown_policy;
    size_t n = cs_append(text, room, 0, "%s%s%s%s%s", defaults[p->default_stream], p->audit ? "audit, " : "",
                         p->priority.kind != CS_PRIORITY_KEEP || p->priority.strict ? "priorities, " : "",
                         p->sharing.kind != CS_SHARING_KEEP ? "shared streams, " : "", p->jitter.on ? "jitter, " : "");
    if (p->rule_count) cs_append(text, room, n, "%d rule%s", p->rule_count, p->rule_count == 1 ? "" : "s");
    else if (n > 2) text[n - 2] = 0;
    return text;
}

static void answer_status(char *given, char *answer, size_t room)
{
    char policy[160];
    (void)given;
    const char *why = cs_window_why_not(), *path = cs_output_path();
    const struct cs_totals_told told = *path ? cs_totals_told() : (struct cs_totals_told){0};
    bool records = cs_mode_records();
    say(answer, room, cs_answer_ok, "recording: %s%s%s%s; trace: %s; recorded: %llu; lost: %llu; streams: %u; policy: %s; gpu: %s%s", records ? cs_ask_on : cs_ask_off,
        records ? "" : " (", records ? "" : why ? why : "the process is ending", records ? "" : ")", *path ? path : "none", (unsigned long long)told.recorded,
        (unsigned long long)told.lost, live_streams(), policy_in_words(policy, sizeof policy), cs_gpu_source(), cs_gpu_rests() ? ", at rest" : "");
}

/* --- for custream ps, record and dump --- */

/* Fields in their order, a tab in front of each: none holds one. */
static void answer_about(char *given, char *answer, size_t room)
{
    enum { TEXT_MOST = CS_CONTROL_ANSWER / 2 };
    static char text[CS_CONTROL_ANSWER];
    char program[256];
    int world;
    (void)given;
    cs_process_name(program);
    const char *trace = cs_output_path(), *gpu = cs_gpu_source(), *why = cs_window_why_not();
    const struct cs_totals_told told = *trace ? cs_totals_told() : (struct cs_totals_told){0};
    const int pid = (int)getpid(), rank = cs_process_rank(&world), recording = cs_mode_records(), full = cs_window_is_full();
    const unsigned long long recorded = told.recorded, lost = told.lost, works = told.works, now = cs_clock_wall_now_ns();
    const unsigned long long events_end = *trace ? cs_output_events_end() : 0;
    cs_u64 at_device = 0, at_inode = 0;
    if (*trace) cs_output_shown_id(&at_device, &at_inode);
    const unsigned long long device = at_device, inode = at_inode, base = cs_clock_wall_base_ns();
    const unsigned long long streams = live_streams(), parts = cs_option_parts(CS_OPTION_TRACE_MAX);
    const char *why_not = recording ? "" : why ? why : "the process is ending";
    size_t n = cs_append(answer, room, 0, "%s", cs_answer_ok);
#define FIELD(name, format) \
    snprintf(text, TEXT_MOST, #name "=" format, name); \
    one_line(text); \
    n = cs_append(answer, room, n, "\t%s", text);
#define INT(name) FIELD(name, "%d")
#define NUMBER(name) FIELD(name, "%llu")
#define TEXT(name) FIELD(name, "%s")
#include "shim/base/control.def"
#undef FIELD
    cs_append(answer, room, n, "\n");
}

static void answer_record(char *given, char *answer, size_t room)
{
    const char *why;
    if (cs_mode_records()) cs_ctl_bring_up_to_date(); /* what was recorded before is counted before */
    if (cs_window_hold(CS_HELD_BY_RECORD, &why)) answer_about(given, answer, room);
    else say(answer, room, cs_answer_error, "%s", why);
}

void cs_ctl_end_record(char *answer, size_t room)
{
    cs_window_release(CS_HELD_BY_RECORD);
    cs_ctl_bring_up_to_date();
    if (room) answer_about(NULL, answer, room);
}

/* A recording that goes on takes any packet for its end (ctl.c). */
static void answer_end(char *given, char *answer, size_t room)
{
    (void)given;
    say(answer, room, cs_answer_error, "nothing is recorded for this connection");
}

/* --- all of them --- */

enum cs_ctl_then cs_ctl_answer(char *words, char *answer, size_t room)
{
    static const struct {
        const char *word;
        void (*answer)(char *given, char *answer, size_t room);
    } known[] = {
#define REQUEST(word, argument, text) {#word, answer_##word},
#include "shim/base/control.def"
    };
    size_t n = strcspn(words, " \t\r\n");
    char *given = words + n + strspn(words + n, " \t\r\n");
    for (size_t i = 0; i < CS_COUNT(known); i++) {
        if (strlen(known[i].word) != n || strncmp(known[i].word, words, n)) continue;
        known[i].answer(given, answer, room);
        return known[i].answer == answer_off ? CS_CTL_ENDS : known[i].answer == answer_record && *answer == 'o' ? CS_CTL_HOLDS : CS_CTL_DONE;
    }
    say(answer, room, cs_answer_error, "%.*s %s", n < 40 ? (int)n : 40, words, cs_answer_unknown);
    return CS_CTL_DONE;
}
