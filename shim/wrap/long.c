/*
 * The long way of calls that are not only recorded (wrap/wrapped.h).
 */
#include "shim/wrap/wrapped.h"

#include "shim/audit/audit.h"
#include "shim/base/clock.h"
#include "shim/calls/how_words.h"
#include "shim/calls/real.h"
#include "shim/wrap/effects.h"

/* What its row says of a call, for all steps. */
#define CS_BARE(...) __VA_ARGS__ /* takes the parentheses off a row's effect */
enum on { NO_STREAM, ON_DEFAULT, ON_HANDLE, ON_FIELD };
static const struct row {
    cs_u16 asks;    /* modes: of its effect */
    signed char hook;
    unsigned char on;
    bool enqueues, per_thread;
    bool simple; /* it may use a default stream, and does nothing else that a policy has a say in */
    cs_u16 own, other; /* places of the pointers in cs_real: its own, and that of its other form, if there is one */
} rows[CS_CALL_COUNT] = {
#define PLACE(symbol)     (offsetof(struct cs_real, symbol) / sizeof(void *))
#define ON_NO_STREAM      NO_STREAM
#define ON_ON_DEFAULT     ON_DEFAULT
#define ON_ON(handle)     ON_HANDLE
#define ON_ON_FIELD(at)   ON_FIELD
#define ROW(symbol, sibling, of_sibling, kind, how, on, effect)                                                                                      \
    [CS_CALL_##symbol] = {CS_ASKS effect, CS_HOOKED(kind, how, CS_BARE effect), ON_##on, CS_ENQUEUES(CS_IMPLIED_BY_##kind, how),                     \
                          of_sibling, CS_DOES_NOTHING effect && (ON_##on == ON_DEFAULT || ON_##on == ON_HANDLE), PLACE(symbol), PLACE(sibling)},
#define CALL(name, sibling, kind, how, on, effect, ...) CS_SIBLINGS_##sibling(ROW, name, kind, how, on, (effect))
#include "shim/calls/calls.def"
#undef CALL
#undef ROW
};

/* Which modes have hooks and policies asked, other than those of its effect: where the handle stands behind a pointer it may be any. */
static unsigned asks(const struct row *row, const void *where)
{
    const bool may_be_default = row->on == ON_DEFAULT || row->on == ON_FIELD || (row->on == ON_HANDLE && (CUstream)where <= CU_STREAM_PER_THREAD);
    return row->asks | CS_MODE_CALLS | CS_MODE_HOOKS | (may_be_default ? CS_MODE_DEFAULTS : 0);
}

/* Whether hooks or policies are asked of the call: not where it meets hooks alone, and none of them is of its kind. */
static bool is_steered(struct cs_long *way, const struct row *row, unsigned mode, const void *where)
{
    const unsigned by = mode & CS_MODE_STEER & asks(row, where);
    way->hooks_alone = (mode & CS_MODE_STEER) == CS_MODE_HOOKS; /* else a hook may put the call on a stream on which a policy has a say */
    return by && (by != CS_MODE_HOOKS || cs_hooks_listen(row->hook));
}

static void *entry_point(cs_u16 place) { return ((void *const *)&cs_real)[place]; }

static bool readable(const void *field) { return (uintptr_t)field >= 4096; }

/* What hooks are asked, before any policy. A stream that stands behind a pointer is theirs where it is launched with (cs_steer_config). */
static const void *ask_hooks(struct cs_long *way, const struct row *row, const void *where)
{
    struct cs_hooked *hook = &way->hook;
    cs_hooks_meet(hook, way->wrapped->call, row->hook, way->wrapped->per_thread);
    if (way->told) hook->info.event = way->told->event, hook->info.stream = way->told->stream, hook->info.flags = way->told->flags;
    if (row->on == ON_HANDLE) return cs_hooks_ask(hook, (CUstream)where);
    if (row->on == ON_FIELD) return way->hooked = cs_hooks_ask(hook, readable(where) ? *(const CUstream *)where : NULL), &way->hooked;
    cs_hooks_ask(hook, NULL);
    return where;
}

/* The entry point that the call takes. */
static void *steer(struct cs_long *way, const struct row *row, const void *where)
{
    struct cs_wrapped *w = way->wrapped;
    const struct cs_call_info *info = &cs_call_info[w->call];
    void *const other = entry_point(row->other);
    const struct cs_steered how = {w->call, info->kind, info->per_thread, row->other != row->own && other != (void *)cs_real_missing, w->caller};
    if (CS_UNLIKELY(cs_hooks_listen(row->hook))) where = ask_hooks(way, row, where);
    else cs_hooks_leave(&way->hook);
    if (row->on == ON_HANDLE) way->stream = (CUstream)where;
    if (way->hook.refused) cs_steer_refused(&way->steer, how.of_sibling);
    else if (row->on == NO_STREAM) cs_steer_nothing(&way->steer);
    else if (row->on == ON_HANDLE && way->hooks_alone) cs_steer_leaves(&way->steer, way->stream, how.of_sibling);
    else if (row->on == ON_DEFAULT) cs_steer_default(&way->steer, w->thread, &how);
    else if (row->on == ON_FIELD) cs_steer_field(&way->steer, w->thread, where, &how);
    else way->stream = cs_steer_stream(&way->steer, w->thread, way->stream, &how);
    w->per_thread = way->steer.per_thread;
    return way->steer.flip ? other : entry_point(row->own);
}

/* The entry point of a call on handle 0 where all that is on is a policy that has decided before what handle 0 means for the thread. NULL: it takes more. */
static void *decided(const struct row *row, const void *where, const struct cs_thread *thread)
{
    const unsigned others = CS_MODE_RECORD | CS_MODE_CALLS | CS_MODE_HOOKS;
    if (!row->simple || where || !thread || cs_load(&thread->inside) || (cs_mode_first() & (others | CS_MODE_DEFAULTS)) != CS_MODE_DEFAULTS) return NULL;
    const enum cs_default_mode mode = cs_steer_decided(cs_load_acq(&cs_policy_now), thread);
    if (!mode) return NULL;
    if (mode == CS_DEFAULT_KEEP || (mode == CS_DEFAULT_PER_THREAD) == row->per_thread) return entry_point(row->own);
    void *const other = entry_point(row->other);
    return row->other == row->own || other == (void *)cs_real_missing ? NULL : other;
}

static void *begin(struct cs_long *way, struct cs_wrapped *w, cs_u16 call, const void *where, const void *caller, const struct cs_told *told);

void *cs_long_begin(struct cs_long *way, struct cs_wrapped *w, cs_u16 call, const void *where, const void *caller, const struct cs_told *told)
{
    struct cs_thread *const thread = cs_self;
    void *const real = decided(&rows[call], where, thread);
    if (!real) return begin(way, w, call, where, caller, told);
    cs_store(&thread->inside, CS_IN_CALL(call));
    w->thread = thread;
    way->stream = NULL;
    way->only_steered = true;
    return real;
}

static __attribute__((noinline)) void *begin(struct cs_long *way, struct cs_wrapped *w, cs_u16 call, const void *where, const void *caller,
                                             const struct cs_told *told)
{
    const struct row *row = &rows[call];
    struct cs_thread *thread = cs_self && !cs_load(&cs_self->inside) ? cs_self : cs_enter_slowly();
    const unsigned mode = thread ? cs_mode_first() : CS_MODE_PASS;
    *w = (struct cs_wrapped){.thread = thread, .way = way, .caller = caller, .call = call, .per_thread = cs_call_info[call].per_thread};
    w->records = mode & CS_MODE_RECORD;
    way->wrapped = w;
    way->steered = is_steered(way, row, mode, where);
    way->stamps = w->records || (thread && row->asks & CS_MODE_WATCH);
    way->published = way->answered = false;
    way->instead = NULL;
    way->stream = (CUstream)where;
    way->told = told;
    way->mark = (struct cs_mark){NULL, 0};
    way->record = NULL;
    way->only_steered = false;
    if (thread) cs_store(&thread->inside, CS_IN_CALL(call)), cs_store(&thread->waited, row->on == ON_HANDLE ? where : NULL);
    if (CS_UNLIKELY(!thread)) return cs_real_or_elsewhere(entry_point(row->own), cs_call_info[call].name, caller);
    if (!way->steered) return entry_point(row->own);
    void *const real = steer(way, row, where);
    way->only_steered = !way->stamps && way->hook.kind < 0 && !way->hook.refused && !way->steer.waits && !way->steer.carrier;
    return real;
}

static bool refused(const struct cs_long *way) { return way->steered && way->hook.refused; }

static struct cs_mark mark(const struct cs_wrapped *w, const struct row *row, const void *where)
{
    if (row->on == NO_STREAM) return (struct cs_mark){NULL, 0};
    if (row->on == ON_FIELD) return cs_mark_before_at(w->thread, where, w->per_thread);
    return cs_mark_before(w->thread, row->on == ON_HANDLE ? (CUstream)where : NULL, w->per_thread);
}

bool cs_long_answers(struct cs_long *way, const void *where)
{
    struct cs_wrapped *w = way->wrapped;
    const struct row *row = &rows[w->call];
    if (refused(way)) way->answered = true, way->answer = way->hook.refused;
    else if (w->records && row->enqueues && cs_load(&cs_gpu_marking) && !cs_mark_skips(w->thread)) way->mark = mark(w, row, where);
    w->begin = way->stamps ? cs_ticks() : 0;
    if (w->records) w->begin = cs_thread_clock_edge(w->thread, w->begin);
    if (!way->answered && way->instead) way->answered = true, way->answer = way->instead(way->state);
    return way->answered;
}

/* The handle that the driver has taken; false: none that can be told. */
static bool taken(const struct cs_wrapped *w, const struct row *row, const void *where, CUstream *handle)
{
    *handle = NULL;
    if (row->on == NO_STREAM || (row->on == ON_FIELD && !CS_MADE(w))) return false;
    if (row->on != ON_DEFAULT) *handle = row->on == ON_FIELD ? *(const CUstream *)where : (CUstream)where;
    return true;
}

cs_ref cs_wrapped_stream(struct cs_thread *thread, CUstream handle, bool per_thread, CUresult result, cs_u64 begin)
{
    const bool known = result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY; /* to the driver */
    return cs_stream_find(thread, handle, per_thread) ?: cs_stream_of(thread, handle, per_thread, known, begin);
}

void cs_long_done(struct cs_long *way, CUresult result, const void *where)
{
    struct cs_wrapped *w = way->wrapped;
    const struct row *row = &rows[w->call];
    CUstream handle;
    w->result = way->steered ? cs_steer_done(&way->steer, result) : result;
    w->end = way->stamps ? cs_ticks() : 0;
    if (way->stamps && taken(w, row, where, &handle)) {
        const CUresult known = refused(way) ? CUDA_ERROR_INVALID_VALUE : w->result; /* by what the driver has said */
        w->stream = cs_stream_glance(handle) ?: cs_wrapped_stream(w->thread, handle, w->per_thread, known, w->begin);
    }
    if (!way->steered || !w->records || way->hooks_alone) return;
    if (cs_audit_on() && cs_call_implies((enum cs_call)w->call, CS_PLACED)) cs_audit_site(w->thread, w->caller, way->steer.stream == CU_STREAM_LEGACY);
    if (cs_steer_mutes(&way->steer, w->stream)) w->call |= CS_CALL_MUTED;
}

cs_u64 cs_wrapped_begin(struct cs_thread *thread) { return cs_thread_clock_edge(thread, cs_ticks_of_counter()); }

struct cs_record *cs_wrapped_record_shared(struct cs_thread *thread, cs_u16 call, CUresult result, cs_ref stream, cs_u64 begin, cs_u64 end)
{
    if (CS_UNLIKELY(end - begin > cs_load(&cs_edge_ticks))) cs_thread_clock_read(thread, CS_CLOCK_AT_END);
    return cs_wrapped_record(thread, call, result, stream, begin, end);
}

struct cs_record *cs_wrapped_record_on(struct cs_thread *thread, cs_u16 call, CUresult result, CUstream handle, cs_u64 begin, cs_u64 end)
{
    const cs_ref stream = cs_stream_glance(handle) ?: cs_wrapped_stream(thread, handle, cs_call_info[call].per_thread, result, begin);
    return cs_wrapped_record_shared(thread, call, result, stream, begin, end);
}

void cs_wrapped_publish(struct cs_thread *thread, struct cs_record *record) { cs_record_publish(thread, record); }

CUresult cs_wrapped_over(struct cs_thread *thread, struct cs_record *record, CUresult result)
{
    cs_record_publish(thread, record);
    cs_store(&thread->inside, 0);
    return result;
}

struct cs_record *cs_long_record(struct cs_long *way)
{
    const struct cs_wrapped *w = way->wrapped;
    if (!w->records) return NULL;
    struct cs_record *record = way->record = cs_wrapped_record_shared(w->thread, w->call, w->result, w->stream, w->begin, w->end);
    record->mark = way->mark.number;
    return record;
}

struct cs_record *cs_long_done_record(struct cs_long *way, CUresult result, const void *where)
{
    cs_long_done(way, result, where);
    return cs_long_record(way);
}

void cs_long_publish(struct cs_long *way)
{
    if (way->record && !way->published) cs_record_publish(way->wrapped->thread, way->record);
    way->published = true;
}

CUresult cs_long_end(struct cs_long *way, const void *where)
{
    cs_long_publish(way);
    const struct cs_wrapped *w = way->wrapped;
    const cs_u16 call = w->call & (cs_u16)~CS_CALL_MUTED;
    CUstream handle;
    if (way->mark.number && way->record) {
        taken(w, &rows[call], where, &handle);
        cs_mark_after(way->mark, &(struct cs_marked_call){w->thread, handle, w->stream, CS_MADE(w), w->per_thread, call, w->begin, w->end,
                                                          way->record->value});
    }
    if (way->steered) cs_hooks_tell(&way->hook, w->result);
    if (w->thread) cs_store(&w->thread->inside, 0);
    return w->result;
}

/* A launch records an event when its blocks have begun, or say so. */
void cs_launch_records(struct cs_thread *thread, const CUlaunchConfig *config, cs_u64 begin)
{
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *at = &config->attrs[i];
        const bool programmatic = at->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, completion = at->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
        if (!programmatic && !completion) continue;
        cs_event_elsewhere(cs_event_of(thread, programmatic ? at->value.programmaticEvent.event : at->value.launchCompletionEvent.event, true, begin));
    }
}

CUresult cs_create_steered(void *state)
{
    struct cs_effect_stream_create *effect = state;
    return cs_steer_create(&effect->creation, effect->out);
}
