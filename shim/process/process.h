/*
 * The process: its start and end, and what is done of its calls meanwhile, for the layers above. Any thread calls these functions.
 */
#ifndef CS_PROCESS_PROCESS_H
#define CS_PROCESS_PROCESS_H

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
CS_HIDDEN extern _Atomic unsigned cs_mode; /* what wrappers read first; written by mode.c alone */

/* On the way of a call: what the mode stands for, above all cs_real, is read after it. x86-64 keeps the order of loads by itself. */
#if defined(__x86_64__)
#define cs_mode_first() cs_load(&cs_mode)
#else
#define cs_mode_first() cs_load_acq(&cs_mode)
#endif
static inline bool cs_mode_records(void) { return cs_load_acq(&cs_mode) & CS_MODE_RECORD; }

/* Wrappers ask policies and hooks from now on, by bits of STEER: those of a policy (enum cs_reach), or HOOKS until the last hook has gone. The hook is in its table
 * before. False: nothing is kept of calls, as there is no driver yet or the process has begun to end. */
bool cs_mode_steer(unsigned bits);
void cs_mode_hook_gone(void); /* perhaps the last */

/* Meets the driver: entry points, options, objects, clock. Starts no thread, opens no file. False while no driver is loaded. Any number of times; a
 * re-entering thread is answered false. */
bool cs_activate(void);

/* The program is about to close a library, on a thread that may take the loader's lock; it has closed it. A driver of which calls have been watched stays: our
 * tables and threads know it. Another one may go, and is met anew when it is back. */
void cs_driver_closing(void);
void cs_driver_closed(void);

/* In a process of which nothing else was wanted: objects are kept from now on, and hooks are asked. False: it keeps none, as it has begun to end or has no
 * memory; or this thread is about to meet the driver. */
bool cs_activate_for_hooks(void);

/* Called once, when that has been done in a process whose objects are kept, on that thread: what stands above this layer begins. NULL: nothing. */
extern void (*cs_activated)(void);

/* The thread's state at a call that is to be recorded, watched or steered; NULL where it is none of it: all is off, or the call comes from inside a driver
 * call. */
struct cs_thread *cs_enter_slowly(void);

/* cuProfilerStart and cuProfilerStop succeeded, on this thread. When it returns with an open window the next launch has its GPU time. */
void cs_window_profiler(bool starts);

/* Recording goes on or off, as `custream ctl PID on|off` has it. False where it can't be done, and why. */
bool cs_window_say(bool on, const char **why_not);

/* What the layer above does at steps of the process. It defines the struct (wrap/steps.c), so that all of it is there before any constructor has run. */
struct cs_process_steps {
    void (*driver_met)(void);                          /* its entry points are known, or it has gone. While the mode is COLD, as are the next two */
    bool (*keeps_objects)(void);                       /* from now on. False: no memory, which has been said */
    void (*options_read)(void);
    void (*thread_starts)(struct cs_thread *thread);   /* to record: on that thread, at its first call */
    void (*window_opened)(cs_u64 ticks);               /* calls are recorded again, from then on; on whatever thread that came about */
    void (*after_fork_in_child)(void);
};
CS_HIDDEN extern const struct cs_process_steps cs_process_steps;

#endif
