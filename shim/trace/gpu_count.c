/*
 * Counters: how many calls wait on a stream for their work to end, and how many streams of a GPU are at work at once.
 *
 * A step is written at most every 20 us a counter; the value before it is repeated at its own time, so that no line is drawn where nothing was.
 */
#include <stdio.h>
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/base/memory.h"
#include "shim/out/output.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"

enum { STEP_NS = 20000, EDGES = 1 << 16 };

/* Of edges that wait for work to come before them: how far apart they are at least, ns; 0: as they came. */
static cs_u64 grain;

static void put_counter(const char *name, cs_u32 pid, cs_u32 tid, cs_u64 ns, cs_u32 n)
{
    if (cs_output_full()) return;
    char *at = cs_put_literal(cs_output_room(), ",\n{\"ph\":\"C\",\"name\":\"");
    at = cs_put_text(at, name);
    at = cs_put_literal(at, "\",\"pid\":");
    at = cs_put_uint(at, pid);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, ns);
    at = cs_put_literal(at, ",\"args\":{\"n\":");
    at = cs_put_uint(at, n);
    cs_output_commit(cs_put_literal(at, "}}"));
}

/* --- depth of a stream --- */

static void depth_put(struct cs_gpu_lane *lane, cs_u64 ns, cs_u32 depth)
{
    char name[48];
    struct cs_stream *stream = cs_pool_get(&cs_streams, lane->stream);
    if (depth == lane->depth_shown) return;
    if (stream && !cs_output_full()) cs_lane_stream(stream); /* in this part of the trace nothing may have happened on it yet */
    snprintf(name, sizeof name, "stream %u depth", lane->tid);
    put_counter(name, lane->device, lane->tid, ns, depth);
    lane->depth_shown = depth;
    lane->depth_shown_ns = ns;
}

static void depth_set(struct cs_gpu_lane *lane, cs_u64 ns, cs_u32 depth)
{
    if (ns < lane->depth_ns) ns = lane->depth_ns;
    if (ns - lane->depth_shown_ns >= STEP_NS) depth_put(lane, lane->depth_ns, lane->depth);
    lane->depth = depth;
    lane->depth_ns = ns;
    if (ns - lane->depth_shown_ns >= STEP_NS || !lane->depth_shown) depth_put(lane, ns, depth);
}

void cs_gpu_count_step(struct cs_gpu_lane *lane, cs_u64 ns, int step)
{
    cs_u32 gone = step < 0 ? (cs_u32)-step : 0;
    depth_set(lane, ns, gone ? lane->depth - (gone < lane->depth ? gone : lane->depth) : lane->depth + (cs_u32)step);
}

void cs_gpu_count_ends(struct cs_gpu_lane *lane) { depth_put(lane, lane->depth_ns, lane->depth); }

/* --- streams at work --- */

static struct edge {
    cs_u64 ns;
    cs_u32 device;
    int step;
} *edges;
CS_TABLE(TRACE, edges, EDGES);
static size_t edge_count;
static struct {
    cs_u32 busy, shown;
    cs_u64 changed_ns, shown_ns;
} gpus[CS_GPU_PIDS];

void cs_gpu_counts_begin(void)
{
    edge_count = grain = 0;
    memset(gpus, 0, sizeof gpus);
}

static bool is_later(const struct edge *a, const struct edge *b) { return a->ns > b->ns || (a->ns == b->ns && a->device > b->device); }

static void sift(size_t at, size_t n)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_later(&edges[child + 1], &edges[child])) child++;
        if (!is_later(&edges[child], &edges[at])) return;
        struct edge swap = edges[at];
        edges[at] = edges[child];
        edges[child] = swap;
    }
}

static void edges_sort(void)
{
    for (size_t i = edge_count / 2; i-- > 0;) sift(i, edge_count);
    for (size_t n = edge_count; n > 1;) {
        struct edge swap = edges[0];
        edges[0] = edges[--n];
        edges[n] = swap;
        sift(0, n);
    }
}

