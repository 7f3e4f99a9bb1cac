/*
 * The watcher of `custream run`: a process that looks after the traces of a run, and ends with it.
 *
 * `run` becomes the program. So the watcher is made before that, by two forks, and is no child of
 * the program: the program cannot wait for it, and is sent no signal by it. It has a session of its
 * own, so that signals for the program's group and terminal do not reach it. It keeps no descriptor
 * of the program's but stderr, and gives that up when the program has ended.
 *
 * It learns of traces from the library (shim/base/watch.h). It says what each of them holds,
 * finishes those whose process a signal has ended, and has a report made.
 */
#ifndef CS_TOOLS_WATCH_H
#define CS_TOOLS_WATCH_H

#include <stdbool.h>

struct watch_plan {
    bool quiet;  /* no closing lines */
    bool report; /* ends with the first screen of a report */
    bool off;    /* there will be no traces */
    bool unseen; /* it has been said that the program cannot be traced */
};

/* Makes the watcher of the calling process, if that can be, and sets the variable by which the
 * library finds it. Before exec. False: there is none. */
bool watch_start(const struct watch_plan *plan);

/* exec has failed: there is nothing to watch. */
void watch_cancel(void);

#endif
