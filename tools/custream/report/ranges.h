/* The run's ranges by the thread that they are of. */
#ifndef CS_REPORT_RANGES_H
#define CS_REPORT_RANGES_H

#include "tools/custream/report/run.h"

/* Of thread t: ranges[first[t] .. first[t + 1]), indices in order of begin. Those of the process stand behind the last thread's. */
struct thread_ranges {
    uint32_t *first, *ranges;
};

/* Ends the process where there is no memory. */
struct thread_ranges thread_ranges_make(const struct run *run);
void thread_ranges_free(struct thread_ranges *of);

#endif
