/* Which processes a command is about: -p PID, --all, --rank=N, --program=NAME. */
#ifndef CS_LIVE_CHOOSE_H
#define CS_LIVE_CHOOSE_H

#include <getopt.h>

#include "tools/custream/live/listener.h"

enum { CHOOSE_PID = 'p', CHOOSE_ALL = 0x100, CHOOSE_RANK, CHOOSE_PROGRAM, CHOOSE_YES, PIDS_MAX = 1024 };
#define CHOOSE_OPTIONS \
    {"pid", required_argument, NULL, CHOOSE_PID}, {"all", no_argument, NULL, CHOOSE_ALL}, {"rank", required_argument, NULL, CHOOSE_RANK}, \
        {"program", required_argument, NULL, CHOOSE_PROGRAM}, {"yes", no_argument, NULL, CHOOSE_YES}
#define CHOOSE_USAGE \
    "  -p, --pid=PID        this process; can be given several times\n" \
    "  --all                every process that 'custream ps' lists\n" \
    "  --rank=N             those of this rank\n" \
    "  --program=NAME       those whose executable or script has this name; * and ? stand for any letters\n" \
    "  --yes                root is not asked on a terminal whether processes of other users are meant too\n"

struct choice {
    int pids[PIDS_MAX];
    size_t pid_count;
    bool all, yes;
    int rank; /* if has_rank */
    bool has_rank;
    const char *program;
};

/* An option of the table; false: the complaint was printed. */
bool choice_take(const char *command, struct choice *choice, int option, const char *value);
bool choice_good(const char *command, const struct choice *choice);
/* Those who are meant, none of them connected. False: there is none, or root does not mean others' processes, which has been said. To be freed in any case. */
bool choice_find(const char *command, const struct choice *choice, struct listeners *found);

#endif
