#include "shim/trace/gpu.h"

#include <string.h>

#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/gpu/mark.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/trace/rotate.h"
#include "shim/trace/totals.h"
#include "shim/trace/windows.h"

struct cs_gpu_shown cs_gpu_shown;
CS_TABLE_AT(TRACE, lanes_shown, cs_gpu_shown.lanes, CS_MATCH_LANES);

/* --- what match finds --- */

static bool work_found(struct cs_match_found *found)
{
    cs_rotate_if_due();
    return cs_gpu_work_write(found);
}

/* A part that has ended stands as it is. */
static void count(cs_u64 *sum, int by)
{
    if (by > 0 || *sum) *sum += (cs_u64)by;
}
static void work_without_times(int by) { count(&cs_totals.sum.gpu.no_times, by); }
static void launch_missed(int by) { count(&cs_totals.sum.gpu.missed, by); }

static void pool_found(const struct cs_gpu_pool *pool)
{
    if (!cs_windows_outside(pool->at)) cs_gpu_pool_write(pool);
}

/* The depth of streams costs a look at each call on one, and few want it. */
#define SINK(depth_to)                                                                                                                              \
    {.outside = cs_windows_outside, .closed = cs_windows_closed, .open_since = cs_windows_open_since, .work = work_found, .pool = pool_found,         \
     .lost = cs_gpu_lost_write, .without_times = work_without_times, .missed = launch_missed, .came_after_all = cs_totals_came_after_all,            \
     .depth = (depth_to), .load = cs_gpu_load_write, .released = cs_gpu_released}
static const struct cs_match_sink sink = SINK(NULL), sink_of_depths = SINK(cs_gpu_depth_write);

/* --- begin, a round, end --- */

static void process_begins(void)
{
    struct cs_lane_shown *lanes = cs_gpu_shown.lanes;
    struct cs_shape_shown *shapes = cs_gpu_shown.shapes;
    memset(&cs_gpu_shown, 0, sizeof cs_gpu_shown);
    cs_gpu_shown.lanes = lanes;
    cs_gpu_shown.shapes = shapes;
    cs_gpu_shapes_forget();
    cs_gpu_shown.span = 1;
    const bool all = !cs_gpu_samples(); /* of a sample counters would tell next to nothing, as if that were all */
    cs_gpu_shown.loads = all && !cs_option_is(CS_OPTION_COUNTERS, "off");
    cs_gpu_shown.depths = all && cs_option_is(CS_OPTION_COUNTERS, "streams");
    cs_memory_forget(lanes, CS_MATCH_LANES * sizeof *lanes);
    cs_match_begin(cs_gpu_shown.depths ? &sink_of_depths : &sink);
}

void cs_gpu_trace_begin(bool new_process)
{
    if (new_process) process_begins();
    cs_match_part(cs_lanes_file());
    cs_gpu_shown.overhead.announced = 0;
    for (int part = 0; part < CS_GPU_PARTS; part++) cs_gpu_shown.gaps[part].announced = 0;
    for (cs_u32 d = 0; d < CS_GPU_PIDS; d++) {
        struct cs_gpu_device_shown *device = &cs_gpu_shown.devices[d];
        device->counters = false;
        device->waits.announced = device->peers.announced = 0;
    }
}

static void write_what_is_missing(bool all)
{
    if (cs_gpu_shown.without_lane) cs_gpu_lost_write(cs_gpu_shown.without_lane, CS_LOSS_NO_LANE);
    cs_gpu_shown.without_lane = 0;
    cs_gpu_missing_write(all);
}

void cs_gpu_trace_emit(void)
{
    cs_match_round();
    write_what_is_missing(false);
}

void cs_gpu_trace_end(void)
{
    cs_match_end();
    write_what_is_missing(true);
    cs_gpu_counters_end();
}
