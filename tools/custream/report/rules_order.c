/* Rules about waits for the legacy default stream, and for hardware queues. */
#include "tools/custream/report/inside.h"

/* The loss of one place. Two pieces that are late at once lose the same time, which counts once. */
struct toll {
    int64_t covered; /* the time up to this moment is counted */
    int64_t cost;
    uint64_t times;
    /* the indices in the model's lates and idles of the late work and the idle time that lost the
     * most; NONE */
    uint32_t late, idle;
    /* for a rule about several streams: how many streams, and the last of these */
    uint32_t streams, last;
};

struct search {
    const struct run *run;
    uint32_t *legacy; /* by stream: the legacy default stream of its context; NONE */
    bool *seen;       /* by stream */
    struct toll *tolls;
};

/* A rule of this file: the cause that it counts, in late work and idle time, and its places. */
struct order_rule {
    enum cause cause;
    bool idles; /* idle time counts too */
    enum place { OF_LEGACY, OF_DEVICE, OF_BLOCKING /* by device */ } place;
    const char *what;
};

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

/* Returns words about the late work or idle time that lost the most. */
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
            SHOWN(UNIT_NS, late->lost));
    }
    const struct idle *idle = &of->idles.rows[toll->idle];
    const struct work *next = &run->works[idle->next];
    return report_text(to->report, "the GPU was idle for %s before %s on %s",
        SHOWN(UNIT_NS, idle_length(idle)), work_label(to->report, run, next),
        find_stream(to, next->stream));
}

/* Returns, by stream, the legacy default stream of its context; NONE: not known. */
static uint32_t *legacy_streams(const struct run *run)
{
    uint32_t *legacy = array_none(run->stream_count);
    for (uint32_t l = 0; l < run->stream_count; l++) {
        const struct stream *is = &run->streams[l];
        for (uint32_t i = 0; is->origin == ORIGIN_LEGACY && i < run->stream_count; i++) {
            const struct stream *other = &run->streams[i];
            const bool together =
                other->device == is->device &&
                (other->context == is->context || !other->context || !is->context);
            if (together && (is->works || legacy[i] == NONE)) legacy[i] = l;
        }
    }
    return legacy;
}

static bool by_device(const struct order_rule *rule) { return rule->place >= OF_DEVICE; }

static void report_toll(
    struct findings *to, const struct order_rule *rule, uint32_t place, const struct toll *toll)
{
    const struct subject where = by_device(rule) && toll->streams != 1
                                     ? OF(DEVICE, place)
                                     : OF(STREAM, by_device(rule) ? toll->last : place);
    const char *such =
        toll->streams ? report_text(to->report, " (such streams: %u)", toll->streams) : "";
    finding(to, where, (double)toll->cost, toll->times, "%s%s: %s", rule->what, such,
        example(to, toll));
}

static bool is_blocking(const struct run *run, uint32_t stream)
{
    const struct stream *is = stream == NONE ? NULL : &run->streams[stream];
    return is && is->known && is->origin == ORIGIN_CREATED && !is->non_blocking;
}

/* Returns the stream or device to which the loss of stream `waiting` is counted; NONE: to none.
 * `other`: the stream for which it waited; NONE. OF_BLOCKING: the device of the blocking stream of
 * these two, of `waiting` if both are; counts that stream in the toll of the device. */
static uint32_t place_of(struct search *s, enum place place, uint32_t waiting, uint32_t other)
{
    if (place == OF_LEGACY) return s->legacy[waiting];
    const uint32_t stream = place == OF_DEVICE || is_blocking(s->run, waiting) ? waiting : other;
    if (place == OF_BLOCKING && !is_blocking(s->run, stream)) return NONE;
    const uint32_t device = s->run->streams[stream].device;
    if (place == OF_BLOCKING) {
        s->tolls[device].streams += !s->seen[stream];
        s->tolls[device].last = stream;
        s->seen[stream] = true;
    }
    return device;
}

static void look(struct findings *to, const struct order_rule *rule)
{
    const struct model *of = to->of;
    const struct run *run = &of->run;
    const size_t places = by_device(rule) ? run->device_count : run->stream_count;
    struct search s = {run, legacy_streams(run), array_zeros(run->stream_count, sizeof(bool)),
        array_zeros(places, sizeof *s.tolls)};
    for (size_t p = 0; p < places; p++)
        s.tolls[p] = (struct toll){.covered = INT64_MIN, .late = NONE, .idle = NONE};
    for (uint32_t i = 0; i < of->overlap.late_count; i++) {
        const struct late *late = &of->overlap.lates[i];
        if (late->cause != rule->cause) continue;
        const uint32_t place =
            place_of(&s, rule->place, run->works[late->work].stream, late->behind);
        if (place != NONE) add_late(&s.tolls[place], of, i);
    }
    for (uint32_t i = 0; rule->idles && i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        const uint32_t blocker = of->holds[idle->next].blocker;
        if (idle->cause != rule->cause) continue;
        const uint32_t place = place_of(&s, rule->place, run->works[idle->next].stream,
            blocker == NONE ? NONE : run->works[blocker].stream);
        if (place != NONE) add_idle(&s.tolls[place], of, i);
    }
    for (uint32_t p = 0; p < places; p++)
        if (s.tolls[p].times) report_toll(to, rule, p, &s.tolls[p]);
    free(s.legacy);
    free(s.seen);
    free(s.tolls);
}

/* --- the rules --- */

void look_legacy(struct findings *to)
{
    look(
        to, &(struct order_rule){CAUSE_LEGACY, true, OF_LEGACY, "work waited because of it alone"});
}

void look_blocking(struct findings *to)
{
    look(to, &(struct order_rule){CAUSE_LEGACY, true, OF_BLOCKING,
                 "work waited because a stream is a blocking one"});
}

void look_hardware_queues(struct findings *to)
{
    _Static_assert(HARDWARE_QUEUES == 8, "as the text says");
    look(to, &(struct order_rule){CAUSE_HARDWARE_QUEUE, false, OF_DEVICE,
                 "work was ready, and waited while more than 8 streams had work"});
}
