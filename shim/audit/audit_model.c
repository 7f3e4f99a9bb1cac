#include "shim/audit/audit_model.h"

#include <string.h>

#include "shim/base/memory.h"

enum { AS_IS, AS_WOULD_BE, BEFORES = 4, LOST = 64, CLAMPS = 1 << 16 };

struct cs_audit_sums cs_audit_sums;

/* What a stream knows, in each of the systems. As it is, an operation on the default stream has the legacy lane's clock, whoever made it. */
struct lane {
    struct view {
        cs_u64 version;        /* of its clock */
        cs_u64 merged, seen;   /* the version that the legacy stream has of it, and it of the legacy stream */
    } view[2];
    cs_u64 last, last_own, last_default; /* its last operation; on the stream itself, by the default stream */
    cs_u64 forgotten;          /* the newest operation that `history` has no more */
    cs_u64 ops;                /* ever */
    cs_u64 learnt;             /* the last operation of all when it learnt something of other lanes, in the second system */
    cs_u64 capture;
    cs_u64 before[BEFORES];    /* works of events that it waits for since its last operation */
    int befores;
};

static struct model {
    struct lane lanes[CS_AUDIT_LANES];
    cs_u64 clock[CS_AUDIT_LANES][2][CS_AUDIT_LANES];
    cs_u64 counted[CS_AUDIT_LANES][CS_AUDIT_LANES]; /* up to which operation of a lane those of a stream have waited for it, and been counted */
    cs_u64 host[2][CS_AUDIT_LANES];                 /* what has ended as far as the host knows */
    cs_u64 waited[2][CS_AUDIT_LANES];               /* what of it the host has waited for: another run would know it too */
    cs_u64 now[2][CS_AUDIT_LANES];                  /* room for what a step of the host's tells */
    struct {
        cs_u16 lane;
        cs_u64 seq;
    } last_default[CS_AUDIT_CONTEXTS];              /* the last operation on the legacy stream */
    cs_u64 begins[CLAMPS];                          /* of the last operations, by number */
    struct cs_audit_op history[CS_AUDIT_LANES][CS_AUDIT_HISTORY];
} *m;
CS_TABLE(AUDIT, m, 1);

static cs_u64 sequence, captures;
static cs_u32 first_thread;

void cs_audit_model_begin(void)
{
    cs_memory_forget(m, sizeof *m);
    cs_audit_sums = (struct cs_audit_sums){0};
    sequence = captures = first_thread = 0;
}

void cs_audit_model_lane(cs_u16 lane)
{
    memset(&m->lanes[lane], 0, sizeof *m->lanes);
    memset(m->clock[lane], 0, sizeof *m->clock);
    memset(m->counted[lane], 0, sizeof *m->counted);
}

/* --- clocks --- */

/* What of `from` is news goes into `to`; how it came to be known, unless it hangs on an order that has to be mended. */
static bool learn(cs_u64 *to, const cs_u64 *from, cs_u32 n, enum cs_audit_how how)
{
    bool news = false;
    for (cs_u32 i = 0; i < n; i++) {
        if (cs_audit_seq(from[i]) <= cs_audit_seq(to[i])) continue;
        to[i] = cs_audit_stamp(cs_audit_seq(from[i]), cs_audit_how(from[i]) == CS_AUDIT_BY_MENDING ? CS_AUDIT_BY_MENDING : how);
        news = true;
    }
    return news;
}

static void learn_lane(int k, cs_u16 to, const cs_u64 *from, cs_u32 n, enum cs_audit_how how)
{
    if (!learn(m->clock[to][k], from, n, how)) return;
    m->lanes[to].view[k].version++;
    if (k == AS_WOULD_BE) m->lanes[to].learnt = sequence;
}

/* The legacy stream and the blocking streams of its context: each waits for what was enqueued before on the other side. A marker on the legacy stream
 * too stands between what comes before and after it. */
