#include "shim/trace/gpu.h"

#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/gpu/backend.h"
#include "shim/out/output.h"
#include "shim/trace/rotate.h"
#include "shim/trace/timeline.h"
#include "shim/trace/totals.h"
#include "shim/trace/windows.h"

enum { WORKS = 8 * CS_GPU_AT_ONCE, CALLS = 8 * CS_GPU_AT_ONCE, STUCK = 200, PATIENCE = 3, CALL_PATIENCE = 2, LINGER = 25, EDGE_PATIENCE_NS = 500000000 };

/* What came and has not been written: in the order in which it came. `since`: how many flushes had ended then. */
static struct held_work {
    struct cs_gpu_work work;
    cs_u64 since, since_ns;
} *works;
static struct held_call {
    struct cs_gpu_call call;
    int rounds;
    cs_u64 since_ns;
} *calls;
static cs_u64 round_ns; /* when the round began */
static cs_u64 come;     /* pieces of work whose times have come */
static size_t work_count, call_count;
static cs_u32 *orders, *order, *order_room; /* of works to write; room for sorting them */
CS_TABLE(TRACE, works, WORKS);
CS_TABLE(TRACE, calls, CALLS);
CS_TABLE(TRACE, orders, 2 * WORKS);


/* --- taking over --- */

/* Work that has ended did so before now. Seen under Nsight Systems: CUPTI takes our clock, and its records come in that of the tool. */
static cs_u64 strange;

static bool is_in_our_clock(const struct cs_gpu_work *work)
{
    const cs_u64 second = 1000000000;
    cs_u64 now = cs_clock_ns(cs_ticks()), end = cs_clock_ns(work->end);
    return end && end < now + second;
}

/* Unfinished when it was taken, or nonsense. */
static bool has_times(const struct cs_gpu_work *work) { return work->start && work->end >= work->start; }

static void take_work(const struct cs_gpu_work *work)
{
    if (!order || !works || (!has_times(work) && !work->correlation)) {
        cs_totals.gpu.no_times++;
        return;
    }
    if (has_times(work) && !is_in_our_clock(work)) {
        strange++;
        return;
    }
    if (work_count == WORKS) cs_gpu_trace_emit(false);
    if (work_count == WORKS) cs_gpu_trace_emit(true);
    works[work_count++] = (struct held_work){*work, cs_gpu_flushes(), round_ns};
}

static void match_calls(bool last);

static void take_call(const struct cs_gpu_call *call)
{
    if (cs_windows_outside(call->start) == CS_OUTSIDE) {
        cs_op_outside(call->correlation);
        return;
    }
    if (calls && call_count == CALLS) match_calls(false);
    if (!calls || call_count == CALLS) return; /* its work will be shown without its call */
    calls[call_count++] = (struct held_call){*call, 0, round_ns};
}

static void take_pool(const struct cs_gpu_pool *pool)
{
    if (!cs_windows_outside(pool->at)) cs_gpu_pool_write(pool);
}
static void take_lost(cs_u64 count, const char *cause) { cs_gpu_lost_write(count, cause); }

static bool behind; /* the backend has more than there was room for */
static int stuck;   /* rounds without any */

static bool has_room(void)
{
    bool room = work_count + CS_GPU_AT_ONCE <= WORKS && call_count + CS_GPU_AT_ONCE <= CALLS;
    if (room) stuck = 0;
    else behind = true;
    return room;
}

bool cs_gpu_trace_behind(void) { return behind; }

void cs_gpu_trace_collect(void)
{
    static const struct cs_gpu_sink sink = {take_work, take_call, take_pool, take_lost, has_room};
    behind = false;
    round_ns = cs_monotonic_ns();
    cs_gpu_drain(&sink);
    if (strange) cs_gpu_lost_write(strange, "their times are not in our clock: another tool has set CUPTI's");
    strange = 0;
    if (behind && ++stuck > STUCK) cs_gpu_trace_emit(true); /* what fills it waits for what is behind it, or for nothing */
}

/* --- the calls of the rings --- */

static cs_u64 enqueued_last;
cs_u64 cs_gpu_enqueued_last(void) { return enqueued_last; }

/* After a fork nothing is left of the parent's work, which another thread may have had in hand: no field of it is read. */
static void begin_anew(void)
{
    order = orders;
    order_room = orders + WORKS;
    work_count = call_count = 0;
    enqueued_last = strange = 0;
    behind = false;
    cs_ops_begin();
    cs_gpu_lanes_forget();
    cs_gpu_captures_begin();
    cs_gpu_graphs_begin();
    cs_gpu_causes_begin();
    cs_gpu_counts_begin();
}

