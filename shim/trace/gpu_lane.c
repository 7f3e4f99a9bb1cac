#include "shim/trace/gpu_lane.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/memory.h"
#include "shim/trace/lanes.h"

enum { LANES = 1 << 16, BUCKETS = 1 << 14 };

static struct cs_gpu_lane *lanes;
CS_TABLE(TRACE, lanes, LANES);
static cs_u32 high, free_lanes; /* of the list of freed ones: index + 1 */
static cs_u32 buckets[BUCKETS]; /* by device and the profiler's number: index + 1 */

void cs_gpu_lanes_forget(void)
{
    if (!high) return;
    cs_memory_forget(lanes, LANES * sizeof *lanes);
    memset(buckets, 0, sizeof buckets);
    high = free_lanes = 0;
}

void cs_gpu_lanes_begin(void)
{
    for (cs_u32 i = 0; i < high; i++) lanes[i].work.announced = lanes[i].sync.announced = 0;
}

struct cs_gpu_lane *cs_gpu_lane_get(cs_u32 lane) { return lane && lane <= high && lanes[lane - 1].used ? &lanes[lane - 1] : NULL; }
cs_u32 cs_gpu_lanes_high(void) { return high; }

static cs_u32 *bucket_of(cs_u32 device, cs_u32 gpu_id) { return &buckets[(gpu_id + device * 0x9e3779b9u) % BUCKETS]; }

static cs_u32 lane_new(cs_u32 device, cs_u32 tid)
{
    cs_u32 lane = free_lanes;
    if (!lane && high == LANES) return 0;
    if (lane) free_lanes = lanes[lane - 1].next;
    else lane = ++high;
    lanes[lane - 1] = (struct cs_gpu_lane){.used = true, .device = device, .tid = tid};
    return lane;
}

void cs_gpu_lane_learn(cs_u32 lane, cs_u32 gpu_id)
{
    struct cs_gpu_lane *l = cs_gpu_lane_get(lane);
    if (!l || l->gpu_id || !gpu_id) return;
    cs_u32 *bucket = bucket_of(l->device, gpu_id);
    l->gpu_id = gpu_id;
    l->next = *bucket;
    *bucket = lane;
}

void cs_gpu_lane_free(cs_u32 lane)
{
    struct cs_gpu_lane *l = cs_gpu_lane_get(lane);
    if (!l) return;
    cs_u32 *at = l->gpu_id ? bucket_of(l->device, l->gpu_id) : NULL;
    while (at && *at && *at != lane) at = &lanes[*at - 1].next;
    if (at && *at) *at = l->next;
    l->used = false;
    l->next = free_lanes;
    free_lanes = lane;
}

cs_u32 cs_gpu_lane_known(cs_u32 device, cs_u32 context, cs_u32 gpu_id)
{
    cs_u32 unsure = 0;
    for (cs_u32 lane = gpu_id ? *bucket_of(device, gpu_id) : 0; lane; lane = lanes[lane - 1].next) {
        const struct cs_gpu_lane *l = &lanes[lane - 1];
        if (l->device != device || l->gpu_id != gpu_id) continue;
        if (l->context == context) return lane;
        if (!l->context) unsure = lane; /* the oldest: the last of the bucket */
    }
    return unsure;
}

cs_u32 cs_gpu_lane_of(struct cs_stream *stream)
{
    struct cs_gpu_lane *l = cs_gpu_lane_get(stream->gpu_lane);
    if (l && l->stream == cs_load(&stream->object.ref)) return stream->gpu_lane;
    cs_u32 lane = lane_new((cs_u32)stream->device, stream->lane);
    if (!(l = cs_gpu_lane_get(lane))) return 0;
    l->stream = cs_load(&stream->object.ref);
    l->priority = stream->priority;
    cs_gpu_lane_learn(lane, stream->gpu_id);
    return stream->gpu_lane = lane;
}

cs_u32 cs_gpu_lane_internal(cs_u32 device, cs_u32 context, cs_u32 gpu_id)
{
    cs_u32 lane = lane_new(device, cs_stream_lane((int)device, gpu_id, false));
    if (cs_gpu_lane_get(lane)) cs_gpu_lane_get(lane)->context = context;
    cs_gpu_lane_learn(lane, gpu_id);
    return lane;
}

/* --- placing slices --- */

static cs_u32 tid_of(const struct cs_gpu_lane *l, bool sync, int level) { return cs_lane_tid(l->tid, sync ? CS_LANE_SYNC : CS_LANE_WORK, (cs_u32)level); }

static void announce(struct cs_gpu_lane *l, bool sync, int level)
{
    struct cs_lane_row *row = sync ? &l->sync : &l->work;
    char name[80];
    if (row->announced >> level & 1) return;
    row->announced |= 1u << level;
    struct cs_stream *stream = cs_pool_get(&cs_streams, l->stream);
    if (!sync && !level && stream) {
        cs_lane_stream(stream);
        return;
    }
    cs_lane_device((int)l->device);
    cs_u32 tid = tid_of(l, sync, level);
    int n = l->tid ? snprintf(name, sizeof name, "stream %u", l->tid) : snprintf(name, sizeof name, "all streams");
    n += snprintf(name + n, sizeof name - (size_t)n, "%s", sync ? " (sync)" : !level ? " (the driver's own)" : "");
    if (level) snprintf(name + n, sizeof name - (size_t)n, " (overlap %d)", level);
    cs_lane_named(l->device, tid, name, l->tid);
}

cs_u32 cs_gpu_lane_place(struct cs_gpu_lane *l, bool sync, cs_u64 *start_ns, cs_u64 end_ns)
{
    struct cs_lane_row *row = sync ? &l->sync : &l->work;
    int level = 0;
    while (level < CS_LANE_LEVELS - 1 && row->filled[level] > *start_ns) level++;
    if (row->filled[level] > *start_ns) *start_ns = row->filled[level] < end_ns ? row->filled[level] : end_ns - 1; /* more at once than lanes */
    if (end_ns > row->filled[level]) row->filled[level] = end_ns;
    announce(l, sync, level);
    return tid_of(l, sync, level);
}
