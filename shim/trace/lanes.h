/*
 * The lanes of the timeline: which pid and tid an event stands on, and what the lane is called. A lane's name comes before its first event.
 */
#ifndef CS_TRACE_LANES_H
#define CS_TRACE_LANES_H

#include "shim/base/lane.h"
#include "shim/object/stream.h"
#include "shim/trace/event.h"

enum { CS_HOST_PID_SHIFT = 10000000 };

void cs_lanes_begin(bool part); /* a new file: nothing has been announced; `part`: of the same trace */
CS_HIDDEN extern cs_u32 cs_lanes_files;
static inline cs_u32 cs_lanes_file(void) { return cs_lanes_files; } /* how many files have begun: whoever announces lanes of its own looks whether it has in this one */
cs_u32 cs_host_pid(void);   /* the pid of host events: the process's, moved where it could be taken for a GPU's */
static inline struct cs_lane cs_host_lane(cs_u32 tid) { return cs_lane_at(cs_host_pid(), tid); }
void cs_lane_process(void); /* the host process's name */
void cs_lane_thread(const struct cs_thread *thread, bool again); /* its name, if it was not announced or, with `again`, has changed since */
void cs_lane_device(int device);                           /* a GPU's name, if not announced */
void cs_lane_named(cs_u32 tid, const char *name);          /* any other lane of the host process, announced by its owner */
void cs_lane_named_of_gpu(cs_u32 device, cs_u32 tid, const char *name, bool again); /* likewise of a GPU; `again`: it has another name now */
void cs_lane_stream(struct cs_stream *stream);             /* a stream's lane, where work is about to stand, if not announced (stream_life.c) */
void cs_thread_shown_name(cs_u32 tid, char *name, size_t size); /* of a thread of the program, as its lane has it; "": nobody knows */

#endif
