/* Rules about work that waited for other work: in its stream's order, for an event, for the legacy
 * default stream, or for a hardware queue. */
#include "tools/custream/model/replay.h"
#include "tools/custream/report/inside.h"

/* Work that other work held for the same reason. */
struct held {
    uint64_t times;
    int64_t longest;
    uint32_t work; /* the work that waited longest */
};

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* Adds the work if its hold has this cause, and kept it waiting for other work. */
static bool held_add(struct held *held, const struct model *of, uint32_t work, enum cause cause)
{
    const struct hold *hold = &of->holds[work];
    const int64_t from =
        cause == CAUSE_LEGACY ? later(hold->enqueued, hold->without_legacy) : hold->enqueued;
    if (hold->cause != cause || hold->ready <= from) return false;
    if (cause != CAUSE_LEGACY && hold->blocker == NONE) return false;
    held->times++;
    if (hold->ready - from < held->longest) return true;
    held->longest = hold->ready - from;
    held->work = work;
    return true;
}

static void held_report(
    struct findings *to, const struct held *held, struct subject place, const char *what)
{
    const struct run *run = &to->of->run;
    const uint32_t blocker = to->of->holds[held->work].blocker;
    const struct work *work = &run->works[held->work],
                      *before = blocker == NONE ? NULL : &run->works[blocker];
    finding(to, place, TIMES(held->times), "%s; the longest, %s on %s, waited %s%s%s%s%s", what,
        work_label(to->report, run, work), find_stream(to, work->stream),
        SHOWN(UNIT_NS, held->longest), before ? " for " : "",
        before ? work_label(to->report, run, before) : "", before ? " on " : "",
        before ? find_stream(to, before->stream) : "");
}

static struct subject stream_of(const struct findings *to, const struct held *held)
{
    return OF(STREAM, to->of->run.works[held->work].stream);
}

/* --- CS101, CS102: the legacy default stream --- */

void look_legacy(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct held held = {0};
    uint32_t legacy = NONE;
    for (uint32_t i = 0; i < run->work_count; i++) held_add(&held, to->of, i, CAUSE_LEGACY);
    if (!held.times) return;
    const uint32_t side = run->streams[run->calls[run->works[held.work].call].stream].side;
    for (uint32_t s = 0; s < run->stream_count; s++)
        if (run->streams[s].side == (side & ~UINT32_C(1)) &&
            (run->streams[s].works || legacy == NONE))
            legacy = s;
    if (legacy != NONE)
        held_report(to, &held, OF(STREAM, legacy), "work waited because of it alone");
}

static bool is_blocking(const struct run *run, uint32_t stream)
{
    const struct stream *is = &run->streams[stream];
    return is->known && is->origin == ORIGIN_CREATED && !is->non_blocking;
}

void look_blocking(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct held held = {0};
    bool *seen = array_zeros(run->stream_count, sizeof *seen);
    uint32_t streams = 0, stream = NONE;
    for (uint32_t i = 0; i < run->work_count; i++) {
        const uint32_t blocker = to->of->holds[i].blocker,
                       before = blocker == NONE ? NONE : run->works[blocker].stream,
                       own = run->works[i].stream, blocking = is_blocking(run, own) ? own : before;
        if (blocking == NONE || !is_blocking(run, blocking) ||
            !held_add(&held, to->of, i, CAUSE_LEGACY))
            continue;
        streams += !seen[blocking];
        seen[stream = blocking] = true;
    }
    free(seen);
    if (held.times)
        held_report(to, &held,
            streams > 1 ? OF(DEVICE, run->streams[stream].device) : OF(STREAM, stream),
            report_text(to->report,
                "work waited because a stream is a blocking one (such streams: %u)", streams));
}

/* --- CS111: hardware queues --- */

/* Returns how many streams of the device had work at `at` that was enqueued and not done. From call
 * to call `at` must not get earlier. `next`: by stream, the place of its first unfinished work. */
