/*
 * Lanes of a GPU, as traces of every version have them. Today the row that names a lane says which stream it is of ("cs.stream"), and the lane's number is from
 * shim/base/lane.h. In earlier traces it says nothing, and a lane's number is that of its stream, with what it shows in the bits above.
 */
#ifndef CS_TOOLS_LANES_H
#define CS_TOOLS_LANES_H

#include <stdbool.h>

#include "shim/base/lane.h"

enum { EARLIER_STREAM_BITS = 24, EARLIER_KIND_BITS = 2 };

static inline uint32_t lane_stream(uint32_t tid, bool named_with_stream)
{
    return named_with_stream ? cs_lane_stream_of(tid) : tid & ((1u << EARLIER_STREAM_BITS) - 1);
}

static inline enum cs_lane_kind lane_kind(uint32_t tid, bool named_with_stream)
{
    return named_with_stream ? cs_lane_kind_of(tid) : (enum cs_lane_kind)(tid >> EARLIER_STREAM_BITS & ((1u << EARLIER_KIND_BITS) - 1));
}

/* Whether the lane is the stream's own: its work stands there, but for what overlaps. */
static inline bool lane_is_streams_own(uint32_t tid, bool named_with_stream)
{
    return tid == (named_with_stream ? cs_lane_tid(cs_lane_stream_of(tid), CS_LANE_WORK, 0) : lane_stream(tid, false));
}

#endif
