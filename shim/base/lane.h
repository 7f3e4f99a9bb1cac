/*
 * Numbers of lanes of a GPU's process in the timeline. Only this file makes them: which stream, what beside it, and which of several that lie over each other.
 * Perfetto sorts lanes by their number, and shows it behind the name. So a stream has a hundred numbers, and its rows stand together: 1400 is the work of stream
 * 14, 1401 more of its work at the same time, 1430 waits for it, 1460 its audit.
 */
#ifndef CS_BASE_LANE_H
#define CS_BASE_LANE_H

#include <stdint.h>

/* Work; waits of the host; the default stream audit. */
enum cs_lane_kind { CS_LANE_WORK, CS_LANE_SYNC, CS_LANE_AUDIT, CS_LANE_KINDS };
enum { CS_LANE_STEP = 100, CS_LANE_LEVELS = 30 };
enum { CS_LANE_STREAMS = 1 << 24 }; /* streams have the numbers below. So a lane's number has 31 bits: viewers take no more for a thread's number */

/* Rows of a GPU that are no stream's stand where streams of these numbers would. No stream has one: CUDA's first is 7. Waits for all streams stand at 0. */
enum { CS_LANE_ALL, CS_LANE_LIVES, CS_LANE_COUNTERS, CS_LANE_PEERS, CS_LANE_LEGACY = 7 };

enum { CS_GPU_PIDS = 64 }; /* GPUs: the pid of one is its number */

static inline uint32_t cs_lane_tid(uint32_t stream, enum cs_lane_kind kind, uint32_t level)
{
    return stream * CS_LANE_STEP + (uint32_t)kind * CS_LANE_LEVELS + level;
}

static inline uint32_t cs_lane_stream_of(uint32_t tid) { return tid / CS_LANE_STEP; }
static inline enum cs_lane_kind cs_lane_kind_of(uint32_t tid) { return (enum cs_lane_kind)(tid % CS_LANE_STEP / CS_LANE_LEVELS); }

#endif
