#include "shim/policy/hooks.h"

#include "shim/base/keep.h"

/*
 * A place. `state`: 0 free; TAKEN while it is being filled in; the number of its hook, whose low bits are the place; that with LEAVING once it has been
 * unregistered. `users`: threads that are in it. Who comes in counts himself first and reads the state then; who unregisters changes the state first and
 * reads the count then: one of the two sees the other. What else is in a place is written while it is TAKEN.
 */
static struct place {
    _Atomic cs_u32 state, users;
    custream_hook_kind_t kind;
    custream_hook_fn *function;
    void *arg;
} places[CS_HOOKS];

enum { TAKEN = 1u << 31, LEAVING = 1u << 30 };

_Atomic cs_u32 cs_hooks_kinds;
static _Atomic cs_u32 rounds;
static CS_TLS const struct place *inside; /* the one that this thread is in */

static bool is_live(cs_u32 state) { return state && !(state & (TAKEN | LEAVING)); }

/* A bit that was once set stays: a call that finds it looks at the places, perhaps in vain. Clearing it could race with who comes. */
static void listens(custream_hook_kind_t kind) { atomic_fetch_or(&cs_hooks_kinds, 1u << kind); }

static void free_if_left(struct place *p)
{
    cs_u32 state = atomic_load(&p->state);
    if (state & LEAVING && !atomic_load(&p->users)) atomic_compare_exchange_strong(&p->state, &state, 0);
}

cs_u32 cs_hook_add(custream_hook_kind_t kind, custream_hook_fn *function, void *arg)
{
    for (size_t i = 0; i < CS_HOOKS; i++) {
        struct place *p = &places[i];
        cs_u32 free = 0;
        free_if_left(p);
        if (!atomic_compare_exchange_strong(&p->state, &free, TAKEN)) continue;
        p->kind = kind;
        p->function = function;
        p->arg = arg;
        cs_u32 number;
        do number = ((cs_add(&rounds, 1u) + 1) * CS_HOOKS + (cs_u32)i) & (LEAVING - 1);
        while (!number);
        atomic_store(&p->state, number);
        listens(kind);
        return number;
    }
    return 0;
}

bool cs_hook_remove(cs_u32 number, bool *running)
{
    struct place *p = &places[number % CS_HOOKS];
    cs_u32 live = number;
    if (!is_live(number)) return false;
    atomic_fetch_add(&p->users, 1);
    bool removes = atomic_compare_exchange_strong(&p->state, &live, number | LEAVING);
    *running = atomic_fetch_sub(&p->users, 1) > (inside == p ? 2 : 1);
    free_if_left(p);
    return removes;
}

bool cs_hook_inside(void) { return inside; }

void cs_hooks_after_fork_in_child(void)
{
    for (size_t i = 0; i < CS_HOOKS; i++) cs_store(&places[i].users, inside == &places[i] ? 1u : 0u); /* other threads are not here */
}

/* One hook's turn. */
static void call(struct place *p, custream_hook_info_t *info)
{
    if (!is_live(cs_load(&p->state))) return;
    atomic_fetch_add(&p->users, 1);
    if (is_live(atomic_load(&p->state)) && p->kind == info->kind) {
        CS_KEEP_ERRNO;
        inside = p;
        p->function(info, p->arg);
        inside = NULL;
    }
    atomic_fetch_sub(&p->users, 1);
    if (CS_UNLIKELY(cs_load(&p->state) & LEAVING)) free_if_left(p);
}

static bool asked(int kind) { return kind >= 0 && cs_load(&cs_hooks_kinds) >> kind & 1; }

static CUresult ask(struct cs_hooked *hook)
{
    hook->info.kind = (custream_hook_kind_t)hook->kind;
    for (size_t i = 0; i < CS_HOOKS && !hook->info.result; i++)
        call(&places[i], &hook->info);
    return hook->refused = (CUresult)hook->info.result;
}

void cs_hooks_tell(struct cs_hooked *hook, CUresult result)
{
    if (hook->kind < 0) return;
    hook->info.after = 1;
    hook->info.result = (int)result;
    for (size_t i = 0; i < CS_HOOKS; i++) {
        custream_hook_info_t shown = hook->info; /* what one writes is not the next one's */
        call(&places[i], &shown);
    }
}

/* --- calls --- */

void cs_hooks_meet(struct cs_hooked *hook, cs_u16 call_, int kind, bool per_thread)
{
    hook->kind = kind;
    hook->refused = CUDA_SUCCESS;
    hook->met = true;
    hook->info = (custream_hook_info_t){.size = sizeof hook->info, .call = cs_call_info[call_].name, .per_thread = per_thread};
}

CUstream cs_hooks_ask(struct cs_hooked *hook, CUstream stream)
{
    hook->given = stream;
    if (stream) hook->info.stream = stream;
    if (hook->kind == CUSTREAM_HOOK_CREATE) return stream; /* asked about in its chain */
    if (!asked(hook->kind)) return hook->kind = -1, stream;
    ask(hook);
    return hook->kind == CUSTREAM_HOOK_DESTROY ? stream : (CUstream)hook->info.stream;
}

CUresult cs_hooks_create(struct cs_creation *c)
{
    struct cs_hooked *hook = c->hook;
    hook->kind = hook->met && asked(CUSTREAM_HOOK_CREATE) ? CUSTREAM_HOOK_CREATE : -1;
    if (hook->kind < 0) return CUDA_SUCCESS;
    hook->info.flags = c->flags;
    hook->info.priority = c->priority;
    CUresult refused = ask(hook);
    c->flags = hook->info.flags;
    c->priority = hook->info.priority;
    return refused;
}
