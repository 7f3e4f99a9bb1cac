/*
 * GPU work in the timeline: from what a backend brought in, and the calls that the rings hold, to slices on the streams' lanes with their arrows.
 *
 * The writer's alone. A round takes what the backend has (collect), then the records of the rings (call, sync), then puts the two together (emit): a
 * profiler's record of a call ends before our wrapper's does, so that order leaves next to nothing over for the next round.
 */
#ifndef CS_TRACE_GPU_H
#define CS_TRACE_GPU_H

#include "shim/trace/gpu_lane.h"
#include "shim/trace/gpu_op.h"

/* A new file, where nothing has been announced. `new_process`: its first, and what a forked child has of its parent's is forgotten, in every file of these. */
void cs_gpu_trace_begin(bool new_process);

void cs_gpu_trace_collect(void);
bool cs_gpu_trace_behind(void); /* that left something over, for which there was no room */

/* A call of a ring. The number that ties it to its work, 0 where it puts none on a GPU. */
cs_u64 cs_gpu_trace_call(const struct cs_thread *thread, const struct cs_record *record, struct cs_stream *stream, cs_u64 begin_ns);

/* The same for a call that is not shown: neither is its work. */
void cs_gpu_trace_muted(const struct cs_thread *thread, const struct cs_record *record);
void cs_gpu_trace_runtime(const struct cs_thread *thread, const struct cs_record *record); /* a call of the runtime whose number its work has */

/* A wait of the host, or of a stream: its row, and what it waited for. `cause`: of an event, the record that it waited for (values as in CAUSED). */
void cs_gpu_trace_sync(const struct cs_thread *thread, const struct cs_record *record, struct cs_stream *stream, const cs_u64 *cause, cs_u64 begin_ns,
                       cs_u64 end_ns);

/* A capture began, has ended on this stream (ticks): what was called since on it, and on streams that joined, went into a graph and makes no work. */
void cs_gpu_capture_began(struct cs_stream *stream, cs_u64 began);
void cs_gpu_capture_ended(struct cs_stream *stream, cs_u64 began, cs_u64 ended);

/* A call that makes a node where its stream captures; a graph came out of a capture (ticks), of so many nodes; an executable was made of one, and was
 * changed to another. Numbers are the profiler's; 0: unknown. */
void cs_gpu_graph_call(const struct cs_record *record);
void cs_gpu_graph_captured(struct cs_stream *origin, cs_u64 began, cs_u64 ended, cs_u32 graph, cs_u32 length);
void cs_gpu_graph_instantiated(cs_u32 graph, cs_u32 exec, cs_u32 length);
void cs_gpu_graph_updated(cs_u32 exec);

/* Writes what has come. `all`: also what its call has not been found for. And for the last time: no record of a call comes any more. */
void cs_gpu_trace_emit(bool all);
void cs_gpu_trace_end(void);

/* Whether all work of an ended stream has come, as far as that can be told; and the end of the last of it on the stream's lane. */
bool cs_gpu_trace_settled(const struct cs_stream *stream);
cs_u64 cs_gpu_trace_filled(const struct cs_stream *stream);

/* Where a stream's life may be cut in two between parts of the trace, at `ns` or near: no work on its lane crosses that, now or later. `awaited`: some may
 * still come that ran before `ns`. */
cs_u64 cs_gpu_trace_cut(struct cs_stream *stream, cs_u64 ns, bool *awaited);
/* Before a stream's life ends in a file: its counter's last value. */
void cs_gpu_trace_stream_ends(struct cs_stream *stream);
void cs_gpu_trace_stream_gone(struct cs_stream *stream);

char *cs_gpu_put_totals(char *at); /* ,"gpu":{...} for the trailer; at most 4 KiB */

/* Numbers of arrows: from the file's first, those from a call to its work; the others have their own stretches. */
#define CS_FLOW_CAUSE   ((cs_u64)1 << 40) /* cs_dep */
#define CS_FLOW_FURTHER ((cs_u64)1 << 41) /* ac2g, to what a graph launch ran after its first piece of work */
#define CS_FLOW_RELEASE ((cs_u64)1 << 42) /* cs_dep, from work to the wait that it released */
#define CS_FLOW_AUDIT   ((cs_u64)1 << 43) /* cs_dep, from work to what waited for it through the default stream alone */

