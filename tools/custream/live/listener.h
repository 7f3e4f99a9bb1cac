/* Processes that listen, with what they say of themselves. */
#ifndef CS_LIVE_LISTENER_H
#define CS_LIVE_LISTENER_H

#include <stddef.h>

#include "tools/custream/live/peer.h"

struct listener {
    struct peer peer; /* connected only while it is asked */
    /* answers: `about` is known. If it was asked and `answers` is false, peer.error says why. */
    bool asked, answers;
    bool named; /* a complaint has named it */
    struct about about;
    char command[96]; /* "python3.11 train.py": executable, first argument */
};

struct listeners {
    struct listener **each; /* in the order of their pids, if listeners_find() has found them */
    size_t count, capacity;
    size_t left_out; /* how many more listen, and could not be asked */
};

/* Finds and asks all processes that listen. Says how many could not be asked. */
void listeners_find(const char *command, struct listeners *listeners);
/* Adds a process, without asking it anything. */
struct listener *listeners_add(struct listeners *listeners, const struct peer *peer);
/* Sends a request to all that answer, at once. Each has `patience_ms` to take it and to answer. */
void listeners_ask(
    const char *command, struct listeners *listeners, const char *request, int patience_ms);
/* Leaves a process out, and prints why (peer.error), but only once for each process. */
void listener_leave(const char *command, struct listener *listener);
/* Has the processes flush their files, and asks them for `about`. A process that does not answer or
 * has no file is left out. `none` completes the complaint "process N has recorded nothing, so ...".
 * A hung process answers too. */
void listeners_bring_up_to_date(const char *command, struct listeners *listeners, const char *none);
void listeners_free(struct listeners *listeners);

/* Whether `name`, which may have * and ?, fits the executable, argv[0] or the first argument. */
bool listener_is_named(const struct listener *listener, const char *name);

enum { SIZE_ROOM = 32 };
/* Returns the size of the process's file in bytes; -1: not known. */
long long listener_file_size(const struct listener *listener);
/* Writes a number of bytes for people, such as "1.2M"; "-" for -1. Returns `text`. */
const char *size_text(char text[SIZE_ROOM], long long bytes);

/* --- which processes are meant: -p PID, --all, --rank=N, --program=NAME --- */

enum { PIDS_MAX = 1024 };

struct choice {
    int pids[PIDS_MAX];
    size_t pid_count;
    bool all, yes;
    int rank; /* if has_rank */
    bool has_rank;
    const char *program;
    const char *to; /* -o; NULL: not given */
    int64_t time;   /* --duration or --last, in ns */
    bool json, whole;
};

/* Reads a command's options and calls `act` with the processes that are meant, none of them
 * connected. Returns what `act` returns. `more` ends the text "a process is named by -p PID". */
int choice_run(const char *command, struct choice *choice, const char *more, int argc, char **argv,
    int (*act)(const struct choice *, struct listeners *));

#endif
