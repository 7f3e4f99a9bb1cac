/*
 * Which work belongs to which call, stream's lane, graph and capture. The writer's alone; it knows no format.
 *
 *     begin, part                  a trace, a file of it
 *     collect                      takes what the backend has brought in
 *     call, muted, runtime         what the rings hold: calls
 *     wait, capture_..., graph_...                   waits, captures, graphs
 *     round                        puts together what has come, and gives what it finds to the sink
 *
 * A profiler's record of a call ends before our wrapper's does, so that this order leaves next to nothing over for the next round. All that is known stands
 * in one object, struct cs_match (match/state.h).
 */
#ifndef CS_MATCH_MATCH_H
#define CS_MATCH_MATCH_H

#include "shim/base/loss.h"
#include "shim/match/come.h"
#include "shim/match/lane.h"
#include "shim/match/op.h"

/* Of a call that a profiler saw then: whether its record, where there is none, is not missing. MAY_BE: a thread may have been on its way to the driver when
 * the window opened or closed, past its look at whether to record. */
enum cs_outside { CS_INSIDE, CS_MAY_BE_OUTSIDE, CS_OUTSIDE };

/* A piece of work and where it belongs. The second half is the sink's, which says where it has put it. */
struct cs_match_found {
    const struct cs_gpu_work *work;
    struct cs_op *op;          /* that made it; NULL: not known */
    struct cs_match_lane *lane; /* NULL: there is no room for one, or it is no stream's */

    cs_u64 start_ns, end_ns;
    cs_u32 pid, tid;
};

/* A wait of the host, whose releaser is looked for. */
struct cs_match_wait {
    cs_u64 begin_ns, end_ns;
    cs_u32 tid, file; /* of its slice */
};

/* What is under way on a GPU at one moment. A whole graph counts as one kernel. */
enum cs_load_way { CS_LOAD_NO_WAY, CS_LOAD_HTOD, CS_LOAD_DTOH, CS_LOAD_DTOD, CS_LOAD_PTOP, CS_LOAD_WAYS };
struct cs_load {
    cs_u32 works, kernels;
    cs_i64 bytes[CS_LOAD_WAYS]; /* of copies, by direction */
};

/* How long a piece of work waited after its call, and what it waited for last. */
enum cs_hold_why { CS_HOLD_LAUNCH, CS_HOLD_STREAM, CS_HOLD_EVENT, CS_HOLD_DEFAULT, CS_HOLD_UNKNOWN, CS_HOLD_WHYS };
enum { CS_HOLD_AFTER = 16 };
struct cs_hold {
    cs_u64 ns;
    enum cs_hold_why why;
    cs_u32 stream; /* whose event, or which side of the default stream: its lane; 0: none */
    cs_u32 count, after[CS_HOLD_AFTER]; /* of the work of other lanes that had to end before: the ids of its calls, as far as there is room */
};

/* Who asks for matches: what it must know, and what it is told. */
struct cs_match_sink {
    enum cs_outside (*outside)(cs_u64 ticks);
    bool (*closed)(void); /* nothing is recorded now */
    cs_u64 (*open_since)(void); /* ticks: since when all is recorded; UINT64_MAX: nothing is */

    bool (*work)(struct cs_match_found *found); /* false: it is not shown */
    void (*pool)(const struct cs_gpu_pool *pool);
    void (*lost)(cs_u64 count, enum cs_loss why);
    void (*came_after_all)(bool untimed); /* the same of one that was counted in an earlier part, which stands as it is: as without times, or as missed */
    void (*without_times)(int by); /* so many more pieces of work, or less: told of without times, or not told of when nothing could come any more */
    void (*missed)(int by);      /* so many more launches, or less, whose kernels have not come, though something behind them on their streams has */
    void (*depth)(const struct cs_match_lane *lane, cs_u64 ns);     /* has changed; NULL: nobody wants to know */
    void (*load)(cs_u32 device, cs_u64 ns, const struct cs_load *load); /* what is under way from then on */
    void (*released)(const struct cs_match_wait *wait, const struct cs_op *op); /* by the end of its work */
};

