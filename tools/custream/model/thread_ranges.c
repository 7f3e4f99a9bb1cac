#include "tools/custream/model/thread_ranges.h"

#include <stdlib.h>

#include "tools/custream/command.h"

static const struct range *range_in(const struct thread_ranges *ranges, const struct run *run, uint32_t place) { return &run->ranges[ranges->by_thread.members[place]]; }

/* The range around each: the nearest before it that has not ended. */
static void parents_make(struct thread_ranges *ranges, const struct run *run, uint32_t thread)
{
    uint32_t open = NONE;
    for (uint32_t place = ranges->by_thread.begins[thread]; place < ranges->by_thread.begins[thread + 1]; place++) {
        while (open != NONE && range_in(ranges, run, open)->end <= range_in(ranges, run, place)->begin) open = ranges->parent[open];
        ranges->parent[place] = open;
        open = place;
    }
}

static uint32_t thread_of_range(const void *run, size_t i) { return ((const struct run *)run)->ranges[i].thread; }

void thread_ranges_make(struct thread_ranges *ranges, const struct run *run)
{
    ranges->by_thread = groups_make(run->thread_count, run->range_count, thread_of_range, run);
    ranges->parent = malloc((run->range_count + 1) * sizeof *ranges->parent);
    if (!ranges->parent) out_of_memory();
    for (uint32_t t = 0; t < run->thread_count; t++) parents_make(ranges, run, t);
}

uint32_t thread_range_at(const struct thread_ranges *ranges, const struct run *run, uint32_t thread, int64_t at, int64_t *until)
{
    uint32_t low = ranges->by_thread.begins[thread], high = ranges->by_thread.begins[thread + 1];
    const uint32_t first = low, end = high;
    while (low < high) { /* the first that begins after `at` */
        const uint32_t middle = low + (high - low) / 2;
        if (range_in(ranges, run, middle)->begin > at) high = middle;
        else low = middle + 1;
    }
    if (low < end && range_in(ranges, run, low)->begin < *until) *until = range_in(ranges, run, low)->begin;
    uint32_t place = low > first ? low - 1 : NONE;
    while (place != NONE && range_in(ranges, run, place)->end <= at) place = ranges->parent[place];
    if (place == NONE) return NONE;
    if (range_in(ranges, run, place)->end < *until) *until = range_in(ranges, run, place)->end;
    return ranges->by_thread.members[place];
}

void thread_ranges_free(struct thread_ranges *ranges)
{
    groups_free(&ranges->by_thread);
    free(ranges->parent);
    *ranges = (struct thread_ranges){0};
}
