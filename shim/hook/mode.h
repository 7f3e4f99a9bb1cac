/*
 * What wrappers do: the one word that every one of them reads first.
 */
#ifndef CS_HOOK_MODE_H
#define CS_HOOK_MODE_H

#include "shim/object/thread.h"

/* Bits. Objects are kept up to date while calls are recorded, and while they are not but may be later or a policy may ask for them. */
enum cs_mode {
    CS_MODE_PASS = 0,   /* wrappers go straight on */
    CS_MODE_WATCH = 1,  /* objects are kept */
    CS_MODE_RECORD = 2, /* calls are recorded; only with WATCH */
    CS_MODE_STEER = 4,  /* there are hooks, or a policy is in force, or was when some stream was made; only with WATCH */
    CS_MODE_COLD = 8,   /* the driver has not been met yet; alone */
    CS_MODE_LEAVING = 16, /* STEER goes if there is no hook any more: mode.c's own, only with STEER */
    CS_MODE_RECORDING = CS_MODE_WATCH | CS_MODE_RECORD, /* the common case: recorded, no policy */
};
CS_HIDDEN extern _Atomic unsigned cs_mode;

static inline bool cs_mode_records(void) { return cs_load_acq(&cs_mode) & CS_MODE_RECORD; }

/* Wrappers ask policies and hooks from now on: for a policy for good, for hooks until the last one has gone. The hook is in its table before. False: nothing is
 * kept of calls, as there is no driver yet or the process has begun to end. Any thread. */
enum cs_steers { CS_STEERS_HOOKS, CS_STEERS_POLICY };
bool cs_mode_steer(enum cs_steers by);
void cs_mode_steered(enum cs_steers by); /* what activation does of it: the mode is its own to set */
bool cs_mode_ever_steered(void);
void cs_mode_hook_gone(void);            /* perhaps the last */
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
