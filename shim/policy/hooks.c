#include "shim/policy/hooks.h"

#include "shim/base/keep.h"

/*
 * A place. `state`: 0 free; TAKEN while it is being filled in; the number of its hook, whose low bits are the place; that with LEAVING once it has been
 * unregistered, until who needs a place frees it. `users`: threads that are in it. Who comes in counts himself first and reads the state then; who unregisters
 * changes the state first and reads the count then: one of the two sees the other. What else is in a place is written while it is TAKEN.
 */
static struct place {
    _Atomic cs_u32 state, users;
    custream_hook_kind_t kind;
    custream_hook_fn *function;
    void *arg;
} places[CS_HOOKS];

enum { TAKEN = 1u << 31, LEAVING = 1u << 30 };

CS_READ_MOSTLY _Atomic cs_u64 cs_hooks_places[CUSTREAM_HOOK_KINDS];
_Static_assert(CS_HOOKS <= 64, "a bit for each place");
static _Atomic cs_u32 rounds;
/* The place that this thread is in, and in the lowest bit whether what it calls stays on its stream: threads have few bytes for us. */
static CS_TLS uintptr_t at;
static const struct place *inside(void) { return (const struct place *)(at & ~(uintptr_t)1); }
static void enter(const struct place *place) { at = (uintptr_t)place | (at & 1); }

static bool is_live(cs_u32 state) { return state && !(state & (TAKEN | LEAVING)); }

/* A place's bits belong to whoever fills it in or unregisters its hook. The latter is counted among its users, so that nobody has the place before he is through. */
static void listens(const struct place *p) { atomic_fetch_or(&cs_hooks_places[p->kind], 1ull << (p - places)); }
static void listens_no_more(const struct place *p) { atomic_fetch_and(&cs_hooks_places[p->kind], ~(1ull << (p - places))); }

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
        listens(p);
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
    if (removes) listens_no_more(p);
    *running = atomic_fetch_sub(&p->users, 1) > (inside() == p ? 2 : 1);
    return removes;
}

bool cs_hooks_any(void)
{
    cs_u64 any = 0;
    for (size_t i = 0; i < CS_COUNT(cs_hooks_places); i++) any |= atomic_load(&cs_hooks_places[i]);
    return any;
}

bool cs_hook_inside(void) { return inside(); }
void cs_hooks_stay(bool now) { at = (at & ~(uintptr_t)1) | now; }

/* Other threads are not here: what they were about to do with a place is done. */
void cs_hooks_after_fork_in_child(void)
{
    for (size_t i = 0; i < CS_COUNT(cs_hooks_places); i++) cs_store(&cs_hooks_places[i], 0);
    for (struct place *p = places; p < places + CS_HOOKS; p++) {
        cs_store(&p->users, inside() == p ? 1u : 0u);
        if (is_live(cs_load(&p->state))) listens(p);
    }
}

/* One hook's turn. */
static void call(struct place *p, custream_hook_info_t *info)
{
    if (!is_live(cs_load(&p->state))) return;
    atomic_fetch_add(&p->users, 1);
    if (is_live(atomic_load(&p->state)) && p->kind == info->kind) {
        CS_KEEP_ERRNO;
        enter(p);
        p->function(info, p->arg);
        enter(NULL);
    }
    atomic_fetch_sub(&p->users, 1);
}

/* The next place whose hook is of the kind, in the order of places; NULL: that was the last. One that comes meanwhile behind `before` is among them. */
static struct place *next(int kind, const struct place *before)
{
    const ptrdiff_t from = before ? before - places + 1 : 0;
    const cs_u64 left = from < CS_HOOKS ? cs_load_acq(&cs_hooks_places[kind]) >> from : 0;
    return left ? &places[from + __builtin_ctzll(left)] : NULL;
}

static CUresult ask(struct cs_hooked *hook)
{
    hook->info.kind = (custream_hook_kind_t)hook->kind;
    for (struct place *p = NULL; !hook->info.result && (p = next(hook->kind, p));) call(p, &hook->info);
    return hook->refused = (CUresult)hook->info.result;
}

void cs_hooks_tell(struct cs_hooked *hook, CUresult result)
{
    if (hook->kind < 0) return;
    for (struct place *p = NULL; (p = next(hook->kind, p));) {
        custream_hook_info_t shown = hook->info; /* what one writes is not the next one's */
        shown.after = 1;
        shown.result = (int)result;
        call(p, &shown);
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
    if (!cs_hooks_listen(hook->kind)) return hook->kind = -1, stream;
    ask(hook);
    if (at & 1) hook->info.stream = stream;
    return hook->kind == CUSTREAM_HOOK_DESTROY ? stream : (CUstream)hook->info.stream;
}

CUresult cs_hooks_create(struct cs_creation *c)
{
    struct cs_hooked *hook = c->hook;
    hook->kind = hook->met && cs_hooks_listen(CUSTREAM_HOOK_CREATE) ? CUSTREAM_HOOK_CREATE : -1;
    if (hook->kind < 0) return CUDA_SUCCESS;
    hook->info.flags = c->flags;
    hook->info.priority = c->priority;
    CUresult refused = ask(hook);
    c->flags = hook->info.flags;
    c->priority = hook->info.priority;
    return refused;
}
