/*
 * The lanes of the timeline: which pid and tid an event stands on, and what the lane is called. A lane's name comes before its first event.
 */
#ifndef CS_TRACE_LANES_H
#define CS_TRACE_LANES_H

#include "shim/object/stream.h"

enum { CS_HOST_PID_SHIFT = 10000000, CS_GPU_PIDS = 64 };

void cs_lanes_begin(void);  /* a new file: nothing has been announced */
cs_u32 cs_host_pid(void);   /* the pid of host events: the process's, moved where it could be taken for a GPU's */
void cs_lane_process(void); /* the host process's name */
void cs_lane_thread(struct cs_thread *thread, bool again); /* its name, if it was not announced or, with `again`, has changed since */
void cs_lane_stream(struct cs_stream *stream);             /* GPU, lane and the begin of the stream's life, if not announced */

#endif
