/* Lanes of a GPU. Our traces name each lane's stream; in other tools' traces it is the tid. */
#ifndef CS_TOOLS_LANES_H
#define CS_TOOLS_LANES_H

#include <stdbool.h>

#include "shim/base/lane.h"

static inline uint32_t lane_stream(uint32_t tid, bool named_with_stream)
{
    return named_with_stream ? cs_lane_stream_of(tid) : tid;
}

/* Whether the lane is the stream's first. Work that overlaps stands in further lanes. */
static inline bool lane_is_streams_own(uint32_t tid, bool named_with_stream)
{
    return !named_with_stream || tid % CS_LANE_STEP == 0;
}

/* --- a merged trace: each process has GPUs of its own. GPU 1 of the process at place 3 is
 * 1000000301. Host processes keep their pids, which are lower. --- */

enum {
    MERGED_GPUS = 1000000000,
    MERGED_GPU_STEP = 100,
    MERGED_OTHERS = MERGED_GPUS / 2 /* the first number for processes without one of their own */
};

static inline uint32_t merged_gpu_pid(uint32_t place, uint32_t ordinal)
{
    return MERGED_GPUS + place * MERGED_GPU_STEP + ordinal;
}
static inline uint32_t merged_gpu_ordinal(uint32_t pid)
{
    return (pid - MERGED_GPUS) % MERGED_GPU_STEP;
}

#endif
