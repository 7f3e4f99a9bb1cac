/* The steps of a run: how often its steady part does the same again. */
#ifndef CS_MODEL_STEPS_H
#define CS_MODEL_STEPS_H

#include "tools/custream/model/views.h"

struct repeats {
    uint32_t times; /* 0: nothing repeats */
    double period;  /* ns from one begin to the next */
    text name;      /* the work, or the waiting call, that was counted */
};

/* Returns the repeats of something that began `times` times, first at `first` and last at `last`.
 * Zeros: these begins do not fill the steady part. */
struct repeats repeats_make(
    const struct steady *steady, uint32_t times, int64_t first, int64_t last, text name);

/* Returns the steps that GPU work, waits of the host and ranges show: the outermost of what
 * repeats, with layers or batches in it. Zeros also if it is not known which of two levels is
 * meant. */
struct repeats repeats_of_work(const struct run *run, const struct steady *steady);

#endif
