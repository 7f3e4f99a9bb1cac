#include "shim/trace/gpu_op.h"

#include <string.h>

#include "shim/base/memory.h"
#include "shim/gpu/mark.h"
#include "shim/trace/lanes.h"

enum { OPS = 1 << 18, CORRELATIONS = 1 << 19, THREADS = 1 << 12, STEPS = 4096 };

static struct cs_op *ops;
/* Ids are the trace's correlation numbers. HolisticTraceAnalysis 0.5.0 puts row numbers into a column of the smallest type that holds all correlations,
 * which pandas from 3 on refuses where one does not fit. Beyond 15 bits all do. */
enum { BEFORE_FIRST = 1 << 15 };
static cs_u64 newest = BEFORE_FIRST;

/* Correlation -> op. The profiler counts up, so the table is by the number's low bits, and the newest stays. */
static struct correlated {
    cs_u32 correlation, op; /* the op's id, low half */
    bool outside;           /* it has none, and none will come */
} *correlated;
CS_TABLE(TRACE, ops, OPS);
CS_TABLE(TRACE, correlated, CORRELATIONS);

/* The ops of each thread, by time, since a thread does one thing after another. Profilers name a thread by the low half of its pthread_self(), which later
 * threads may have too; the kernel's number tells those apart. */
static struct thread {
    cs_u32 key, tid;    /* tid 0: never used */
    cs_u64 first, last; /* where the profiler's calls have got to; the newest */
    cs_u64 beyond;      /* where those have got to that are none of ours, which may be far ahead: of a time when nothing was recorded */
} threads[THREADS];
static cs_u32 used[THREADS], used_count; /* the places in `threads` that were ever used */

void cs_ops_begin(void)
{
    if (newest == BEFORE_FIRST && !used_count) return;
    cs_memory_forget(ops, OPS * sizeof *ops);
    cs_memory_forget(correlated, CORRELATIONS * sizeof *correlated);
    memset(threads, 0, sizeof threads);
    newest = BEFORE_FIRST;
    used_count = 0;
}

struct cs_op *cs_op_get(cs_u64 id) { return id && ops[id % OPS].id == id ? &ops[id % OPS] : NULL; }

static struct thread *thread_at(cs_u32 key, cs_u32 i) { return &threads[((key * 0x9e3779b9u >> 20) + i) % THREADS]; }

static struct thread *thread_of(cs_u32 key, cs_u32 tid)
{
    for (cs_u32 i = 0; i < THREADS; i++) {
        struct thread *t = thread_at(key, i);
        if (t->tid == tid && t->key == key) return t;
        if (t->tid && cs_op_get(t->last)) continue;
        if (!t->tid) used[used_count++] = (cs_u32)(t - threads);
        *t = (struct thread){.key = key, .tid = tid}; /* new, or long silent */
        return t;
    }
    return NULL;
}

struct cs_op *cs_op_new(const struct cs_thread *thread, const struct cs_record *record, cs_u64 begin_ns)
{
    struct thread *t = thread_of(thread->key, thread->tid);
    struct cs_op *op = &ops[++newest % OPS], *before = t ? cs_op_get(t->last) : NULL;
    *op = (struct cs_op){.id = newest, .begin = record->begin, .end = record->end, .begin_ns = begin_ns, .tid = thread->tid, .call = record->call,
                         .file = cs_lanes_file()};
    if (!t) return op;
    if (before) before->next_of_thread = op->id;
    op->before_of_thread = t->last;
    if (!cs_op_get(t->first)) t->first = op->id;
    t->last = op->id;
    return op;
}

static void correlate(cs_u32 correlation, cs_u64 op, bool outside)
{
    correlated[correlation % CORRELATIONS] = (struct correlated){correlation, (cs_u32)op, outside};
}

static enum cs_op_found called_by(struct thread *t, const struct cs_gpu_call *call, struct cs_op **found)
{
    struct cs_op *newest_of_it = cs_op_get(t->last), *op = cs_op_get(t->first), *beyond = cs_op_get(t->beyond);
    if (!newest_of_it || newest_of_it->end < call->start) return CS_OP_LATER;
    if (beyond && beyond->begin <= call->end && (!op || beyond->id > op->id)) op = beyond;
    while (op && op->end < call->start) op = cs_op_get(op->next_of_thread);
    if (!op) return CS_OP_LATER;
    const cs_u64 last = op->id;
    for (int i = 0; op && op->begin > call->end && i < STEPS; i++) op = cs_op_get(op->before_of_thread); /* profilers may tell of calls out of order */
    bool is_it = op && op->begin <= call->end && op->end >= call->start;
    *(is_it ? &t->first : &t->beyond) = last;
    if (is_it) *found = op;
    return is_it ? CS_OP_FOUND : CS_OP_NONE;
}

enum cs_op_found cs_op_called(const struct cs_gpu_call *call)
{
    struct cs_op *op = NULL;
    enum cs_op_found found = CS_OP_LATER, of_thread;
    for (cs_u32 i = 0; ops && i < THREADS && found != CS_OP_FOUND; i++) {
        struct thread *t = thread_at(call->thread, i);
        if (!t->tid) break;
        if (t->key == call->thread && (of_thread = called_by(t, call, &op)) != CS_OP_LATER) found = of_thread;
    }
    for (cs_u32 i = 0; ops && i < used_count && found != CS_OP_FOUND; i++)
        if (threads[used[i]].tid == call->thread && (of_thread = called_by(&threads[used[i]], call, &op)) != CS_OP_LATER) found = of_thread;
    if (found == CS_OP_FOUND) correlate(call->correlation, op->id, false);
    return found;
}

void cs_op_outside(cs_u32 correlation)
{
    if (correlated && correlation) correlate(correlation, 0, true);
}

bool cs_op_is_outside(cs_u32 correlation)
{
    return correlated && correlation && correlated[correlation % CORRELATIONS].correlation == correlation && correlated[correlation % CORRELATIONS].outside;
}

void cs_op_marked(struct cs_op *op, cs_u64 mark)
{
    struct cs_op *first = mark & CS_MARK_JOINS ? cs_op_of((cs_u32)mark) : NULL;
    if (first && first->joined < op->id) first->joined = op->id;
    if (mark & CS_MARK_JOINS) return;
    correlate((cs_u32)mark, op->id, false);
}

struct cs_op *cs_op_of(cs_u32 correlation)
{
    if (!ops || !correlation || correlated[correlation % CORRELATIONS].correlation != correlation || cs_op_is_outside(correlation)) return NULL;
    cs_u32 low = correlated[correlation % CORRELATIONS].op;
    return cs_op_get(newest - (cs_u32)((cs_u32)newest - low));
}

struct cs_op *cs_op_before(cs_u64 last, cs_u64 ticks)
{
    struct cs_op *op = cs_op_get(last);
    for (int i = 0; op && op->begin > ticks && i < STEPS; i++) op = cs_op_get(op->before);
    return op && op->begin <= ticks ? op : NULL;
}
