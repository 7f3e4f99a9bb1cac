/* The work of each stream in order of time, and how long the stream had been busy at any time. */
#ifndef CS_MODEL_TIMELINES_H
#define CS_MODEL_TIMELINES_H

#include "tools/custream/model/run.h"

struct timeline {
    uint32_t *works; /* run->works of the stream, in order of begin */
    int64_t *end;    /* by the same place: when this work and all before it had ended */
    int64_t *busy;   /* likewise: how long at least one of them ran */
    uint32_t count;
    uint32_t cursor; /* where the last question was answered: the next one is near */
};

struct timelines {
    struct timeline *by_stream;
    uint32_t *busiest; /* streams that have work, device by device, the busiest first: device d has [first[d] .. first[d + 1]) */
    uint32_t *first;
    uint32_t *works; /* memory of all timelines */
    int64_t *times;
};

/* Ends the process where there is no memory. */
void timelines_make(struct timelines *timelines, const struct run *run);
void timelines_free(struct timelines *timelines);

/* The place on the timeline of the last work that had begun at `at`; NONE: none had. */
uint32_t timeline_last(struct timeline *timeline, const struct run *run, int64_t at);

/* How long the stream was at work before `at`, ns. */
int64_t timeline_busy(struct timeline *timeline, const struct run *run, int64_t at);

/* The work that ran on the stream at `at`; NONE. */
uint32_t timeline_running(struct timeline *timeline, const struct run *run, int64_t at);

/* How long both streams were at work at once, ns. */
int64_t timeline_together(const struct timeline *a, const struct timeline *b, const struct run *run);

#endif
