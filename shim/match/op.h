/*
 * Calls that may have put work on a GPU, kept until its times come: which call a GPU record belongs to, and what was before it on its stream.
 *
 * The writer's alone. A ring of the last 262,144 such calls. If the oldest one's work is still awaited, the ring grows, up to 1,048,576. Then that call is forgotten,
 * and its work shown without its call. When nothing has been awaited for a second, the ring has its first size again.
 */
#ifndef CS_MATCH_OP_H
#define CS_MATCH_OP_H

#include "shim/gpu/work.h"
#include "shim/match/record.h"
#include "shim/object/thread.h"

struct cs_op {
    cs_u64 id;         /* from 1, by the file's order: `correlation` in the timeline, and the id of the arrow */
    cs_u64 begin, end; /* ticks */
    cs_u64 before_of_thread, next_of_thread; /* up to here stands what tells which op a profiler means */
    cs_u64 begin_ns;      /* where its slice begins */
    cs_u32 tid, key;      /* of its thread: the kernel's number, and what the profiler calls it */
    cs_u64 joined;        /* the last op that shares its range between events; 0 none */
    cs_u64 before, after; /* its neighbours on its lane; 0 none */
    cs_u64 event_wait;    /* of the last wait for an event on the lane before it, its number; 0 none */
    cs_u32 lane;          /* index + 1 of the stream's lane; 0: none */
    cs_u32 missed;        /* its work should have come, and has not: the file that counts it; 0 none */
    union {
        struct {                /* once some have: the end of the last, and where it stands */
            cs_u64 work_end_ns;
            cs_u32 work_pid, work_tid;
        };
        struct cs_op_launch {   /* until then, of a launch; block 0: not known */
            cs_u32 grid[3], block; /* block: x | y << 11 | z << 22 */
        } launch;
    };
    cs_u32 works;         /* how many GPU records have come */
    cs_u32 file, work_file; /* the part of the trace with its slice, and with that work */
    cs_u16 call;
    bool muted : 1;         /* neither it nor its work is shown */
    bool graph : 1;         /* launches a graph: its work may stand on streams of the driver's own */
    bool counted : 1, left : 1; /* it has joined the lane's depth, is through: its work has come, or will not */
    bool came : 1;          /* the profiler has told of its work, with times or without */
    bool untimed : 1;       /* `missed` is not for what came behind it: nothing could come any more */
    bool unsure : 1;        /* it may have gone into a capture, or moves nothing: no work need come */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct cs_op) == 128, "two cache lines: there are very many");

/* A new op for a record; the caller fills what it knows of the lane. */
struct cs_op *cs_op_new(const struct cs_thread *thread, const struct cs_record *record, cs_u64 begin_ns);

/* Each round: whether work of any call is awaited, and the time. Gives memory back. */
void cs_ops_rest(bool awaited, cs_u64 now_ns);

/* What the profiler saw of a call: from here on its correlation number leads to the op. LATER: its thread has recorded nothing since, so the op may
 * be on its way; NONE: it has, and the call is none of ours. */
enum cs_op_found { CS_OP_FOUND, CS_OP_LATER, CS_OP_NONE };
enum cs_op_found cs_op_called(const struct cs_gpu_call *call);

/* The op of a piece of work. Where threads have the same key and called at the same time, the work's stream tells them apart, and from here on its number
 * leads to the right one. */
struct cs_op *cs_op_of_work(const struct cs_gpu_work *work);

/* A call of that number was made while calls were not recorded: it has no op, and its work is not shown. */
void cs_op_outside(cs_u32 correlation);

/* A call that carries a number of the backend's own (struct cs_mark). */
void cs_op_marked(struct cs_op *op, cs_u64 mark);

/* The op on a lane, at or before `last`, that began no later than `ticks`; NULL where there is none. *known: false where there may be one, too far back or
 * forgotten. */
struct cs_op *cs_op_before(cs_u64 last, cs_u64 ticks, bool *known);

#endif
