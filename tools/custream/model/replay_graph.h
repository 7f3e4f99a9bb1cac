/* The graph of a run while replay_make.c makes it: its nodes and ties, and the last node so far of
 * each stream, event, thread and context. */
#ifndef CS_MODEL_REPLAY_GRAPH_H
#define CS_MODEL_REPLAY_GRAPH_H

#include "tools/custream/model/replay_inside.h"

/* A stream of the run that is played: a stream of the recorded run, or a part of such a stream. */
struct lane {
    uint32_t tail; /* the last node on the lane; NONE */
    uint32_t gate; /* SPLIT_WORKS: the node for which the lane's next kernel waits, such as a copy;
                      NONE */
    uint32_t next; /* the next lane of the same stream; NONE */
    uint32_t key;  /* which part of the stream: lane_key() */
    uint32_t stream, thread; /* thread: the last one that put a node on the lane */
    bool joined;             /* device_tail includes the lane's tail */
};

struct making {
    struct replay *replay;
    const struct replay *whole; /* the graph without a split; NULL: this graph has no split */
    const struct run *run;
    enum split split;
    int64_t *joins; /* by a JOIN's subject: the join's end in the trace */
    size_t join_count, join_capacity;
    uint32_t *lane_of; /* by stream: its first lane; NONE */
    struct lane *lanes;
    size_t lane_count, lane_capacity;
    uint32_t *sides;         /* by side of the legacy default stream's order: the last node; NONE */
    bool *used;              /* by side: something is on the legacy default stream */
    uint32_t *device_tail;   /* by device: a node that ends when the work of all its `joined` lanes
                                has ended */
    uint32_t *thread_last;   /* by thread: its last node; NONE */
    int64_t *thread_ended;   /* by thread: the end of its last call in the trace */
    uint32_t *call_nodes;    /* by call that is played: its last node; NONE */
    struct numbers events;   /* by event: the node at which its last record is reached */
    struct numbers polled;   /* queries, by call, that the thread repeated soon */
    uint32_t *enqueues_last; /* by thread: its last call that puts work on a GPU; 0 */
    uint32_t calling;        /* the thread of the call that is taken now */
    bool *in_row;            /* by call: it is in a row of launches that is worth a graph */
    text not_ready;
    double pinned_bytes, pinned_ns;
};

uint32_t node_add(struct making *m, enum node_kind kind, uint32_t subject);
/* Returns when a node ended in the trace. */
int64_t node_ended(const struct making *m, uint32_t number);
/* Ties the newest node to an earlier one; NONE: to none. */
void tie_add(struct making *m, uint32_t from, enum tie_kind kind, int64_t delay);
/* Returns a node that ends when both a and b have ended. `kind`: of the tie to b. */
uint32_t join_of(struct making *m, uint32_t a, uint32_t b, enum tie_kind kind);

struct lane *lane_get(struct making *m, uint32_t stream, uint32_t key);
/* Returns the key of the call's lane on its stream. `work`: its work; NULL: it has none. */
uint32_t lane_key(const struct making *m, const struct call *call, const struct work *work);
/* Returns the tail of the stream's other lane for which work on this lane has to wait; NONE. */
uint32_t lane_needed(struct making *m, uint32_t stream, uint32_t key);
/* Returns the stream's side if the legacy default stream orders anything on it; NONE. */
uint32_t side_of(const struct making *m, uint32_t stream);
/* Whether the stream is a legacy default stream. */
bool is_legacy(const struct making *m, uint32_t stream);
/* Puts a node at the end of a lane, and tells the other side of the legacy default stream. */
void lane_enqueue(struct making *m, uint32_t stream, struct lane *lane, uint32_t node);
/* Returns a node that ends when everything on the stream so far has ended; NONE. Under
 * SPLIT_THREADS only what the calling thread put there counts, if it put anything there, or if the
 * stream is the legacy default stream. */
uint32_t stream_tail(struct making *m, uint32_t stream);
/* Returns the node that the legacy default stream's rule puts before work on this stream; NONE. */
uint32_t barrier_of(const struct making *m, uint32_t stream);
/* Brings device_tail up to date. */
void devices_join(struct making *m);

/* Returns the tie of work to its call: the last of the work's ties. */
struct tie *way_of(const struct replay *replay, uint32_t node);

/* Marks the queries of each loop that asks until work is done: all but the last query. */
void polls_find(struct making *m);

enum { ACTIVE = 256, SOON_NS = 20000 };
struct active {
    uint32_t works[ACTIVE]; /* works that may still run, or ended just before */
    size_t count;
};
/* Limits how much of its device a kernel fills to what was free when the kernel began. Shortens the
 * rest of work that began when other work made room: the replay finds this wait by itself. */
void room_judge(struct making *m, struct active *active, uint32_t index);

#endif
