/* Which processes a command is about: -p PID, --all, --rank=N, --program=NAME. */
#ifndef CS_LIVE_CHOOSE_H
#define CS_LIVE_CHOOSE_H

#include "tools/custream/commands.h"
#include "tools/custream/live/listener.h"

enum { PIDS_MAX = 1024 };

struct choice {
    int pids[PIDS_MAX];
    size_t pid_count;
    bool all, yes;
    int rank; /* if has_rank */
    bool has_rank;
    const char *program;
};

/* One of the options above; false: the complaint was printed. */
bool choice_take(const char *command, struct choice *choice, enum flag flag, const char *value);
bool choice_good(const char *command, const struct choice *choice);
/* Those who are meant, none of them connected. False: there is none, or root does not mean others' processes, which has been said. To be freed in any case. */
bool choice_find(const char *command, const struct choice *choice, struct listeners *found);

#endif
