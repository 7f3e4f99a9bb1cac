/*
 * Numbers of lanes of a GPU's process in the timeline, the only place that makes them: which stream, what beside it, and which of several that lie over each
 * other. `custream check` takes them apart again.
 */
#ifndef CS_BASE_LANE_H
#define CS_BASE_LANE_H

#include <stdint.h>

/* Work stands on the stream's own number; waits of the host, and the default stream audit, each on a row beside it. OWN: the GPU's, of no stream. */
enum cs_lane_kind { CS_LANE_WORK, CS_LANE_SYNC, CS_LANE_AUDIT, CS_LANE_OWN };
enum { CS_LANE_STREAM_BITS = 24, CS_LANE_KIND_BITS = 2, CS_LANE_LEVELS = 32 }; /* 31 bits in all: what viewers take for a thread's number */
enum { CS_LANE_STREAMS = 1 << CS_LANE_STREAM_BITS };                           /* streams have the numbers below */

enum { CS_GPU_PIDS = 64 }; /* GPUs: the pid of one is its number */

/* Of the OWN lanes. */
enum { CS_LANE_COUNTERS = 1, CS_LANE_PEERS, CS_LANE_LIVES };

static inline uint32_t cs_lane_tid(uint32_t stream, enum cs_lane_kind kind, uint32_t level)
{
    return level << (CS_LANE_STREAM_BITS + CS_LANE_KIND_BITS) | (uint32_t)kind << CS_LANE_STREAM_BITS | stream;
}

static inline uint32_t cs_lane_stream_of(uint32_t tid) { return tid & (CS_LANE_STREAMS - 1); }
static inline enum cs_lane_kind cs_lane_kind_of(uint32_t tid) { return (enum cs_lane_kind)(tid >> CS_LANE_STREAM_BITS & ((1 << CS_LANE_KIND_BITS) - 1)); }

#endif