static void wait_implicitly(int k, cs_u16 stream)
{
    struct cs_audit_lane *what = cs_audit_lane_at(stream);
    cs_u16 legacy = cs_audit_legacy_of(what->context);
    struct view *view = &m->lanes[stream].view[k];
    cs_u32 n = cs_audit_lanes_high();
    if (stream != legacy) {
        if (!legacy || !what->blocking || view->seen == m->lanes[legacy].view[k].version) return;
        cs_audit_sums.implied |= k == AS_IS;
        learn_lane(k, stream, m->clock[legacy][k], n, CS_AUDIT_BY_STREAM);
        view->seen = m->lanes[legacy].view[k].version;
        return;
    }
    for (cs_u16 l = cs_audit_lanes_of(what->context); l; l = cs_audit_lane_at(l)->next) {
        struct view *other = &m->lanes[l].view[k];
        if (l == legacy || !cs_audit_lane_at(l)->blocking || other->merged == other->version) continue;
        cs_audit_sums.implied |= k == AS_IS;
        learn_lane(k, legacy, m->clock[l][k], n, CS_AUDIT_BY_STREAM);
        other->merged = other->version;
    }
}

static cs_u64 max(cs_u64 a, cs_u64 b) { return a > b ? a : b; }

/* --- history --- */

static const struct cs_audit_op *op_at(cs_u16 lane, cs_u64 i) { return &m->history[lane][i % CS_AUDIT_HISTORY]; }

