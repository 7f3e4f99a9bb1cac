#include "shim/base/memory.h"
#include "shim/gpu/mark.h"
#include "shim/match/state.h"

enum { STEPS = 4096, BESIDE = 256, BACK = 1 << 15, AHEAD = 16 };

static struct cs_match_tables *const table = &cs_match.table;
static struct cs_ops *const state = &cs_match.ops;

static cs_u32 *head_of(cs_u32 *heads, cs_u32 name) { return &heads[name * 0x9e3779b9u >> (32 - CS_OP_THREADS_LOG2)]; }

/* NULL: none, or a number of long ago, and so are all behind it in its list. */
static struct cs_op_thread *thread_get(cs_u32 number)
{
    return number && state->newest_thread - number < CS_OP_THREADS ? &table->threads[number % CS_OP_THREADS] : NULL;
}

static struct cs_op_thread *thread_of(cs_u32 key, cs_u32 tid, cs_u64 begin)
{
    cs_u32 *of_key = head_of(table->threads_of_key, key), *of_tid = head_of(table->threads_of_tid, tid);
    struct cs_op_thread *t = thread_get(*of_tid);
    for (; t; t = thread_get(t->older_of_tid))
        if (t->tid == tid && t->key == key) return t;
    if (!++state->newest_thread) state->newest_thread = 1;
    t = &table->threads[state->newest_thread % CS_OP_THREADS];
    *t = (struct cs_op_thread){.key = key, .tid = tid, .older_of_key = *of_key, .older_of_tid = *of_tid, .begin = begin};
    *of_key = *of_tid = state->newest_thread;
    return t;
}

/* How a kernel is launched: its own record tells it, and comes when it has ended. */
static struct cs_op_launch launch_of(const struct cs_record *record)
{
    const struct cs_call_info *info = &cs_call_info[record->call];
    struct cs_op_launch launch = {{0}, 0};
    if (info->kind != CS_KIND_LAUNCH) return launch;
    for (int i = 0; i + 2 < CS_VALUES; i++) {
        const cs_u64 *v = &record->value[i];
        if (info->shown[i].format != CS_FORMAT_GRID) continue;
        const cs_u32 x = (cs_u32)(v[1] >> 32), y = (cs_u32)v[2], z = (cs_u32)(v[2] >> 32);
        if (x < 1 << 11 && y < 1 << 11 && z < 1 << 10) launch = (struct cs_op_launch){{(cs_u32)v[0], (cs_u32)(v[0] >> 32), (cs_u32)v[1]}, x | y << 11 | z << 22};
    }
    return launch;
}

/* --- a larger table --- */

/* Whether the work of a call may still come. */
static bool is_awaited(const struct cs_op *op)
{
    return !op->came && !op->left && !op->unsure && cs_gpu_kind_of(cs_call_info[op->call].kind) != CS_GPU_NONE && cs_match_tells(op->id);
}

static size_t bytes_of_ops(size_t size) { return size * sizeof *table->ops; }
static size_t bytes_of_correlated(size_t size) { return CS_CORRELATIONS_OF_OP * size * sizeof *table->correlated; }

/* The tables that were made with the trace stay behind, empty: they are a part of one piece of memory. In the child of a fork the tables are either the old ones or
 * the new ones, and both are there: the pointers change before the old ones go. */
static bool resize(size_t size)
{
    static const char lost[] = "calls whose work is awaited: the work of older ones is shown without its call";
    const size_t old = state->size, kept = old < size ? old : size, mask = CS_CORRELATIONS_OF_OP * size - 1;
    struct cs_op *const old_ops = table->ops, *const new_ops = cs_memory_map_more(bytes_of_ops(size), lost);
    struct cs_correlated *const old_correlated = table->correlated, *const new_correlated = new_ops ? cs_memory_map_more(bytes_of_correlated(size), lost) : NULL;
    if (!new_correlated) {
        if (new_ops) cs_memory_unmap(new_ops, bytes_of_ops(size));
        return false;
    }
    for (cs_u64 id = state->newest - kept + 1; id <= state->newest; id++) new_ops[(id - CS_OP_BEFORE_FIRST - 1) & (size - 1)] = *cs_op_place(id);
    for (size_t i = 0; i < CS_CORRELATIONS_OF_OP * old; i++) {
        struct cs_correlated *to = &new_correlated[old_correlated[i].correlation & mask];
        if (old_correlated[i].correlation && (!to->correlation || (int32_t)(old_correlated[i].correlation - to->correlation) > 0)) *to = old_correlated[i];
    }
    table->ops = new_ops, table->correlated = new_correlated;
    state->forgotten = state->newest - kept;
    state->size = (cs_u32)size;
    if (state->grown) cs_memory_unmap(old_ops, bytes_of_ops(old)), cs_memory_unmap(old_correlated, bytes_of_correlated(old));
    else cs_memory_forget(old_ops, bytes_of_ops(old)), cs_memory_forget(old_correlated, bytes_of_correlated(old));
    return state->grown = true;
}

