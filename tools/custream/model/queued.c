#include "tools/custream/model/queued.h"

#include "tools/custream/model/room.h"

static int by_time(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* Work of a stream that was enqueued before the work before it was done is one time with it. */
static void make(struct queued *queued, const struct run *run, const struct hold *holds, uint32_t device)
{
    int64_t *end = room_for(run->stream_count, sizeof *end); /* by stream */
    bool *used = room_for(run->stream_count, sizeof *used);
    queued->begins = room_for(run->work_count, sizeof *queued->begins);
    queued->ends = room_for(run->work_count, sizeof *queued->ends);
    size_t ends = 0;
    for (size_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        if (work_device(run, work) != device) continue;
        const int64_t enqueued = holds[i].enqueued < work->begin ? holds[i].enqueued : work->begin;
        if (!used[work->stream] || enqueued > end[work->stream]) {
            if (used[work->stream]) queued->ends[ends++] = end[work->stream];
            queued->begins[queued->count++] = enqueued;
            end[work->stream] = work->end;
        } else if (end[work->stream] < work->end) {
            end[work->stream] = work->end;
        }
        used[work->stream] = true;
    }
    for (size_t i = 0; i < run->stream_count; i++)
        if (used[i]) queued->ends[ends++] = end[i];
    qsort(queued->begins, queued->count, sizeof *queued->begins, by_time);
    qsort(queued->ends, queued->count, sizeof *queued->ends, by_time);
    queued->made = true;
    free(end);
    free(used);
}

/* How many of the times lie before or at `at`. */
static size_t until(const int64_t *times, size_t count, int64_t at)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (times[middle] <= at) low = middle + 1;
        else high = middle;
    }
    return low;
}

size_t queued_streams(struct queued *queued, const struct run *run, const struct hold *holds, uint32_t device, int64_t at)
{
    if (!queued->made) make(queued, run, holds, device);
    return until(queued->begins, queued->count, at) - until(queued->ends, queued->count, at);
}

void queued_free(struct queued *queued)
{
    free(queued->begins);
    free(queued->ends);
    *queued = (struct queued){0};
}
