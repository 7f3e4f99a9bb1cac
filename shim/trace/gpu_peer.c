/*
 * Copies between devices, on the other side: the copy itself stands on the lane of the stream that did it, so that it is counted once, and what it was to the
 * other device on a row of that device's own.
 */
#include <stdio.h>

#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"

/* The tid for a slice on the row of a device, announced; 0 where more goes on at once than anybody reads. */
static cs_u32 row_place(cs_u32 device, cs_u64 start_ns, cs_u64 end_ns)
{
    struct cs_rows *peers = &cs_gpu_shown.devices[device].peers;
    const cs_u32 level = cs_row_level(&peers->row, start_ns), tid = cs_lane_tid(CS_LANE_PEERS, CS_LANE_WORK, level);
    char name[40];
    if (level == CS_LANE_LEVELS) return 0;
    peers->row.filled[level] = end_ns;
    if (peers->announced >> level & 1) return tid;
    peers->announced |= 1u << level;
    if (level) snprintf(name, sizeof name, "peer copies (overlap %u)", level);
    cs_lane_named_of_gpu(device, tid, level ? name : "peer copies", false);
    return tid;
}

void cs_gpu_peer_write(const struct cs_match_found *found)
{
    const struct cs_gpu_work *w = found->work;
    cs_u32 other = w->copy.from_device == w->device ? w->copy.to_device : w->copy.from_device;
    cs_u32 tid = other < CS_GPU_PIDS && other != w->device ? row_place(other, found->start_ns, found->end_ns) : 0;
    char text[128];
    if (!tid || cs_output_full()) return;
    struct cs_draft e = cs_slice(cs_draft(), "cs_peer", cs_gpu_title(w, text), cs_lane_at(other, tid), found->start_ns, found->end_ns);
    e = cs_arg_uint(e, "device", other);
    e = cs_arg_uint(e, "copied by device", w->device);
    e = cs_arg_uint(e, "copied by stream", found->lane->tid);
    if (found->op) e = cs_arg_uint(e, "correlation", found->op->id);
    e = cs_arg_uint(e, "bytes", w->copy.bytes);
    e = cs_arg_uint(e, "fromDevice", w->copy.from_device);
    e = cs_arg_uint(e, "toDevice", w->copy.to_device);
    cs_commit(cs_args_end(e));
}
