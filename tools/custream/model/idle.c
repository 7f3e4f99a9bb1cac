/* Splits a gap, a device's idle time before a piece of work, by cause. Until the work was enqueued,
 * the cause is the host. From then on, as long as something on the GPU held the work, the cause is
 * that obstacle. For up to LATENCY_NS more, the cause is the obstacle, the launch, or what ran last
 * on the device. The rest has no known cause, unless the obstacle was an edge of a graph. */
#include "tools/custream/model/model.h"

#include "tools/custream/model/views.h"

const char *const doing_word[DOINGS] = {[DOING_NOTHING_KNOWN] = "unknown",
    [DOING_OWN_CODE] = "own code",
    [DOING_OUTSIDE] = "waiting outside CUDA",
    [DOING_THREAD] = "waiting for a thread",
    [DOING_BLOCKED] = "blocked",
    [DOING_CALL] = "in a call"};

enum {
    SAME_NS = 2000, /* two clocks may tell one moment with this difference */
    LOST_FEW = 100, /* causes are still told if at most one in so many calls or works is lost */
};

struct making {
    struct idles *idles;
    const struct run *run;
    const struct hold *holds;
    uint32_t *streams_used; /* by device */
    uint32_t queues;        /* between the host and each device */
    int64_t *ended;         /* the latest end of the thread's calls up to this one, by place in
                               run->thread_calls */
    struct periods no_works,
        no_calls; /* times for which the trace may lack GPU work (no_works), or calls */
};

/* --- what the trace does not show --- */

COMPARES(by_size, uint64_t, ORDER(*a, *b))

/* Returns the size of the largest loss that counts as small: causes are told in its time, too. All
 * small losses together are at most one in LOST_FEW of `all`, the calls or works in the trace. */
static uint64_t few_lost(const struct run *run, loss_size *lost, size_t all)
{
    const size_t count = run->loss_count;
    uint64_t *sizes = array_zeros(count, sizeof *sizes), sum = 0;
    size_t small = 0;
    for (size_t i = 0; i < count; i++) sizes[i] = lost(&run->losses[i]);
    if (count) qsort(sizes, count, sizeof *sizes, by_size);
    while (small < count && sizes[small] <= all / LOST_FEW - sum) sum += sizes[small++];
    while (small && small < count && sizes[small - 1] == sizes[small])
        small--; /* losses of equal size are all small, or none is */
    const uint64_t few = small ? sizes[small - 1] : 0;
    free(sizes);
    return few;
}

/* Whether `at` lies in one of the times. Lowers *until to when the answer changes. */
static bool periods_have(const struct periods *periods, int64_t at, int64_t *until)
{
    const size_t first = FIRST_NOT(i, 0, periods->count, periods->rows[i].end <= at);
    if (first == periods->count) return false;
    const bool inside = periods->rows[first].begin <= at;
    const int64_t change = inside ? periods->rows[first].end : periods->rows[first].begin;
    if (change < *until) *until = change;
    return inside;
}

/* Adds a row, or makes the row before longer if the two adjoin and differ only in their times. */
static void put(struct idles *idles, struct idle row)
{
    struct idle *last = idles->count ? &idles->rows[idles->count - 1] : NULL;
    if (last && last->end == row.begin && last->next == row.next && last->cause == row.cause &&
        last->doing == row.doing && last->call == row.call && last->range == row.range) {
        last->end = row.end;
        return;
    }
    array_add(idles->rows, idles->count, idles->capacity, row);
}

static void add_row(struct making *m, struct idle row)
{
    for (const int64_t end = row.end; row.begin < end; row.begin = row.end) {
        row.end = end;
        const bool unseen = periods_have(&m->no_works, row.begin, &row.end);
        put(m->idles, !unseen ? row
                              : (struct idle){row.begin, row.end, row.next, row.device,
                                    CAUSE_UNKNOWN, DOING_NOTHING_KNOWN, NONE, NONE});
    }
}

static void add(
    struct making *m, uint32_t device, uint32_t next, int64_t begin, int64_t end, enum cause cause)
{
    add_row(m,
        (struct idle){begin, end, next, (uint8_t)device, cause, DOING_NOTHING_KNOWN, NONE, NONE});
}

/* --- the host's part --- */

/* Adds an activity of the thread that enqueued the next work, cut where the thread's ranges
 * change. */
static void add_host(struct making *m, const struct idle *like, int64_t begin, int64_t end,
    enum host_doing doing, uint32_t call)
{
    while (begin < end) {
        int64_t until = end;
        const uint32_t range = thread_range_at(m->run, idle_thread(m->run, like), begin, &until);
        if (until > end) until = end;
        const bool known = call != NONE || !periods_have(&m->no_calls, begin, &until);
        add_row(m, (struct idle){begin, until, like->next, like->device, CAUSE_HOST,
                       known ? doing : DOING_NOTHING_KNOWN, call, range});
        begin = until;
    }
}

