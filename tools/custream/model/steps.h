/* The steps of a run: how often its steady part does the same again. */
#ifndef CS_MODEL_STEPS_H
#define CS_MODEL_STEPS_H

#include "tools/custream/model/views.h"

struct repeats {
    uint32_t times; /* 0: nothing repeats */
    double period;  /* ns from one begin to the next */
    text name;      /* the work, or the waiting call, that was counted */
};

/* Returns what repeats `times` times, and began at `first` for the first time and at `last` for the
 * last. Zeros: it does not fill the steady part. */
struct repeats repeats_make(
    const struct steady *steady, uint32_t times, int64_t first, int64_t last, text name);

/* Returns what repeats among GPU work, waits of the host and ranges, each by its name and stream,
 * on its thread and on all threads together. Most of these come once in a step. So the number of
 * steps is the one that most of them have in common; of two such numbers, the smaller, as an outer
 * loop has it. */
struct repeats repeats_of_work(const struct run *run, const struct steady *steady);

#endif
