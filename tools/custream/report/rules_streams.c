/* Rules about how streams are used: priorities, and both copy engines. */
#include "tools/custream/report/inside.h"

/* --- CS112: priorities --- */

/* Finds streams that were given another priority than they asked for. */
static void look_refused(struct findings *to)
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
    if (streams)
        finding(to, OF(STREAM, first), NAN, streams,
            "it asked for priority %d and was given %d; streams like it: %lu",
            run->streams[first].requested, run->streams[first].priority,
            (unsigned long)streams - 1);
}

/* A bound above the number of priorities of a device (cuCtxGetStreamPriorityRange: six today). */
enum { PRIORITIES = 16 };

struct priorities {
    struct {
        int priority;
        int64_t end; /* when the last work of this priority so far ended */
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

/* Finds devices whose streams have several priorities that never had work at once. */
static void look_alone(struct findings *to)
{
    const struct run *run = &to->of->run;
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
            finding(to, OF(DEVICE, d), NAN, devices[d].count,
                "its streams have %zu priorities, and no two of different priority ever had work "
                "at once",
                devices[d].count);
    free(devices);
}

void look_priorities(struct findings *to)
{
    look_refused(to);
    look_alone(to);
}

/* --- CS114: copy engines --- */

/* Whether a copy is between host and device. Each of these two directions has an engine. */
static bool crosses(const struct work *work)
{
    return work->kind == WORK_COPY && (work->way == CS_WAY_HtoD || work->way == CS_WAY_DtoH);
}

struct engine_use {
    int64_t end[CS_WAY_COUNT]; /* by direction: when the last copy so far ended */
    bool both;                 /* copies in both directions overlapped */
};

static struct engine_use *engines_used(const struct run *run)
{
    struct engine_use *uses = array_zeros(run->device_count, sizeof *uses);
    for (size_t d = 0; d < run->device_count; d++)
        uses[d].end[CS_WAY_HtoD] = uses[d].end[CS_WAY_DtoH] = INT64_MIN;
    for (size_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        if (!crosses(work)) continue;
        struct engine_use *use = &uses[work_device(run, work)];
        if (use->end[work->way == CS_WAY_HtoD ? CS_WAY_DtoH : CS_WAY_HtoD] > work->begin)
            use->both = true;
        if (use->end[work->way] < work->end) use->end[work->way] = work->end;
    }
    return uses;
}

struct serial_copies {
    int64_t cost;
    uint64_t times;
    uint32_t last;     /* the last copy that could have run earlier; NONE */
    int64_t last_lost; /* how many ns of `last` could have run earlier: the next copy cannot use
                          them again */
};

/* Returns how much of a copy could have run beside the copy in the other direction that it waited
 * for because of its stream's order. */
static int64_t lost(const struct run *run, const struct work *work, const struct hold *hold,
    const struct serial_copies *copies)
{
    if (!crosses(work) || hold->cause != CAUSE_ORDER || hold->blocker == NONE) return 0;
    const struct work *before = &run->works[hold->blocker];
    if (!crosses(before) || before->way == work->way) return 0;
    const int64_t from = hold->enqueued > before->begin ? hold->enqueued : before->begin,
                  length = work->end - work->begin;
    const int64_t waited =
        before->end - from - (copies->last == hold->blocker ? copies->last_lost : 0);
    return waited < length ? waited : length;
}

void look_copy_engines(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct engine_use *uses = engines_used(run);
    struct serial_copies *streams = array_zeros(run->stream_count, sizeof *streams);
    for (size_t i = 0; i < run->stream_count; i++) streams[i].last = NONE;
    for (uint32_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        struct serial_copies *copies = &streams[work->stream];
        const uint32_t device = work_device(run, work);
        const bool apart = !uses[device].both && run->devices[device].copy_engines != 1;
        const int64_t copy_lost = !apart ? 0 : lost(run, work, &to->of->holds[i], copies);
        if (copy_lost <= 0) continue;
        copies->cost += copy_lost;
        copies->times++;
        copies->last = i;
        copies->last_lost = copy_lost;
    }
    for (uint32_t i = 0; i < run->stream_count; i++)
        if (streams[i].times)
            finding(to, OF(STREAM, i), (double)streams[i].cost, streams[i].times,
                "copies waited in their stream for copies in the other direction; no two such "
                "copies of the GPU overlapped");
    free(streams);
    free(uses);
}