static void busy_put(cs_u32 device, cs_u64 ns)
{
    if (gpus[device].shown == gpus[device].busy) return;
    put_counter("streams busy", device, cs_gpu_counter_tid(device), ns, gpus[device].busy);
    gpus[device].shown = gpus[device].busy;
    gpus[device].shown_ns = ns;
}

static void busy_step(cs_u32 device, cs_u64 ns, int step)
{
    if (device >= CS_GPU_PIDS || !step) return;
    if (ns - gpus[device].shown_ns >= STEP_NS) busy_put(device, gpus[device].changed_ns);
    gpus[device].busy += (cs_u32)step;
    gpus[device].changed_ns = ns;
    if (ns - gpus[device].shown_ns >= STEP_NS) busy_put(device, ns);
}

/* Work that follows other work at once is no step: what begins and ends in the same nanosecond is taken together. */
static size_t busy_steps(size_t from)
{
    const struct edge *e = &edges[from];
    int step = 0;
    while (from < edge_count && edges[from].ns == e->ns && edges[from].device == e->device) step += edges[from++].step;
    busy_step(e->device, e->ns, step);
    return from;
}

/* Beside a long kernel there may be any number of short ones, and nothing can be said until it has come. What is close together becomes one edge at the end of
 * it: fewer values are written then, and each is right. They are in order. */
static void edges_join(void)
{
    size_t kept = 0, open[CS_GPU_PIDS];
    cs_u64 from[CS_GPU_PIDS];
    memset(open, 0xff, sizeof open);
    grain = grain ? 2 * grain : STEP_NS;
    for (size_t i = 0; i < edge_count; i++) {
        const struct edge e = edges[i];
        if (open[e.device] != SIZE_MAX && e.ns - from[e.device] < grain) {
            edges[open[e.device]].ns = e.ns;
            edges[open[e.device]].step += e.step;
        } else {
            from[e.device] = e.ns;
            open[e.device] = kept;
            edges[kept++] = e;
        }
    }
    edge_count = kept;
}

static void edges_make_room(void)
{
    cs_gpu_count_write(false);
    while (edge_count > EDGES / 2) edges_join();
}

void cs_gpu_count_busy(cs_u32 device, cs_u64 start_ns, cs_u64 end_ns)
{
    if (device >= CS_GPU_PIDS) return;
    if (edge_count + 2 > EDGES) edges_make_room();
    edges[edge_count++] = (struct edge){start_ns, device, 1};
    edges[edge_count++] = (struct edge){end_ns, device, -1};
}

/* Until when all work that has begun has come: a stream with work under way may still bring some from the end of its last on. */
static cs_u64 complete_until(void)
{
    cs_u64 until = UINT64_MAX;
    for (cs_u32 i = 1; i <= cs_gpu_lanes_high(); i++) {
        struct cs_gpu_lane *lane = cs_gpu_lane_get(i);
        if (!lane || !lane->first) continue;
        const struct cs_op *first = cs_op_get(lane->first); /* NULL: so long ago that it is forgotten */
        cs_u64 from = !first || lane->work.filled[0] > first->begin_ns ? lane->work.filled[0] : first->begin_ns;
        if (from < until) until = from;
    }
    return until;
}

void cs_gpu_count_write(bool all)
{
    if (!edge_count && !all) return;
    cs_u64 until = all ? UINT64_MAX : complete_until();
    edges_sort();
    size_t done = 0;
    while (done < edge_count && (all || edges[done].ns < until)) done = busy_steps(done);
    for (size_t i = done; i < edge_count; i++) edges[i - done] = edges[i];
    edge_count -= done;
    if (!edge_count) grain = 0;
    for (cs_u32 d = 0; all && d < CS_GPU_PIDS; d++) busy_put(d, gpus[d].changed_ns);
    for (cs_u32 i = 1; all && i <= cs_gpu_lanes_high(); i++)
        if (cs_gpu_lane_get(i)) cs_gpu_count_ends(cs_gpu_lane_get(i));
}
