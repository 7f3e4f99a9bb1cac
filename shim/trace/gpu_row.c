/*
 * Lanes of a GPU in the file: what each is called, told before its first slice.
 */
#include <stdio.h>

#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"

struct cs_lane_shown *cs_gpu_lane_shown(const struct cs_match_lane *lane)
{
    struct cs_lane_shown *shown = &cs_gpu_shown.lanes[lane->number - 1];
    if (shown->serial != lane->serial) *shown = (struct cs_lane_shown){.serial = lane->serial};
    return shown;
}

/* The row of a stream's work or waits; of a device's, where `stream` is 0. */
static void announce(cs_u32 device, cs_u32 stream, cs_u32 tid, const char *what, cs_u32 level)
{
    char name[80];
    int n = stream ? snprintf(name, sizeof name, "stream %u%s", stream, what) : snprintf(name, sizeof name, "all streams%s", what);
    if (level) snprintf(name + n, sizeof name - (size_t)n, " (overlap %u)", level);
    cs_lane_named_of_gpu(device, tid, name, false);
}

cs_u32 cs_gpu_lane_place(struct cs_match_lane *lane, bool sync, cs_u64 *start_ns, cs_u64 end_ns)
{
    struct cs_lane_shown *shown = cs_gpu_lane_shown(lane);
    const cs_u32 level = cs_row_place(sync ? &lane->sync : &lane->work, start_ns, end_ns);
    const cs_u32 tid = cs_lane_tid(lane->tid, sync ? CS_LANE_SYNC : CS_LANE_WORK, level);
    cs_u32 *announced = sync ? &shown->sync : &shown->work;
    if (shown->file != cs_lanes_file()) shown->work = shown->sync = shown->context = 0, shown->file = cs_lanes_file();
    if (*announced >> level & 1) return tid;
    *announced |= 1u << level;
    struct cs_stream *stream = cs_pool_get(&cs_streams, lane->stream);
    if (!sync && !level && stream) cs_lane_stream(stream);
    else announce(lane->device, lane->tid, tid, sync ? " (sync)" : !level ? " (the driver's own)" : "", level);
    return tid;
}

cs_u32 cs_gpu_device_place(cs_u32 device, cs_u64 *start_ns, cs_u64 end_ns)
{
    if (device >= CS_GPU_PIDS) return 0;
    struct cs_rows *waits = &cs_gpu_shown.devices[device].waits;
    const cs_u32 level = cs_row_place(&waits->row, start_ns, end_ns), tid = cs_lane_tid(CS_LANE_ALL, CS_LANE_SYNC, level);
    if (!(waits->announced >> level & 1)) announce(device, 0, tid, " (sync)", level);
    waits->announced |= 1u << level;
    return tid;
}

cs_u32 cs_gpu_wait_tid(const struct cs_stream *stream, cs_u64 *start_ns, cs_u64 end_ns)
{
    struct cs_match_lane *lane = cs_match_lane_of(stream);
    return lane ? cs_gpu_lane_place(lane, true, start_ns, end_ns) : 0;
}
