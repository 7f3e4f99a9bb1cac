/* Lanes of a GPU: a row names one of ours with its stream ("cs.stream"), by a number of
 * shim/base/lane.h. Another tool's lane has the number of its stream. */
#ifndef CS_TOOLS_LANES_H
#define CS_TOOLS_LANES_H

#include <stdbool.h>

#include "shim/base/lane.h"

static inline uint32_t lane_stream(uint32_t tid, bool named_with_stream)
{
    return named_with_stream ? cs_lane_stream_of(tid) : tid;
}

/* Whether the lane is the stream's own: its work stands there, but for what overlaps. */
static inline bool lane_is_streams_own(uint32_t tid, bool named_with_stream)
{
    return !named_with_stream || tid % CS_LANE_STEP == 0;
}

#endif
