/*
 * The lanes of GPUs: one a stream, extra ones where work overlaps, and one for the host's waits beside each. The writer's alone.
 *
 * Slices of one lane must nest, or the viewer drops them. Work of one stream nearly always follows itself; what does not (graph branches, programmatic
 * dependent launch, ranges between events, records that come late) goes to the first of the stream's extra lanes that is free at that time.
 */
#ifndef CS_TRACE_GPU_LANE_H
#define CS_TRACE_GPU_LANE_H

#include "shim/base/lane.h"
#include "shim/object/stream.h"

/* Slices on a row of lanes: where each is filled up to. */
struct cs_lane_row {
    cs_u64 filled[CS_LANE_LEVELS]; /* ns */
    cs_u32 announced;              /* bit a level */
};

struct cs_gpu_lane {
    bool used;
    cs_u32 device, tid;   /* pid and tid of the timeline */
    cs_u32 gpu_id;        /* the profiler's number; 0 unknown. Null streams of all contexts have the same */
    cs_u32 context;       /* the profiler's number of its context, as the first work told; 0 unknown */
    cs_ref stream;        /* our object; 0: a stream of the driver's own */
    int priority;
    cs_u32 next;          /* index + 1 of the next lane under the same hash */
    struct cs_lane_row work, sync;

    cs_u64 ended_flushes; /* how many flushes had ended when its stream was found to have ended; 0 while it lives */
    cs_u64 first, last;   /* the oldest op whose work is awaited; the newest op */
    cs_u64 counted;       /* the newest op that the depth counts */
    cs_u64 node_calls;    /* the newest call on its stream that may have made a node of a graph (gpu_graph.c) */
    cs_u32 depth, depth_shown;
    cs_u64 depth_ns, depth_shown_ns; /* when it changed last; when it was last written */
};

void cs_gpu_lanes_forget(void); /* a new process's trace: there are none */
void cs_gpu_lanes_begin(void); /* a new file: nothing has been announced */

/* The lane of a stream object, made at its first use; of the profiler's number. 0 where there is none or no room. */
cs_u32 cs_gpu_lane_of(struct cs_stream *stream);
cs_u32 cs_gpu_lane_known(cs_u32 device, cs_u32 context, cs_u32 gpu_id);
cs_u32 cs_gpu_lane_internal(cs_u32 device, cs_u32 context, cs_u32 gpu_id); /* a stream that no program made: named after what is known of it */
void cs_gpu_lane_learn(cs_u32 lane, cs_u32 gpu_id);        /* which number is that stream's, where it was not known */
struct cs_gpu_lane *cs_gpu_lane_get(cs_u32 lane);          /* NULL for 0 */
cs_u32 cs_gpu_lanes_high(void);                            /* lanes are 1 to this, some unused */
void cs_gpu_lane_free(cs_u32 lane);

/* Where a slice from start to end goes: the tid, with its lane announced. `sync`: on the row of waits. */
cs_u32 cs_gpu_lane_place(struct cs_gpu_lane *lane, bool sync, cs_u64 *start_ns, cs_u64 end_ns);

#endif
