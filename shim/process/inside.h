/*
 * What the files of this folder share. Each says at its head what it does.
 */
#ifndef CS_PROCESS_INSIDE_H
#define CS_PROCESS_INSIDE_H

#include "shim/process/process.h"

/* --- mode.c: the word --- */

unsigned cs_mode_of_policy(unsigned reach);
bool cs_mode_ever_steered(void);

/* Objects are kept from now on, by bits of STEER; once the clock is known. Nothing is any more. */
void cs_mode_guard(void); /* while it is COLD: the calls of a child that nobody tells of go straight on */
void cs_mode_begin(bool records, unsigned steers);
void cs_mode_end(void);

/* The driver has gone before any call was watched: COLD again. There is one again: what it was before. */
void cs_mode_cool(void);
void cs_mode_warm_up(void);

/* Calls are recorded from now on, and no longer. False: it has ended. */
bool cs_mode_record(void);
void cs_mode_rest(void);
void cs_mode_after_fork_in_child(void);

/* --- start.c --- */

void cs_start_after_fork_in_child(void);

/* --- end.c --- */

/* This process may end the trace from now on; a child that shares its memory may not. */
void cs_end_begin(void);
bool cs_end_may(void);

/* Nothing is asked of this process, so nothing is kept of it. Something is: whether that is new. */
void cs_end_unwanted(void);
bool cs_end_wanted(void);
void cs_end_after_fork_in_child(void);

/* The GPU backend is at work, or is known not to be: it will be ended before the driver is. */
void cs_gpu_is_ready(void);

/* The process ends, or as good as: what was recorded is written, then nothing more is recorded. Safe in a signal handler. */
void cs_process_ends(void);

/* --- window.c --- */

/* By the options, once the clock runs and before the mode is set; in the child of a fork again. Whether calls are recorded from the start. */
bool cs_window_begin(void);
void cs_window_after_fork_in_child(void); /* before that */

/* The first call is being made: time windows count from here. Any thread, any number of times. */
void cs_window_first_call(void);

/* The control thread's. One more `custream record`, or the trigger: calls are recorded until as many releases; false where it can't be done, and why. */
enum cs_held_by { CS_HELD_BY_RECORD, CS_HELD_BY_TRIGGER, CS_HOLDERS };
bool cs_window_hold(enum cs_held_by who, const char **why_not);
void cs_window_release(enum cs_held_by who);

/* Likewise: what a recording needs is made ready, so that it begins at once when its time has come. And: it does not come after all. */
void cs_window_ready(void);
void cs_window_unready(void);
void cs_window_policy(const char *text); /* a policy is in force, which the trace tells among the steps of the window; the text lives as long as the process */
cs_u64 cs_window_due(void); /* opens and closes what is due; in how many nanoseconds it is to be called again; UINT64_MAX: never */

bool cs_window_is_full(void);        /* the file takes no more */
void cs_window_failed(void);         /* the file could not be opened, which has been said */
bool cs_window_may_open(void);       /* by itself, later; not where the file could not be opened */
bool cs_window_has_time(void);       /* it opens or closes by the clock */
const char *cs_window_why_not(void); /* why nothing is recorded; NULL: calls are */

/* The process ends: says so where nothing was recorded since the window never opened. Takes no lock, safe in a signal handler. */
void cs_window_end(void);

/* --- ctl.c, ctl_answer.c --- */

/* Starts it where it is wanted and not there. Any application thread, after the writer; keeps errno. */
void cs_ctl_start(void);
void cs_ctl_after_fork_in_child(void);

/* One request, to be answered in one line. `words` ends with 0. The control thread's. HOLDS: calls are recorded until cs_ctl_end_record, whose answer goes to
 * the same client; ENDS: nobody holds any longer (`off`). */
enum cs_ctl_then { CS_CTL_DONE, CS_CTL_HOLDS, CS_CTL_ENDS };
enum cs_ctl_then cs_ctl_answer(char *words, char *answer, size_t room);
void cs_ctl_end_record(char *answer, size_t room);

/* A policy comes into force, and the trace tells. False, and a line that says why not. The control thread's. */
bool cs_ctl_policy(const char *json, char *error, size_t room);
bool cs_ctl_bring_up_to_date(void); /* the file; false: not all is in it yet */

/* --- trigger.c: the control thread's --- */

bool cs_trigger_wanted(void); /* any thread */
void cs_trigger_begin(bool apart); /* the thread begins; `apart`: it may open files */
cs_u64 cs_trigger_due(void);  /* does what is due; in how many nanoseconds it is to be called again; UINT64_MAX: never */
void cs_trigger_end(void);    /* its recording ends now */
void cs_trigger_after_fork_in_child(void);

#endif