/* Since when nothing is awaited, 0 while something is. A program that waits for all its work in each step is not to have the table grow in each. */
void cs_ops_rest(bool awaited, cs_u64 now_ns)
{
    const cs_u64 rest_ns = 1000000000;
    if (awaited || state->size == CS_OPS) state->rests_ns = 0;
    else if (!state->rests_ns) state->rests_ns = now_ns;
    else if (now_ns - state->rests_ns > rest_ns && !resize(CS_OPS)) state->rests_ns = 0;
}

/* The next op would take the place of one whose work is awaited. */
static bool is_full(void)
{
    const cs_u64 oldest = state->newest + 1 - state->size;
    const struct cs_op *op = cs_op_is_kept(oldest) ? cs_op_place(oldest) : NULL;
    return op && op->id == oldest && is_awaited(op) && state->size < CS_OPS_MOST && !state->cannot_grow;
}

/* Each field is named: a compiler that has to clear the rest does so in a way that is slow to begin. */
struct cs_op *cs_op_new(const struct cs_thread *thread, const struct cs_record *record, cs_u64 begin_ns)
{
    struct cs_op_thread *t = thread_of(thread->key, thread->tid, record->begin);
    if (CS_UNLIKELY(is_full())) state->cannot_grow = !resize(2 * (size_t)state->size);
    const struct cs_op *soon = cs_op_place(state->newest + AHEAD); /* written a quarter of a million calls ago: in no cache */
    cs_prefetch_to_write(soon), cs_prefetch_to_write(&soon->before);
    state->newest += (cs_u32)state->newest == UINT32_MAX ? 2 : 1; /* no id's low half is 0 */
    struct cs_op *op = cs_op_place(state->newest), *before = cs_op_get(t->last);
    *op = (struct cs_op){
        .id = state->newest, .begin = record->begin, .end = record->end, .begin_ns = begin_ns, .tid = thread->tid, .key = thread->key, .joined = 0, .before = 0,
        .after = 0, .event_wait = 0, .before_of_thread = t->last, .next_of_thread = 0, .lane = 0, .missed = 0, .launch = launch_of(record), .works = 0,
        .file = cs_match.file, .work_file = 0, .call = record->call, .muted = false, .graph = false, .counted = false, .left = false, .came = false, .untimed = false, .unsure = false};
    if (before) before->next_of_thread = op->id;
    if (!cs_op_get(t->first)) t->first = op->id;
    t->last = op->id;
    t->end = record->end;
    if (record->end > state->ended_last) state->ended_last = record->end;
    return op;
}

static void correlate(cs_u32 correlation, cs_u64 op)
{
    *cs_correlated(correlation) = (struct cs_correlated){correlation, (cs_u32)op};
    state->told++;
}

/* Where the counter goes in steps (of 40 ns on some aarch64) a thread's next call begins in the step in which its last one ended. Of two that have but one step in
 * common, neither within the other, one was over before the other. */
static bool was_over(const struct cs_op *op, const struct cs_gpu_call *call)
{
    return op->end < call->start || (op->end == call->start && op->begin < call->start && op->end < call->end);
}
static bool was_yet_to_come(const struct cs_op *op, const struct cs_gpu_call *call)
{
    return op->begin > call->end || (op->begin == call->end && op->begin > call->start && op->end > call->end);
}

static enum cs_op_found called_by(struct cs_op_thread *t, const struct cs_gpu_call *call, struct cs_op **found)
{
    struct cs_op *newest_of_it = cs_op_get(t->last), *op = cs_op_get(t->first), *beyond = cs_op_get(t->beyond);
    if (!newest_of_it || was_over(newest_of_it, call)) return CS_OP_LATER;
    if (beyond && beyond->begin <= call->end && (!op || beyond->id > op->id)) op = beyond;
    while (op && was_over(op, call)) op = cs_op_get(op->next_of_thread);
    if (!op) return CS_OP_LATER;
    const cs_u64 last = op->id;
    for (int i = 0; op && was_yet_to_come(op, call) && i < STEPS; i++) op = cs_op_get(op->before_of_thread); /* profilers may tell of calls out of order */
    __builtin_prefetch(cs_op_get(last + AHEAD)); /* a thread's calls mostly follow each other */
    bool is_it = op && !was_yet_to_come(op, call) && !was_over(op, call);
    *(is_it ? &t->first : &t->beyond) = last;
    if (is_it) *found = op;
    return is_it ? CS_OP_FOUND : CS_OP_NONE;
}

