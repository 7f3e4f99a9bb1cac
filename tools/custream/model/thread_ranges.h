/* The ranges of each thread as the stack that they were, and which was the innermost at a moment. */
#ifndef CS_MODEL_THREAD_RANGES_H
#define CS_MODEL_THREAD_RANGES_H

#include "tools/custream/model/run.h"

struct thread_ranges {
    struct groups by_thread;
    uint32_t *parent; /* by place among the members: the place of the range around it; NONE */
};

void thread_ranges_make(struct thread_ranges *ranges, const struct run *run);
/* The innermost range of the thread at that moment, NONE if there is none. *until becomes less if another answer holds earlier than that. */
uint32_t thread_range_at(const struct thread_ranges *ranges, const struct run *run, uint32_t thread, int64_t at, int64_t *until);
void thread_ranges_free(struct thread_ranges *ranges);

#endif
