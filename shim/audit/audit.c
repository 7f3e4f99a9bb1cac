#include "shim/audit/audit.h"

#include "shim/audit/audit_read.h"
#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/trace/listener.h"

enum { STEPS = 1 << 19, SLACK = 1 << 16 };

/* Steps that have been read, in no order over the threads; the order of those to take; room for sorting it. */
static struct cs_audit_step *steps;
static cs_u32 *orders, *order, *order_room;
CS_TABLE(AUDIT, steps, STEPS);
CS_TABLE(AUDIT, orders, 2 * STEPS);
static size_t count;

static struct cs_audit_thread *threads; /* by their index */
CS_TABLE(AUDIT, threads, CS_THREADS + 1);
static struct cs_audit_thread *row_of(const struct cs_thread *t) { return &threads[t->index <= CS_THREADS ? t->index : 0]; } /* those beyond have no records */

static bool works;           /* there is memory for it */
static cs_u64 round_begin;   /* ticks: of the round, of the one before */
static cs_u64 taken_until;   /* ticks: steps from before come late */

static void begin(void)
{
    works = false;
    if (!cs_tables_make(CS_TABLES_AUDIT, "the audit of the default stream")) return;
    order = orders;
    order_room = orders + STEPS;
    cs_memory_forget(threads, (CS_THREADS + 1) * sizeof *threads);
    count = 0;
    round_begin = taken_until = 0;
    cs_audit_lanes_begin();
    cs_audit_events_begin();
    cs_audit_pairs_begin();
    cs_audit_waits_begin();
    cs_audit_read_begin();
    cs_audit_model_begin();
    works = true;
}

bool cs_audit_works(void) { return works; }

/* --- what the rings tell --- */

static void place(struct cs_thread *thread, const struct cs_record *r)
{
    if (!works) return;
    struct cs_audit_thread *at = row_of(thread);
    at->site = r->value[0];
    at->site_legacy = r->value[1];
    at->site_context = (cs_ref)r->value[2];
}

static void lost(struct cs_thread *thread, cs_u64 calls)
{
    if (works) row_of(thread)->site = 0, row_of(thread)->site_legacy = false; /* it was told before a call that is lost */
    cs_audit_sums.lost += calls;
}

static void thread_ends(const struct cs_thread *thread)
{
    if (works) *row_of(thread) = (struct cs_audit_thread){0};
}

static void take_oldest(cs_u64 until, size_t most);

/* A poll may get the answer "not ready" a million times. One step each while is enough; not one for all, since another thread may enqueue meanwhile. */
static bool is_told_already(struct cs_audit_thread *at, const struct cs_record *r, cs_u64 begin_ns)
{
    enum { WHILE_NS = 10000 };
    const bool denied = r->result == CUDA_ERROR_NOT_READY;
    const struct cs_audit_denied *last = &at->denied;
    if (denied && last->call == r->call && last->what == r->value[0] && last->stream == r->stream && begin_ns - last->begin_ns < WHILE_NS) return true;
    at->denied = denied ? (struct cs_audit_denied){r->value[0], begin_ns, r->stream, r->call} : (struct cs_audit_denied){0};
    return false;
}

static void call(struct cs_thread *thread, const struct cs_record *r, struct cs_stream *stream, cs_u64 work, cs_u64 begin_ns)
{
    if (!works) return;
    if (count + 2 > STEPS) take_oldest(UINT64_MAX, STEPS / 2);
    struct cs_audit_thread *at = row_of(thread);
    int n = is_told_already(at, r, begin_ns) ? 0 : cs_audit_read(thread, at, r, stream, &steps[count]);
    for (int i = 0; i < n; i++, count++) {
        steps[count].op.work = work;
        steps[count].op.begin_ns = begin_ns;
        cs_audit_lane_at(steps[count].lane)->pending++;
        cs_audit_lane_at(steps[count].op.stream)->pending++;
    }
    at->site = 0;
    at->site_legacy = false;
    if (r->end > at->quiet) at->quiet = r->end;
}

/* --- in the order of time --- */

static bool comes_after(cs_u32 a, cs_u32 b) { return steps[a].at > steps[b].at; }

/* Bottom-up and stable: what came is some runs in order, one a thread. */
static void sort(size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t a = low, middle = low + width < n ? low + width : n, b = middle, high = low + 2 * width < n ? low + 2 * width : n, to = low;
            while (a < middle || b < high) order_room[to++] = a < middle && (b == high || !comes_after(order[a], order[b])) ? order[a++] : order[b++];
        }
        cs_u32 *swap = order;
        order = order_room;
        order_room = swap;
    }
}

static void take(struct cs_audit_step *step)
{
    if (step->at < taken_until) cs_audit_sums.late++;
    else taken_until = step->at;
    cs_audit_take(step);
    cs_audit_lane_at(step->lane)->pending--;
    cs_audit_lane_at(step->op.stream)->pending--;
    step->what = CS_AUDIT_NOTHING; /* taken */
}

static void take_oldest(cs_u64 until, size_t most)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < count; i++)
        if (steps[i].at < until) order[n++] = (cs_u32)i;
    sort(n);
    for (size_t i = 0; i < n && i < most; i++) take(&steps[order[i]]);
    for (size_t i = 0; i < count; i++)
        if (steps[i].what != CS_AUDIT_NOTHING) steps[kept++] = steps[i];
    count = kept;
}

/* A call under way is not recorded yet, and may be older than what other threads have recorded since. */
static void round_begins(void)
{
    if (!works) return;
    round_begin = cs_ticks();
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next)
        if (t->index > CS_THREADS || !cs_load_acq(&t->inside)) row_of(t)->quiet = round_begin;
}

static void round_ends(void)
{
    if (!works) return;
    cs_u64 until = round_begin;
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next)
        if (cs_load_acq(&t->state) != CS_THREAD_FREE && row_of(t)->quiet < until) until = row_of(t)->quiet;
    if (count > STEPS - SLACK) until = round_begin; /* a call that lasts: it will be late */
    cs_audit_waits_write(false);                    /* first, since it makes room */
    if (count) take_oldest(until, STEPS);
}

void cs_audit_rest(void)
{
    if (!works) return;
    take_oldest(UINT64_MAX, STEPS);
    cs_audit_waits_write(true);
    cs_audit_sums.ended = true;
}

static void end(void)
{
    cs_audit_rest();
    cs_audit_say();
}

void cs_audit_listen(void)
{
    static const struct cs_listener audit = {begin, place, call, lost, thread_ends, round_begins, round_ends, end, cs_audit_put};
    if (cs_audit_on()) cs_listener = &audit;
}
