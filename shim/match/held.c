/*
 * What the backend has brought in and has not been given away: pieces of work, in the order in which they came, and calls whose records have not come.
 */
#include <string.h>

#include "shim/base/clock.h"
#include "shim/gpu/backend.h"
#include "shim/match/state.h"

static struct cs_match_tables *const table = &cs_match.table;
static struct cs_held *const state = &cs_match.held;

/* --- taking over --- */

/* Unfinished when it was taken, or nonsense. */
bool cs_work_has_times(const struct cs_gpu_work *work) { return work->start && work->end >= work->start; }

/* Work that has ended did so before now. Seen under Nsight Systems: CUPTI takes our clock, and its records come in that of the tool. */
static bool is_in_our_clock(const struct cs_gpu_work *work)
{
    const cs_u64 second = 1000000000, end = cs_clock_ns(work->end);
    if (!state->now_ns) state->now_ns = cs_clock_ns(cs_ticks());
    return end && end < state->now_ns + second;
}

static void take_work(const struct cs_gpu_work *work)
{
    if (!cs_work_has_times(work) && !work->correlation) {
        cs_match.sink->without_times();
        return;
    }
    if (cs_work_has_times(work) && !is_in_our_clock(work)) {
        state->strange++;
        return;
    }
    if (state->work_count == CS_HELD_WORKS) cs_match_give(false);
    if (state->work_count == CS_HELD_WORKS) cs_match_give(true);
    table->works[state->work_count++] = (struct cs_held_work){.work = *work, .since = cs_since_now()};
}

static void take_call(const struct cs_gpu_call *call)
{
    if (cs_match.sink->outside(call->start) == CS_OUTSIDE) {
        cs_op_outside(call->correlation);
        return;
    }
    const bool full = state->call_count == CS_HELD_CALLS;
    if (full) cs_held_calls(false);
    if (full && state->call_count > CS_HELD_CALLS / 2) state->call_count = 0; /* so many wait: it is for nothing */
    table->calls[state->call_count++] = (struct cs_held_call){*call, cs_since_now()};
}

static bool has_room(void)
{
    bool room = state->work_count + CS_GPU_AT_ONCE <= CS_HELD_WORKS && state->call_count + CS_GPU_AT_ONCE <= CS_HELD_CALLS;
    state->now_ns = 0; /* time has passed */
    if (room) state->filled = cs_since_now(); /* it gets on */
    else state->behind = true;
    return room;
}

void cs_held_collect(void)
{
    const struct cs_gpu_sink sink = {take_work, take_call, cs_match.sink->pool, cs_match.sink->lost, has_room};
    const bool was_behind = state->behind;
    state->behind = false;
    state->now_ns = 0;
    cs_gpu_drain(&sink);
    if (state->strange) cs_match.sink->lost(state->strange, "their times are not in our clock: another tool has set CUPTI's");
    state->strange = 0;
    if (!state->behind || !was_behind) state->filled = cs_since_now();
    if (state->behind && cs_is_over(&state->filled, CS_FOR_ROOM)) cs_match_give(true); /* what fills it waits for what is behind it, or for nothing */
}

/* --- what waits --- */

static bool may_come(const struct cs_since *since, enum cs_outside outside)
{
    return !cs_is_over(since, CS_FOR_RECORD) || (outside && !cs_is_over(since, CS_FOR_EDGE));
}

/* A call that no op fits waits a while, since the op's record may be on its way to the ring; or it was not recorded, of which one can be sure near the edge of
 * a window only when a thread that has lost the processor must have had the time to come back. */
void cs_held_calls(bool last)
{
    cs_u32 kept = 0;
    for (cs_u32 i = 0; i < state->call_count; i++) {
        const struct cs_held_call *held = &table->calls[i];
        enum cs_op_found found = cs_op_called(&held->call);
        enum cs_outside outside = found == CS_OP_FOUND ? CS_INSIDE : cs_match.sink->outside(held->call.start);
        if (found == CS_OP_LATER && !(last && outside) && may_come(&held->since, outside)) table->calls[kept++] = *held;
        else if (outside) cs_op_outside(held->call.correlation);
    }
    state->call_count = kept;
}

