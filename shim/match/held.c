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

/* Work that has ended did so before now. Seen under Nsight Systems: CUPTI takes our clock, and its records come in that of the tool. The time is asked for again
 * if the work is later than it was: this thread may have been stopped since. */
static bool is_in_our_clock(const struct cs_gpu_work *work)
{
    const cs_u64 second = 1000000000, end = cs_clock_ns(work->end);
    if (end >= state->now_ns + second) state->now_ns = cs_clock_ns(cs_ticks());
    return end && end < state->now_ns + second;
}

/* Works are large and there are many: what it takes to choose them and to put them in order stands beside their places, so that each is looked at once, when it
 * is given. Those that were chosen stand in a table of their own, unless sorting has left them where the places stood as the works came (which is then made anew). */
static struct cs_held_place *order(bool room) { return state->in_first == room ? table->chosen : table->came; }
static inline void note_place(cs_u32 at, const struct cs_gpu_work *work)
{
    const cs_u32 stream = (work->stream * 31 + work->context * 7 + work->device) & 255;
    table->came[at] = (struct cs_held_place){cs_work_has_times(work) ? work->start : 0, at & 0xffffff, stream & 255, work->correlation};
}

void cs_held_put(const struct cs_gpu_work *work)
{
    const cs_u32 at = state->work_count++;
    if (work != &table->works[at].work) table->works[at].work = *work;
    table->works[at].since = cs_match.now;
    note_place(at, work);
}

static void take_work(const struct cs_gpu_work *work)
{
    if (!cs_work_has_times(work) && !work->correlation) {
        cs_match.sink->without_times(1);
        return;
    }
    if (cs_work_has_times(work) && !is_in_our_clock(work)) {
        state->strange++;
        return;
    }
    if (state->work_count == CS_HELD_WORKS) cs_match_give(false);
    if (state->work_count == CS_HELD_WORKS) cs_match_give(true);
    cs_held_put(work);
}

static struct cs_gpu_work *slot(void) { return state->work_count < CS_HELD_WORKS ? &table->works[state->work_count].work : NULL; }

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
    if (room) state->filled = cs_since_now(); /* it gets on */
    else state->behind = true;
    return room;
}

