/* Which running processes are meant: -p PID, --all, --rank=N, --program=NAME. */
#ifndef CS_LIVE_CHOOSE_H
#define CS_LIVE_CHOOSE_H

#include "tools/custream/live/listener.h"

enum { PIDS_MAX = 1024 };

struct choice {
    int pids[PIDS_MAX];
    size_t pid_count;
    bool all, yes;
    int rank; /* if has_rank */
    bool has_rank;
    const char *program;
    const char *to; /* -o; NULL: not given */
    int64_t time;   /* --duration, --last */
    bool json, whole;
};

/* Reads a command's options, and has `act` do it with who is meant, none of them connected; returns
 * what that returns. `more`: behind "a process is named by -p PID". */
int choice_run(const char *command, struct choice *choice, const char *more, int argc, char **argv,
    int (*act)(const struct choice *, struct listeners *));

#endif
