/* The watcher of `custream run` looks after the traces of a run, and ends with it. It is made
 * before `run` becomes the program, and is no child of it, in a session of its own: the program
 * cannot wait for it, and no signal of the program's reaches it. It says what each trace holds,
 * finishes those whose process a signal has ended, and has a report made. */
#ifndef CS_TOOLS_WATCH_H
#define CS_TOOLS_WATCH_H

#include "tools/custream/command.h"

struct watch_plan {
    bool quiet;  /* no closing lines */
    bool report; /* ends with the first screen of a report */
    bool off;    /* there will be no traces */
    bool unseen; /* it has been said that the program cannot be traced */
};

/* Makes the watcher, before exec, and sets the variable of its name. False: there is none. */
bool watch_start(const struct watch_plan *plan);

/* exec has failed: there is nothing to watch. */
void watch_cancel(void);

#endif
