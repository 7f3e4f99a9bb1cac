#define _GNU_SOURCE
#include "tools/custream/live/live.h"
#include "shim/base/owner.h"
#include "tools/custream/near.h"
#include "tools/custream/flags.h"

#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>
#include <errno.h>
#include <pwd.h>

enum { PATIENCE_MS = 3000 };

/* --- the name of a process --- */

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Returns the first argument that is no option, without its folders; "": there is none. `line`:
 * /proc/PID/cmdline. */
static const char *first_argument(const char *line)
{
    for (line += strlen(line) + 1; *line == '-'; line += strlen(line) + 1) continue;
    return last_name(line);
}

static void command_note(struct listener *listener)
{
    char line[4096];
    proc_read(listener->peer.pid, "cmdline", line, sizeof line);
    const char *program = listener->answers ? listener->about.program : last_name(line),
               *argument = *line ? first_argument(line) : "";
    char text[sizeof listener->command], *to = listener->command;
    struct glyph glyph;
    snprintf(text, sizeof text, "%.60s%s%.32s", program, *argument ? " " : "", argument);
    for (const char *at = text; (at = glyph_next(at, &glyph)) &&
                                to + glyph.length < listener->command + sizeof listener->command;
        to += glyph.length)
        memcpy(to, glyph.bytes, (size_t)glyph.length);
    *to = 0;
}

/* --- all processes that listen --- */

/* Adds a process, without asking it anything. */
static struct listener *listeners_add(struct listeners *listeners, const struct peer *peer)
{
    struct listener *listener = array_zeros(1, sizeof *listener);
    listeners->each = array_room(
        listeners->each, listeners->count, &listeners->capacity, sizeof *listeners->each);
    listeners->each[listeners->count++] = listener;
    listener->peer = *peer;
    command_note(listener);
    return listener;
}

/* Reads the answers of all processes that were asked. With `command`, a process that does not
 * answer is left out with a complaint; NULL: without a complaint. */
static void listeners_hear(const char *command, struct listeners *listeners, bool about)
{
    static char answer[CS_CONTROL_ANSWER];
    for (size_t i = 0; i < listeners->count; i++) {
        struct listener *listener = listeners->each[i];
        if (!listener->answers) continue;
        listener->answers = about ? peer_hear_about(&listener->peer, &listener->about)
                                  : peer_hear(&listener->peer, answer);
        if (!listener->answers && command) listener_leave(command, listener);
        peer_close(&listener->peer);
    }
}

COMPARES(by_pid, struct listener *const, ORDER((*a)->peer.pid, (*b)->peer.pid))

static void listener_ask(void *of, struct peer *found)
{
    struct listener *listener = listeners_add(of, found);
    struct peer *peer = &listener->peer;
    listener->asked = true;
    if (peer_is_stopped(peer->pid))
        snprintf(peer->error, sizeof peer->error, "process %d is stopped", peer->pid);
    else listener->answers = peer_ask(peer, cs_ask_about);
    if (!listener->answers) peer_close(peer);
}

void listeners_find(const char *command, struct listeners *listeners)
{
    *listeners = (struct listeners){0};
    listeners->left_out = peers_each(listener_ask, listeners);
    if (listeners->left_out)
        complain(command,
            "%zu more that listen could not be asked: ulimit -n allows no more open files",
            listeners->left_out);
    const long until = peer_clock_ms() + PATIENCE_MS; /* for all together */
    for (size_t i = 0; i < listeners->count; i++) listeners->each[i]->peer.until = until;
    listeners_hear(NULL, listeners, true);
    for (size_t i = 0; i < listeners->count; i++) command_note(listeners->each[i]);
    if (listeners->count) qsort(listeners->each, listeners->count, sizeof *listeners->each, by_pid);
}

/* --- asking again --- */

void listener_leave(const char *command, struct listener *listener)
{
    if (!listener->named) complain(command, "%s", listener->peer.error);
    listener->named = true;
    listener->answers = false;
    peer_close(&listener->peer);
}

void listeners_ask(
    const char *command, struct listeners *listeners, const char *request, int patience_ms)
{
    struct peer **each = array_zeros(listeners->count, sizeof *each);
    size_t count = 0;
    for (size_t i = 0; i < listeners->count; i++) {
        struct listener *listener = listeners->each[i];
        struct peer *peer = &listener->peer;
        if ((listener->asked && !listener->answers) || !peer_find(peer, peer->pid)) continue;
        peer->until = peer_clock_ms() + patience_ms;
        each[count++] = peer;
    }
    peers_ask(each, count, request);
    free(each);
    for (size_t i = 0; i < listeners->count; i++) {
        struct listener *listener = listeners->each[i];
        listener->asked = true;
        listener->answers = listener->peer.fd >= 0;
        if (!listener->answers) listener_leave(command, listener);
    }
}

void listeners_bring_up_to_date(const char *command, struct listeners *listeners, const char *none)
{
    enum { ALONE_MS = 20000, TOGETHER_MS = 8000 };
    const int patience_ms = listeners->count > 1 ? TOGETHER_MS : ALONE_MS;
    for (int about = 0; about < 2; about++) {
        listeners_ask(command, listeners, about ? cs_ask_about : cs_ask_flush, patience_ms);
        listeners_hear(command, listeners, about);
    }
    for (size_t i = 0; i < listeners->count; i++) {
        struct listener *listener = listeners->each[i];
        if (!listener->answers || *listener->about.trace) continue;
        snprintf(listener->peer.error, sizeof listener->peer.error,
            "process %d (%s) has recorded nothing, so %s; 'custream record' has it record",
            listener->peer.pid, listener->command, none);
        listener_leave(command, listener);
    }
}

