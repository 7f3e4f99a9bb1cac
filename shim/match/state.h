/*
 * All that is known of the GPU side of a trace: one object, which match.c owns and begins. Each file of shim/match says what its part means.
 *
 * Between the files of shim/match; others see match.h.
 */
#ifndef CS_MATCH_STATE_H
#define CS_MATCH_STATE_H

#include "shim/match/match.h"

/* --- held.c: what came and has not been given away --- */

enum { CS_HELD_WORKS = 8 * CS_GPU_AT_ONCE, CS_HELD_CALLS = 8 * CS_GPU_AT_ONCE };

struct cs_held_work {
    struct cs_gpu_work work;
    struct cs_since since;
};
_Static_assert(sizeof(struct cs_held_work) == 128, "two cache lines: there are very many");
struct cs_held_place {
    cs_u64 start;       /* ticks; 0: it has no times */
    cs_u32 at : 24;     /* among the works */
    cs_u32 stream : 8;  /* a hash of it: what waits holds up what came after it there */
    cs_u32 correlation;
};
_Static_assert(CS_HELD_WORKS <= 1 << 24 && sizeof(struct cs_held_place) == 16, "there are very many");
struct cs_held_call {
    struct cs_gpu_call call;
    struct cs_since since;
};
struct cs_held {
    cs_u32 work_count, call_count;
    bool in_first;          /* the order is where the places stood as the works came */
    bool left_some;         /* of this round */
    struct cs_held_look {   /* the last look at what waits: while none of this changes, it waits on */
        cs_u64 flushes, told;
        cs_u32 waiting;
        bool by_edge; /* of a window: that is a matter of time too */
    } look;
    bool behind;            /* the backend has more than there was room for */
    struct cs_since filled; /* since when; 0 flushes and ns: there is room */
    cs_u64 now_ns;          /* now, or some time before; 0: it has not been asked */
    cs_u64 strange;         /* pieces of work whose times are in no clock of ours */
    int without_call;       /* in a row */
    cs_u64 from[256];       /* ticks: from where on work is held up that goes to the streams of that hash */
};

/* --- op.c: calls --- */

/* Both tables begin with so many, and grow together, up to four times as many, before a call is forgotten whose work is awaited. */
enum { CS_OPS = 1 << 18, CS_OPS_MOST = 1 << 20, CS_CORRELATIONS_OF_OP = 2, CS_OP_THREADS_LOG2 = 16, CS_OP_THREADS = 1 << CS_OP_THREADS_LOG2 };

/* The profiler counts up, so the table is by the number's low bits, and the newest stays. */
struct cs_correlated {
    cs_u32 correlation, op; /* the op's id, low half, which is never 0. 0: it has none, and none will come */
};

/* The ops of each thread, by time, since a thread does one thing after another. Profilers name a thread by the low half of its pthread_self(), which later
 * threads may have too; the kernel's number tells those apart. Threads are numbered as their first ops come. The last CS_OP_THREADS are kept, which are as many as may be
 * alive at once; a thread that has outlived so many gets a new number with its next op. */
struct cs_op_thread {
    cs_u32 key, tid;
    cs_u32 older_of_key, older_of_tid; /* the number of the one before it in its lists; 0 none */
    cs_u64 begin, end;  /* ticks: of its first op, of its newest */
    cs_u64 first, last; /* where the profiler's calls have got to; the newest */
    cs_u64 beyond;      /* where those have got to that are none of ours, which may be far ahead: of a time when nothing was recorded */
};
/* Ids are the trace's correlation numbers. HolisticTraceAnalysis 0.5.0 puts row numbers into a column of the smallest type that holds all correlations,
 * which pandas from 3 on refuses where one does not fit. Beyond 15 bits all do. */
enum { CS_OP_BEFORE_FIRST = 1 << 15 };

