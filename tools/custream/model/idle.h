/* Where each device was idle, piece by piece: every nanosecond between its first and its last work in which none ran has one cause. */
#ifndef CS_MODEL_IDLE_H
#define CS_MODEL_IDLE_H

#include "tools/custream/model/order.h"

/* What the thread that enqueued the next work did meanwhile. */
enum host_doing { DOING_NOTHING_KNOWN, DOING_OWN_CODE, DOING_BLOCKED, DOING_CALL };

struct idle {
    int64_t begin, end;
    uint32_t next;            /* the work that came next */
    uint32_t device : 8;      /* index in run->devices */
    enum cause cause : 8;
    enum host_doing doing : 8; /* by CAUSE_HOST: the thread of the next work's call */
    uint32_t call;            /* BLOCKED: in which call; CALL: likewise, one that does not wait; NONE */
    uint32_t range;           /* the innermost range of that thread then; NONE */
};
static inline uint32_t idle_thread(const struct run *run, const struct idle *idle) { return run->calls[run->works[idle->next].call].thread; } /* by CAUSE_HOST */

struct idles {
    struct idle *rows; /* in order of device, then time */
    size_t count, capacity;
    struct span { int64_t begin, end, busy; } *devices; /* by device: from the first to the last work (begin == end: none), and how long any ran */
};

/* Two steps, since the rows take memory that what comes between them may have first: how long each device was busy, then the rows. */
void idles_init(struct idles *idles, const struct run *run);
void idles_make(struct idles *idles, const struct run *run, const struct hold *holds);
void idles_free(struct idles *idles);

#endif