static void host_part(struct making *m, uint32_t device, uint32_t next, int64_t begin, int64_t end)
{
    const struct run *run = m->run;
    const struct idle like = {.device = (uint8_t)device, .next = next};
    const uint32_t thread = idle_thread(run, &like), first = run->thread_calls.begins[thread],
                   behind = run->thread_calls.begins[thread + 1];
    /* Calls of a thread follow each other. Of other tools' nested calls the outer one counts. */
    enum host_doing between = DOING_OWN_CODE; /* before the next call */
    for (size_t i = FIRST_NOT(n, first, behind, m->ended[n] <= begin); begin < end && i < behind;
        i++) {
        const struct call *call = &run->calls[run->thread_calls.members[i]];
        between = pause_doing(pause_before(run, run->thread_calls.members[i]));
        if (call->begin >= end) break;
        if (call->end <= begin) continue;
        if (call->begin > begin)
            add_host(m, &like, begin, call->begin, between, NONE), begin = call->begin;
        const int64_t until = call->end < end ? call->end : end;
        add_host(m, &like, begin, until, call_waits(call) ? DOING_BLOCKED : DOING_CALL,
            run->thread_calls.members[i]);
        begin = until;
    }
    add_host(m, &like, begin, end, between, NONE);
}

/* --- the GPU's part --- */

/* Adds the end of a gap: all known obstacles were gone at `begin`. A graph may have unknown
 * obstacles inside, such as host functions and waits, so GRAPH_EDGE is the cause up to the end. */
static void tail(
    struct making *m, uint32_t device, uint32_t next, int64_t begin, int64_t end, enum cause cause)
{
    if (cause != CAUSE_UNKNOWN && cause != CAUSE_GRAPH_EDGE && end - begin > LATENCY_NS) {
        add(m, device, next, begin, begin + LATENCY_NS, cause);
        begin += LATENCY_NS;
        cause = CAUSE_UNKNOWN;
    }
    if (begin < end) add(m, device, next, begin, end, cause);
}

/* Adds the pieces of the gap from `begin`, when work `last` ended, to the begin of work `next`. */
static void gap(struct making *m, uint32_t device, uint32_t next, uint32_t last, int64_t begin)
{
    const struct run *run = m->run;
    const struct work *work = &run->works[next];
    const struct hold *hold = &m->holds[next];
    const int64_t end = work->begin;
    if (work->call == NONE) {
        add(m, device, next, begin, end, CAUSE_UNKNOWN);
        return;
    }
    const int64_t ended = begin;
    const int64_t enqueued = hold->enqueued < end ? hold->enqueued : end,
                  ready = hold->ready < end ? hold->ready : end;
    if (enqueued > begin) host_part(m, device, next, begin, enqueued), begin = enqueued;
    if (ready > begin) add(m, device, next, begin, ready, hold->cause), begin = ready;
    const int64_t returned = run->calls[work->call].end;
    if (returned > begin && hold->cause != CAUSE_GRAPH_EDGE &&
        ready < returned) { /* the work was ready before its call returned */
        const int64_t until = returned < end ? returned : end;
        if (until > begin) add(m, device, next, begin, until, CAUSE_LAUNCH), begin = until;
        tail(m, device, next, begin, end, CAUSE_LAUNCH);
    } else if (ready > enqueued && ready >= ended - SAME_NS)
        tail(m, device, next, begin, end, hold->cause);
    else if (returned >= ended - LATENCY_NS) tail(m, device, next, begin, end, CAUSE_LAUNCH);
    else { /* the work was ready, but did not begin beside the work that ended last */
        const struct work *before = &run->works[last];
        tail(m, device, next, begin, end,
            work->kind == WORK_COPY && before->kind == WORK_COPY && work->way == before->way
                ? CAUSE_COPY_ENGINE
            : kernel_fills(run, before) >= 1      ? CAUSE_DEVICE_FULL
            : m->streams_used[device] > m->queues ? CAUSE_HARDWARE_QUEUE
                                                  : CAUSE_UNKNOWN);
    }
}

void idles_make(struct idles *idles, const struct run *run, const struct hold *holds)
{
    *idles = (struct idles){0};
    struct making m = {.idles = idles,
        .run = run,
        .holds = holds,
        .streams_used = array_zeros(run->device_count, sizeof *m.streams_used),
        .queues = run_queues(run)};
    for (size_t s = 0; s < run->stream_count; s++)
        m.streams_used[run->streams[s].device] += run->streams[s].works != 0;
    m.no_works = periods_lost(run, works_lost, few_lost(run, works_lost, run->work_count));
    m.no_calls = periods_lost(run, calls_lost, few_lost(run, calls_lost, run->call_count));
    const struct groups *calls = &run->thread_calls;
    m.ended = array_zeros(run->call_count, sizeof *m.ended);
    for (size_t thread = 0; thread < run->thread_count; thread++)
        for (uint32_t i = calls->begins[thread]; i < calls->begins[thread + 1]; i++) {
            m.ended[i] = run->calls[calls->members[i]].end;
            if (i > calls->begins[thread] && m.ended[i - 1] > m.ended[i])
                m.ended[i] = m.ended[i - 1];
        }
    for (uint32_t d = 0; d < run->device_count; d++) {
        int64_t until = 0;
        uint32_t last = NONE;
        for (uint32_t i = 0; i < run->work_count; i++) {
            const struct work *work = &run->works[i];
            if (work_device(run, work) != d) continue;
            if (last != NONE && work->begin > until) gap(&m, d, i, last, until);
            if (last != NONE && work->end <= until) continue;
            until = work->end;
            last = i;
        }
    }
    free_all(m.streams_used, m.no_works.rows, m.no_calls.rows, m.ended);
}