void cs_gpu_trace_begin(bool new_process)
{
    if (new_process) begin_anew();
    cs_gpu_lanes_begin();
}

static bool has_work(const struct cs_record *record)
{
    if (!cs_gpu_is_on() || record->result != CUDA_SUCCESS || !cs_call_enqueues((enum cs_call)record->call)) return false;
    if (record->begin > enqueued_last) enqueued_last = record->begin;
    return !cs_gpu_marks() || record->mark; /* without one it is in a capture, or there was no event for it: no work will come */
}

void cs_gpu_trace_muted(const struct cs_thread *thread, const struct cs_record *record)
{
    struct cs_op *op = has_work(record) ? cs_op_new(thread, record, cs_clock_ns(record->begin)) : NULL;
    if (!op) return;
    op->muted = true;
    if (record->mark) cs_op_marked(op, record->mark);
}

cs_u64 cs_gpu_trace_call(const struct cs_thread *thread, const struct cs_record *record, struct cs_stream *stream, cs_u64 begin_ns)
{
    struct cs_op *op = has_work(record) ? cs_op_new(thread, record, begin_ns) : NULL;
    cs_u32 index = op && stream ? cs_gpu_lane_of(stream) : 0;
    struct cs_gpu_lane *lane = cs_gpu_lane_get(index);
    if (!op) return 0;
    op->graph = cs_call_info[record->call].kind == CS_KIND_GRAPH;
    if (record->mark) cs_op_marked(op, record->mark);
    if (!lane || cs_gpu_captures(stream, record->begin)) return op->id;
    op->lane = index;
    cs_gpu_queue_add(lane, op);
    return op->id;
}

void cs_gpu_trace_runtime(const struct cs_thread *thread, const struct cs_record *record)
{
    if (cs_gpu_is_on()) cs_op_called(&(struct cs_gpu_call){record->begin, record->end, thread->key, (cs_u32)record->value[1]});
}

/* --- putting together --- */

/* Near the edge of a window what has no op was not recorded: to be sure of that a thread that has lost the processor must have had the time to come back. */
static bool is_fresh(cs_u64 since_ns) { return round_ns - since_ns < EDGE_PATIENCE_NS; }

/* A call that no op fits gets another round, since the op's record may have been on its way to the ring; or it was not recorded. `last`: no op comes any more. */
static void match_calls(bool last)
{
    size_t kept = 0;
    for (size_t i = 0; i < call_count; i++) {
        enum cs_op_found found = cs_op_called(&calls[i].call);
        enum cs_outside outside = found == CS_OP_FOUND ? CS_INSIDE : cs_windows_outside(calls[i].call.start);
        if (found == CS_OP_LATER && !(last && outside) && (calls[i].rounds++ < CALL_PATIENCE || (outside && is_fresh(calls[i].since_ns)))) calls[kept++] = calls[i];
        else if (outside) cs_op_outside(calls[i].call.correlation);
    }
    call_count = kept;
}

static bool starts_after(cs_u32 a, cs_u32 b)
{
    const struct cs_gpu_work *x = &works[a].work, *y = &works[b].work;
    return x->start > y->start || (x->start == y->start && x->end < y->end);
}

/* Bottom-up, stable, without allocation: what came is nearly in order. */
static void sort(size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t a = low, middle = low + width < n ? low + width : n, b = middle, high = low + 2 * width < n ? low + 2 * width : n, to = low;
            while (a < middle || b < high) order_room[to++] = a < middle && (b == high || !starts_after(order[a], order[b])) ? order[a++] : order[b++];
        }
        cs_u32 *swap = order;
        order = order_room;
        order_room = swap;
    }
}

/* Many pieces of work in a row, and the profiler told of none of their calls: something has switched its records of calls off. */
static void heal(bool has_call)
{
    enum { MANY = 8 };
    static int in_a_row;
    in_a_row = has_call ? 0 : in_a_row + 1;
    if (in_a_row < MANY) return;
    in_a_row = 0;
    cs_gpu_calls_missing(true);
}

/* Work that waits for its call holds up what came after it on its stream (or on one with the same hash): lanes are filled in the order of time. */
static cs_u64 held_from[256]; /* ticks */

static cs_u64 *hold_of(const struct cs_gpu_work *work) { return &held_from[(work->stream * 31 + work->context * 7 + work->device) % CS_COUNT(held_from)]; }

static bool is_waiting(const struct held_work *held, cs_u64 now)
{
    cs_u32 correlation = held->work.correlation;
    if (!correlation || cs_op_of(correlation) || cs_op_is_outside(correlation)) return false;
    return now - held->since < PATIENCE || (is_fresh(held->since_ns) && cs_windows_outside(held->work.start));
}

