/*
 * How many calls of a stream wait for their work to end, and what is under way on a GPU at once.
 */
#include <string.h>

#include "shim/match/state.h"

enum { GRAIN_NS = 25000, NEWEST = CS_EDGES / 8 }; /* so that it grows to a counter's 200 us; edges that are not joined yet */

static struct cs_busy *const state = &cs_match.busy;

/* --- depth of a stream --- */

void cs_count_depth(struct cs_match_lane *lane, cs_u64 ns, int step)
{
    const cs_u32 gone = step < 0 ? (cs_u32)-step : 0;
    lane->depth = gone ? lane->depth - (gone < lane->depth ? gone : lane->depth) : lane->depth + (cs_u32)step;
    cs_match.sink->depth(lane, ns);
}

/* --- under way at once --- */

static bool is_later(const struct cs_edge *a, const struct cs_edge *b) { return a->ns > b->ns || (a->ns == b->ns && a->device > b->device); }

static void swap(struct cs_edge *a, struct cs_edge *b)
{
    const struct cs_edge other = *a;
    *a = *b;
    *b = other;
}

static void sift(struct cs_edge *edges, size_t at, size_t n)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_later(&edges[child + 1], &edges[child])) child++;
        if (!is_later(&edges[child], &edges[at])) return;
        swap(&edges[at], &edges[child]);
    }
}

static void heap_sort(struct cs_edge *edges, size_t count)
{
    for (size_t i = count / 2; i-- > 0;) sift(edges, i, count);
    for (size_t n = count; n > 1;) {
        swap(&edges[0], &edges[--n]);
        sift(edges, 0, n);
    }
}

/* Work comes in the order of its begin, so an edge has to pass those of the few pieces that ran beside it: as they came they are nearly in order, and those
 * that were left of the last time are. Where much came late, as of a stream whose times were missing for a while, all are sorted at once. */
static void sort(struct cs_edge *edges, size_t count)
{
    enum { STEPS_EACH = 16 };
    size_t steps = STEPS_EACH * count;
    for (size_t i = 1; i < count; i++) {
        if (CS_LIKELY(!is_later(&edges[i - 1], &edges[i]))) continue;
        const struct cs_edge edge = edges[i];
        size_t to = i;
        for (; to && is_later(&edges[to - 1], &edge) && steps; to--, steps--) edges[to] = edges[to - 1];
        edges[to] = edge;
        if (!steps) return heap_sort(edges, count);
    }
}

static void step(struct cs_load *load, const struct cs_edge *e)
{
    load->works += (cs_u32)e->works;
    load->kernels += (cs_u32)e->kernels;
    load->bytes[e->way] += e->bytes;
}

/* Work that follows other work at once is no step: what begins and ends in the same nanosecond is taken together. */
static size_t take_steps(size_t from)
{
    const struct cs_edge *edges = cs_match.table.edges, *first = &edges[from], *e = first;
    const struct cs_edge *const end = &edges[state->edge_count];
    struct cs_load *load = &state->load[first->device];
    bool changes = first->works || first->kernels || first->bytes;
    if (e + 1 == end || e[1].ns != e->ns || e[1].device != e->device) step(load, e++);
    else {
        const struct cs_load before = *load;
        for (; e < end && e->ns == first->ns && e->device == first->device; e++) step(load, e);
        changes = memcmp(load, &before, sizeof before);
    }
    if (changes) cs_match.sink->load(first->device, first->ns, load);
    return (size_t)(e - edges);
}

static void add(struct cs_edge *to, const struct cs_edge *e)
{
    to->ns = e->ns;
    to->works += e->works;
    to->kernels += e->kernels;
    to->bytes += e->bytes;
}

/* Whether more is under way after it. A way has its bytes, what is none has its kernels. */
static bool is_rise(const struct cs_edge *e) { return e->bytes ? e->bytes > 0 : e->kernels ? e->kernels > 0 : e->works > 0; }

struct joined {
    cs_u64 cell;
    struct cs_edge *peak, *rest; /* up to the most, and from there to the end; NULL: none yet */
};

