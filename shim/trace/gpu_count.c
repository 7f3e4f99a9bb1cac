/*
 * Counters in the file: how many calls wait on a stream for their work to end, and how many streams of a GPU are at work at once.
 */
#include <stdio.h>

#include "shim/trace/event.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"

enum { STEP_NS = 20000 };

static void put(struct cs_counter_shown *c, const char *name, struct cs_lane at)
{
    if (!cs_output_full()) cs_commit(cs_args_end(cs_arg_uint(cs_counter(cs_draft(), cs_title(name), at, c->changed_ns), "n", c->value)));
    c->shown = c->value;
    c->shown_ns = c->changed_ns;
}

/* --- depth of a stream --- */

static void depth_put(const struct cs_match_lane *lane, struct cs_counter_shown *c)
{
    char name[48];
    if (c->value == c->shown) return;
    snprintf(name, sizeof name, "stream %u depth", lane->tid);
    put(c, name, cs_lane_at(lane->device, cs_gpu_counter_tid(lane->device)));
}

void cs_gpu_depth_write(const struct cs_match_lane *lane, cs_u64 ns)
{
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

/* --- streams at work --- */

cs_u32 cs_gpu_counter_tid(cs_u32 device)
{
    const cs_u32 tid = cs_lane_tid(CS_LANE_COUNTERS, CS_LANE_OWN, 0);
    if (device >= CS_GPU_PIDS || cs_gpu_shown.devices[device].counters) return tid;
    cs_gpu_shown.devices[device].counters = true;
    cs_lane_device((int)device);
    cs_lane_named(device, tid, "counters", tid);
    return tid;
}

static void busy_put(cs_u32 device)
{
    struct cs_counter_shown *c = &cs_gpu_shown.devices[device].busy;
    if (c->shown != c->value) put(c, "streams busy", cs_lane_at(device, cs_gpu_counter_tid(device)));
}

void cs_gpu_busy_write(cs_u32 device, cs_u64 ns, cs_u32 streams)
{
    struct cs_counter_shown *c = &cs_gpu_shown.devices[device].busy;
    if (ns - c->shown_ns >= STEP_NS) busy_put(device);
    c->value = streams;
    c->changed_ns = ns;
    if (ns - c->shown_ns >= STEP_NS) busy_put(device);
}

void cs_gpu_counters_end(void)
{
    for (cs_u32 d = 0; d < CS_GPU_PIDS; d++) busy_put(d);
    for (cs_u32 i = 1; i <= cs_match_lanes_high(); i++) {
        const struct cs_match_lane *lane = cs_match_lane_get(i);
        if (lane) depth_put(lane, &cs_gpu_lane_shown(lane)->depth);
    }
}