struct cs_ops {
    cs_u64 newest, forgotten; /* up to `forgotten` none is kept, whatever the size */
    cs_u32 size;              /* of the table of ops */
    bool grown, cannot_grow;  /* into memory of its own; the system has no more */
    cs_u64 rests_ns;          /* op.c: since when a table that has grown is not needed; 0: it is */
    cs_u32 newest_thread;  /* its number, never 0 once there is one */
    cs_u64 enqueued_last;  /* when the last call ended that put work on a GPU, ticks */
    cs_u64 ended_last;     /* of all ops, ticks */
    cs_u64 told;           /* how often the profiler's word of a call was taken */
};

/* --- lane.c: streams, by their references and by the profiler's numbers --- */

enum { CS_LANE_BUCKETS = 1 << 14 };

struct cs_lanes {
    cs_u32 high, free, serial; /* free: index + 1 of the first in the list of freed ones */
};

/* --- capture.c --- */

enum { CS_MEMBERS = 1 << 12 };

struct cs_capture_member {
    cs_ref stream, origin;
    cs_u64 from, until; /* ticks; UINT64_MAX while it goes on */
    cs_u64 before;      /* the number, from 1, of the one before it of the same stream; 0 none */
};
struct cs_captures {
    cs_u64 ever; /* members */
    cs_u32 open;
    cs_u64 until; /* ticks: by then all have ended that have */
    cs_u64 forgotten; /* ticks: members that have made room for others were part of a capture from then on, or earlier */
    cs_u64 muted; /* ticks: until then events were recorded, or waited for, of which nothing is known */
};

/* --- graph.c --- */

enum { CS_NODE_CALLS = 1 << 16, CS_NODES = 1 << 18, CS_GRAPHS = 1 << 12 };

/* Calls that make a node if their stream captures, in the order in which they ended. */
struct cs_node_call {
    cs_u64 begin, end; /* ticks */
    cs_ref stream;
    cs_name kernel;
    cs_u32 kind; /* enum cs_kind */
    cs_u64 before; /* the number, from 1, of the one before it on the same stream; 0 none */
};
struct cs_node {
    cs_ref stream;
    cs_u32 kernel : 24, kind : 8;
};
struct cs_node_list {
    cs_u64 serial; /* from 1 */
    cs_u32 graph, length;
    cs_u64 first; /* of the nodes */
    bool stands;
    bool forgotten; /* it might have, but calls of it had made room for others */
};
struct cs_graph_exec {
    cs_u32 id, forgotten; /* the newest of those with a list that have made room for it */
    cs_u64 list;          /* serial of one that stands, or might have; 0 none */
}; /* by the low bits of the number: it counts up */
struct cs_graphs {
    cs_u64 calls, nodes, lists; /* ever */
    cs_u64 epoch;               /* of the profiler's numbers */
};

/* --- cause.c --- */

enum { CS_WAITS = 1 << 15, CS_CANDIDATES = 1 << 18 };

struct cs_waiting {
    struct cs_match_wait wait;
    cs_u32 lane, serial, device; /* of the lane; 0: all of the device are waited for */
    cs_u64 ticks;                /* what was enqueued by then is waited for */
    bool due, chosen;            /* it was read in a round before; its candidates are known: of each stream, the last op by then */
    bool no_room;                /* some of them are not */
    cs_u32 first, ops;           /* in the table of all */
    struct cs_since since;
};

/* --- count.c: what is under way at once --- */

enum { CS_EDGES = 1 << 16 };

struct cs_edge { /* where some work begins or ends: what it adds then */
    cs_u64 ns;
    cs_i64 bytes;
    int works, kernels;
    unsigned char device, way; /* enum cs_load_way */
};
struct cs_busy {
    size_t edge_count;
    cs_u64 grain; /* of edges that wait for work to come before them: how far apart they are at least, ns; 0: as they came */
    struct cs_load load[CS_GPU_PIDS];
};

/* --- hold.c: what work waited for --- */

enum { CS_EVENT_WAITS = 1 << 16 };

struct cs_event_wait {
    cs_u64 ticks, op; /* when a stream was to wait for an event; the last op before the event's record */
    cs_u64 before;    /* the number, from 1, of the wait before it on the same stream; 0 none */
    cs_u32 stream;    /* of the record */
};

