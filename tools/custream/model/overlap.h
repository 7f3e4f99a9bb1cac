/*
 * Why streams did not overlap: for each piece of work that began later than it could have, which stream was at work meanwhile, and what kept the two
 * apart.
 *
 * All times are upper bounds: if the work had begun earlier, both would have shared the device, and might have taken longer.
 */
#ifndef CS_MODEL_OVERLAP_H
#define CS_MODEL_OVERLAP_H

#include "tools/custream/model/idle.h"

/* A piece of work that waited while another stream was at work. */
struct late {
    uint32_t work;
    uint32_t behind;  /* the stream that was at work */
    uint32_t during;  /* the last work of that stream that had begun when the wait ended */
    enum cause cause; /* LEGACY, EVENT, COPY_ENGINE, DEVICE_FULL, HARDWARE_QUEUE, HOST, UNKNOWN */
    int64_t lost;     /* how much of the work could have run at the same time, ns */
};

/* Two streams, one after the other for one cause. */
struct pair {
    uint32_t first, second; /* streams: the one at work, and the one that waited */
    enum cause cause;
    uint32_t times;
    uint32_t late; /* of lates: that which lost the most */
    int64_t lost;
};

struct overlap {
    struct late *lates; /* in order of their work */
    size_t late_count, late_capacity;
    struct pair *pairs; /* those that count: they seldom overlapped and lost much; the most expensive first */
    size_t pair_count, pair_capacity;
};

/* The time between a release and the begin of the work that is the device's own latency, and no loss. Launches take 2 to 10 us on an idle device. */
enum { RELEASE_NS = 20000 };

/* Ends the process where there is no memory. */
void overlap_make(struct overlap *overlap, const struct run *run, const struct hold *holds, const struct idles *idles);
void overlap_free(struct overlap *overlap);

#endif
