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
    int listener, root, leash; /* the socket; a pidfd of the program; becomes readable when exec was called, empty if that went well */
    pid_t root_pid;
    char *folder;              /* in which the run was started */
};
_Noreturn void watch_run(struct watched *watched);

/* --- ended.c: how a process ended --- */

/* A pidfd, and the open /proc/PID/stat; -1 each where it cannot be had. `status`: as waitpid has it, if it is known. */
struct ending {
    int pidfd, stat, status;
    bool known;
};
struct ending ending_of(int socket, pid_t pid); /* of the process at the other end of the socket */
void ending_close(struct ending *ending);

/* The process has hung up. It closes its descriptors before its parent hears of its end: so where only the parent is told how it ended, it is mostly seen here. */
void ending_begins(struct ending *ending);

/* Once the pidfd is readable: "SIGTERM", or "exit_group" where the process left without the library's knowing. "an unknown cause" where the system does not tell
 * (before Linux 6.16 it tells only until the parent has asked). */
const char *ending_name(struct ending *ending, char *room, size_t size);

#endif