/* Of a GPU: the work of the legacy default stream that ended last, and of the streams that wait for it and it for them. */
struct cs_default_work {
    struct cs_last_work {
        cs_u64 begin, end_ns; /* of its call, ticks; of it */
        cs_u64 op;            /* the call's id */
        cs_u32 context, lane; /* the lane's number in the timeline */
    } legacy, blocking;
};

/* --- the one object --- */

CS_HIDDEN extern struct cs_match {
    struct cs_match_tables { /* made before the trace begins; stay */
        struct cs_held_work *works;
        struct cs_held_call *calls;
        struct cs_held_place *came, *chosen; /* the places of all works; and of those to give, in order. Each is room for sorting too */
        cs_u64 *left;                /* a bit for each that is not given in this round */
        struct cs_op *ops;
        struct cs_correlated *correlated;
        struct cs_op_thread *threads;
        cs_u32 *threads_of_key, *threads_of_tid; /* by a hash: the newest thread's number */
        struct cs_match_lane *lanes;
        cs_u32 *lane_buckets;    /* by device and the profiler's number: index + 1 */
        cs_u32 *lane_of_stream; /* by the index of its reference: index + 1 */
        struct cs_capture_member *members;
        struct cs_node_call *node_calls;
        cs_u32 *node_order; /* places among them */
        struct cs_node *nodes;
        struct cs_node_list *lists;
        struct cs_graph_exec *execs;
        struct cs_waiting *waits;
        cs_u64 *candidates;
        struct cs_event_wait *event_waits;
        struct cs_edge *edges;
    } table;

    const struct cs_match_sink *sink; /* from here on all is forgotten when a process begins */
    cs_u32 file;
    struct cs_since now; /* when the round began */
    struct cs_held held;
    struct cs_ops ops;
    struct cs_lanes lanes;
    struct cs_captures captures;
    struct cs_graphs graphs;
    cs_u32 wait_count, candidate_count;
    cs_u64 event_wait_count; /* ever */
    struct cs_busy busy;
    struct cs_default_work default_work[CS_GPU_PIDS];
} cs_match;

/* Where the op of an id stands: the table fills up from its beginning. Then: the op itself; each of the last `size` is kept. */
CS_HOT struct cs_op *cs_op_place(cs_u64 id) { return &cs_match.table.ops[(id - CS_OP_BEFORE_FIRST - 1) & (cs_match.ops.size - 1)]; }
CS_HOT bool cs_op_is_kept(cs_u64 id) { return id > cs_match.ops.forgotten && cs_match.ops.newest - id < cs_match.ops.size; }
CS_HOT struct cs_op *cs_op_get(cs_u64 id) { return cs_op_is_kept(id) ? cs_op_place(id) : NULL; }

/* The id of a profiler's number's op; 0: it is not known. Then: that op; and whether it is known that there is none. */
CS_HOT struct cs_correlated *cs_correlated(cs_u32 correlation) { return &cs_match.table.correlated[correlation & (CS_CORRELATIONS_OF_OP * cs_match.ops.size - 1)]; }
CS_HOT cs_u64 cs_op_id_of(cs_u32 correlation)
{
    const struct cs_correlated *c = cs_correlated(correlation);
    if (!correlation || c->correlation != correlation || !c->op) return 0;
    return cs_match.ops.newest - (cs_u32)((cs_u32)cs_match.ops.newest - c->op);
}
CS_HOT struct cs_op *cs_op_of(cs_u32 correlation) { return cs_op_get(cs_op_id_of(correlation)); }
CS_HOT bool cs_op_is_outside(cs_u32 correlation)
{
    const struct cs_correlated *c = cs_correlated(correlation);
    return correlation && c->correlation == correlation && !c->op;
}

/* The lane of a number, as cs_match_lane_get tells others. */
CS_HOT struct cs_match_lane *cs_lane_get(cs_u32 lane)
{
    return lane && lane <= cs_match.lanes.high && cs_match.table.lanes[lane - 1].used ? &cs_match.table.lanes[lane - 1] : NULL;
}