/* --- between the files of it --- */

/* The profiler has told of some work of a call. */
void cs_gpu_came(struct cs_op *op);

/* One slice of work. `op` NULL: its call is not known. */
void cs_gpu_work_write(const struct cs_gpu_work *work, struct cs_op *op);
char *cs_gpu_put_name(char *at, const struct cs_gpu_work *work);

/* A copy between devices, which stands on a stream of its own device, as the other device sees it. */
void cs_gpu_peer_write(const struct cs_gpu_work *work, cs_u32 stream, cs_u64 correlation, cs_u64 start_ns, cs_u64 end_ns);

/* The calls on a stream whose work is awaited. */
void cs_gpu_queue_add(struct cs_gpu_lane *lane, struct cs_op *op);
void cs_gpu_queue_arrived(struct cs_gpu_lane *lane, struct cs_op *op, cs_u64 end_ticks, cs_u64 end_ns); /* the first work of a call */
void cs_gpu_queue_remove(struct cs_gpu_lane *lane, cs_u64 from, cs_u64 until);                          /* calls of that time (ticks) make none */

/* Of a new process's trace. */
void cs_gpu_captures_begin(void);
void cs_gpu_graphs_begin(void);
void cs_gpu_causes_begin(void);
void cs_gpu_counts_begin(void);

/* Captures: a stream waits for an event (values as in CAUSED), and so may join one; whether it captures then; and the calls of those that have ended. */
void cs_gpu_capture_joined(struct cs_stream *stream, cs_u64 ticks, const cs_u64 *cause);
bool cs_gpu_captures(const struct cs_stream *stream, cs_u64 ticks);
void cs_gpu_captures_settle(void);
void cs_gpu_captures_resume(cs_u64 closed); /* calls are recorded again, which they were not since then: what ended meanwhile ended there */

/* The streams of a capture that ended then, and since when each was part of it; how many they are. */
enum { CS_CAPTURE_MEMBERS = 256 };
cs_u32 cs_gpu_capture_members(cs_ref origin, cs_u64 ended, cs_ref *streams, cs_u64 *from);

/* Graphs: the stream that a node was captured from, NULL where that can't be known; and lists of captures that have ended. */
struct cs_stream *cs_gpu_graph_stream(const struct cs_gpu_work *work);
void cs_gpu_graphs_settle(void);

/* Counters: of the calls on a stream whose work has not ended, and of streams at work at once. */
void cs_gpu_count_step(struct cs_gpu_lane *lane, cs_u64 ns, int step);
void cs_gpu_count_ends(struct cs_gpu_lane *lane); /* no call comes any more: what has not been written is */
void cs_gpu_count_busy(cs_u32 device, cs_u64 start_ns, cs_u64 end_ns);
void cs_gpu_count_write(bool all);

/* Arrows from the work that ended last to the waits that it released. */
void cs_gpu_causes_write(bool all);

/* Such an arrow: from the end of an op's work to a slice "wake-up" in the wait's own, which ends with it. The work has ended before the wait, and in it. */
void cs_gpu_wake_write(cs_u64 id, const struct cs_op *op, cs_u32 pid, cs_u32 tid, cs_u64 wait_end_ns);

void cs_gpu_work_lost_write(void); /* what had no lane, all of it at once */
void cs_gpu_overhead_write(const struct cs_gpu_work *work);
void cs_gpu_pool_write(const struct cs_gpu_pool *pool);
void cs_gpu_lost_write(cs_u64 count, const char *cause);
cs_u32 cs_gpu_counter_tid(cs_u32 device); /* the lane of a GPU's own counters, announced */
void cs_gpu_missing_write(bool all);
cs_u64 cs_gpu_enqueued_last(void); /* when the last call began that put work on a GPU, ticks */

/* Of an arrow: "s" or "f" as the file has it. */
char *cs_gpu_arrow_end(char *at, const char *phase, const char *kind, cs_u64 id, cs_u32 pid, cs_u32 tid, cs_u64 ns);

#endif
