/* How many streams of each device were at work at once, and how long each of them was so alone. A stream with two pieces of work at once counts once. */
#ifndef CS_MODEL_CONCURRENCY_H
#define CS_MODEL_CONCURRENCY_H

#include "tools/custream/model/run.h"

enum { AT_WORK = 4 };

struct concurrency {
    struct device_load {
        int64_t at_work[AT_WORK]; /* ns with 0, 1, 2, and 3 or more streams at work, from its first to its last work */
        double stream_time;       /* the sum of its streams' busy times, in ns */
    } *devices;                   /* by index */
    struct stream_load {
        int64_t busy, alone; /* ns; alone: no other stream of its device was at work */
    } *streams;              /* by index */
};

/* Ends the process where there is no memory. */
void concurrency_make(struct concurrency *concurrency, const struct run *run);
void concurrency_free(struct concurrency *concurrency);

#endif