/* How many of a lane's operations came up to number `seq`: the first of them that is kept stands at *oldest. */
static cs_u64 ops_until(cs_u16 lane, cs_u64 seq, cs_u64 *oldest)
{
    cs_u64 low = m->lanes[lane].ops > CS_AUDIT_HISTORY ? m->lanes[lane].ops - CS_AUDIT_HISTORY : 0, high = m->lanes[lane].ops;
    *oldest = low;
    while (low < high) {
        cs_u64 middle = low + (high - low) / 2;
        if (op_at(lane, middle)->seq <= seq) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void remember(cs_u16 lane, const struct cs_audit_op *op)
{
    struct lane *l = &m->lanes[lane];
    struct cs_audit_op *slot = &m->history[lane][l->ops++ % CS_AUDIT_HISTORY];
    if (l->ops > CS_AUDIT_HISTORY) l->forgotten = slot->seq;
    *slot = *op;
    l->last = op->seq;
    m->begins[op->seq % CLAMPS] = op->begin;
}

/* The number of the last operation that had been called for by then: operations are numbered by the time of their calls. */
static cs_u64 last_by(cs_u64 ticks)
{
    cs_u64 low = sequence > CLAMPS - 1 ? sequence - (CLAMPS - 1) : 0, high = sequence;
    while (low < high) {
        cs_u64 middle = high - (high - low) / 2;
        if (m->begins[middle % CLAMPS] <= ticks) low = middle;
        else high = middle - 1;
    }
    return low;
}

/* --- orders that are lost --- */

static bool overlap(const cs_u64 a[2], const cs_u64 b[2]) { return a[0] < a[1] && b[0] < b[1] && a[0] < b[1] && b[0] < a[1]; }

static bool touches_nothing(const struct cs_audit_memory *memory)
{
    return memory->known && memory->write[0] >= memory->write[1] && memory->read[0] >= memory->read[1];
}

/* Whether the two may touch the same memory, one of them writing. `second` NULL: the host. */
static bool matters(const struct cs_audit_memory *first, const struct cs_audit_memory *second)
{
    if (touches_nothing(first) || (second && touches_nothing(second))) return false;
    if (!first->known) return true;
    if (!second) return first->host;
    return !second->known || overlap(first->write, second->write) || overlap(first->write, second->read) || overlap(first->read, second->write);
}

struct lost {
    cs_u16 lane;
    cs_u64 after, until; /* operations of that lane, by number */
};

/* The newest operation of the lost ones that matters; NULL: none does, and *newest is the last of them, NULL if there is none at all. That two name
 * different memory is no proof: it may be the host's, which looks at it when it likes, and memory may have two addresses. */
static const struct cs_audit_op *examine(const struct lost *lost, const struct cs_audit_memory *second, const struct cs_audit_op **newest)
{
    cs_u64 oldest, i = ops_until(lost->lane, lost->until, &oldest);
    *newest = NULL;
    for (; i > oldest; i--) {
        const struct cs_audit_op *op = op_at(lost->lane, i - 1);
        if (op->seq <= lost->after) return NULL;
        if (!*newest) *newest = op;
        if (matters(&op->memory, second)) return op;
        if (!touches_nothing(&op->memory) && !(second && touches_nothing(second))) cs_audit_sums.doubt[CS_AUDIT_DOUBT_MEMORY] = true;
    }
    if (m->lanes[lost->lane].forgotten > lost->after) cs_audit_sums.unseen++;
    return NULL;
}

/* Up to which operation of a lane the order stands, by a clock and by what the host has waited for. */
static cs_u64 kept(const cs_u64 *clock[2], const cs_u64 *waited, cs_u32 lane) { return max(cs_audit_seq(clock[0][lane]), cs_audit_seq(waited[lane])); }

/* An order that would stand because of what the host happens to know may not stand in another run. */
static void doubt(const cs_u64 *is[2], const cs_u64 *would_be[2], cs_u32 lane, cs_u64 limit)
{
    cs_u64 until = kept(is, m->waited[AS_IS], lane);
    if (cs_audit_seq(is[0][lane]) > cs_audit_seq(would_be[0][lane])) cs_audit_sums.implied = true;
    if ((until < limit ? until : limit) <= kept(would_be, m->waited[AS_WOULD_BE], lane)) return;
    enum cs_audit_how how = cs_audit_how(m->host[AS_WOULD_BE][lane]);
    if (how == CS_AUDIT_BY_COPY) cs_audit_sums.doubt[CS_AUDIT_DOUBT_COPY] = true;
    if (how == CS_AUDIT_BY_ANSWER) cs_audit_sums.doubt[CS_AUDIT_DOUBT_ANSWER] = true;
}

/* Latest first: what the order after it brings along needs no telling. How many there are. */
static int gather(cs_u16 except, const cs_u64 *is[2], const cs_u64 *would_be[2], cs_u64 limit, struct lost lost[LOST])
{
    int n = 0;
    for (cs_u32 i = 1; i < cs_audit_lanes_high(); i++) {
        cs_u64 until = max(cs_audit_seq(is[0][i]), cs_audit_seq(is[1][i])), after = max(cs_audit_seq(would_be[0][i]), cs_audit_seq(would_be[1][i]));
        if (i != except) doubt(is, would_be, i, limit);
        if (until > limit) until = limit;
        if (CS_LIKELY(until <= after || i == except)) continue;
        if (n == LOST) {
            cs_audit_sums.unseen++;
            return n;
        }
        int at = n++;
        for (; at && lost[at - 1].until < until; at--) lost[at] = lost[at - 1];
        lost[at] = (struct lost){(cs_u16)i, after, until};
    }
    return n;
}

/* From here on the order is taken for kept, and so is what must have come before the first operation, as far as that is still known. */
static void mend(cs_u64 *clock, cs_u16 lane, const struct cs_audit_op *first)
{
    const cs_u64 *before = m->clock[lane][AS_WOULD_BE];
    if (cs_audit_seq(clock[lane]) < first->seq) clock[lane] = cs_audit_stamp(first->seq, CS_AUDIT_BY_MENDING);
    if (m->lanes[lane].learnt >= first->seq) return;
    for (cs_u32 i = 1; i < cs_audit_lanes_high(); i++)
        if (i != lane && cs_audit_seq(before[i]) > cs_audit_seq(clock[i])) clock[i] = cs_audit_stamp(cs_audit_seq(before[i]), CS_AUDIT_BY_MENDING);
}

static bool same_memory(const struct cs_audit_op *first, const struct cs_audit_op *second) { return first->memory.known && second->memory.known; }

/* What an operation on `lane` waits for as it is and would not wait for. */
static int lost_by_work(const struct cs_audit_step *step, struct cs_audit_found found[2 * LOST])
{
    struct lost lost[LOST];
    cs_u64 *clock = m->clock[step->lane][AS_WOULD_BE];
    const cs_u64 *is[2] = {m->clock[step->op.stream][AS_IS], m->host[AS_IS]}, *would_be[2] = {clock, m->host[AS_WOULD_BE]};
    int n = gather(step->lane, is, would_be, UINT64_MAX, lost), kept = 0;
    for (int i = 0; i < n; i++) {
        const struct cs_audit_op *newest, *first;
        cs_u64 *counted = &m->counted[step->op.stream][lost[i].lane];
        lost[i].after = max(lost[i].after, cs_audit_seq(clock[lost[i].lane]));
        if (lost[i].until <= lost[i].after) continue;
        if ((first = examine(&lost[i], &step->op.memory, &newest))) {
            cs_audit_sums.hazards++;
            found[kept++] = (struct cs_audit_found){first, true, cs_audit_pair(first, &step->op, same_memory(first, &step->op))};
            mend(clock, lost[i].lane, first);
            m->lanes[step->lane].view[AS_WOULD_BE].version++;
            m->lanes[step->lane].learnt = sequence;
        }
        if (newest && newest != first && lost[i].until > *counted) {
            cs_audit_sums.unneeded++;
            found[kept++] = (struct cs_audit_found){newest, false, NULL};
        }
        *counted = max(*counted, lost[i].until);
    }
    return kept;
}

/* --- waits that stand anyway --- */

static void edge(const struct cs_audit_step *step, cs_u16 from, cs_u64 seq)
{
    cs_u64 *counted = &m->counted[step->op.stream][from];
    bool stays = cs_audit_lane_at(from)->kind == CS_AUDIT_LEGACY || cs_audit_lane_at(step->lane)->kind == CS_AUDIT_LEGACY; /* named by its handle */
    if (seq <= *counted || stays) return;
    cs_u64 clock = m->clock[step->lane][AS_WOULD_BE][from], waited = m->waited[AS_WOULD_BE][from];
    cs_u64 stamp = cs_audit_seq(clock) >= seq ? clock : cs_audit_seq(waited) >= seq ? waited : m->host[AS_WOULD_BE][from];
    if (cs_audit_seq(stamp) < seq) return; /* it is lost */
    cs_audit_sums.ordered[cs_audit_how(stamp)]++;
    *counted = seq;
}

/* What the operation waits for through the default stream alone, as it is: of each lane, the last. */
static void count_edges(const struct cs_audit_step *step)
{
    const struct cs_audit_lane *stream = cs_audit_lane_at(step->op.stream);
    const struct lane *own = &m->lanes[step->lane];
    cs_u16 last = m->last_default[stream->context].lane;
    if (stream->kind == CS_AUDIT_LEGACY) {
        for (cs_u16 l = cs_audit_lanes_of(stream->context); l; l = cs_audit_lane_at(l)->next)
            if (l != step->lane && cs_audit_lane_at(l)->blocking) edge(step, l, m->lanes[l].last);
        if (own->last_own > own->last_default) edge(step, step->lane, own->last_own);
    } else if (stream->blocking && last) {
        if (last != step->lane) edge(step, last, m->last_default[stream->context].seq);
        else if (own->last_default > own->last_own) edge(step, last, own->last_default);
    }
}

/* --- steps --- */

static void note_waits(const struct cs_audit_step *step, const struct cs_audit_found *found, int n)
{
    const struct lane *l = &m->lanes[step->lane];
    cs_u64 before[BEFORES + 1];
    int count = l->befores < BEFORES ? l->befores : BEFORES;
    memcpy(before, l->before, (size_t)count * sizeof *before);
    if (l->ops && op_at(step->lane, l->ops - 1)->work) before[count++] = op_at(step->lane, l->ops - 1)->work;
    cs_audit_wait_note(&step->op, found, n, before, count);
}

static void take_work(const struct cs_audit_step *step)
{
    struct cs_audit_found found[2 * LOST];
    struct cs_audit_op op = step->op;
    bool by_default = cs_audit_lane_at(op.stream)->kind == CS_AUDIT_LEGACY;
    if (!by_default && m->lanes[op.stream].capture) {
        cs_audit_sums.captured++;
        return;
    }
    wait_implicitly(AS_IS, op.stream);
    wait_implicitly(AS_WOULD_BE, step->lane);
    count_edges(step);
    int n = lost_by_work(step, found);
    if (n) note_waits(step, found, n);
    op.seq = ++sequence;
    remember(step->lane, &op);
    struct lane *l = &m->lanes[step->lane];
    l->befores = 0;
    if (by_default) m->last_default[step->context].lane = step->lane, m->last_default[step->context].seq = l->last_default = op.seq;
    else l->last_own = op.seq;
    m->clock[op.stream][AS_IS][step->lane] = cs_audit_stamp(op.seq, CS_AUDIT_BY_STREAM);
    m->clock[step->lane][AS_WOULD_BE][step->lane] = cs_audit_stamp(op.seq, CS_AUDIT_BY_STREAM);
    m->lanes[op.stream].view[AS_IS].version++;
    m->lanes[step->lane].view[AS_WOULD_BE].version++;
}

/* All that a context's streams know. */
static void learn_context(int k, cs_u16 context, cs_u64 *to)
{
    cs_u32 n = cs_audit_lanes_high();
    for (cs_u16 l = cs_audit_lanes_of(context); l; l = cs_audit_lane_at(l)->next) learn(to, m->clock[l][k], n, CS_AUDIT_BY_STREAM);
}

static void take_record(const struct cs_audit_step *step)
{
    cs_u32 n = cs_audit_lanes_high();
    struct cs_audit_event *event = cs_audit_event_make(step->event, n);
    if (!event) {
        cs_audit_sums.unseen++;
        return;
    }
    if (!step->lane) {
        for (int k = 0; k < 2; k++) learn_context(k, step->context, event->clock[k]);
        return;
    }
    const struct lane *l = &m->lanes[step->lane];
    bool by_default = cs_audit_lane_at(step->op.stream)->kind == CS_AUDIT_LEGACY;
    event->capture = by_default ? 0 : m->lanes[step->op.stream].capture;
    if (event->capture) return;
    event->work = l->ops ? op_at(step->lane, l->ops - 1)->work : 0;
    wait_implicitly(AS_IS, step->op.stream);
    wait_implicitly(AS_WOULD_BE, step->lane);
    memcpy(event->clock[AS_IS], m->clock[step->op.stream][AS_IS], n * sizeof(cs_u64));
    memcpy(event->clock[AS_WOULD_BE], m->clock[step->lane][AS_WOULD_BE], n * sizeof(cs_u64));
    for (cs_u32 i = 1; i < n && !event->more; i++)
        event->more = cs_audit_seq(event->clock[AS_IS][i]) > max(cs_audit_seq(event->clock[AS_WOULD_BE][i]), cs_audit_seq(m->waited[AS_WOULD_BE][i]));
}

static void wait_for(const struct cs_audit_event *event, cs_u16 stream, cs_u16 lane)
{
    struct lane *l = &m->lanes[lane];
    wait_implicitly(AS_IS, stream);
    wait_implicitly(AS_WOULD_BE, lane);
    learn_lane(AS_IS, stream, event->clock[AS_IS], event->n, CS_AUDIT_BY_EVENT);
    learn_lane(AS_WOULD_BE, lane, event->clock[AS_WOULD_BE], event->n, CS_AUDIT_BY_EVENT);
    if (event->work) l->before[l->befores++ % BEFORES] = event->work;
}

static void take_wait(const struct cs_audit_step *step)
{
    const struct cs_audit_event *event = cs_audit_event_get(step->event);
    if (!event) {
        cs_audit_sums.unseen++;
    } else if (event->capture) {
        if (step->op.stream) m->lanes[step->op.stream].capture = event->capture; /* it joins */
    } else if (step->lane) {
        if (!m->lanes[step->op.stream].capture) wait_for(event, step->op.stream, step->lane);
        else cs_audit_sums.elsewhere = true; /* the graph waits for it */
    } else {
        for (cs_u16 l = cs_audit_lanes_of(step->context); l; l = cs_audit_lane_at(l)->next) wait_for(event, l, l);
    }
}

/* What has ended once the host has waited; false: that can't be told. */
static bool ended_by(int k, const struct cs_audit_step *step, cs_u64 *to)
{
    cs_u32 n = cs_audit_lanes_high();
    cs_u16 stream = k == AS_IS ? step->op.stream : step->lane;
    memset(to, 0, n * sizeof *to);
    if (step->event) {
        const struct cs_audit_event *event = cs_audit_event_get(step->event);
        if (event && !event->capture) learn(to, event->clock[k], event->n, CS_AUDIT_BY_HOST);
        return event;
    }
    if (!step->lane) {
        learn_context(k, step->context, to);
        return true;
    }
    learn(to, m->clock[stream][k], n, CS_AUDIT_BY_HOST);
    if (cs_audit_lane_at(stream)->kind != CS_AUDIT_LEGACY) return true;
    for (cs_u16 l = cs_audit_lanes_of(step->context); l; l = cs_audit_lane_at(l)->next)
        if (cs_audit_lane_at(l)->blocking) learn(to, m->clock[l][k], n, CS_AUDIT_BY_HOST); /* they are waited for too */
    return true;
}

/* What the host waits for as it is and would not wait for: it may be about to look at what an operation has done. */
static void lost_by_host(const struct cs_audit_step *step, cs_u64 limit)
{
    struct lost lost[LOST];
    struct cs_audit_found found[LOST];
    const cs_u64 *is[2] = {m->now[AS_IS], m->now[AS_IS]}, *would_be[2] = {m->now[AS_WOULD_BE], m->host[AS_WOULD_BE]};
    struct cs_audit_op host = step->op;
    int n = gather(0, is, would_be, limit, lost), kept = 0;
    host.stream = 0;
    for (int i = 0; i < n; i++) {
        const struct cs_audit_op *newest, *first;
        lost[i].after = max(lost[i].after, cs_audit_seq(m->now[AS_WOULD_BE][lost[i].lane]));
        if (lost[i].until <= lost[i].after) continue;
        if ((first = examine(&lost[i], NULL, &newest))) {
            cs_audit_sums.hazards++;
            found[kept++] = (struct cs_audit_found){first, true, cs_audit_pair(first, &host, false)};
            mend(m->now[AS_WOULD_BE], lost[i].lane, first);
        } else if (newest && !step->copy) {
            cs_audit_sums.unneeded++;
            found[kept++] = (struct cs_audit_found){newest, false, NULL};
        }
    }
    if (kept && step->lane) note_waits(&(struct cs_audit_step){.op = host, .lane = step->lane}, found, kept);
    else if (kept) cs_audit_wait_note(&host, found, kept, NULL, 0);
}

/* An operation that was called for after the wait had begun may be under way still, whatever its stream's clock says. */
static void clamp(cs_u64 *clock, cs_u64 limit)
{
    for (cs_u32 i = 1; i < cs_audit_lanes_high(); i++)
        if (cs_audit_seq(clock[i]) > limit) clock[i] = cs_audit_stamp(limit, cs_audit_how(clock[i]));
}

/* Up to which operation of a lane the host would know that it has ended, by the step at hand or before. */
static cs_u64 kept_by_host(cs_u32 lane) { return max(cs_audit_seq(m->now[AS_WOULD_BE][lane]), cs_audit_seq(m->waited[AS_WOULD_BE][lane])); }

static void take_host(const struct cs_audit_step *step)
{
    cs_u32 n = cs_audit_lanes_high();
    cs_u64 limit = last_by(step->op.begin);
    for (int k = 0; k < 2; k++) {
        if (!ended_by(k, step, m->now[k])) return; /* an event that was never recorded: nothing to wait for */
        clamp(m->now[k], limit);
    }
    if (step->denied) {
        for (cs_u32 i = 1; i < n; i++) cs_audit_sums.doubt[CS_AUDIT_DOUBT_DENIED] |= cs_audit_seq(m->now[AS_IS][i]) > kept_by_host(i);
        return;
    }
    lost_by_host(step, limit);
    enum cs_audit_how how = step->weak ? CS_AUDIT_BY_COPY : step->asked ? CS_AUDIT_BY_ANSWER : CS_AUDIT_BY_HOST;
    for (int k = 0; k < 2; k++) {
        learn(m->host[k], m->now[k], n, how);
        if (how == CS_AUDIT_BY_HOST) learn(m->waited[k], m->now[k], n, how);
    }
    const struct cs_audit_event *since = cs_audit_event_get(step->since), *event = cs_audit_event_get(step->event);
    if (step->since && ((since && since->more) || (event && event->more))) cs_audit_sums.doubt[CS_AUDIT_DOUBT_TIME] = true;
}

static void take_captured(const struct cs_audit_step *step)
{
    cs_u64 capture = m->lanes[step->op.stream].capture;
    for (cs_u32 i = 1; capture && i < cs_audit_lanes_high(); i++)
        if (m->lanes[i].capture == capture) m->lanes[i].capture = 0;
}

void cs_audit_take(const struct cs_audit_step *step)
{
    if (step->op.stream && step->op.stream != step->lane) cs_audit_sums.by_default++;
    if (!first_thread) first_thread = step->op.tid;
    else if (step->op.tid != first_thread) cs_audit_sums.several = true;
    switch (step->what) {
    case CS_AUDIT_WORK: take_work(step); return;
    case CS_AUDIT_RECORD: take_record(step); return;
    case CS_AUDIT_WAIT: take_wait(step); return;
    case CS_AUDIT_HOST: take_host(step); return;
    case CS_AUDIT_CAPTURE: m->lanes[step->op.stream].capture = ++captures; return;
    case CS_AUDIT_CAPTURED: take_captured(step); return;
    default: return;
    }
}
