/* The watcher of `custream run` looks after the traces of a run, and ends with it. It says what
 * each trace holds, finishes the traces of processes that a signal has ended, and has a report
 * made.
 *
 * The watcher is made before `run` becomes the program. It is no child of the program, which cannot
 * wait for it. It has a session of its own, so no signal to the program's group reaches it. */
#ifndef CS_TOOLS_WATCH_H
#define CS_TOOLS_WATCH_H

#include "tools/custream/command.h"

struct watch_plan {
    bool quiet;  /* prints no closing lines */
    bool report; /* prints the first screen of a report at the end */
    bool off;    /* there will be no traces */
    bool unseen; /* the user was told that the program cannot be traced */
};

/* Makes the watcher, before exec, and sets CS_WATCH_VARIABLE to its name. False: no watcher was
 * made. */
bool watch_start(const struct watch_plan *plan);

/* Ends the watcher: exec has failed, so there is nothing to watch. */
void watch_cancel(void);

#endif
