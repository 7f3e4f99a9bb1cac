/*
 * What wrappers do: the one word that every one of them reads first.
 */
#ifndef CS_PROCESS_MODE_H
#define CS_PROCESS_MODE_H

#include "shim/object/thread.h"

/* Bits. Objects are kept up to date while calls are recorded, and while they are not but may be later or a policy may ask for them. */
enum cs_mode {
    CS_MODE_PASS = 0,   /* wrappers go straight on */
    CS_MODE_WATCH = 1,  /* objects are kept */
    CS_MODE_RECORD = 2, /* calls are recorded; only with WATCH */
    CS_MODE_COLD = 4,   /* the driver has not been met yet; alone */

    /* Which calls ask policies and hooks first; only with WATCH. A policy's bits stay for good: what was decided under one holds after it. */
    CS_MODE_OBJECTS = 8,   /* those that make, change or end what policies shape */
    CS_MODE_DEFAULTS = 16, /* those on default streams */
    CS_MODE_CALLS = 32,    /* all */
    CS_MODE_HOOKS = 64,    /* likewise, while there are hooks */
    CS_MODE_LEAVING = 128, /* HOOKS goes if there is no hook any more: mode.c's own, only with HOOKS */

    /* What recording takes besides; only with WATCH. */
    CS_MODE_COUNTER = 256, /* time is the processor's counter */
    CS_MODE_MARKS = 512,   /* calls that put work on a GPU are marked (gpu/mark.h) */

    CS_MODE_ALL = CS_MODE_RECORD | CS_MODE_COLD | CS_MODE_CALLS | CS_MODE_HOOKS, /* in which no call goes straight on */
    CS_MODE_STEER = CS_MODE_OBJECTS | CS_MODE_DEFAULTS | CS_MODE_CALLS | CS_MODE_HOOKS,
    CS_MODE_RECORDING = CS_MODE_WATCH | CS_MODE_RECORD,
    CS_MODE_SHORT = CS_MODE_RECORDING | CS_MODE_COUNTER, /* the common case, and the short way of wrappers: recorded, and nothing else */
};
CS_HIDDEN extern _Atomic unsigned cs_mode; /* written by mode.c alone */

static inline bool cs_mode_records(void) { return cs_load_acq(&cs_mode) & CS_MODE_RECORD; }

/* Wrappers ask policies and hooks from now on, by bits of STEER: those of a policy (enum cs_reach), or HOOKS until the last hook has gone. The hook is in its table
 * before. False: nothing is kept of calls, as there is no driver yet or the process has begun to end. Any thread. */
bool cs_mode_steer(unsigned bits);
unsigned cs_mode_of_policy(unsigned reach);
bool cs_mode_ever_steered(void);
void cs_mode_hook_gone(void); /* perhaps the last */

/* Objects are kept from now on, by bits of STEER; once the clock is known. Nothing is any more. */
void cs_mode_begin(bool records, unsigned steers);
void cs_mode_end(void);

/* Calls are recorded from now on, and no longer. False: it has ended. */
bool cs_mode_record(void);
void cs_mode_rest(void);
void cs_mode_after_fork_in_child(void);

/* Meets the driver: entry points, options, objects, clock. Starts no thread, opens no file. False while no driver is loaded. Any thread, any number
 * of times; a re-entering thread is answered false. */
bool cs_activate(void);

/* In a process of which nothing else was wanted: objects are kept from now on, and hooks are asked. False: it keeps none, as it has begun to end or has no
 * memory; or this thread is about to meet the driver. */
bool cs_activate_for_hooks(void);

/* Called once, when that has been done in a process whose objects are kept, on that thread: what stands above this layer begins. NULL: nothing. */
extern void (*cs_activated)(void);

/* The GPU backend is at work, or is known not to be: it will be ended before the driver is. */
void cs_gpu_is_ready(void);

/* The thread's state at a call that is to be recorded, watched or steered; NULL where it is none of it: all is off, or the call comes from inside a driver
 * call. */
struct cs_thread *cs_enter_slowly(void);

/* The process ends, or as good as: what was recorded is written, then nothing more is recorded. Safe in a signal handler. */
void cs_process_ends(void);

/* The process may be replaced by another program: what was recorded is written, and recording goes on in case it is not. */
void cs_process_execs(void);

#endif
