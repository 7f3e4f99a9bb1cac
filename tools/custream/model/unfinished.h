/*
 * What had not ended when a trace did: of each stream the first unfinished operation, what that
 * waits for, and whether streams wait for each other in a circle.
 *
 * A stream is a queue, so what ended behind an operation says that it has ended too, on its own
 * stream and on those that it waited for. Ends are known from GPU records, host functions, and
 * waits and questions of the host that succeeded. So something is known without GPU times as well.
 */
#ifndef CS_MODEL_UNFINISHED_H
#define CS_MODEL_UNFINISHED_H

#include "tools/custream/model/model.h"

/* What keeps the first unfinished operation of a stream. unfinished_info has a row for each. */
enum held_by {
    HELD_BY_NOTHING, /* it runs, or is about to */
    HELD_BY_EVENT,
    HELD_BY_LEGACY,    /* the legacy default stream; or, on that, blocking streams */
    HELD_BY_VALUE,     /* a value in memory */
    HELD_BY_FUNCTION,  /* it is a host function, which has not returned */
    HELD_BY_CONTEXT,   /* by nothing, or by the legacy default stream: it is not known of which
                          contexts the streams are */
    HELD_BY_NOT_KNOWN, /* GPU times of it are not taken, so that it may have ended, too */
    HELD_BY_COUNT
};

struct unfinished_stream {
    uint32_t stream, call; /* call: the first that has not ended */
    uint32_t behind;       /* operations behind it */
    uint32_t last;         /* the last call that has ended; NONE */
    enum held_by by;
    uint32_t on, via; /* the stream that it waits for; there, the call: the event's record, the
                         value's writer, the first of the legacy order; NONE */
    uint32_t on_more; /* so many streams besides that one */
    uint32_t circle;  /* the circle that it is part of, from 1; 0: none */
};

struct unfinished {
    struct unfinished_stream *streams; /* circles first, then by the time of the call */
    size_t count, idle;                /* idle: streams that were used, on which all has ended */
    uint32_t circles;
    uint32_t *row_of; /* by stream: index of streams, NONE */
};

void unfinished_make(struct unfinished *unfinished, const struct run *run);
void unfinished_free(struct unfinished *unfinished);

/* Whether what had not ended is of interest: the process did not end by itself, and its file
 * reaches up to there. */
bool unfinished_is_asked(const struct run *run);

#endif
