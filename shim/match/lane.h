/*
 * The lanes of GPUs: one a stream, extra ones where work overlaps, and one for the host's waits beside each. The writer's alone.
 *
 * Slices of one lane must nest, or the viewer drops them. Work of one stream nearly always follows itself; what does not (graph branches, programmatic
 * dependent launch, ranges between events, records that come late) goes to the first of the stream's extra lanes that is free at that time.
 */
#ifndef CS_MATCH_LANE_H
#define CS_MATCH_LANE_H

#include "shim/base/lane.h"
#include "shim/match/come.h"
#include "shim/match/op.h"
#include "shim/object/stream.h"

enum { CS_MATCH_LANES = 1 << 16 };

/* Slices on a row of lanes: where each is filled up to, ns. */
struct cs_row {
    cs_u64 filled[CS_LANE_LEVELS];
};

/* All that is known of a lane. */
struct cs_match_lane {
    bool used;
    cs_u32 number;        /* its index + 1 */
    cs_u32 serial;        /* which of those that have had this place, from 1 */
    cs_u32 device, tid;   /* pid and tid of the timeline */
    cs_u32 gpu_id;        /* the profiler's number; 0 unknown. Null streams of all contexts have the same */
    cs_u32 context;       /* the profiler's number of its context, as the first work told; 0 unknown */
    cs_ref stream;        /* our object; 0: a stream of the driver's own */
    int priority;
    cs_u32 next;          /* index + 1 of the next lane under the same hash */
    struct cs_row work, sync;

    /* the calls on it (queue.c) */
    cs_u64 first, last;   /* the oldest op whose work is awaited; the newest op */
    cs_u64 counted;       /* the newest op that the depth counts */
    cs_u64 worked_ns;     /* the end of its last work */
    cs_u64 stray_ns;      /* the last begin of work on it whose call is not known */
    cs_u64 event_wait;    /* the number of the last wait for an event on it; 0 none (hold.c) */
    cs_u32 depth;         /* calls that were made and whose work has not ended */
    bool over;            /* its stream has ended */
    struct cs_since ended; /* when that was found */

    /* captures and graphs */
    cs_u64 capture;        /* the number of the last capture that its stream was part of; 0 none (capture.c) */
    cs_u32 capturing;      /* of these, that go on */
    cs_u64 captured_until; /* ticks: a call from before that may be one of a capture which has ended */
    cs_u64 node_calls;     /* the newest call on its stream that may have made a node of a graph */
};

/* The lane of a stream object, made at its first use: NULL where there is no room; where it has been made, else NULL. */
struct cs_match_lane *cs_match_lane_of(const struct cs_stream *stream);
struct cs_match_lane *cs_match_lane_made(const struct cs_stream *stream);
void cs_match_lane_free(const struct cs_stream *stream); /* the stream is gone */

/* Lanes are 1 to this, some unused: NULL for those, and for 0. */
struct cs_match_lane *cs_match_lane_get(cs_u32 lane);
cs_u32 cs_match_lanes_high(void);

/* The lane of a piece of work: the stream's that a graph's node was captured from, else that the profiler names, else the call's; learnt where only one of the
 * two is known. */
struct cs_match_lane *cs_match_lane_of_work(const struct cs_gpu_work *work, const struct cs_op *op);

/* Where on a row a slice from start goes: the first level that is free then; CS_LANE_LEVELS: none is. */
cs_u32 cs_row_level(const struct cs_row *row, cs_u64 start_ns);
/* Puts it there; where none is free, on the last, and the slice begins later. */
cs_u32 cs_row_place(struct cs_row *row, cs_u64 *start_ns, cs_u64 end_ns);

#endif