static bool is_waiting(const struct cs_held_work *held)
{
    cs_u32 correlation = held->work.correlation;
    if (!correlation || held->called || cs_op_is_outside(correlation)) return false;
    return !cs_is_over(&held->since, CS_FOR_CALL) || (!cs_is_over(&held->since, CS_FOR_EDGE) && cs_match.sink->outside(held->work.start));
}

/* Enqueued by a call that the profiler saw and we did not record, or before the profiler was there. */
bool cs_held_is_outside(const struct cs_gpu_work *work, const struct cs_op *op)
{
    return !op && (cs_op_is_outside(work->correlation) || (cs_work_has_times(work) && cs_match.sink->outside(work->start)));
}

/* Many pieces of work in a row, and the profiler told of none of their calls: something has switched its records of calls off. */
static void heal(bool has_call)
{
    enum { MANY = 8 };
    state->without_call = has_call ? 0 : state->without_call + 1;
    if (state->without_call < MANY) return;
    state->without_call = 0;
    cs_gpu_calls_missing(true);
}

/* Work that waits for its call holds up what came after it on its stream (or on one with the same hash): lanes are filled in the order of time. */
static cs_u64 *hold_of(const struct cs_gpu_work *work) { return &state->from[(work->stream * 31 + work->context * 7 + work->device) % CS_COUNT(state->from)]; }

/* --- in order --- */

static cs_u32 *order(bool room) { return table->order + (state->in_second != room ? CS_HELD_WORKS : 0); }

static bool starts_after(cs_u32 a, cs_u32 b)
{
    const struct cs_gpu_work *x = &table->works[a].work, *y = &table->works[b].work;
    return x->start > y->start || (x->start == y->start && x->end < y->end);
}

/* Bottom-up, stable, without allocation. */
static void merge_sort(size_t n)
{
    for (size_t width = 1; width < n; width *= 2, state->in_second = !state->in_second) {
        const cs_u32 *from = order(false);
        cs_u32 *into = order(true);
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t a = low, middle = low + width < n ? low + width : n, b = middle, high = low + 2 * width < n ? low + 2 * width : n, to = low;
            while (a < middle || b < high) into[to++] = a < middle && (b == high || !starts_after(from[a], from[b])) ? from[a++] : from[b++];
        }
    }
}

/* What came is in order, or nearly: each passes the few that ran beside it, as long as there are steps left for all. */
static void put_in_order(cs_u32 *at, size_t to, cs_u32 held, size_t *steps)
{
    for (; to && *steps && starts_after(at[to - 1], held); to--, --*steps) at[to] = at[to - 1];
    at[to] = held;
}

static bool is_held_up(const struct cs_gpu_work *work) { return cs_work_has_times(work) && work->start >= *hold_of(work); }

/* Which have their calls, and which wait for them, is found out once a round. */
static bool find_waiting(void)
{
    bool some = false;
    memset(state->from, 0xff, sizeof state->from);
    for (cs_u32 i = 0; i < state->work_count; i++) {
        struct cs_held_work *held = &table->works[i];
        held->called = cs_op_of(held->work.correlation) != NULL;
        held->waits = is_waiting(held);
        if (!held->waits) continue;
        some = true;
        if (cs_work_has_times(&held->work) && held->work.start < *hold_of(&held->work)) *hold_of(&held->work) = held->work.start;
    }
    return some;
}

size_t cs_held_choose(bool all)
{
    enum { STEPS_EACH = 8 };
    size_t ready = 0, steps = STEPS_EACH * (size_t)state->work_count;
    cs_u32 *into = order(false);
    const bool some_wait = !all && find_waiting();
    for (cs_u32 i = 0; i < state->work_count; i++) {
        const struct cs_held_work *held = &table->works[i];
        const struct cs_gpu_work *work = &held->work;
        if (some_wait && (held->waits || is_held_up(work))) continue;
        if (!all && work->correlation && cs_work_has_times(work) && (held->called || !cs_held_is_outside(work, NULL))) heal(held->called);
        put_in_order(into, ready++, i, &steps);
    }
    if (!steps) merge_sort(ready);
    return ready;
}

struct cs_held_work *cs_held_nth(size_t i) { return &table->works[order(false)[i]]; }

void cs_held_forget_given(size_t given)
{
    cs_u32 kept = 0;
    for (cs_u32 i = 0; i < state->work_count && given < state->work_count; i++)
        if (table->works[i].work.kind != CS_GPU_KINDS) table->works[kept++] = table->works[i];
    state->work_count = kept;
}
