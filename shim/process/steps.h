/*
 * What the layer above does at steps of the process. It defines the struct (wrap/steps.c), so that all of it is there before any constructor has run.
 */
#ifndef CS_PROCESS_STEPS_H
#define CS_PROCESS_STEPS_H

#include "shim/object/thread.h"

struct cs_process_steps {
    void (*driver_met)(void);                          /* its entry points are known. Before the mode leaves COLD, as are the next two */
    bool (*keeps_objects)(void);                       /* from now on. False: no memory, which has been said */
    void (*options_read)(void);
    void (*thread_starts)(struct cs_thread *thread);   /* to record: on that thread, at its first call */
    void (*window_opened)(cs_u64 ticks);               /* calls are recorded again, from then on; on whatever thread that came about */
    void (*after_fork_in_child)(void);
};
CS_HIDDEN extern const struct cs_process_steps cs_process_steps;

#endif
