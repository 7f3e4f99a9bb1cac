/* CS112: how the priorities of streams are used. */
#include "tools/custream/report/inside.h"

/* A bound above the number of priorities of a device (cuCtxGetStreamPriorityRange: six today). */
enum { PRIORITIES = 16 };

struct priorities {
    struct {
        int priority;
        int64_t end; /* the latest end of work of this priority so far */
    } of[PRIORITIES];
    size_t count;
    bool met; /* two priorities had work enqueued and not done at the same time */
};

static void meet(struct priorities *priorities, int priority, int64_t enqueued, int64_t end)
{
    size_t own = priorities->count;
    for (size_t i = 0; i < priorities->count; i++) {
        if (priorities->of[i].priority == priority) own = i;
        else if (priorities->of[i].end > enqueued) priorities->met = true;
    }
    if (own == PRIORITIES) return;
    if (own == priorities->count) priorities->of[priorities->count++].priority = priority;
    if (priorities->of[own].end < end) priorities->of[own].end = end;
}

void look_priorities(struct findings *to)
{
    const struct run *run = &to->of->run;
    uint32_t first = NONE;
    uint64_t streams = 0;
    for (uint32_t i = 0; i < run->stream_count; i++) {
        const struct stream *stream = &run->streams[i];
        if (!stream->known || !stream->works || stream->origin != ORIGIN_CREATED ||
            stream->by_policy || stream->requested == stream->priority)
            continue;
        if (!streams++) first = i;
    }
    if (streams) /* they were given another priority than they asked for */
        finding(to, OF(STREAM, first), TIMES(streams),
            "it asked for priority %d and was given %d; streams like it: %lu",
            run->streams[first].requested, run->streams[first].priority,
            (unsigned long)streams - 1);
    /* Devices whose streams have several priorities that never had work at once. */
    struct priorities *devices = array_zeros(run->device_count, sizeof *devices);
    for (size_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        const struct stream *stream = &run->streams[work->stream];
        if (work->call == NONE)
            devices[stream->device].met = true; /* it is not known when the work was enqueued */
        if (stream->known)
            meet(&devices[stream->device], stream->priority, to->of->holds[i].enqueued, work->end);
    }
    for (uint32_t d = 0; d < run->device_count; d++)
        if (devices[d].count > 1 && !devices[d].met)
            finding(to, OF(DEVICE, d), TIMES(devices[d].count),
                "its streams have %zu priorities, and no two of different priority ever had work "
                "at once",
                devices[d].count);
    free(devices);
}
