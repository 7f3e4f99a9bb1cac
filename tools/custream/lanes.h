/* Lanes of a GPU. In our traces a lane's number is made of its stream's (shim/base/lane.h), and its
 * name row has the stream ("cs.stream"). In another tool's trace a lane has the number of its
 * stream. */
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

#endif
