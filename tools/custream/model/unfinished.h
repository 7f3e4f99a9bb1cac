/* The operations that had not ended when the trace ended: the first one of each stream, what it
 * waits for, and whether streams wait for each other in a circle.
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
    uint32_t on,
        via; /* on: the stream that `call` waits for; NONE. via: the call on that stream for which
                it waits, NONE if not known: for EVENT the one that records the event, for VALUE the
                one that writes the value, for LEGACY the stream's first that has not ended */
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

/* Whether to ask for unfinished work: the process did not end by itself, and the trace reaches up
 * to its end. */
bool unfinished_is_asked(const struct run *run);

#endif