void cs_held_collect(void)
{
    const struct cs_gpu_sink sink = {.work = take_work, .call = take_call, .pool = cs_match.sink->pool, .lost = cs_match.sink->lost, .slot = slot, .has_room = has_room};
    const bool was_behind = state->behind;
    state->behind = false;
    cs_gpu_drain(&sink);
    if (state->strange) cs_match.sink->lost(state->strange, CS_LOSS_OTHER_CLOCK);
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

static bool may_be_told(const struct cs_held_work *held)
{
    if (!cs_is_over(&held->since, CS_FOR_CALL)) return true;
    const bool by_edge = !cs_is_over(&held->since, CS_FOR_EDGE) && cs_match.sink->outside(held->work.start);
    state->look.by_edge |= by_edge;
    return by_edge;
}

static inline bool is_waiting(const struct cs_held_place *place)
{
    const cs_u32 correlation = place->correlation;
    if (!correlation || cs_op_is_kept(cs_op_id_of(correlation)) || cs_op_is_outside(correlation)) return false;
    return may_be_told(&table->works[place->at]);
}

/* Enqueued by a call that the profiler saw and we did not record, or before the profiler was there. */
bool cs_held_is_outside(const struct cs_gpu_work *work, const struct cs_op *op)
{
    return !op && (cs_op_is_outside(work->correlation) || (cs_work_has_times(work) && cs_match.sink->outside(work->start)));
}

/* Many pieces of work in a row, and the profiler told of none of their calls: something has switched its records of calls off. */
void cs_held_heal(bool has_call)
{
    enum { MANY = 8 };
    state->without_call = has_call ? 0 : state->without_call + 1;
    if (state->without_call < MANY) return;
    state->without_call = 0;
    cs_gpu_calls_missing(true);
}

/* Work that waits for its call holds up what came after it on its stream (or on one with the same hash): lanes are filled in the order of time. */
static bool is_held_up(const struct cs_held_place *place) { return place->start && place->start >= state->from[place->stream]; }

/* --- in order --- */

static bool starts_after(const struct cs_held_place *a, const struct cs_held_place *b)
{
    return a->start > b->start || (a->start == b->start && table->works[a->at].work.end < table->works[b->at].work.end);
}

/* Behind the last of those that are in order from there on. */
static size_t run_end(const struct cs_held_place *from, size_t at, size_t n)
{
    while (at < n && ++at < n && !starts_after(&from[at - 1], &from[at])) continue;
    return at;
}

/* Stable, without allocation: two neighbouring runs become one, until there is one. What came of a few streams or threads is few runs. */
static void merge_sort(size_t n)
{
    for (; run_end(order(false), 0, n) < n; state->in_first = !state->in_first) {
        const struct cs_held_place *from = order(false);
        struct cs_held_place *into = order(true);
        for (size_t low = 0, high; low < n; low = high) {
            size_t a = low, middle = run_end(from, low, n), b = middle, to = low;
            high = run_end(from, middle, n);
            while (a < middle || b < high) into[to++] = a < middle && (b == high || !starts_after(&from[a], &from[b])) ? from[a++] : from[b++];
        }
    }
}

/* What came is in order, or nearly: each passes the few that ran beside it. Whether that was enough. */
static bool put_in_order(struct cs_held_place *at, size_t to, struct cs_held_place place)
{
    enum { FEW = 16 };
    const size_t least = to > FEW ? to - FEW : 0;
    for (; to > least && starts_after(&at[to - 1], &place); to--) at[to] = at[to - 1];
    at[to] = place;
    return !to || !starts_after(&at[to - 1], &place);
}

static void leave(cs_u32 i)
{
    table->left[i / 64] |= (cs_u64)1 << i % 64;
    state->left_some = true;
}

/* All, or those that do not wait for their calls. The others are noted, and from where on they hold others up. The first so many wait on. */
static size_t choose_called(bool all, cs_u32 first, bool *in_order)
{
    const struct cs_held_place *place = table->came + first;
    struct cs_held_place *into = order(false);
    size_t ready = 0;
    if (!all && !first) memset(state->from, 0xff, sizeof state->from);
    for (cs_u32 i = 0; i < first; i++) leave(i);
    for (cs_u32 i = first; i < state->work_count; i++, place++) {
        if (all || !is_waiting(place)) {
            if (*in_order) *in_order = put_in_order(into, ready, *place);
            else into[ready] = *place;
            ready++;
            continue;
        }
        leave(i);
        if (place->start && place->start < state->from[place->stream]) state->from[place->stream] = place->start;
    }
    return ready;
}

/* Of those chosen, the ones that nothing holds up. */
static size_t choose_free(size_t chosen)
{
    struct cs_held_place *at = order(false);
    size_t ready = 0;
    for (size_t i = 0; i < chosen; i++) {
        if (is_held_up(&at[i])) leave(at[i].at);
        else at[ready++] = at[i];
    }
    return ready;
}

/* A profiler may tell of work long before it tells of the calls, and rounds are short. What waits is looked at again when more has been told: how much need not be. */
static cs_u32 wait_on(bool all)
{
    const struct cs_held_look *look = &state->look;
    return !all && look->told == cs_match.ops.told && look->flushes == cs_match.now.flushes && !look->by_edge ? look->waiting : 0;
}

size_t cs_held_choose(bool all)
{
    const cs_u32 first = wait_on(all);
    if (first == state->work_count) return 0;
    state->look = (struct cs_held_look){.flushes = cs_match.now.flushes, .told = cs_match.ops.told};
    bool in_order = true;
    const size_t ready = choose_called(all, first, &in_order);
    if (!in_order) merge_sort(ready);
    return state->left_some ? choose_free(ready) : ready;
}

/* Those after it, and their calls, are fetched meanwhile. */
struct cs_held_work *cs_held_nth(size_t i)
{
    enum { SOON = 4, AHEAD = 8 };
    const struct cs_held_place *place = &order(false)[i];
    if (i + AHEAD < state->work_count) {
        const char *ahead = (const char *)&table->works[place[AHEAD].at], *op = (const char *)cs_op_of(place[SOON].correlation);
        __builtin_prefetch(ahead), __builtin_prefetch(ahead + 64);
        __builtin_prefetch(op), __builtin_prefetch(op + 64);
    }
    return &table->works[place->at];
}

/* Those that are left move up to the front. */
static cs_u32 move_left(void)
{
    cs_u32 kept = 0;
    for (cs_u32 word = 0; word <= (state->work_count - 1) / 64; word++) {
        cs_u64 bits = table->left[word];
        for (table->left[word] = 0; bits; bits &= bits - 1, kept++) {
            table->works[kept] = table->works[word * 64 + (cs_u32)__builtin_ctzll(bits)];
            note_place(kept, &table->works[kept].work);
        }
    }
    return kept;
}

void cs_held_forget_given(size_t given)
{
    const bool all_stay = !given && !state->in_first;
    if (all_stay && state->left_some) memset(table->left, 0, (state->work_count + 63) / 64 * sizeof *table->left);
    else if (!all_stay) state->work_count = state->left_some ? move_left() : 0;
    state->left_some = state->in_first = false;
    state->look.waiting = state->work_count;
}
