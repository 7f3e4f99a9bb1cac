/*
 * Hooks: functions of the program, or of a plug-in, around calls on streams (custream.h).
 *
 * They run on the application's thread, inside its call, with the thread marked as inside: what a hook asks of CUDA goes straight to the driver, is not
 * recorded, and meets no hook. No lock is held. A hook is a place in a fixed table: registering takes a free one, a call goes through those of its kind
 * in order and counts itself in and out of each, and a place whose hook has gone is free again once nobody is in it. So a hook may unregister itself, and one that
 * never returns holds up its own call alone.
 */
#ifndef CS_POLICY_HOOKS_H
#define CS_POLICY_HOOKS_H

#include "custream.h"
#include "shim/policy/steer.h"

enum { CS_HOOKS = 64 };

/* The places whose hooks are of a kind, a bit each. */
extern _Atomic cs_u64 cs_hooks_places[CUSTREAM_HOOK_KINDS];

/* Whether there is a hook of the kind; -1: there is none. Then: of any kind. */
static inline bool cs_hooks_listen(int kind) { return kind >= 0 && cs_load(&cs_hooks_places[kind]); }
bool cs_hooks_any(void);

/* The number of the hook, from 1; 0: the table is full. */
cs_u32 cs_hook_add(custream_hook_kind_t kind, custream_hook_fn *function, void *arg);
/* False: there is none of that number. *running: some thread is in it still. */
bool cs_hook_remove(cs_u32 number, bool *running);
bool cs_hook_inside(void); /* this thread is in one */
void cs_hooks_stay(bool stays); /* while so, hooks do not change the streams of this thread's calls */
void cs_hooks_after_fork_in_child(void);

/* One call, as hooks are asked about it; a wrapper's local. */
struct cs_hooked {
    custream_hook_info_t info;
    int kind; /* that is asked; -1: none */
    CUstream given; /* the stream that the program named, once hooks have been asked */
    CUresult refused;
    bool met; /* info is filled in */
};

/* What kind of hook meets the calls of a kind of the call table, where no effect says it (wrap/effects.def). CUSTREAM_HOOK_NONE: none */
enum {
    CUSTREAM_HOOK_NONE = -1,
#define KIND(name, text, implies, hook, ...) CS_HOOK_OF_##name = CUSTREAM_HOOK_##hook,
#include "shim/calls/kinds.def"
#undef KIND
};
#define CS_HOOK_OF_KIND(kind, how) ((int)CS_HOOK_OF_##kind == (int)CUSTREAM_HOOK_GRAPH_LAUNCH && !((how) & CS_HOW_LAUNCHES) ? (int)CUSTREAM_HOOK_NONE : (int)CS_HOOK_OF_##kind)

/* `kind`: of the hooks that the call meets; -1: none. Nothing is asked yet. */
void cs_hooks_meet(struct cs_hooked *hook, cs_u16 call, int kind, bool per_thread);
/* Nobody listens: nothing is asked, nor told. Instead of cs_hooks_meet, and all that a call costs without hooks. */
static inline void cs_hooks_leave(struct cs_hooked *hook)
{
    hook->kind = -1;
    hook->refused = CUDA_SUCCESS;
    hook->met = false;
}
/* Asks. The stream that the call is to go to; `refused` is the answer of the call where it is not to be made. */
CUstream cs_hooks_ask(struct cs_hooked *hook, CUstream stream);
/* Of a creation, in its chain: flags and priority may change. */
CUresult cs_hooks_create(struct cs_creation *creation);
/* What the program is answered. */
void cs_hooks_tell(struct cs_hooked *hook, CUresult result);

#endif
