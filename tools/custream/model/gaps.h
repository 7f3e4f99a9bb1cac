/* The times in which a device was idle, whole: all pieces of idles->rows from the end of some work to the begin of the next. */
#ifndef CS_MODEL_GAPS_H
#define CS_MODEL_GAPS_H

#include "tools/custream/model/idle.h"

struct gap {
    int64_t begin, end;
    int64_t host, launch;  /* how much of it has CAUSE_HOST, and CAUSE_LAUNCH */
    uint32_t device, next; /* next: the work at its end */
    uint32_t thread;       /* that enqueued it; NONE */
    size_t first, last;    /* its pieces: rows [first, last) */
};

/* The gap that begins at row *at, which moves behind it; false: there is no more. */
bool gap_next(const struct idles *idles, const struct run *run, size_t *at, struct gap *gap);

#endif