/* Beside a long kernel there may be any number of short ones, and nothing can be said until it has come. Of each cell of the time two edges are left then: to the
 * moment at which most was under way, and to the last. So fewer values are told, each is right, and the most of each cell is among them. A cell of a counter
 * (STRETCH_NS) is a whole number of ours, or the other way round. They are in order; between the newest, other streams' work may still come. */
static void join(void)
{
    struct cs_edge *edges = cs_match.table.edges, *kept = edges;
    struct joined joined[CS_GPU_PIDS][CS_LOAD_WAYS] = {0};
    for (size_t i = 0; i < state->edge_count; i++) {
        const struct cs_edge e = edges[i];
        if (i + NEWEST >= state->edge_count) {
            *kept++ = e;
            continue;
        }
        struct joined *to = &joined[e.device][e.way];
        if (!to->peak || to->cell != e.ns / state->grain) {
            *to = (struct joined){.cell = e.ns / state->grain, .peak = kept};
            *kept++ = e;
            continue;
        }
        if (!to->rest) *(to->rest = kept++) = (struct cs_edge){.device = e.device, .way = e.way};
        add(to->rest, &e);
        if (!is_rise(to->rest)) continue;
        add(to->peak, to->rest);
        *to->rest = (struct cs_edge){.ns = e.ns, .device = e.device, .way = e.way};
    }
    state->edge_count = (size_t)(kept - edges);
}

static void make_room(void)
{
    cs_count_settle(false);
    if (state->edge_count <= CS_EDGES / 2) return;
    if (!state->grain) state->grain = GRAIN_NS;
    for (join(); state->edge_count > CS_EDGES / 2; join()) state->grain *= 2;
}

static enum cs_load_way way_of(const struct cs_gpu_work *work)
{
    static const unsigned char ways[] = {[1] = CS_LOAD_HTOD, [2] = CS_LOAD_DTOH, [3] = CS_LOAD_HTOD, [4] = CS_LOAD_DTOH, [10] = CS_LOAD_PTOP}; /* A: arrays of the device */
    if (work->copy.peer) return CS_LOAD_PTOP;
    return work->copy.direction < CS_COUNT(ways) && ways[work->copy.direction] ? ways[work->copy.direction] : CS_LOAD_DTOD;
}

void cs_count_load(const struct cs_gpu_work *work, cs_u32 device, cs_u64 start_ns, cs_u64 end_ns)
{
    const bool copy = work->kind == CS_GPU_COPY;
    if (device >= CS_GPU_PIDS) return;
    if (state->edge_count + 2 > CS_EDGES) make_room();
    struct cs_edge edge = {.ns = start_ns, .device = (unsigned char)device, .way = copy ? way_of(work) : CS_LOAD_NO_WAY, .works = 1,
                           .kernels = !copy && work->kind != CS_GPU_SET, .bytes = copy ? (cs_i64)work->copy.bytes : 0};
    cs_match.table.edges[state->edge_count++] = edge;
    edge.ns = end_ns, edge.works = -1, edge.kernels = -edge.kernels, edge.bytes = -edge.bytes;
    cs_match.table.edges[state->edge_count++] = edge;
}

/* Until when all work that has begun has come: a stream with work under way may still bring some from the end of its last on. */
static cs_u64 complete_until(void)
{
    cs_u64 until = UINT64_MAX;
    for (cs_u32 i = 1; i <= cs_match_lanes_high(); i++) {
        const struct cs_match_lane *lane = cs_lane_get(i);
        if (cs_lane_come(lane, NULL) != CS_AWAITED) continue;
        const struct cs_op *first = cs_op_get(lane->first); /* NULL: so long ago that it is forgotten */
        cs_u64 from = !first || lane->work.filled[0] > first->begin_ns ? lane->work.filled[0] : first->begin_ns;
        if (from < until) until = from;
    }
    return until;
}

void cs_count_settle(bool all)
{
    struct cs_edge *edges = cs_match.table.edges;
    if (!state->edge_count) return;
    cs_u64 until = all ? UINT64_MAX : complete_until();
    sort(edges, state->edge_count);
    size_t done = 0;
    while (done < state->edge_count && (all || edges[done].ns < until)) done = take_steps(done);
    for (size_t i = done; i < state->edge_count; i++) edges[i - done] = edges[i];
    state->edge_count -= done;
    if (!state->edge_count) state->grain = 0;
}