/* It was enqueued while nothing was recorded: by a call that the profiler saw and we did not record, or before the profiler was there. */
static bool is_outside(const struct cs_gpu_work *work, const struct cs_op *op)
{
    return !op && (cs_op_is_outside(work->correlation) || (has_times(work) && cs_windows_outside(work->start)));
}

/* The works to write now, into `order`; how many they are. */
static size_t choose(bool all)
{
    size_t ready = 0;
    cs_u64 now = cs_gpu_flushes();
    memset(held_from, 0xff, sizeof held_from);
    for (size_t i = 0; i < work_count && !all; i++)
        if (has_times(&works[i].work) && works[i].work.start < *hold_of(&works[i].work) && is_waiting(&works[i], now))
            *hold_of(&works[i].work) = works[i].work.start;
    for (size_t i = 0; i < work_count; i++) {
        const struct cs_gpu_work *work = &works[i].work;
        if (has_times(work) ? work->start >= *hold_of(work) : !all && is_waiting(&works[i], now)) continue;
        const struct cs_op *op = cs_op_of(work->correlation);
        if (!all && work->correlation && has_times(work) && !is_outside(work, op)) heal(op);
        order[ready++] = (cs_u32)i;
    }
    return ready;
}

/* `last`: nothing comes any more. */
static void emit(bool all, bool last)
{
    match_calls(false);
    cs_gpu_captures_settle();
    cs_gpu_graphs_settle();
    size_t ready = choose(all), kept = 0;
    sort(ready);
    for (size_t i = 0; i < ready; i++) {
        struct held_work *held = &works[order[i]];
        struct cs_op *op = cs_op_of(held->work.correlation);
        cs_rotate_if_due();
        if (is_outside(&held->work, op)) {}
        else if (has_times(&held->work)) come++, cs_gpu_work_write(&held->work, op);
        else {
            cs_totals.gpu.no_times++;
            if (op) cs_gpu_came(op);
        }
        held->work.kind = CS_GPU_KINDS; /* written */
    }
    for (size_t i = 0; i < work_count; i++)
        if (works[i].work.kind != CS_GPU_KINDS) works[kept++] = works[i];
    work_count = kept;
    cs_gpu_work_lost_write();
    cs_gpu_missing_write(last);
    cs_gpu_causes_write(last);
    cs_gpu_count_write(last);
    bool expected = !cs_windows_closed() && (call_count || work_count); /* else they may be of calls that are not recorded */
    for (cs_u32 i = 1; i <= cs_gpu_lanes_high() && !expected; i++) {
        struct cs_gpu_lane *lane = cs_gpu_lane_get(i);
        expected = lane && lane->first;
    }
    cs_gpu_expect(expected, come);
}

void cs_gpu_trace_emit(bool all) { emit(all, false); }

void cs_gpu_trace_end(void)
{
    match_calls(true);
    emit(true, true);
}

bool cs_gpu_trace_settled(const struct cs_stream *stream)
{
    struct cs_gpu_lane *lane = cs_gpu_lane_get(stream->gpu_lane);
    if (!lane || !lane->first) return true;
    if (!lane->ended_flushes) lane->ended_flushes = cs_gpu_flushes() + 1;
    return cs_gpu_flushes() + 1 - lane->ended_flushes > LINGER;
}

cs_u64 cs_gpu_trace_filled(const struct cs_stream *stream)
{
    struct cs_gpu_lane *lane = cs_gpu_lane_get(stream->gpu_lane);
    return lane ? lane->work.filled[0] : 0;
}

cs_u64 cs_gpu_trace_cut(struct cs_stream *stream, cs_u64 ns, bool *awaited)
{
    struct cs_gpu_lane *lane = cs_gpu_lane_get(stream->gpu_lane);
    *awaited = lane && lane->first;
    if (*awaited) return lane->work.filled[0];
    if (lane && lane->work.filled[0] > ns) ns = lane->work.filled[0];
    if (lane) lane->work.filled[0] = ns; /* what should come all the same goes to another lane */
    return ns;
}

void cs_gpu_trace_stream_ends(struct cs_stream *stream)
{
    struct cs_gpu_lane *lane = cs_gpu_lane_get(stream->gpu_lane);
    if (lane) cs_gpu_count_ends(lane);
}

void cs_gpu_trace_stream_gone(struct cs_stream *stream)
{
    cs_gpu_lane_free(stream->gpu_lane);
    stream->gpu_lane = 0;
}
