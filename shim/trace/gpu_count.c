/*
 * Counters in the file: how many calls wait on a stream for their work to end, and how many streams of a GPU are at work at once.
 */
#include <stdio.h>

#include "shim/base/json.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/trace/output.h"

enum { STEP_NS = 20000 };

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

static void depth_put(const struct cs_match_lane *lane, struct cs_counter *c)
{
    char name[48];
    struct cs_stream *stream = cs_pool_get(&cs_streams, lane->stream);
    if (c->value == c->shown) return;
    if (stream && !cs_output_full()) cs_lane_stream(stream); /* in this part of the trace nothing may have happened on it yet */
    snprintf(name, sizeof name, "stream %u depth", lane->tid);
    put_counter(name, lane->device, lane->tid, c->changed_ns, c->value);
    c->shown = c->value;
    c->shown_ns = c->changed_ns;
}

void cs_gpu_depth_write(const struct cs_match_lane *lane, cs_u64 ns)
{
    struct cs_counter *c = &cs_gpu_lane_shown(lane)->depth;
    if (ns < c->changed_ns) ns = c->changed_ns;
    const bool due = ns - c->shown_ns >= STEP_NS;
    if (due) depth_put(lane, c);
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
    struct cs_counter *c = &cs_gpu_shown.devices[device].busy;
    if (c->shown == c->value) return;
    put_counter("streams busy", device, cs_gpu_counter_tid(device), c->changed_ns, c->value);
    c->shown = c->value;
    c->shown_ns = c->changed_ns;
}

void cs_gpu_busy_write(cs_u32 device, cs_u64 ns, cs_u32 streams)
{
    struct cs_counter *c = &cs_gpu_shown.devices[device].busy;
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
