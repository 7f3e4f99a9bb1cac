#include "shim/match/match.h"

#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/gpu/backend.h"
#include "shim/match/state.h"

struct cs_match cs_match;

/* --- begin --- */

#define TABLES(T)                                                                                                                                    \
    T(works, CS_HELD_WORKS)                                                                                                                          \
    T(calls, CS_HELD_CALLS)                                                                                                                          \
    T(came, CS_HELD_WORKS)                                                                                                                           \
    T(chosen, CS_HELD_WORKS)                                                                                                                         \
    T(left, CS_HELD_WORKS / 64)                                                                                                                      \
    T(ops, CS_OPS)                                                                                                                                   \
    T(correlated, CS_CORRELATIONS_OF_OP * CS_OPS)                                                                                                    \
    T(threads, CS_OP_THREADS)                                                                                                                        \
    T(threads_of_key, CS_OP_THREADS)                                                                                                                 \
    T(threads_of_tid, CS_OP_THREADS)                                                                                                                 \
    T(lanes, CS_MATCH_LANES)                                                                                                                         \
    T(lane_buckets, CS_LANE_BUCKETS)                                                                                                                 \
    T(lane_of_stream, CS_STREAMS)                                                                                                                    \
    T(members, CS_MEMBERS)                                                                                                                           \
    T(node_calls, CS_NODE_CALLS)                                                                                                                     \
    T(node_order, CS_NODE_CALLS)                                                                                                                     \
    T(nodes, CS_NODES)                                                                                                                               \
    T(lists, CS_GRAPHS)                                                                                                                              \
    T(execs, CS_GRAPHS)                                                                                                                              \
    T(waits, CS_WAITS)                                                                                                                               \
    T(candidates, CS_CANDIDATES)                                                                                                                     \
    T(event_waits, CS_EVENT_WAITS)                                                                                                                   \
    T(edges, CS_EDGES)

#define MADE(name, count) CS_TABLE_AT(TRACE, name, cs_match.table.name, count);
TABLES(MADE)
#define FORGOTTEN(name, count) cs_memory_forget(cs_match.table.name, (count) * sizeof *cs_match.table.name);

/* After a fork nothing is left of the parent's work, which another thread may have had in hand: no field of it is read. */
void cs_match_begin(const struct cs_match_sink *sink)
{
    TABLES(FORGOTTEN)
    memset((char *)&cs_match + sizeof cs_match.table, 0, sizeof cs_match - sizeof cs_match.table);
    cs_match.sink = sink;
    cs_match.ops.newest = cs_match.ops.forgotten = CS_OP_BEFORE_FIRST;
    cs_match.ops.size = CS_OPS; /* the tables may be larger: the parent's may have grown */
}

void cs_match_part(cs_u32 file) { cs_match.file = file; }

/* --- the calls of the rings --- */

cs_u64 cs_match_enqueued_last(void) { return cs_match.ops.enqueued_last; }

static bool has_work(const struct cs_record *record)
{
    if (!cs_gpu_is_on() || record->result != CUDA_SUCCESS || !cs_call_enqueues((enum cs_call)record->call)) return false;
    if (record->end > cs_match.ops.enqueued_last) cs_match.ops.enqueued_last = record->end;
    return !cs_gpu_marks() || record->mark; /* without one it is in a capture, or there was no event for it: no work will come */
}

void cs_match_muted(const struct cs_thread *thread, const struct cs_record *record)
{
    const enum cs_kind kind = cs_call_info[record->call].kind;
    if (kind == CS_KIND_EVENT || kind == CS_KIND_WAIT) cs_match.captures.muted = record->end;
    if (!has_work(record)) return;
    struct cs_op *op = cs_op_new(thread, record, 0); /* no slice shows when it began */
    op->muted = true;
    if (record->mark) cs_op_marked(op, record->mark);
}

/* No profiler tells of that. */
static bool moves_nothing(const struct cs_record *record)
{
    const struct cs_call_info *info = &cs_call_info[record->call];
    return (info->kind == CS_KIND_COPY || info->kind == CS_KIND_SET) && info->shown[0].format == CS_FORMAT_SIZE && !record->value[0];
}

cs_u64 cs_match_call(const struct cs_thread *thread, const struct cs_record *record, struct cs_stream *stream, cs_u64 begin_ns)
{
    if (!has_work(record)) return 0;
    struct cs_op *op = cs_op_new(thread, record, begin_ns);
    struct cs_match_lane *lane = !stream ? NULL : cs_lane_made(stream) ?: cs_match_lane_of(stream);
    op->graph = cs_gpu_kind_of(cs_call_info[record->call].kind) == CS_GPU_GRAPH;
    if (record->mark) cs_op_marked(op, record->mark);
    if (!lane || cs_captures(stream, record->begin)) return op->id;
    op->lane = lane->number;
    op->event_wait = lane->event_wait;
    op->unsure = moves_nothing(record);
    cs_queue_add(lane, op);
    return op->id;
}

bool cs_match_captured(const struct cs_stream *stream, const struct cs_record *record)
{
    const enum cs_kind kind = cs_call_info[record->call].kind;
    const bool goes_in = cs_call_enqueues((enum cs_call)record->call) || cs_call_implies((enum cs_call)record->call, CS_NODE) || kind == CS_KIND_EVENT || kind == CS_KIND_WAIT;
    return goes_in && record->result == CUDA_SUCCESS && cs_captures(stream, record->begin);
}

const struct cs_op *cs_match_awaited(const struct cs_match_lane *lane)
{
    const struct cs_op *op = lane ? cs_op_get(lane->first) : NULL;
    return op && !op->works && !op->left && op->launch.block ? op : NULL;
}

