/*
 * Counters in the file: of each GPU how much of the time it was at work, how many kernels ran at once at most, how many bytes were being copied each way; and
 * if asked for, of each stream how many calls wait for their work to end.
 */
#include <stdio.h>

#include "shim/trace/event.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"

enum { STEP_NS = 50000, STRETCH_NS = 200000 };

static void row_put(struct cs_lane at, const char *name, const char *unit, cs_u64 ns, cs_u64 value)
{
    if (!cs_output_full()) cs_commit(cs_args_end(cs_value_uint(cs_arg_named(cs_counter(cs_draft(), cs_title(name), at, ns), unit), value)));
}

/* --- depth of a stream --- */

static void depth_put(const struct cs_match_lane *lane, struct cs_counter_shown *c)
{
    char name[48];
    if (c->value == c->shown) return;
    snprintf(name, sizeof name, "stream %u depth", lane->tid);
    row_put(cs_lane_at(lane->device, cs_gpu_counter_tid(lane->device)), name, "n", c->changed_ns, c->value);
    c->shown = c->value;
    c->shown_ns = c->changed_ns;
}

void cs_gpu_depth_write(const struct cs_match_lane *lane, cs_u64 ns)
{
    if (!cs_gpu_shown.depths) return;
    struct cs_counter_shown *c = &cs_gpu_lane_shown(lane)->depth;
    if (ns < c->changed_ns) ns = c->changed_ns;
    if (ns - c->shown_ns >= STEP_NS) depth_put(lane, c);
    c->value = lane->depth;
    c->changed_ns = ns;
    if (ns - c->shown_ns >= STEP_NS || !c->shown) depth_put(lane, c);
}

void cs_gpu_trace_stream_ends(const struct cs_stream *stream)
{
    const struct cs_match_lane *lane = cs_match_lane_made(stream);
    if (lane) depth_put(lane, &cs_gpu_lane_shown(lane)->depth);
}

/* --- of a GPU --- */

cs_u32 cs_gpu_counter_tid(cs_u32 device)
{
    const cs_u32 tid = cs_lane_tid(CS_LANE_COUNTERS, CS_LANE_WORK, 0);
    if (device >= CS_GPU_PIDS || cs_gpu_shown.devices[device].counters) return tid;
    cs_gpu_shown.devices[device].counters = true;
    cs_lane_named_of_gpu(device, tid, "counters", false);
    return tid;
}

static void value_put(cs_u32 device, const char *name, const char *unit, cs_u64 ns, cs_u64 value)
{
    row_put(cs_lane_at(device, cs_gpu_counter_tid(device)), name, unit, ns, value);
}

/* Whether the next stretch may be another: the value at the end is not the one shown. */
static bool peak_put(struct cs_peak_shown *p, cs_u32 device, const char *name, const char *unit, cs_u64 ns)
{
    if (p->peak != p->shown) value_put(device, name, unit, ns, p->shown = p->peak);
    p->peak = p->value;
    return p->value != p->shown;
}

static const char *const ways[CS_LOAD_WAYS] = {NULL, "HtoD", "DtoH", "DtoD", "PtoP"};

/* The present stretch is over. Whether the next one may be another. */
static bool stretch_put(struct cs_gpu_device_shown *shown, cs_u32 device)
{
    struct cs_stretch_shown *s = &shown->stretch;
    const cs_u32 percent = (cs_u32)((s->busy_ns * 100 + STRETCH_NS / 2) / STRETCH_NS);
    bool changes = percent != (s->busy ? 100 : 0);
    if (percent != s->shown) value_put(device, "busy", "%", s->from_ns, s->shown = percent);
    changes |= peak_put(&shown->kernels, device, "kernels", "at once", s->from_ns);
    for (int way = 1; way < CS_LOAD_WAYS; way++) changes |= peak_put(&shown->bytes[way], device, "bytes in flight", ways[way], s->from_ns);
    return changes;
}

/* In a row of equal stretches the first alone is written. */
static void stretches_until(struct cs_gpu_device_shown *shown, cs_u32 device, cs_u64 ns)
{
    struct cs_stretch_shown *s = &shown->stretch;
    if (ns < s->since_ns) ns = s->since_ns; /* it came late */
    while (ns >= s->from_ns + STRETCH_NS) {
        const cs_u64 end = s->from_ns + STRETCH_NS;
        if (s->busy) s->busy_ns += end - s->since_ns;
        s->from_ns = stretch_put(shown, device) ? end : ns - ns % STRETCH_NS;
        s->since_ns = s->from_ns;
        s->busy_ns = 0;
    }
    if (s->busy) s->busy_ns += ns - s->since_ns;
    s->since_ns = ns;
}

static void step(struct cs_peak_shown *p, cs_u64 value)
{
    p->value = value;
    if (value > p->peak) p->peak = value;
}

/* What came late adds nothing to a time that has been told. */
static inline void sum_up(struct cs_gpu_sums *sums, cs_u64 ns, bool busy)
{
    if (sums->busy && ns > sums->until_ns) sums->busy_ns += ns - sums->until_ns;
    if (ns > sums->until_ns) sums->until_ns = ns;
    sums->busy = busy;
}

void cs_gpu_load_write(cs_u32 device, cs_u64 ns, const struct cs_load *load)
{
    struct cs_gpu_device_shown *shown = &cs_gpu_shown.devices[device];
    sum_up(&shown->sums, ns, load->works);
    if (!cs_gpu_shown.loads) return;
    if (!shown->stretch.from_ns) shown->stretch.from_ns = ns - ns % STRETCH_NS, shown->stretch.since_ns = ns;
    stretches_until(shown, device, ns);
    shown->stretch.busy = load->works != 0;
    step(&shown->kernels, load->kernels);
    const bool others = load->works != load->kernels;
    for (int way = 1; (others || shown->others) && way < CS_LOAD_WAYS; way++) step(&shown->bytes[way], (cs_u64)load->bytes[way]);
    shown->others = others;
}

void cs_gpu_counters_end(void)
{
    for (cs_u32 d = 0; d < CS_GPU_PIDS; d++) {
        struct cs_gpu_device_shown *shown = &cs_gpu_shown.devices[d];
        if (shown->stretch.from_ns) stretches_until(shown, d, shown->stretch.since_ns + 2 * STRETCH_NS);
    }
    for (cs_u32 i = 1; i <= cs_match_lanes_high(); i++) {
        const struct cs_match_lane *lane = cs_match_lane_get(i);
        if (lane) depth_put(lane, &cs_gpu_lane_shown(lane)->depth);
    }
}
