/* Rules about what waits for what on the GPU: the legacy default stream, hardware queues, host
 * functions. */
#include "tools/custream/command.h"
#include "tools/custream/model/table.h"
#include "tools/custream/report/inside.h"

/* What one place lost. Work that was late ran for `lost` longer than it had to, but two pieces at
 * once lose the same time, which counts once. */
struct toll {
    int64_t covered; /* until when the time is counted */
    int64_t cost;
    uint64_t times;
    uint32_t late; /* of overlap->lates: that which lost the most; NONE */
    uint32_t idle; /* of idles->rows: the longest; NONE */
};

static const struct toll no_toll = {.covered = INT64_MIN, .late = NONE, .idle = NONE};

static struct toll *tolls_make(size_t count)
{
    struct toll *tolls = array_zeros(count, sizeof *tolls);
    for (size_t i = 0; i < count; i++) tolls[i] = no_toll;
    return tolls;
}

static void add_late(struct toll *toll, const struct model *of, uint32_t number)
{
    const struct late *late = &of->overlap.lates[number];
    const int64_t begin = of->run.works[late->work].begin,
                  from = toll->covered > begin ? toll->covered : begin, to = begin + late->lost;
    if (to > from) toll->cost += to - from, toll->covered = to;
    if (toll->late == NONE || of->overlap.lates[toll->late].lost < late->lost) toll->late = number;
    toll->times++;
}

static int64_t idle_length(const struct idle *idle) { return idle->end - idle->begin; }

static void add_idle(struct toll *toll, const struct model *of, uint32_t number)
{
    const struct idle *rows = of->idles.rows;
    toll->cost += idle_length(&rows[number]);
    if (toll->idle == NONE || idle_length(&rows[toll->idle]) < idle_length(&rows[number]))
        toll->idle = number;
    toll->times++;
}

/* Of the piece that lost the most. */
static const char *example(struct findings *to, const struct toll *toll)
{
    const struct model *of = to->of;
    const struct run *run = &of->run;
    if (toll->late != NONE) {
        const struct late *late = &of->overlap.lates[toll->late];
        const struct work *work = &run->works[late->work];
        return report_text(to->report,
            "%s on %s waited while %s ran on %s, and could have begun %s earlier",
            work_label(to->report, run, work), find_stream(to, work->stream),
            work_label(to->report, run, &run->works[late->during]), find_stream(to, late->behind),
            find_time(to, (double)late->lost));
    }
    const struct idle *idle = &of->idles.rows[toll->idle];
    const struct work *next = &run->works[idle->next];
    return report_text(to->report, "the GPU was idle for %s before %s on %s",
        find_time(to, (double)idle_length(idle)), work_label(to->report, run, next),
        find_stream(to, next->stream));
}

/* One find by stream that lost something. */
static void report_streams(struct findings *to, const struct toll *tolls, const char *what)
{
    for (uint32_t i = 0; i < to->of->run.stream_count; i++) {
        if (!tolls[i].times) continue;
        const char *evidence = report_text(to->report, "%s: %s", what, example(to, &tolls[i]));
        finding(to, to->of->run.streams[i].device, find_stream(to, i), (double)tolls[i].cost,
            tolls[i].times, evidence);
    }
}

/* --- the legacy default stream --- */

/* The legacy default stream of each stream's context; NONE: it was not used. Which context a stream
 * has is known where work ran on it. The caller frees it. */
static uint32_t *legacy_streams(const struct run *run)
{
    uint32_t *legacy = array_zeros(run->stream_count, sizeof *legacy);
    for (uint32_t i = 0; i < run->stream_count; i++) legacy[i] = NONE;
    for (uint32_t l = 0; l < run->stream_count; l++) {
        const struct stream *is = &run->streams[l];
        if (is->origin != ORIGIN_LEGACY) continue;
        for (uint32_t i = 0; i < run->stream_count; i++) {
            const struct stream *other = &run->streams[i];
            const bool together =
                other->device == is->device &&
                (other->context == is->context || !other->context || !is->context);
            if (together && (is->works || legacy[i] == NONE)) legacy[i] = l;
        }
    }
    return legacy;
}

void look_legacy(struct findings *to)
{
    const struct model *of = to->of;
    uint32_t *legacy = legacy_streams(&of->run);
    struct toll *tolls = tolls_make(of->run.stream_count);
    for (uint32_t i = 0; i < of->overlap.late_count; i++) {
        const struct late *late = &of->overlap.lates[i];
        const uint32_t stream = legacy[of->run.works[late->work].stream];
        if (late->cause == CAUSE_LEGACY && stream != NONE) add_late(&tolls[stream], of, i);
    }
    for (uint32_t i = 0; i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        const uint32_t stream = legacy[of->run.works[idle->next].stream];
        if (idle->cause == CAUSE_LEGACY && stream != NONE) add_idle(&tolls[stream], of, i);
    }
    report_streams(to, tolls, "work waited because of it alone");
    free(tolls);
    free(legacy);
}