static uint32_t streams_with_work(
    const struct model *of, const struct groups *works, uint32_t *next, uint32_t device, int64_t at)
{
    const struct run *run = &of->run;
    uint32_t streams = 0;
    for (uint32_t s = 0; s < run->stream_count; s++) {
        const uint32_t end = works->begins[s + 1];
        if (run->streams[s].device != device) continue;
        while (next[s] < end && run->works[works->members[next[s]]].end <= at) next[s]++;
        streams += next[s] < end && of->holds[works->members[next[s]]].enqueued <= at;
    }
    return streams;
}

void look_hardware_queues(struct findings *to)
{
    enum { SOON_NS = 20000 }; /* work that made room ended up to so long before late work began */
    const struct run *run = &to->of->run;
    struct tallies devices = {0};
    const uint32_t queues = run_queues(run);
    if (!to->replay || run->stream_count <= queues) return;
    struct groups works = GROUPS(run->stream_count, run->works, run->work_count, stream);
    uint32_t *next = array_zeros(run->stream_count, sizeof *next);
    memcpy(next, works.begins, run->stream_count * sizeof *next);
    for (uint32_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        const struct hold *hold = &to->of->holds[i];
        const uint32_t device = work_device(run, work);
        if (replay_is_late(to->replay, i) &&
            streams_with_work(to->of, &works, next, device, work->begin - SOON_NS) > queues)
            tally_add(tally_of(&devices, device), work->begin - later(hold->enqueued, hold->ready));
    }
    for (size_t d = 0; d < devices.count; d++)
        finding(to, OF(DEVICE, (uint32_t)devices.rows[d].key), TIMES(devices.rows[d].times),
            "work was ready and had room, and waited while more than %u streams had work, at most "
            "for %s",
            queues, SHOWN(UNIT_NS, devices.rows[d].longest));
    tallies_free(&devices);
    groups_free(&works);
    free(next);
}

/* --- CS120, CS122, CS114: events, and kinds of work on one stream --- */

void look_events(struct findings *to)
{
    struct held held = {0};
    for (uint32_t i = 0; i < to->of->run.work_count; i++) held_add(&held, to->of, i, CAUSE_EVENT);
    if (held.times)
        held_report(to, &held, stream_of(to, &held),
            "pieces of work waited by an event for work of another stream");
}

void look_copies(struct findings *to)
{
    const struct work *works = to->of->run.works;
    struct held held = {0};
    for (uint32_t i = 0; i < to->of->run.work_count; i++) {
        const uint32_t before = to->of->holds[i].blocker;
        if (before != NONE && works[i].kind != works[before].kind &&
            (works[i].kind == WORK_COPY || works[before].kind == WORK_COPY))
            held_add(&held, to->of, i, CAUSE_ORDER);
    }
    if (held.times)
        held_report(to, &held, stream_of(to, &held),
            "kernels waited for copies before them on their stream, or copies for kernels");
}

/* Whether a copy is between host and device. Each of these two directions has an engine. */
static bool crosses(const struct work *work)
{
    return work->kind == WORK_COPY && (work->way == CS_WAY_HtoD || work->way == CS_WAY_DtoH);
}

void look_copy_engines(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct held held = {0};
    /* by device and direction: when the last copy so far ended */
    int64_t(*ends)[CS_WAY_COUNT] = array_zeros(run->device_count, sizeof *ends);
    bool *both = array_zeros(run->device_count, sizeof *both);
    for (size_t d = 0; d < run->device_count; d++)
        ends[d][CS_WAY_HtoD] = ends[d][CS_WAY_DtoH] = INT64_MIN;
    for (size_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        const uint32_t device = work_device(run, work);
        if (!crosses(work)) continue;
        both[device] |= run->devices[device].copy_engines == 1 ||
                        ends[device][CS_WAY_HtoD + CS_WAY_DtoH - work->way] > work->begin;
        ends[device][work->way] = later(ends[device][work->way], work->end);
    }
    for (uint32_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        const uint32_t blocker = to->of->holds[i].blocker;
        if (crosses(work) && !both[work_device(run, work)] && blocker != NONE &&
            crosses(&run->works[blocker]) && run->works[blocker].way != work->way)
            held_add(&held, to->of, i, CAUSE_ORDER);
    }
    if (held.times)
        held_report(to, &held, stream_of(to, &held),
            "copies waited in their stream for copies in the other direction; no two such copies "
            "of the GPU overlapped");
    free(ends);
    free(both);
}
