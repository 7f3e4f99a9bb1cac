#include "tools/custream/live/choose.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <unistd.h>

#include "shim/base/owner.h"
#include "tools/custream/near.h"
#include "tools/custream/flags.h"
#include "tools/custream/live/cut.h"

static bool number_read(const char *text, long least, int *number)
{
    char *end;
    errno = 0;
    const long n = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || n < least || n > INT_MAX) return false;
    *number = (int)n;
    return true;
}

/* One option; false: the complaint was printed. */
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

static bool choice_good(const char *command, const struct choice *choice)
{
    const int ways = !!choice->pid_count + choice->all + choice->has_rank + !!choice->program;
    if (ways == 1) return true;
    if (ways) return complained(command, "-p, --all, --rank and --program: one of them");
    return complained(command,
        "which process? -p PID, --all, --rank=N or --program=NAME; 'custream "
        "ps' lists them");
}

/* --- who that is --- */

static bool is_meant(const struct choice *choice, const struct listener *listener)
{
    if (choice->has_rank) return listener->answers && listener->about.rank == choice->rank;
    return choice->all || listener_is_named(listener, choice->program);
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

/* --- whose they are --- */

static const char *user_name(char text[64], int uid)
{
    const struct passwd *user = getpwuid((uid_t)uid);
    if (user) snprintf(text, 64, "user %.32s", user->pw_name);
    else snprintf(text, 64, "user %d", uid);
    return text;
}

/* A line for each user who answered; whether another one than this command's is among them. */
static bool users_name(const char *command, const struct listeners *found)
{
    char name[64];
    bool others = false;
    for (size_t i = 0; i < found->count; i++)
        others |= found->each[i]->answers && !cs_owner_is_us((uid_t)found->each[i]->peer.uid);
    for (size_t i = 0; others && i < found->count; i++) {
        const int uid = found->each[i]->peer.uid;
        size_t before = 0, count = 0;
        for (size_t k = 0; k < found->count; k++)
            if (found->each[k]->answers && found->each[k]->peer.uid == uid)
                count++, before += k < i;
        if (found->each[i]->answers && !before)
            complain(
                command, "%s: %zu process%s", user_name(name, uid), count, count == 1 ? "" : "es");
    }
    return others;
}

static bool others_are_meant(
    const char *command, const struct choice *choice, const struct listeners *found)
{
    char answer[16] = "";
    if (geteuid() || !users_name(command, found)) return true;
    if (choice->yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) return true;
    fprintf(stderr, "%s: processes of other users are among them. Go on? [y/N] ", command);
    if (fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y')) return true;
    return complained(command, "nothing was done");
}

static bool is_there(const struct listeners *found, int pid)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->each[i]->peer.pid == pid) return true;
    return false;
}

/* False: there is none, or root does not mean others' processes, which has been said. */
static bool choice_find(const char *command, const struct choice *choice, struct listeners *found)
{
    *found = (struct listeners){0};
    if (!choice->pid_count)
        return named_find(command, choice, found) && others_are_meant(command, choice, found);
    for (size_t i = 0; i < choice->pid_count; i++) {
        struct peer peer;
        if (!peer_find(&peer, choice->pids[i])) return complained(command, "%s", peer.error);
        if (!is_there(found, peer.pid)) listeners_add(found, &peer);
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
    if (!choice_good(command, choice) || (choice->to && !cut_possible(command, choice->to)))
        return STATUS_UNUSABLE;
    const int status =
        choice_find(command, choice, &chosen) ? act(choice, &chosen) : STATUS_UNUSABLE;
    listeners_free(&chosen);
    return status;
}
