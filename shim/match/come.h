/*
 * Has its work come? And what is waited for that has not: how long, cs_is_over says (state.h).
 */
#ifndef CS_MATCH_COME_H
#define CS_MATCH_COME_H

#include "shim/base/compiler.h"

struct cs_match_lane;

/* When a round of the writer began: how many flushes had ended by then. A flush that has ended has brought in all that had ended before it, and takes place every
 * 200 ms while anything is awaited: so patience is counted in flushes. Those that end while a round goes on count from the next on: then the rings have been
 * read since, however long the round was. */
struct cs_since {
    cs_u64 flushes, ns;
};
struct cs_since cs_since_now(void);

/* What may still come, and has not since then. */
enum cs_patience {
    CS_FOR_RECORD, /* ours, of a call that the profiler tells of: it may be on its way to the ring */
    CS_FOR_CALL,   /* the profiler's word of the call that made some work */
    CS_FOR_EDGE,   /* either, near the edge of a window, where it may be that nothing was recorded: a thread must have had the time to come back */
    CS_FOR_WORK,   /* that has ended: a wait for it has returned, or its stream is gone */
    CS_FOR_ROOM,   /* for what the backend has */
    CS_PATIENCES
};

/* Has the work of a call come, or all that is awaited on a lane? `since` when it is certain that it has ended; NULL: it may be under way. NONE: there is none,
 * or it is no stream's. LOST: there was some, for all we know, and it will not come; or it is so long ago that nobody knows. */
enum cs_come { CS_AWAITED, CS_CAME, CS_NONE, CS_LOST };
enum cs_come cs_op_come(cs_u64 op, const struct cs_since *since);
enum cs_come cs_lane_come(const struct cs_match_lane *lane, const struct cs_since *since);

#endif