/* How much longer the call of ours took than what the profiler saw of it. */
static cs_u64 slack(const struct cs_op *op, const struct cs_gpu_call *call)
{
    const bool within = op->begin <= call->start && call->end <= op->end;
    return within ? (op->end - op->begin) - (call->end - call->start) : UINT64_MAX;
}

/* Threads whose stacks lie 4 GiB apart have the same key, and so do those that follow each other: of those that were in a call then, the one whose times fit
 * closest. The newest come first; behind one that fits only those beside it may fit too. */
static enum cs_op_found called_by_key(const struct cs_gpu_call *call, struct cs_op **best)
{
    enum cs_op_found found = CS_OP_LATER, of_thread;
    struct cs_op_thread *t = thread_get(*head_of(table->threads_of_key, call->thread));
    for (int beside = 0; t && beside < BESIDE; t = thread_get(t->older_of_key), beside += *best != NULL) {
        struct cs_op *op = NULL;
        if (t->key != call->thread || t->end < call->start) continue;
        of_thread = t->begin > call->end ? CS_OP_NONE : called_by(t, call, &op);
        if (of_thread != CS_OP_LATER && found != CS_OP_FOUND) found = of_thread;
        if (op && (!*best || slack(op, call) < slack(*best, call))) *best = op;
    }
    return found;
}

static enum cs_op_found called_by_tid(const struct cs_gpu_call *call, struct cs_op **op)
{
    enum cs_op_found found = CS_OP_LATER, of_thread;
    struct cs_op_thread *t = thread_get(*head_of(table->threads_of_tid, call->thread));
    for (; t && found != CS_OP_FOUND; t = thread_get(t->older_of_tid))
        if (t->tid == call->thread && (of_thread = called_by(t, call, op)) != CS_OP_LATER) found = of_thread;
    return found;
}

enum cs_op_found cs_op_called(const struct cs_gpu_call *call)
{
    struct cs_op *op = NULL;
    if (state->ended_last < call->start) return CS_OP_LATER;
    enum cs_op_found found = called_by_key(call, &op), of_tid = found == CS_OP_FOUND ? found : called_by_tid(call, &op);
    if (of_tid != CS_OP_LATER) found = of_tid;
    if (found == CS_OP_FOUND) correlate(call->correlation, op->id);
    return found;
}

void cs_op_outside(cs_u32 correlation)
{
    if (correlation) correlate(correlation, 0);
}

void cs_op_marked(struct cs_op *op, cs_u64 mark)
{
    struct cs_op *first = mark & CS_MARK_JOINS ? cs_op_of((cs_u32)mark) : NULL;
    if (first && first->joined < op->id) first->joined = op->id;
    if (mark & CS_MARK_JOINS) return;
    correlate((cs_u32)mark, op->id);
}

/* Whether the profiler's number of its stream is known and another than that of the work. */
static bool stands_elsewhere(const struct cs_op *op, const struct cs_gpu_work *work)
{
    const struct cs_match_lane *lane = cs_lane_get(op->lane);
    return lane && lane->gpu_id && !op->graph && !work->node && lane->gpu_id != work->stream;
}

static bool stands_there(const struct cs_op *op, const struct cs_gpu_work *work)
{
    const struct cs_match_lane *lane = cs_lane_get(op->lane);
    return lane && lane->gpu_id == work->stream && lane->device == work->device;
}

struct cs_op *cs_op_of_work(const struct cs_gpu_work *work)
{
    struct cs_op *op = cs_op_of(work->correlation);
    if (!op || !stands_elsewhere(op, work)) return op;
    struct cs_op_thread *t = thread_get(*head_of(table->threads_of_key, op->key));
    for (; t; t = thread_get(t->older_of_key)) {
        struct cs_op *other = cs_op_get(t->last);
        if (t->key != op->key || t->tid == op->tid || t->end < op->begin || t->begin > op->end) continue;
        for (int n = 0; other && other->end >= op->begin && n < STEPS; other = cs_op_get(other->before_of_thread), n++) {
            if (other->begin > op->end || other->came || !stands_there(other, work)) continue;
            correlate(work->correlation, other->id);
            return other;
        }
    }
    return op;
}

struct cs_op *cs_op_before(cs_u64 last, cs_u64 ticks, bool *known)
{
    struct cs_op *op = cs_op_get(last);
    for (int i = 0; op && op->begin > ticks && i < BACK; i++) op = cs_op_get(last = op->before);
    const bool found = op && op->begin <= ticks;
    *known = found || !last;
    return found ? op : NULL;
}
