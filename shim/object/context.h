/*
 * Contexts: which one is current on a thread, without asking the driver on every call.
 *
 * The wrapped context calls keep each thread's view; a thread that was never seen to set one asks once. When a context ends, its streams and
 * events end with it, and cs_context_epoch moves so that other threads look again.
 */
#ifndef CS_OBJECT_CONTEXT_H
#define CS_OBJECT_CONTEXT_H

#include "shim/object/map.h"
#include "shim/object/thread.h"

struct cs_context {
    struct cs_object object;
    /* set once, before the object is in the map; but who walks over all contexts may meet it earlier */
    CUcontext _Atomic handle;
    _Atomic int device;
    _Atomic bool made; /* by a call that we saw, so that its end will be seen too */
    _Atomic bool primary; /* stored after what stands above: the device's primary context: ends with cuDevicePrimaryCtxReset or the last Release, not by its handle */

    /* what a policy keeps for it: policy/shares.c, policy/serial.c */
    struct cs_stream_set *_Atomic sets;
    _Atomic cs_u64 carrier; /* CUstream */
};

extern struct cs_pool cs_contexts;
CS_HIDDEN extern _Atomic cs_u32 cs_context_epoch;

bool cs_contexts_init(void);

/* Devices as their first context found them; "" and 0 before that, and where the driver does not know. Any thread. */
enum { CS_DEVICE_FACTS = 8 };
const char *cs_device_name(int device);
int cs_device_fact(int device, int fact, const char **name); /* a number of its properties, and what that is called in a trace */
bool cs_device_is_simulated(void); /* the driver is the test double of this project */

/* The thread's current context, 0 if none. Asks the driver (cuCtxGetCurrent) only where the wrapped calls do not tell. */
cs_ref cs_context_current(struct cs_thread *thread);

/* The context of a handle, made when it is new. `device` -1: ask, which needs the context to be current on this thread. */
cs_ref cs_context_of(CUcontext handle, int device);

/* What the wrapped calls saw. */
void cs_context_set(struct cs_thread *thread, CUcontext handle); /* now current on this thread */
void cs_context_forget(struct cs_thread *thread);                /* something else is current: ask at the next need */
void cs_context_made(CUcontext handle);                          /* created, and current */
void cs_context_is_primary(CUcontext handle, int device);
void cs_context_end_unsure(CUcontext handle);                    /* may have been destroyed: `made` no more */
cs_ref cs_context_destroying(CUcontext handle);                  /* before: the handle may come back from the driver before its destroy returns */
void cs_context_destroyed(cs_ref ref, bool done);                /* after it, with its streams and events; or the driver refused */
bool cs_context_primary_active(int device);
void cs_context_primary_ended(int device);                       /* the device's primary context was reset or released for the last time */
void cs_context_primaries_ended(void);                           /* that may have happened to some device's: its driver is asked */

#endif
