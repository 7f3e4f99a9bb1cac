#include "tools/custream/model/timelines.h"

#include <stdlib.h>

#include "tools/custream/model/room.h"

/* Each timeline's part of the two arrays, by how many pieces of work its stream has. */
static void lay_out(struct timelines *timelines, const struct run *run)
{
    for (size_t i = 0; i < run->work_count; i++) timelines->by_stream[run->works[i].stream].count++;
    size_t used = 0;
    for (size_t i = 0; i < run->stream_count; i++) {
        struct timeline *timeline = &timelines->by_stream[i];
        timeline->works = timelines->works + used;
        timeline->end = timelines->times + used;
        timeline->busy = timelines->times + run->work_count + used;
        used += timeline->count;
        timeline->count = 0;
    }
}

static void fill(struct timelines *timelines, const struct run *run)
{
    for (uint32_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        struct timeline *timeline = &timelines->by_stream[work->stream];
        uint32_t at = timeline->count++;
        int64_t covered = at ? timeline->end[at - 1] : work->begin;
        int64_t from = covered > work->begin ? covered : work->begin;
        timeline->works[at] = i;
        timeline->end[at] = work->end > covered ? work->end : covered;
        timeline->busy[at] = (at ? timeline->busy[at - 1] : 0) + (work->end > from ? work->end - from : 0);
    }
}

struct busy_stream {
    uint32_t device, stream;
    int64_t busy;
};

static int by_device_and_busy(const void *left, const void *right)
{
    const struct busy_stream *a = left, *b = right;
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    if (a->busy != b->busy) return a->busy > b->busy ? -1 : 1;
    return a->stream < b->stream ? -1 : a->stream > b->stream;
}

static void rank(struct timelines *timelines, const struct run *run)
{
    struct busy_stream *streams = room_for(run->stream_count, sizeof *streams);
    size_t count = 0;
    for (uint32_t i = 0; i < run->stream_count; i++) {
        const struct timeline *timeline = &timelines->by_stream[i];
        if (timeline->count) streams[count++] = (struct busy_stream){run->streams[i].device, i, timeline->busy[timeline->count - 1]};
    }
    qsort(streams, count, sizeof *streams, by_device_and_busy);
    for (size_t i = 0; i < count; i++) {
        timelines->busiest[i] = streams[i].stream;
        timelines->first[streams[i].device + 1] = (uint32_t)i + 1;
    }
    for (size_t d = 1; d <= run->device_count; d++)
        if (timelines->first[d] < timelines->first[d - 1]) timelines->first[d] = timelines->first[d - 1];
    free(streams);
}

void timelines_make(struct timelines *timelines, const struct run *run)
{
    *timelines = (struct timelines){
        .by_stream = room_for(run->stream_count, sizeof *timelines->by_stream),
        .busiest = room_for(run->stream_count, sizeof *timelines->busiest),
        .first = room_for(run->device_count + 1, sizeof *timelines->first),
        .works = room_for(run->work_count, sizeof *timelines->works),
        .times = room_for(run->work_count, 2 * sizeof *timelines->times),
    };
    lay_out(timelines, run);
    fill(timelines, run);
    rank(timelines, run);
}

void timelines_free(struct timelines *timelines)
{
    free(timelines->by_stream);
    free(timelines->busiest);
    free(timelines->first);
    free(timelines->works);
    free(timelines->times);
}

static int64_t begin_at(const struct timeline *timeline, const struct run *run, uint32_t place)
{
    return run->works[timeline->works[place]].begin;
}

/* From the cursor in steps of twice the length, then by halves: most questions are a few places away from the last one. */
uint32_t timeline_last(struct timeline *timeline, const struct run *run, int64_t at)
{
    if (!timeline->count || begin_at(timeline, run, 0) > at) return NONE;
    uint32_t low = timeline->cursor, high = timeline->cursor, step = 1;
    while (begin_at(timeline, run, low) > at) {
        high = low;
        low = low > step ? low - step : 0;
        step *= 2;
    }
    for (step = 1; high < timeline->count && begin_at(timeline, run, high) <= at; step *= 2) {
        low = high;
        high = timeline->count - high > step ? high + step : timeline->count;
    }
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (begin_at(timeline, run, middle) <= at) low = middle;
        else high = middle;
    }
    return timeline->cursor = low;
}

int64_t timeline_busy(struct timeline *timeline, const struct run *run, int64_t at)
{
    uint32_t last = timeline_last(timeline, run, at);
    if (last == NONE) return 0;
    return timeline->busy[last] - (timeline->end[last] > at ? timeline->end[last] - at : 0);
}

uint32_t timeline_running(struct timeline *timeline, const struct run *run, int64_t at)
{
    uint32_t last = timeline_last(timeline, run, at);
    return last != NONE && run->works[timeline->works[last]].end > at ? timeline->works[last] : NONE;
}

/* From place `at` on, the end of the time in which the timeline was never idle; *next: the place behind it. */
static int64_t stretch(const struct timeline *timeline, const struct run *run, uint32_t at, uint32_t *next)
{
    uint32_t i = at + 1;
    while (i < timeline->count && begin_at(timeline, run, i) <= timeline->end[i - 1]) i++;
    *next = i;
    return timeline->end[i - 1];
}

int64_t timeline_together(const struct timeline *a, const struct timeline *b, const struct run *run)
{
    int64_t together = 0;
    for (uint32_t i = 0, j = 0, next_i, next_j; i < a->count && j < b->count;) {
        int64_t end_a = stretch(a, run, i, &next_i), end_b = stretch(b, run, j, &next_j);
        int64_t begin_a = begin_at(a, run, i), begin_b = begin_at(b, run, j);
        int64_t from = begin_a > begin_b ? begin_a : begin_b, to = end_a < end_b ? end_a : end_b;
        if (to > from) together += to - from;
        if (end_a < end_b) i = next_i;
        else j = next_j;
    }
    return together;
}
