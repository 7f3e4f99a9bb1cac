/*
 * What the files of this folder share. Each says at its head what it does. The wrappers' own: wrapped.h, effects.h, wrappers.h, runtime.h.
 */
#ifndef CS_WRAP_INSIDE_H
#define CS_WRAP_INSIDE_H

#include "shim/object/stream.h"
#include "shim/process/process.h"
#include "shim/wrap/wrap.h"

/* --- annotate.c --- */

/* Ranges that begin and end on any thread. Ids are not 0 and not used twice. */
cs_u64 cs_annotate_start(const struct cs_annotation *what);
void cs_annotate_end(cs_u64 id);

/* The thread's state, if the thread may record now; if it may say something of objects, which are kept also while nothing is recorded. NULL otherwise. */
struct cs_thread *cs_annotate_thread(void);
struct cs_thread *cs_annotate_watched(void);

/* What the shim itself tells of the thread: it begins to record; it is all that a fork has left. */
void cs_annotate_thread_starts(struct cs_thread *thread);
void cs_annotate_window_opened(cs_u64 ticks); /* calls are recorded again, from then on; on whatever thread that came about */
void cs_annotate_without_nvtx(void); /* from now on nothing is recorded of NVTX. Any thread */
void cs_annotate_after_fork_in_child(void);

/* --- callback.c --- */

bool cs_callbacks_init(void);

struct cs_callback;

/* What to hand to the driver instead of a program's function and its data. NULL: hand over the program's own. */
struct cs_callback *cs_callback_new(struct cs_thread *thread, CUstream stream, bool per_thread, void *function, void *data, cs_u16 call);
/* The stream that a stream callback is told, where it isn't the driver's; and whether it is to be no slice, since calls are not recorded. */
void cs_callback_tells(struct cs_callback *callback, CUstream stream, bool hidden);
void cs_callback_refused(struct cs_callback *callback); /* the driver did not take it; NULL is fine */

void CUDA_CB cs_callback_host(void *callback);                                         /* a CUhostFn */
void CUDA_CB cs_callback_stream(CUstream stream, CUresult status, void *callback);    /* a CUstreamCallback */

/* --- lookup.c, dlsym.S --- */

/* Fills the table from real pointer to wrapper; after cs_real_init. */
void cs_lookup_init(void);

/* The wrapper for a pointer of the driver, or the pointer itself. `caller` is the return address of the look-up. */
void *cs_lookup_swap(void *real, const void *caller);

/* What the assembly stubs call. decided 0: jump to the real function, with the caller's own return address. Both in registers. */
struct cs_routed {
    void *value;
    cs_u64 decided;
};
struct cs_routed cs_route(void *handle, const char *name, const char *version, const void *caller);

/* --- cupti.c, nvtx.c --- */

/* What a look-up of a cupti* name that found `found` is answered. */
void *cs_cupti_swap(const char *name, void *found);
/* Once the options are read: what a policy file says of NVTX, and where ranges go if not to us. */
void cs_nvtx_begin(void);

#endif