static bool is_blocking(const struct run *run, uint32_t stream)
{
    const struct stream *is = &run->streams[stream];
    return is->known && is->origin == ORIGIN_CREATED && !is->non_blocking;
}

/* Of two streams that the legacy stream ordered, the one that the program made as a blocking one;
 * NONE: none. */
static uint32_t blocking_of(const struct run *run, uint32_t waiting, uint32_t other)
{
    if (is_blocking(run, waiting)) return waiting;
    return other != NONE && is_blocking(run, other) ? other : NONE;
}

/* What the blocking streams of a device lost together. */
struct blocked {
    struct toll toll;
    uint32_t streams, last; /* how many; one of them */
};

/* The device of the blocking stream, whose loss is to be added; `seen` knows the streams that are
 * counted. */
static struct toll *blocked_toll(
    const struct run *run, struct blocked *devices, bool *seen, uint32_t stream)
{
    struct blocked *blocked = &devices[run->streams[stream].device];
    blocked->streams += !seen[stream];
    blocked->last = stream;
    seen[stream] = true;
    return &blocked->toll;
}

static void report_blocked(struct findings *to, const struct blocked *blocked, uint32_t device)
{
    const char *place = blocked->streams == 1 ? find_stream(to, blocked->last)
                                              : report_text(to->report, "GPU %u",
                                                    to->of->run.devices[device].ordinal);
    const char *evidence = report_text(to->report,
        "work waited because a stream is a blocking one (such streams: %u): %s", blocked->streams,
        example(to, &blocked->toll));
    finding(to, device, place, (double)blocked->toll.cost, blocked->toll.times, evidence);
}

void look_blocking(struct findings *to)
{
    const struct model *of = to->of;
    const struct run *run = &of->run;
    struct blocked *devices = array_zeros(run->device_count, sizeof *devices);
    bool *seen = array_zeros(run->stream_count, sizeof *seen);
    for (uint32_t d = 0; d < run->device_count; d++) devices[d].toll = no_toll;
    for (uint32_t i = 0; i < of->overlap.late_count; i++) {
        const struct late *late = &of->overlap.lates[i];
        const uint32_t stream = late->cause == CAUSE_LEGACY
                                    ? blocking_of(run, run->works[late->work].stream, late->behind)
                                    : NONE;
        if (stream != NONE) add_late(blocked_toll(run, devices, seen, stream), of, i);
    }
    for (uint32_t i = 0; i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        if (idle->cause != CAUSE_LEGACY) continue;
        const uint32_t blocker = of->holds[idle->next].blocker;
        const uint32_t stream = blocking_of(run, run->works[idle->next].stream,
            blocker == NONE ? NONE : run->works[blocker].stream);
        if (stream != NONE) add_idle(blocked_toll(run, devices, seen, stream), of, i);
    }
    for (uint32_t d = 0; d < run->device_count; d++)
        if (devices[d].streams) report_blocked(to, &devices[d], d);
    free(devices);
    free(seen);
}

/* --- hardware queues, host functions --- */

void look_hardware_queues(struct findings *to)
{
    const struct model *of = to->of;
    struct toll *tolls = tolls_make(of->run.device_count);
    for (uint32_t i = 0; i < of->overlap.late_count; i++) {
        const struct late *late = &of->overlap.lates[i];
        if (late->cause == CAUSE_HARDWARE_QUEUE)
            add_late(&tolls[work_device(&of->run, &of->run.works[late->work])], of, i);
    }
    for (uint32_t device = 0; device < of->run.device_count; device++) {
        const struct toll *toll = &tolls[device];
        if (!toll->times) continue;
        const char *evidence = report_text(to->report,
            "work was ready, and waited while more than %d streams had work: %s", HARDWARE_QUEUES,
            example(to, toll));
        finding(to, device, report_text(to->report, "GPU %u", of->run.devices[device].ordinal),
            (double)toll->cost, toll->times, evidence);
    }
    free(tolls);
}

void look_host_functions(struct findings *to)
{
    const struct model *of = to->of;
    struct toll *tolls = tolls_make(of->run.stream_count);
    for (uint32_t i = 0; i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        if (idle->cause == CAUSE_HOST_FUNCTION)
            add_idle(&tolls[of->run.works[idle->next].stream], of, i);
    }
    report_streams(to, tolls, "work waited until a host function had returned");
    free(tolls);
}
