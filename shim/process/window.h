/*
 * When calls are recorded: CUSTREAM_WINDOW, cuProfilerStart and cuProfilerStop, and what `custream ctl` asks for, which beats both from then on.
 * `custream record` holds the window open for a while, whatever the others say.
 *
 * While the window is closed wrappers keep objects and record nothing, and the GPU backend is held back. Whoever opens or closes it holds a lock of the
 * lowest rank (docs/locks.md): application threads in the two profiler calls, the control thread for the rest. The writer alone closes it without the lock,
 * once and for good, when the file takes no more (cs_writer_full). No recorded call takes the lock, nor does the end of the process. What comes of it
 * stands in the mode word alone; RECORD is set there only while it has CS_MODE_WATCH.
 */
#ifndef CS_PROCESS_WINDOW_H
#define CS_PROCESS_WINDOW_H

#include "shim/base/compiler.h"

/* By the options, once the clock runs and before the mode is set; in the child of a fork again. Whether calls are recorded from the start. */
bool cs_window_begin(void);
void cs_window_after_fork_in_child(void); /* before that */

/* The first call is being made: time windows count from here. Any thread, any number of times. */
void cs_window_first_call(void);

/* cuProfilerStart and cuProfilerStop succeeded, on this thread. When it returns with an open window the next launch has its GPU time. */
void cs_window_profiler(bool starts);

/* The control thread's: `custream ctl PID on|off`; false where it can't be done, and why. Opens and closes what is due, and tells in how many nanoseconds
 * it is to be called again; UINT64_MAX: never. */
bool cs_window_say(bool on, const char **why_not);
/* One more `custream record`: calls are recorded until as many releases; false where it can't be done, and why. */
bool cs_window_hold(const char **why_not);
void cs_window_release(void);
void cs_window_policy(const char *text); /* a policy is in force, which the trace tells among the steps of the window; the text lives as long as the process */
cs_u64 cs_window_due(void);

bool cs_window_is_full(void);        /* the file takes no more */
void cs_window_failed(void);         /* the file could not be opened, which has been said */
bool cs_window_may_open(void);       /* by itself, later; not where the file could not be opened */
bool cs_window_has_time(void);       /* it opens or closes by the clock */
const char *cs_window_why_not(void); /* why nothing is recorded; NULL: calls are */

/* The process ends: says so where nothing was recorded since the window never opened. Takes no lock, safe in a signal handler. */
void cs_window_end(void);

#endif
