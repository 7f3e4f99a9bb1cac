/* The watcher's own files. */
#ifndef CS_TOOLS_WATCH_INSIDE_H
#define CS_TOOLS_WATCH_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tools/custream/mend/mend.h"
#include "tools/custream/watch/watch.h"

#include "shim/base/verdict.h"

/* --- watch.c --- */

/* Descriptors: of one process, and for all else. */
enum { WATCH_OF_ONE = 5, WATCH_KEPT_FREE = 16 };

struct watched {
    struct watch_plan plan;
    int listener, root, leash; /* a socket; the program's pidfd; readable, if empty, after exec */
    pid_t root_pid;
    char *folder; /* in which the run was started */
};
_Noreturn void watch_run(struct watched *watched);

/* --- tell.c: what the watcher says on stderr --- */

/* What has been told of a run so far. */
struct told {
    const char *folder; /* in which it was started: files are shown from there */
    bool quiet;
    int lines;
    pid_t stranger; /* the last other user's process that called CUDA; or 0 */
    struct {
        unsigned long long files, calls, operations,
            execs; /* execs: ended by that, so what was still to come is not known */
    } more;        /* for which there was no line of their own */
    struct unused {
        int rule;
        char *match;
        size_t traces; /* in which it was not used */
    } *unused;         /* rules of the policy */
    size_t unused_count, unused_capacity, traces;
    bool per_thread; /* default streams, in some process */
    char **files;
    size_t file_count, file_capacity;
};

/* A trace that has ended. */
struct told_trace {
    const char *path;
    struct cJSON *trailer; /* NULL: it has no end that can be read */
    const char *by; /* it was ended so from outside, and the library could not say anything */
    bool quiet;
    bool apart; /* its folder is another one than the path leads to here */
    bool there; /* the file has that name, in its folder */
};
void tell_trace(struct told *told, const struct told_trace *trace);

/* The program has ended. `met`: some process used CUDA. */
void tell_end(struct told *told, bool met, const struct watch_plan *plan);

/* Run and findings of each trace, to stdout, which is a copy of stderr. */
void tell_report(const struct told *told);

#endif
