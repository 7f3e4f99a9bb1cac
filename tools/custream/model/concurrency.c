#include "tools/custream/model/concurrency.h"

#include "tools/custream/command.h"
#include "tools/custream/model/room.h"

/* Work that has begun, the one that ends first on top: a binary heap. */
struct running {
    struct ending {
        int64_t end;
        uint32_t stream;
    } *heap;
    size_t count, capacity;
};

/* Where the sweep is on a device, and which streams are at work there. */
struct now {
    int64_t at;
    uint32_t streams;
    uint32_t sum; /* of the numbers of these streams, modulo 2^32: the number of the one, where there is one */
};

struct sweep {
    const struct run *run;
    struct concurrency *result;
    struct running running;
    struct now *devices;
    uint32_t *depth; /* pieces of work at once, by stream */
};

static void running_push(struct running *running, struct ending ending)
{
    running->heap = array_room(running->heap, running->count, &running->capacity, sizeof *running->heap);
    size_t at = running->count++;
    for (size_t parent; at && running->heap[parent = (at - 1) / 2].end > ending.end; at = parent) running->heap[at] = running->heap[parent];
    running->heap[at] = ending;
}

static struct ending running_pop(struct running *running)
{
    const struct ending first = running->heap[0], last = running->heap[--running->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < running->count; at = child) {
        if (child + 1 < running->count && running->heap[child + 1].end < running->heap[child].end) child++;
        if (running->heap[child].end >= last.end) break;
        running->heap[at] = running->heap[child];
    }
    running->heap[at] = last;
    return first;
}

/* The time of a device since the sweep was last there: the same streams were at work in all of it. */
static struct now *advance(struct sweep *sweep, uint32_t stream, int64_t to)
{
    const uint32_t device = sweep->run->streams[stream].device;
    struct now *now = &sweep->devices[device];
    struct device_load *load = &sweep->result->devices[device];
    const int64_t passed = now->at == INT64_MIN ? 0 : to - now->at;
    load->at_work[now->streams < AT_WORK ? now->streams : AT_WORK - 1] += passed;
    load->stream_time += (double)passed * now->streams;
    if (now->streams == 1) sweep->result->streams[now->sum].alone += passed;
    now->at = to;
    return now;
}

static void work_begins(struct sweep *sweep, const struct work *work)
{
    if (!sweep->depth[work->stream]++) {
        struct now *now = advance(sweep, work->stream, work->begin);
        now->streams++;
        now->sum += work->stream;
        sweep->result->streams[work->stream].busy -= work->begin;
    }
    running_push(&sweep->running, (struct ending){work->end, work->stream});
}

static void work_ends(struct sweep *sweep)
{
    const struct ending ended = running_pop(&sweep->running);
    if (--sweep->depth[ended.stream]) return;
    struct now *now = advance(sweep, ended.stream, ended.end);
    now->streams--;
    now->sum -= ended.stream;
    sweep->result->streams[ended.stream].busy += ended.end;
}

void concurrency_make(struct concurrency *concurrency, const struct run *run)
{
    *concurrency = (struct concurrency){room_for(run->device_count, sizeof *concurrency->devices), room_for(run->stream_count, sizeof *concurrency->streams)};
    struct sweep sweep = {.run = run, .result = concurrency, .devices = room_for(run->device_count, sizeof *sweep.devices),
                          .depth = room_for(run->stream_count, sizeof *sweep.depth)};
    for (size_t d = 0; d < run->device_count; d++) sweep.devices[d].at = INT64_MIN;
    for (size_t w = 0; w < run->work_count; w++) {
        const struct work *work = &run->works[w];
        while (sweep.running.count && sweep.running.heap[0].end <= work->begin) work_ends(&sweep);
        work_begins(&sweep, work);
    }
    while (sweep.running.count) work_ends(&sweep);
    free(sweep.running.heap);
    free(sweep.devices);
    free(sweep.depth);
}

void concurrency_free(struct concurrency *concurrency)
{
    free(concurrency->devices);
    free(concurrency->streams);
    *concurrency = (struct concurrency){0};
}
