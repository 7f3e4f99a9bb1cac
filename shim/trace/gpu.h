/*
 * GPU work in the timeline: what shim/match finds becomes slices on the streams' lanes with their arrows, counters, and what a profiler tells besides.
 *
 * The writer's alone. A round takes what the backend has (cs_match_collect), then the records of the rings, then writes what belongs together.
 */
#ifndef CS_TRACE_GPU_H
#define CS_TRACE_GPU_H

#include "shim/match/match.h"
#include "shim/trace/event.h"

/* A new file, where nothing has been announced. `new_process`: its first, and what a forked child has of its parent's is forgotten. */
void cs_gpu_trace_begin(bool new_process);

/* Writes what has come. And for the last time: no record of a call comes any more. */
void cs_gpu_trace_emit(void);
void cs_gpu_trace_end(void);

/* A wait of the host, or of a stream: its row, and what it waited for. `cause`: of an event, the record that it waited for (values as in CAUSED). */
void cs_gpu_trace_sync(const struct cs_thread *thread, const struct cs_record *record, struct cs_stream *stream, const cs_u64 *cause, cs_u64 begin_ns,
                       cs_u64 end_ns);

/* The tid for a slice on a stream's row of waits, announced; 0 where it has none. */
cs_u32 cs_gpu_wait_tid(const struct cs_stream *stream, cs_u64 *start_ns, cs_u64 end_ns);

/* Before a stream's life ends in a file: its counter's last value. */
void cs_gpu_trace_stream_ends(const struct cs_stream *stream);

char *cs_gpu_put_totals(char *at); /* ,"gpu":{...} for the trailer; at most 4 KiB */

/* Numbers of arrows: one from a call to its work has the call's; the others have their own stretches. In earlier traces arrows from a graph launch to all
 * but its first piece of work had the one from 1 << 41. */
#define CS_FLOW_CAUSE   ((cs_u64)1 << 40) /* cs_dep */
#define CS_FLOW_RELEASE ((cs_u64)1 << 42) /* cs_dep, from work to the wait that it released */
#define CS_FLOW_AUDIT   ((cs_u64)1 << 43) /* cs_dep, from work to what waited for it through the default stream alone */

/* Such an arrow to a wait: from the end of an op's work to a slice "wake-up" in the wait's own, which ends with it or just before. The work has ended before the
 * wait, and in it. */
void cs_gpu_wake_write(cs_u64 id, const struct cs_op *op, struct cs_lane waits, cs_u64 until_ns);

#endif