/* How long anything is waited for (come.h). One time beside the flushes, for what does not hang on the profiler. */
CS_HOT bool cs_is_over(const struct cs_since *since, enum cs_patience what)
{
    static const struct {
        cs_u64 flushes, ns;
    } patience[CS_PATIENCES] = {
        [CS_FOR_RECORD] = {.flushes = 1},
        [CS_FOR_CALL] = {.flushes = 2},
        [CS_FOR_EDGE] = {.ns = 500000000},
        [CS_FOR_WORK] = {.flushes = 25},
        [CS_FOR_ROOM] = {.flushes = 5},
    };
    if (patience[what].ns) return cs_match.now.ns - since->ns >= patience[what].ns;
    return cs_match.now.flushes - since->flushes > patience[what].flushes;
}

/* Else it was unfinished when it was taken, or nonsense. */
CS_HOT bool cs_work_has_times(const struct cs_gpu_work *work) { return work->start && work->end >= work->start; }

/* The lane of a stream, where it has been made (lane.h). */
CS_HOT struct cs_match_lane *cs_lane_made(const struct cs_stream *stream)
{
    const cs_ref ref = cs_load(&stream->object.ref);
    struct cs_match_lane *lane = cs_lane_get(cs_match.table.lane_of_stream[ref % CS_STREAMS]);
    return lane && lane->stream == ref ? lane : NULL;
}

/* --- what the files of it ask each other --- */

void cs_held_collect(void);
void cs_held_put(const struct cs_gpu_work *work); /* behind the others; there is room */
void cs_held_calls(bool last);            /* finds their ops; `last`: no op comes any more */
size_t cs_held_choose(bool all);          /* puts the works to give away now in order; how many they are */
struct cs_held_work *cs_held_nth(size_t i);
void cs_held_forget_given(size_t given);
void cs_held_heal(bool has_call);         /* a piece of work was given, and the profiler has told of its call, or not */
bool cs_held_is_outside(const struct cs_gpu_work *work, const struct cs_op *op); /* enqueued while nothing was recorded */

void cs_match_give(bool all); /* a round before the end; `all`: also what its call has not been found for */

/* The calls on a stream whose work is awaited. */
void cs_queue_add(struct cs_match_lane *lane, struct cs_op *op);
void cs_queue_arrived(struct cs_match_lane *lane, struct cs_op *op, cs_u64 end_ticks, cs_u64 end_ns); /* the first work of a call */
void cs_queue_remove(struct cs_match_lane *lane, cs_u64 from, cs_u64 until);                          /* calls of that time (ticks) make none */
void cs_lane_ends(const struct cs_match_lane *lane); /* nothing comes any more: what has not is counted */
/* The same of its queue. Ticks: since when all is recorded, since when no times have come; UINT64_MAX: that is not so. */
void cs_queue_ends(const struct cs_match_lane *lane, cs_u64 ended);
void cs_queue_unsure(const struct cs_match_lane *lane, cs_u64 from, cs_u64 until);                    /* calls of that time may have gone into a capture */
void cs_queue_came(struct cs_op *op);                                                                /* the profiler has told of some work of it */

/* Whether a stream captures then; the streams of a capture that ended then, and since when each was part of it: how many they are. */
bool cs_captures(const struct cs_stream *stream, cs_u64 ticks);
cs_u32 cs_capture_members(cs_ref origin, cs_u64 ended, cs_ref *streams, cs_u64 *from);

struct cs_stream *cs_graph_stream(const struct cs_gpu_work *work); /* that a node was captured from; NULL where that can't be known */

void cs_hold_worked(struct cs_match_lane *lane, const struct cs_op *op, cs_u64 end_ns); /* after a piece of work was shown */

void cs_waits_settle(bool all);

void cs_count_depth(struct cs_match_lane *lane, cs_u64 ns, int step);
void cs_count_load(const struct cs_gpu_work *work, cs_u32 device, cs_u64 start_ns, cs_u64 end_ns);
void cs_count_settle(bool all);

#endif