void listeners_free(struct listeners *listeners)
{
    for (size_t i = 0; i < listeners->count; i++) free(listeners->each[i]);
    free(listeners->each);
}

/* Takes one option; false: the complaint was printed. */
static bool choice_take(const char *command, struct choice *choice, int flag, const char *value)
{
    switch (flag) {
    case FLAG_ALL: return choice->all = true;
    case FLAG_YES: return choice->yes = true;
    case FLAG_JSON: return choice->json = true;
    case FLAG_WHOLE: return choice->whole = true;
    case FLAG_PROGRAM: return (choice->program = value);
    case FLAG_OUTPUT: return (choice->to = value);
    case FLAG_LAST: return duration_take(command, "last", value, &choice->time);
    case FLAG_DURATION: return duration_take(command, "duration", value, &choice->time);
    case FLAG_RANK:
        choice->has_rank = number_read(value, 0, &choice->rank);
        return choice->has_rank ||
               complained(command, "--rank=%.60s: allowed is a number from 0 on", value);
    }
    if (choice->pid_count == PIDS_MAX)
        return complained(command, "more than %d processes", PIDS_MAX);
    if (number_read(value, 1, &choice->pids[choice->pid_count])) return ++choice->pid_count;
    return complained(command, "'%.60s' is no process id", value);
}

/* --- which processes are meant --- */

/* Whether --rank, --program (which may have * and ?) or --all means the process. */
static bool is_meant(const struct choice *choice, const struct listener *listener)
{
    char line[4096];
    if (choice->has_rank) return listener->answers && listener->about.rank == choice->rank;
    if (choice->all) return true;
    proc_read(listener->peer.pid, "cmdline", line, sizeof line);
    const char *names[] = {listener->answers ? listener->about.program : "", last_name(line),
        *line ? first_argument(line) : ""};
    for (size_t i = 0; i < CS_COUNT(names); i++)
        if (*names[i] && !fnmatch(choice->program, names[i], 0)) return true;
    return false;
}

static bool named_find(const char *command, const struct choice *choice, struct listeners *found)
{
    listeners_find(command, found);
    const size_t listening = found->count;
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++) {
        if (is_meant(choice, found->each[i])) found->each[kept++] = found->each[i];
        else free(found->each[i]);
    }
    found->count = kept;
    if (kept) return true;
    if (!listening)
        complain(command,
            "no process of yours listens; one does once it calls CUDA under 'custream run'");
    else if (choice->has_rank)
        complain(command, "no process of rank %d listens; 'custream ps' lists those that do",
            choice->rank);
    else
        complain(command, "no process named '%.60s' listens; 'custream ps' lists those that do",
            choice->program);
    return false;
}

/* Whether processes of other users than this command's answered. Names these users. */
static bool users_name(const char *command, const struct listeners *found)
{
    bool others = false;
    for (size_t i = 0; i < found->count; i++)
        others |= found->each[i]->answers && !cs_owner_is_us((uid_t)found->each[i]->peer.uid);
    for (size_t i = 0; others && i < found->count; i++) {
        const int uid = found->each[i]->peer.uid;
        const struct passwd *user = getpwuid((uid_t)uid);
        char number[16];
        size_t before = 0, count = 0;
        for (size_t k = 0; k < found->count; k++)
            if (found->each[k]->answers && found->each[k]->peer.uid == uid)
                count++, before += k < i;
        snprintf(number, sizeof number, "%d", uid);
        if (found->each[i]->answers && !before)
            complain(command, "user %.32s: %zu process%s", user ? user->pw_name : number, count,
                count == 1 ? "" : "es");
    }
    return others;
}

/* Finds the processes that are meant. False, with a complaint: none fits, a process given by -p
 * cannot be reached, or root was asked whether other users' processes are meant and did not say
 * yes. */
static bool choice_find(const char *command, const struct choice *choice, struct listeners *found)
{
    *found = (struct listeners){0};
    if (!choice->pid_count) {
        char answer[16] = "";
        if (!named_find(command, choice, found)) return false;
        if (geteuid() || !users_name(command, found) || choice->yes || !isatty(STDIN_FILENO) ||
            !isatty(STDERR_FILENO))
            return true;
        fprintf(stderr, "%s: processes of other users are among them. Go on? [y/N] ", command);
        if (fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y')) return true;
        return complained(command, "nothing was done");
    }
    for (size_t i = 0; i < choice->pid_count; i++) {
        struct peer peer;
        if (!peer_find(&peer, choice->pids[i])) return complained(command, "%s", peer.error);
        size_t same = 0;
        while (same < found->count && found->each[same]->peer.pid != peer.pid) same++;
        if (same == found->count) listeners_add(found, &peer);
    }
    return true;
}

int choice_run(const char *command, struct choice *choice, const char *more, int argc, char **argv,
    int (*act)(const struct choice *, struct listeners *))
{
    struct listeners chosen;
    int flag;
    while ((flag = flags_next(argc, argv, 0)) != -1)
        if (!choice_take(command, choice, flag, optarg)) return STATUS_UNUSABLE;
    if (optind < argc)
        return complain(
            command, "'%.60s' is no option; a process is named by -p PID%s", argv[optind], more);
    const int ways = !!choice->pid_count + choice->all + choice->has_rank + !!choice->program;
    if (ways != 1)
        return complain(command,
            ways ? "-p, --all, --rank and --program: one of them"
                 : "which process? -p PID, --all, --rank=N or --program=NAME; 'custream ps' lists "
                   "them");
    if (choice->to && !cut_possible(command, choice->to)) return STATUS_UNUSABLE;
    const int status =
        choice_find(command, choice, &chosen) ? act(choice, &chosen) : STATUS_UNUSABLE;
    listeners_free(&chosen);
    return status;
}