/* A new process's trace: what a forked child has of its parent's is forgotten. Then, and for each further part of it, the number of the file. */
void cs_match_begin(const struct cs_match_sink *sink);
void cs_match_part(cs_u32 file);

void cs_match_collect(void);
bool cs_match_behind(void); /* that left something over, for which there was no room */

/* A call of a ring. The number that ties it to its work, 0 where it puts none on a GPU. The second: it is not shown, and neither is its work. The third: of
 * the runtime, whose number its work has. */
cs_u64 cs_match_call(const struct cs_thread *thread, const struct cs_record *record, struct cs_stream *stream, cs_u64 begin_ns);
/* The oldest launch on a lane whose kernel has not come; NULL: what is oldest there is none, or nothing is awaited. */
const struct cs_op *cs_match_awaited(const struct cs_match_lane *lane);
bool cs_match_captured(const struct cs_stream *stream, const struct cs_record *record); /* a call on it that goes into a graph */
struct cs_op *cs_match_op(cs_u64 number); /* of a call, while it is kept; else NULL */
bool cs_match_tells(cs_u64 number); /* of a call: a profiler was there to tell of its work, each piece by itself */
void cs_match_muted(const struct cs_thread *thread, const struct cs_record *record);
void cs_match_runtime(const struct cs_thread *thread, const struct cs_record *record);
cs_u64 cs_match_enqueued_last(void); /* when the last call ended that put work on a GPU, ticks */

/* A stream waits for an event, of that record (values as in CAUSED): what is called on it later waits for the work before the record. What the work that was
 * found waited for; before it is shown. */
void cs_match_stream_waits(struct cs_match_lane *lane, cs_u64 ticks, const cs_u64 *cause);
void cs_match_hold(struct cs_hold *hold, const struct cs_match_found *found);

/* The host waited for what had been enqueued by `ticks` on a lane, or on all of a device's where that is NULL. */
void cs_match_wait(struct cs_match_wait wait, const struct cs_match_lane *lane, cs_u32 device, cs_u64 ticks);

/* A capture began, has ended on this stream (ticks): what was called since on it, and on streams that joined, went into a graph and makes no work. One joins
 * when it waits for an event that was recorded in it (values as in CAUSED). Calls are recorded again, which they were not since then: captures that ended
 * meanwhile ended there. */
void cs_match_capture_began(struct cs_stream *stream, cs_u64 began);
void cs_match_capture_joined(struct cs_stream *stream, cs_u64 ticks, const cs_u64 *cause);
void cs_match_capture_ended(struct cs_stream *stream, cs_u64 began, cs_u64 ended);
void cs_match_captures_resume(cs_u64 closed);

/* A call that makes a node where its stream captures; a graph came out of a capture (ticks), of so many nodes; an executable was made of one, and was
 * changed to another. Numbers are the profiler's; 0: unknown. */
void cs_match_graph_call(const struct cs_record *record, const struct cs_stream *stream);
void cs_match_graph_captured(struct cs_stream *origin, cs_u64 began, cs_u64 ended, cs_u32 graph, cs_u32 length);
void cs_match_graph_instantiated(cs_u32 graph, cs_u32 exec, cs_u32 length);
void cs_match_graph_updated(cs_u32 exec);

/* Finds what can be found now. And for the last time: no record of a call comes any more. */
void cs_match_round(void);
void cs_match_end(void);

/* Whether all work of an ended stream has come, as far as that can be told; and the end of the last of it on the stream's lane. */
bool cs_match_settled(const struct cs_stream *stream);
cs_u64 cs_match_filled(const struct cs_stream *stream);

/* Where a stream's life may be cut in two between parts of the trace, at `ns` or near: no work on its lane crosses that, now or later. `awaited`: some may
 * still come that ran before `ns`. */
cs_u64 cs_match_cut(const struct cs_stream *stream, cs_u64 ns, bool *awaited);

#endif
