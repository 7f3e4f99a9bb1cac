/*
 * Whether calls are recorded: the one word that every wrapper reads first.
 */
#ifndef CS_HOOK_MODE_H
#define CS_HOOK_MODE_H

#include "shim/object/thread.h"

enum cs_mode {
    CS_MODE_COLD,   /* the driver has not been met yet */
    CS_MODE_PASS,   /* tracing is off: wrappers go straight on */
    CS_MODE_RECORD,
};
CS_HIDDEN extern _Atomic unsigned cs_mode;

/* Meets the driver: entry points, options, objects, clock. Starts no thread, opens no file. False while no driver is loaded. Any thread, any number
 * of times; a re-entering thread is answered false. */
bool cs_activate(void);

/* The thread's state at a call that is to be recorded, NULL where it is not: tracing is off, or the call comes from inside a driver call. */
struct cs_thread *cs_enter_slowly(void);

/* The process ends, or as good as: what was recorded is written, then nothing more is recorded. Safe in a signal handler. */
void cs_process_ends(void);

/* The process may be replaced by another program: what was recorded is written, and recording goes on in case it is not. */
void cs_process_execs(void);

#endif
