/*
 * The run as a graph that can be played again with one thing changed: what would the whole run
 * take? (Daydream, USENIX ATC 2020, and dPRO, MLSys 2022, price changes of training programs in
 * this way.)
 *
 * Nodes are calls, returns of calls that wait, GPU work, host functions, and joins, which take no
 * time. A tie says that a node cannot begin before another one ended, and which rule of CUDA or of
 * the program says so. Calls, work and own code take as long as in the trace. When they begin
 * follows from the ties and from the room on the GPU. */
#ifndef CS_MODEL_REPLAY_H
#define CS_MODEL_REPLAY_H

#include "tools/custream/model/model.h"

enum tie_kind {
    TIE_THREAD,        /* a thread's calls come one after the other, with its own code between */
    TIE_WAKE,          /* a thread that made no call went on when another thread's call ended */
    TIE_ENQUEUE,       /* work begins after its call began: only this tie is from a node's begin */
    TIE_LAUNCH,        /* work begins after its call returned */
    TIE_STREAM,        /* a stream's order */
    TIE_EVENT,         /* cuStreamWaitEvent */
    TIE_LEGACY,        /* the legacy default stream and the blocking streams */
    TIE_HOST_FUNCTION, /* work behind a host function on its stream */
    TIE_GRAPH,         /* an edge of a graph, as far as its nodes' times show it */
    TIE_RECORD,        /* an event is not reached before the call that records it */
    TIE_WAIT_DEVICE,   /* the host waits for a context's work */
    TIE_WAIT_STREAM,   /* the host waits for a stream or an event */
    TIE_WAIT_COPY,     /* a copy's call returns when the copy is done */
    TIE_WAIT_MEMORY,   /* a call that allocates or frees returns when the device is idle */
    TIES
};

/* How streams are split before the run is played: a remedy that gives work more streams. */
enum split {
    SPLIT_NONE,
    SPLIT_THREADS, /* each thread's work on a stream has a stream of its own */
    SPLIT_WORKS,   /* all kernels of a stream may run side by side */
    SPLIT_COPIES,  /* a stream's copies have a stream of their own for each direction */
};

/* A change of a run that is played again. All zeros: none. */
struct change {
    uint32_t without; /* a bit for each tie_kind: such ties hold nothing */
    bool own_code;    /* pauses take no time, if their threads did not wait in them */
    bool outside;     /* pauses take no time, if their threads waited for something outside CUDA */
    bool silence;     /* pauses are shorter by the time in which all threads waited */
    bool pinned;      /* copies of pageable memory are as fast as pinned ones, and do not block */
    bool free_calls;  /* calls that allocate or free memory take no time */
    bool one_launch;  /* launches and short own code before them take no time, as in one graph */
    bool one_copy;    /* small copies, waits and short own code before them take no time */
    bool queues;      /* work that was ready and had room begins at once */
    bool host_functions; /* host functions take no time */
    bool host;           /* calls and own code take no time; waits stay */
    enum { EVERYWHERE, OF_THREAD, OF_STREAM } where; /* which calls are changed */
    uint32_t place;                                  /* the thread or stream of these calls */
    /* NULL: none. calls: by the name's text, whether such calls take no time and wait for nothing.
     * gaps: by call, whether own code before the call takes no time. scale: by the name's text, a
     * factor for the time of kernels. */
    const bool *calls, *gaps;
    const float *scale;
    int64_t from, to;  /* only calls that begin in this time of the trace are changed; both 0:
                          all */
    uint32_t at_once;  /* so many kernels run at once on a device, at most; 0: as many as fit */
    bool unknown_fits; /* kernels of unknown shape run beside any others; else they fill the GPU */
};

struct replay;

/* Makes the graph of a run. NULL: GPU times are missing, or too much of the work has no call in the
 * trace. */
struct replay *replay_make(const struct model *of);
/* Makes the graph of the same run with split streams. */
struct replay *replay_split(const struct replay *whole, enum split split);
void replay_free(struct replay *replay);

/* The parts of the longest path of a run. `subject` is the index of a call, a piece of work or a
 * callback. For OWN_CODE, OUTSIDE and UNKNOWN it is the call behind them; for LAUNCH and FULL, the
 * work or callback that begins. */
enum path_part {
    PATH_WORK,
    PATH_CALL,
    PATH_RETURN,   /* a call that waited goes on */
    PATH_OWN_CODE, /* a thread's own code before a call */
    PATH_OUTSIDE,  /* a thread waited for something outside CUDA before a call */
    PATH_UNKNOWN,  /* calls are missing before a call */
    PATH_HOST_FUNCTION,
    PATH_LAUNCH, /* the way from a call, or from other work, to work */
    PATH_FULL,   /* the device had no room for work */
    PATH_PARTS
};
typedef void path_step(void *of, enum path_part part, uint32_t subject, int64_t ns);
/* Calls `step` for each stretch of the longest path, from the run's end to its begin. The run gets
 * shorter only if a stretch of this path does. */
void replay_path(struct replay *replay, path_step *step, void *of);

/* Returns how long the changed run takes, in ns, from its first call to the end of everything that
 * counts. A thread with little of the GPU's work does not count: it may only go on until the others
 * end. */
int64_t replay_length(struct replay *replay, const struct change *change);
/* Returns the length without a change. The run is played for this only once. */
int64_t replay_unchanged(struct replay *replay, bool unknown_fits);
/* Returns how long the played part of the run took when it was recorded. */
int64_t replay_recorded(const struct replay *replay);
/* Returns the ratio of two lengths: the run's steady part to the played part. Of a long run, just a
 * part is played; 1: all is played. */
double replay_scale(const struct replay *replay);
/* Whether the run has a kernel whose shape is not known. */
bool replay_has_unknown(const struct replay *replay);
/* Whether a piece of work began late, and no tie and no full device explains it. */
bool replay_is_late(const struct replay *replay, uint32_t work);
/* Returns the time, summed over all work, that no tie and no full device explains. */
int64_t replay_unexplained(const struct replay *replay);

#endif