struct cs_op *cs_match_op(cs_u64 number) { return cs_op_get(number); }

/* In a capture there is none; marks are around several calls. */
bool cs_match_tells(cs_u64 number)
{
    const struct cs_op *op = cs_op_get(number);
    cs_u64 since;
    return op && op->lane && !cs_gpu_marks() && (!cs_gpu_missing(CS_GPU_TIMES, &since) || op->begin < since);
}

void cs_match_runtime(const struct cs_thread *thread, const struct cs_record *record)
{
    if (cs_gpu_is_on()) cs_op_called(&(struct cs_gpu_call){record->begin, record->end, thread->key, (cs_u32)record->value[1]});
}

/* --- putting together --- */

static void arrived(struct cs_op *op, const struct cs_match_found *found)
{
    if (!op->works++) op->work_end_ns = op->work_pid = op->work_tid = 0;
    cs_queue_came(op);
    if (found->end_ns <= op->work_end_ns) return;
    op->work_end_ns = found->end_ns;
    op->work_pid = found->pid;
    op->work_tid = found->tid;
    op->work_file = cs_match.file;
}

/* A piece of work goes to its lane, if it is shown, and its call has what it waits for. */
static void give_work(const struct cs_gpu_work *work, struct cs_op *op)
{
    struct cs_match_found found = {.work = work, .op = op};
    if (work->kind == CS_GPU_OVERHEAD) {
        cs_match.sink->work(&found);
        return;
    }
    if (op && op->muted) return;
    found.start_ns = cs_clock_ns(work->start);
    found.end_ns = cs_clock_ns(work->end);
    found.lane = cs_match_lane_of_work(work, op);
    if (!cs_match.sink->work(&found)) {
        if (op) cs_queue_came(op); /* all the same: whoever shows it not has counted it */
        return;
    }
    if (op) {
        arrived(op, &found);
        struct cs_op *last = cs_op_get(op->joined);
        if (last) arrived(op = last, &found);
        cs_queue_arrived(cs_lane_get(op->lane), op, work->end, found.end_ns);
    }
    if (op) cs_hold_worked(found.lane, op, found.end_ns);
    else if (found.lane && found.start_ns > found.lane->stray_ns) found.lane->stray_ns = found.start_ns;
    cs_count_load(work, found.pid, found.start_ns, found.end_ns);
}

/* `all`: those too whose calls may yet come. */
static void give(const struct cs_gpu_work *work, bool all)
{
    struct cs_op *op = cs_op_of_work(work);
    const bool outside = cs_held_is_outside(work, op);
    if (!all && !outside && work->correlation && cs_work_has_times(work)) cs_held_heal(op);
    if (outside) {}
    else if (cs_work_has_times(work)) give_work(work, op);
    else {
        cs_match.sink->without_times(1);
        if (op) cs_queue_came(op);
    }
}

/* Whether work is under way whose times have not come. */
static bool is_expected(void)
{
    bool expected = !cs_match.sink->closed() && (cs_match.held.call_count || cs_match.held.work_count); /* else they may be of calls that are not recorded */
    for (cs_u32 i = 1; i <= cs_match_lanes_high() && !expected; i++) expected = cs_lane_come(cs_lane_get(i), NULL) == CS_AWAITED;
    return expected;
}

/* Whether work is awaited. `waits`: the rings have been read since the round before; `last`: nothing comes any more. */
static bool round_once(bool all, bool waits, bool last)
{
    cs_held_calls(false);
    const size_t ready = cs_held_choose(all);
    for (size_t i = 0; i < ready; i++) give(&cs_held_nth(i)->work, all);
    cs_held_forget_given(ready);
    if (waits) cs_waits_settle(last);
    cs_count_settle(last);
    const bool expected = is_expected();
    cs_gpu_expect(expected);
    return expected;
}

void cs_match_collect(void)
{
    cs_match.now = (struct cs_since){cs_gpu_flushes(), cs_monotonic_ns()}; /* before what those flushes brought in is taken */
    cs_held_collect();
}

bool cs_match_behind(void) { return cs_match.held.behind; }
void cs_match_give(bool all) { round_once(all, false, false); }
void cs_match_round(void) { cs_ops_rest(round_once(false, true, false), cs_match.now.ns); }

void cs_match_end(void)
{
    cs_held_calls(true);
    round_once(true, true, true);
    for (cs_u32 i = 1; i <= cs_match_lanes_high(); i++)
        if (cs_lane_get(i)) cs_lane_ends(cs_lane_get(i));
}

/* --- the end of a stream --- */

bool cs_match_settled(const struct cs_stream *stream)
{
    struct cs_match_lane *lane = cs_match_lane_made(stream);
    if (!lane) return true;
    if (!lane->over) lane->over = true, lane->ended = cs_since_now();
    return cs_lane_come(lane, &lane->ended) != CS_AWAITED;
}

cs_u64 cs_match_filled(const struct cs_stream *stream)
{
    const struct cs_match_lane *lane = cs_match_lane_made(stream);
    return lane ? lane->work.filled[0] : 0;
}

cs_u64 cs_match_cut(const struct cs_stream *stream, cs_u64 ns, bool *awaited)
{
    struct cs_match_lane *lane = cs_match_lane_made(stream);
    *awaited = cs_lane_come(lane, NULL) == CS_AWAITED;
    if (*awaited) return lane->work.filled[0];
    if (lane && lane->work.filled[0] > ns) ns = lane->work.filled[0];
    if (lane) lane->work.filled[0] = ns; /* what should come all the same goes to another lane */
    return ns;
}
