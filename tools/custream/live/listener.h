/* Processes that listen, with what they say of themselves. */
#ifndef CS_LIVE_LISTENER_H
#define CS_LIVE_LISTENER_H

#include <stddef.h>

#include "tools/custream/live/peer.h"

struct listener {
    struct peer peer; /* connected only while it is asked */
    bool asked,
        answers; /* answers: about is known; else, of one that was asked, peer.error says why not */
    bool named;  /* which has been said */
    struct about about;
    char command[96]; /* "python3.11 train.py": executable, first word */
};

struct listeners {
    struct listener **each; /* by pid */
    size_t count, capacity;
    size_t left_out; /* more that listen, which could not be asked */
};

/* Who could not be asked is said. */
void listeners_find(const char *command, struct listeners *listeners);
/* One more, which is not asked anything. */
struct listener *listeners_add(struct listeners *listeners, const struct peer *peer);
/* Asks all at once but those who did not answer, and waits for `patience_ms`. */
void listeners_ask(
    const char *command, struct listeners *listeners, const char *request, int patience_ms);
/* It is left out, for the reason in peer.error, which is said once. */
void listener_leave(const char *command, struct listener *listener);
/* Brings their files up to date, and `about`. Who does not answer or has no file is named, with
 * `none` as what comes of that, and `answers` is false then. A hung process answers too. */
void listeners_bring_up_to_date(const char *command, struct listeners *listeners, const char *none);
void listeners_free(struct listeners *listeners);

/* By the executable, argv[0] or the first word behind it; `name` may have * and ?. */
bool listener_is_named(const struct listener *listener, const char *name);

enum { SIZE_ROOM = 32 };
/* Bytes of its file, -1 where that can't be told; and a number of bytes for people, "1.2M". */
long long listener_file_size(const struct listener *listener);
const char *size_text(char text[SIZE_ROOM], long long bytes);

/* --- which are meant: -p PID, --all, --rank=N, --program=NAME --- */

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
