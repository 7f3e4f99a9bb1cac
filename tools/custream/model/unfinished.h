/* The operations that had not ended when the trace ended: the first such operation of each stream,
 * what it waits for, and whether streams wait for each other in a circle.
 *
 * A stream is a queue: if an operation has ended, all before it have ended too, on its own stream
 * and on the streams that it waited for. Ends are known from GPU records, host functions, and waits
 * and queries of the host that succeeded. So some ends are known without GPU times, too. */
#ifndef CS_MODEL_UNFINISHED_H
#define CS_MODEL_UNFINISHED_H

#include "tools/custream/model/model.h"

/* The obstacle of a stream's first unfinished operation; section_running.c has words for each. */
enum held_by {
    HELD_BY_NOTHING, /* the operation runs, or is about to */
    HELD_BY_EVENT,
    HELD_BY_LEGACY,    /* the legacy default stream; for that stream itself, blocking streams */
    HELD_BY_VALUE,     /* a value in memory */
    HELD_BY_FUNCTION,  /* the operation is a host function that has not returned */
    HELD_BY_CONTEXT,   /* contexts are not known: either nothing, or the legacy default stream */
    HELD_BY_NOT_KNOWN, /* the operation has no GPU times, so it may have ended */
    HELD_BY_COUNT
};

struct unfinished_stream {
    uint32_t stream, call; /* call: the stream's first call that has not ended */
    uint32_t behind;       /* how many operations the stream has behind `call` */
    uint32_t last;         /* the stream's last call that has ended; NONE */
    enum held_by by;
    /* on: the stream that `call` waits for; NONE. via: the call on that stream for which `call`
     * waits; NONE: not known. For EVENT, `via` records the event; for VALUE, it writes the value;
     * for LEGACY, it is that stream's first call that has not ended. */
    uint32_t on, via;
    uint32_t on_more; /* how many streams besides `on` the call waits for */
    uint32_t circle;  /* the number of the stream's circle, from 1; 0: none */
};

struct unfinished {
    struct unfinished_stream *streams; /* circles first, then by the time of the call */
    size_t count, idle;                /* idle: how many used streams have ended all operations */
    uint32_t circles;
    uint32_t *row_of; /* by stream: its index in `streams`; NONE */
};

void unfinished_make(struct unfinished *unfinished, const struct run *run);
void unfinished_free(struct unfinished *unfinished);

/* A thread that the trailer lists as being in a call or a host function. */
struct inside {
    const char *name, *call, *function;
    const struct cs_call_info *info; /* the call's row of the call table */
    double tid, since_us, device, event;
    uint32_t stream;
    bool all; /* the thread waits for all streams of its context */
};

/* The trailer's totals have two lists: `inside` (the threads in a call) and `awaited` (the streams
 * whose work had not ended). Returns the number `member` of a list's n-th entry; NAN: none. */
double listed_number(const struct run *run, const char *list, unsigned n, const char *member);
/* Returns the stream that the n-th entry of a list names, by its GPU's ordinal and its own number;
 * NONE: the run has no such stream. */
uint32_t listed_stream(const struct run *run, const char *list, unsigned n);
/* Returns the threads of `inside`, which the caller frees. */
struct inside *inside_read(const struct run *run, size_t *count);

/* Whether to ask for unfinished work: the process did not end by itself, and the trace reaches up
 * to its end. */
bool unfinished_is_asked(const struct run *run);

#endif
