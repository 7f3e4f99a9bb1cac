/*
 * The aide, "custream-aide": a thread of ours that has the program's descriptors and does what threads apart must not do (base/apart.h).
 *
 * It prints what they log, makes threads that CUDA and CUPTI are called on, opens plug-ins, and ends the process where nobody else is left to do so. It sleeps until it is asked
 * and looks once a second whether a thread of ours was killed. It opens nothing before main has left, and ends with the process.
 */
#ifndef CS_BASE_AIDE_H
#define CS_BASE_AIDE_H

#include "shim/base/compiler.h"
#include "shim/base/worker.h"

/* Starts it unless that has been tried. Any application thread, and a signal handler; keeps errno. */
void cs_aide_start(void);

/* cs_worker_start, for all workers that live on: only where there is an aide, which is started for it. Without one nobody could end the
 * process once main has left by pthread_exit, so nothing of ours may live then. */
bool cs_aide_start_worker(struct cs_worker *worker, void *(*run)(void *));

/* Has it call that function, after what others have asked for, and waits until it has, at most so long. False: it has not been called yet, or
 * there is no aide. 0: does not wait; true says that it will be called. */
bool cs_aide_run(void (*task)(void), unsigned timeout_ms);
bool cs_aide_lives(void); /* else it has been said why not, and what comes of it */
bool cs_aide_is_free(void); /* it has nothing to do: a plug-in, say, may keep it for as long as it waits for another thread */

/* Has it look whether the process is over (base/over.h), where no other thread of ours can. */
void cs_aide_watch(void);

/* By a filter of the kernel's: then nobody of ours could end the process, and the writer and the GPU thread do not stay. */
bool cs_aide_was_killed(void);

/* A task for it: the process ends, as it does when the last of its threads ends. */
void cs_aide_exit(void);

void cs_aide_after_fork_in_child(void);

#endif
