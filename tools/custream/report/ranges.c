#include "tools/custream/report/ranges.h"

#include <stdlib.h>

#include "tools/custream/command.h"

static uint32_t thread_of(const struct run *run, size_t range)
{
    const uint32_t thread = run->ranges[range].thread;
    return thread == NONE ? (uint32_t)run->thread_count : thread;
}

struct thread_ranges thread_ranges_make(const struct run *run)
{
    struct thread_ranges of = {array_zeros(run->thread_count + 3, sizeof *of.first), array_zeros(run->range_count, sizeof *of.ranges)};
    uint32_t *next = of.first + 1; /* while it is filled, first[t + 1] is where thread t's next range goes */
    for (size_t r = 0; r < run->range_count; r++) next[thread_of(run, r) + 1]++;
    for (size_t t = 0; t <= run->thread_count; t++) next[t + 1] += next[t];
    for (size_t r = 0; r < run->range_count; r++) of.ranges[next[thread_of(run, r)]++] = (uint32_t)r;
    return of;
}

void thread_ranges_free(struct thread_ranges *of)
{
    free(of->first);
    free(of->ranges);
    *of = (struct thread_ranges){0};
}
