/*
 * Counters in the file: of each GPU how much of the time it was at work, how many kernels ran at once, how many bytes were being copied each way; and if asked
 * for, of each stream how many calls wait for their work to end.
 */
#include <stdio.h>

#include "shim/trace/event.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"

enum { STEP_NS = 50000, SHARE_NS = 200000 };

static void row_put(struct cs_lane at, const char *name, const char *unit, cs_u64 ns, cs_u64 value)
{
    if (!cs_output_full()) cs_commit(cs_args_end(cs_value_uint(cs_arg_named(cs_counter(cs_draft(), cs_title(name), at, ns), unit), value)));
}

static void put(struct cs_counter_shown *c, const char *name, const char *unit, struct cs_lane at)
{
    if (c->value == c->shown) return;
    row_put(at, name, unit, c->changed_ns, c->value);
    c->shown = c->value;
    c->shown_ns = c->changed_ns;
}

/* --- depth of a stream --- */

static void depth_put(const struct cs_match_lane *lane, struct cs_counter_shown *c)
{
    char name[48];
    snprintf(name, sizeof name, "stream %u depth", lane->tid);
    put(c, name, "n", cs_lane_at(lane->device, cs_gpu_counter_tid(lane->device)));
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

static struct cs_lane counters_of(cs_u32 device) { return cs_lane_at(device, cs_gpu_counter_tid(device)); }

static void step(struct cs_counter_shown *c, const char *name, const char *unit, cs_u32 device, cs_u64 ns, cs_u64 value)
{
    if (value == c->value) return;
    if (ns - c->shown_ns >= STEP_NS && c->value != c->shown) put(c, name, unit, counters_of(device));
    c->value = value;
    c->changed_ns = ns;
    if (ns - c->shown_ns >= STEP_NS && c->value != c->shown) put(c, name, unit, counters_of(device));
}

/* Stretches that are over by `ns`. In a row of equal ones the first alone is written. */
static void share_until(struct cs_share_shown *share, cs_u32 device, cs_u64 ns)
{
    while (share->from_ns && ns >= share->from_ns + SHARE_NS) {
        const cs_u64 end = share->from_ns + SHARE_NS;
        if (share->busy) share->busy_ns += end - share->since_ns;
        const cs_u32 percent = (cs_u32)((share->busy_ns * 100 + SHARE_NS / 2) / SHARE_NS);
        if (percent != share->shown) row_put(counters_of(device), "busy", "%", share->from_ns, share->shown = percent);
        const bool whole = percent == (share->busy ? 100 : 0); /* and so are the next ones */
        share->from_ns = whole ? ns - ns % SHARE_NS : end;
        share->since_ns = share->from_ns;
        share->busy_ns = 0;
    }
    if (share->busy) share->busy_ns += ns - share->since_ns;
    share->since_ns = ns;
}

static const char *const ways[CS_LOAD_WAYS] = {NULL, "HtoD", "DtoH", "DtoD", "PtoP"};

void cs_gpu_load_write(cs_u32 device, cs_u64 ns, const struct cs_load *load)
{
    struct cs_gpu_device_shown *shown = &cs_gpu_shown.devices[device];
    if (!cs_gpu_shown.loads) return;
    if (!shown->share.from_ns) shown->share.from_ns = ns - ns % SHARE_NS, shown->share.since_ns = ns;
    if (shown->share.busy != (load->works != 0)) share_until(&shown->share, device, ns), shown->share.busy = load->works != 0;
    step(&shown->kernels, "kernels", "at once", device, ns, load->kernels);
    for (int way = 1; way < CS_LOAD_WAYS; way++) step(&shown->bytes[way], "bytes in flight", ways[way], device, ns, (cs_u64)load->bytes[way]);
}

void cs_gpu_counters_end(void)
{
    for (cs_u32 d = 0; d < CS_GPU_PIDS; d++) {
        struct cs_gpu_device_shown *shown = &cs_gpu_shown.devices[d];
        if (!shown->share.from_ns) continue;
        share_until(&shown->share, d, shown->share.since_ns + 2 * SHARE_NS);
        put(&shown->kernels, "kernels", "at once", counters_of(d));
        for (int way = 1; way < CS_LOAD_WAYS; way++) put(&shown->bytes[way], "bytes in flight", ways[way], counters_of(d));
    }
    for (cs_u32 i = 1; i <= cs_match_lanes_high(); i++) {
        const struct cs_match_lane *lane = cs_match_lane_get(i);
        if (lane) depth_put(lane, &cs_gpu_lane_shown(lane)->depth);
    }
}
