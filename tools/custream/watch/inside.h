/* Declarations that the files of the watcher share. */
#ifndef CS_TOOLS_WATCH_INSIDE_H
#define CS_TOOLS_WATCH_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tools/custream/mend/mend.h"
#include "tools/custream/watch/watch.h"

#include "shim/base/verdict.h"

/* --- watch.c --- */

/* How many descriptors the watcher needs for one process, and how many stay free for all else. */
enum { WATCH_OF_ONE = 5, WATCH_KEPT_FREE = 16 };

struct watched {
    struct watch_plan plan;
    /* listener: the socket that processes connect to. root: the program's pidfd. leash: the read
     * end of a pipe, which ends without a byte if exec works, and has a byte if exec fails. */
    int listener, root, leash;
    pid_t root_pid;
    char *folder; /* the folder in which the run was started */
};
_Noreturn void watch_run(struct watched *watched);

/* --- tell.c: what the watcher says on stderr --- */

/* The state of the watcher's messages about a run: what it has said, and sums for the end. */
struct told {
    /* the folder in which the run was started; messages show paths from there */
    const char *folder;
    bool quiet;
    int lines;
    pid_t stranger; /* the last other user's process that called CUDA; or 0 */
    struct {
        unsigned long long files, calls, operations,
            execs; /* execs: how many of the files are incomplete because of an exec */
    } more;        /* sums over traces without a line of their own */
    struct unused {
        int rule;
        char *match;
        size_t traces; /* how many traces did not use the rule */
    } *unused;         /* rules of the policy that the first trace did not use */
    size_t unused_count, unused_capacity, traces;
    bool per_thread; /* some process has per-thread default streams */
    char **files;
    size_t file_count, file_capacity;
};

/* A trace that has ended. */
struct told_trace {
    const char *path;
    struct cJSON *trailer; /* NULL: the trace has no end that can be read */
    const char *by; /* what ended the process before the library could say anything; or NULL */
    bool quiet;
    bool apart; /* for the process the path leads to another folder than for the watcher */
    bool there; /* the file still has that name in its folder */
};
void tell_trace(struct told *told, const struct told_trace *trace);

/* Says what is left to say when the program has ended. `met`: some process used CUDA. */
void tell_end(struct told *told, bool met, const struct watch_plan *plan);

/* Prints the sections "run" and "findings" of each trace's report to stdout, which is a copy of
 * stderr. */
void tell_report(const struct told *told);

#endif
