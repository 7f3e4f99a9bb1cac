/* How busy devices and streams were: a sweep over the begins and ends of all work in their order.
 */
#include "tools/custream/model/due.h"
#include "tools/custream/model/model.h"

struct sweep {
    const struct run *run;
    struct usage *usage;
    struct dues ends; /* of the work that has begun, by its stream */
    struct now {
        int64_t at;       /* the time that the sweep has reached on a device */
        uint32_t streams; /* the streams at work at that time */
        uint32_t sum;     /* these streams' numbers, added up: with one stream its number */
    } *devices;
    uint32_t *depth; /* by stream: how many pieces of work run at once */
};

/* Adds the time since the last visit to this device, in which nothing changed. */
static struct now *advance(struct sweep *sweep, uint32_t stream, int64_t to)
{
    const uint32_t device = sweep->run->streams[stream].device;
    struct now *now = &sweep->devices[device];
    struct device_usage *is = &sweep->usage->devices[device];
    if (now->at == INT64_MIN) is->begin = now->at = to;
    const int64_t passed = to - now->at;
    is->at_work[now->streams < AT_WORK ? now->streams : AT_WORK - 1] += passed;
    is->stream_time += (double)passed * now->streams;
    if (now->streams == 1) sweep->usage->streams[now->sum].alone += passed;
    is->end = now->at = to;
    return now;
}

static void work_begins(struct sweep *sweep, const struct work *work)
{
    if (!sweep->depth[work->stream]++) {
        struct now *now = advance(sweep, work->stream, work->begin);
        now->streams++;
        now->sum += work->stream;
        sweep->usage->streams[work->stream].busy -= work->begin;
    }
    due_push(&sweep->ends, work->end, work->stream);
}

static void work_ends(struct sweep *sweep)
{
    const struct due ended = due_pop(&sweep->ends);
    if (--sweep->depth[ended.number]) return;
    struct now *now = advance(sweep, ended.number, ended.at);
    now->streams--;
    now->sum -= ended.number;
    sweep->usage->streams[ended.number].busy += ended.at;
}

void usage_make(struct usage *usage, const struct run *run)
{
    *usage = (struct usage){array_zeros(run->device_count, sizeof *usage->devices),
        array_zeros(run->stream_count, sizeof *usage->streams)};
    struct sweep sweep = {.run = run,
        .usage = usage,
        .devices = array_zeros(run->device_count, sizeof *sweep.devices),
        .depth = array_zeros(run->stream_count, sizeof *sweep.depth)};
    for (size_t d = 0; d < run->device_count; d++) sweep.devices[d].at = INT64_MIN;
    for (size_t w = 0; w < run->work_count; w++) {
        const struct work *work = &run->works[w];
        while (sweep.ends.count && sweep.ends.rows[0].at <= work->begin) work_ends(&sweep);
        work_begins(&sweep, work);
    }
    while (sweep.ends.count) work_ends(&sweep);
    free_all(sweep.ends.rows, sweep.devices, sweep.depth);
}
