#include "tools/custream/model/model.h"

#include "tools/custream/model/views.h"

/* --- timelines: a stream's work in order of time --- */

struct timeline {
    const uint32_t *works; /* the stream's indices in run->works, in order of begin */
    int64_t *end;          /* by the same place: when this work and all before it had ended */
    int64_t *busy;         /* by the same place: how long any work up to this one ran */
    uint32_t count;
    uint32_t cursor; /* the place of the last answer: the next answer is near */
};

struct timelines {
    struct timeline *by_stream;
    uint32_t *busiest;   /* streams that have work, device by device, the busiest first */
    uint32_t *first;     /* by device: its streams are busiest[first[d] .. first[d + 1]) */
    struct groups works; /* by stream */
    int64_t *times;      /* the memory of all timelines' `end` and `busy` */
};

static void fill(struct timelines *timelines, const struct run *run)
{
    const struct groups *works = &timelines->works;
    for (size_t s = 0; s < run->stream_count; s++) {
        const uint32_t begin = works->begins[s], count = works->begins[s + 1] - begin;
        struct timeline *line = &timelines->by_stream[s];
        *line = (struct timeline){works->members + begin, timelines->times + begin,
            timelines->times + run->work_count + begin, count, 0};
        for (uint32_t at = 0; at < count; at++) {
            const struct work *work = &run->works[line->works[at]];
            const int64_t covered = at ? line->end[at - 1] : work->begin,
                          from = covered > work->begin ? covered : work->begin;
            line->end[at] = work->end > covered ? work->end : covered;
            line->busy[at] =
                (at ? line->busy[at - 1] : 0) + (work->end > from ? work->end - from : 0);
        }
    }
}

struct busy_stream {
    uint32_t device, stream;
    int64_t busy;
};

static int by_device_and_busy(const void *left, const void *right)
{
    const struct busy_stream *a = left, *b = right;
    return ORDER(a->device, b->device) ?: ORDER(b->busy, a->busy) ?: ORDER(a->stream, b->stream);
}

static void rank(struct timelines *timelines, const struct run *run)
{
    struct busy_stream *streams = array_zeros(run->stream_count, sizeof *streams);
    size_t count = 0;
    for (uint32_t i = 0; i < run->stream_count; i++) {
        const struct timeline *timeline = &timelines->by_stream[i];
        if (timeline->count)
            streams[count++] = (struct busy_stream){
                run->streams[i].device, i, timeline->busy[timeline->count - 1]};
    }
    qsort(streams, count, sizeof *streams, by_device_and_busy);
    for (size_t i = 0; i < count; i++) {
        timelines->busiest[i] = streams[i].stream;
        timelines->first[streams[i].device + 1] = (uint32_t)i + 1;
    }
    for (size_t d = 1; d <= run->device_count; d++)
        if (timelines->first[d] < timelines->first[d - 1])
            timelines->first[d] = timelines->first[d - 1];
    free(streams);
}

static void timelines_make(struct timelines *timelines, const struct run *run)
{
    *timelines = (struct timelines){
        .by_stream = array_zeros(run->stream_count, sizeof *timelines->by_stream),
        .busiest = array_zeros(run->stream_count, sizeof *timelines->busiest),
        .first = array_zeros(run->device_count + 1, sizeof *timelines->first),
        .works = GROUPS(run->stream_count, run->works, run->work_count, stream),
        .times = array_zeros(run->work_count, 2 * sizeof *timelines->times),
    };
    fill(timelines, run);
    rank(timelines, run);
}

static void timelines_free(struct timelines *timelines)
{
    free(timelines->by_stream);
    free(timelines->busiest);
    free(timelines->first);
    groups_free(&timelines->works);
    free(timelines->times);
}

static int64_t begin_at(const struct timeline *timeline, const struct run *run, uint32_t place)
{
    return run->works[timeline->works[place]].begin;
}

/* Returns the place of the last work that had begun at `at`; NONE. Searches from the cursor, in
 * steps that double, then by halves: most answers are near the answer before. */
static uint32_t timeline_last(struct timeline *timeline, const struct run *run, int64_t at)
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

static int64_t timeline_busy(struct timeline *timeline, const struct run *run, int64_t at)
{
    uint32_t last = timeline_last(timeline, run, at);
    if (last == NONE) return 0;
    return timeline->busy[last] - (timeline->end[last] > at ? timeline->end[last] - at : 0);
}

static uint32_t timeline_running(struct timeline *timeline, const struct run *run, int64_t at)
{
    uint32_t last = timeline_last(timeline, run, at);
    return last != NONE && run->works[timeline->works[last]].end > at ? timeline->works[last]
                                                                      : NONE;
}

/* Returns when the stream was next idle after work `at` began. *next: the place of the first work
 * after that. */
static int64_t stretch(
    const struct timeline *timeline, const struct run *run, uint32_t at, uint32_t *next)
{
    uint32_t i = at + 1;
    while (i < timeline->count && begin_at(timeline, run, i) <= timeline->end[i - 1]) i++;
    *next = i;
    return timeline->end[i - 1];
}

static int64_t timeline_together(
    const struct timeline *a, const struct timeline *b, const struct run *run)
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

/* --- how many streams of a device had work that was enqueued and not done, at any time --- */

struct queued {
    int64_t *begins,
        *ends; /* begins and ends of the times in which a stream had work, each sorted */
    size_t count;
    bool made;
};

static int by_time(const void *left, const void *right)
{
    return ORDER(*(const int64_t *)left, *(const int64_t *)right);
}

/* Lists when each stream of the device began to have work enqueued or running, and when it had none
 * any more. */
static void make(
    struct queued *queued, const struct run *run, const struct hold *holds, uint32_t device)
{
    int64_t *end = array_zeros(run->stream_count, sizeof *end); /* by stream */
    bool *used = array_zeros(run->stream_count, sizeof *used);
    queued->begins = array_zeros(run->work_count, sizeof *queued->begins);
    queued->ends = array_zeros(run->work_count, sizeof *queued->ends);
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

static size_t queued_streams(struct queued *queued, const struct run *run, const struct hold *holds,
    uint32_t device, int64_t at)
{
    if (!queued->made) make(queued, run, holds, device);
    return FIRST_NOT(i, 0, queued->count, queued->begins[i] <= at) -
           FIRST_NOT(i, 0, queued->count, queued->ends[i] <= at);
}

/* --- late work --- */

/* The number of a device's busiest streams that are tested: a bound for thousands of streams. */
enum { STREAMS_ASKED = 64 };

/* A time in which a piece of work waited. */
struct wait {
    int64_t from, to;
    enum cause cause;
    uint32_t behind; /* the stream that was at work, if the cause names it; NONE */
};

/* The part of a loss that is left for work which follows the late work at once: that work would
 * have begun earlier too. */
struct rest {
    struct late late;
    int64_t left;
    int64_t end;    /* when all work so far on the stream had ended */
    uint32_t works; /* how many pieces of the stream's work are judged */
};

struct search {
    const struct run *run;
    const struct hold *holds;
    struct timelines timelines;
    int64_t *moved; /* by place on the timelines: ns up to here that could have run earlier */
    struct queued *queued;   /* by device; made on first use */
    struct host_wait *waits; /* by call: its thread's last wait before it */
    struct rest *rests;      /* by stream */
    struct overlap *found;
};

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* --- who was at work --- */

static int64_t *moved_of(const struct search *s, uint32_t stream)
{
    return s->moved + (s->timelines.by_stream[stream].works - s->timelines.works.members);
}

/* Returns how much could have run earlier of the stream's work that had begun before `at`. Work
 * that was running at `at` counts with at most the time for which it had run. */
static int64_t moved_until(struct search *s, uint32_t stream, int64_t at)
{
    struct timeline *timeline = &s->timelines.by_stream[stream];
    const uint32_t last = timeline_last(timeline, s->run, at - 1);
    if (last == NONE) return 0;
    const int64_t *moved = moved_of(s, stream), before = last ? moved[last - 1] : 0;
    return before + earlier(moved[last] - before, at - s->run->works[timeline->works[last]].begin);
}

/* Returns how long the stream was at work, less what could have run earlier itself. */
static int64_t busy_between(struct search *s, uint32_t stream, int64_t from, int64_t to)
{
    struct timeline *timeline = &s->timelines.by_stream[stream];
    const int64_t busy = timeline_busy(timeline, s->run, to);
    if (!busy) return 0;
    return busy - moved_until(s, stream, to) -
           (timeline_busy(timeline, s->run, from) - moved_until(s, stream, from));
}

/* Whether one of the stream's last two works ended just before `to`, and made room. */
static bool made_room(struct search *s, uint32_t stream, int64_t to)
{
    struct timeline *timeline = &s->timelines.by_stream[stream];
    const uint32_t last = timeline_last(timeline, s->run, to - 1);
    for (uint32_t i = 0; last != NONE && i < 2 && i <= last; i++) {
        const int64_t end = s->run->works[timeline->works[last - i]].end;
        if (end <= to && end > to - RELEASE_NS) return true;
    }
    return false;
}

/* Whether the wait can be for the stream's work. A wait because of the legacy order or the host
 * lasts until all that work is done, so none of it runs when the wait ends. A wait for room may end
 * while a kernel still runs, as the kernel's first blocks that end make room. */
static bool eligible(struct search *s, const struct wait *wait, uint32_t stream)
{
    const struct stream *other = &s->run->streams[stream];
    struct timeline *timeline = &s->timelines.by_stream[stream];
    if (wait->cause == CAUSE_LEGACY && other->origin == ORIGIN_CREATED && other->non_blocking)
        return false;
    if (wait->cause == CAUSE_DEVICE_FULL)
        return timeline_running(timeline, s->run, wait->to - RELEASE_NS) != NONE;
    if (wait->cause != CAUSE_LEGACY && wait->cause != CAUSE_HOST)
        return made_room(s, stream, wait->to);
    const uint32_t last = timeline_last(timeline, s->run, wait->to - 1);
    return last != NONE && timeline->end[last] <= wait->to;
}

/* Returns the stream of the same device that was at work longest in the wait, and how long. */
static uint32_t longest_at_work(
    struct search *s, const struct wait *wait, uint32_t waiting, int64_t *busy)
{
    const uint32_t device = s->run->streams[waiting].device;
    const uint32_t begin = s->timelines.first[device], end = s->timelines.first[device + 1];
    uint32_t longest = NONE;
    *busy = 0;
    for (uint32_t i = begin; i < end && i - begin < STREAMS_ASKED; i++) {
        const uint32_t stream = s->timelines.busiest[i];
        if (stream == waiting || !eligible(s, wait, stream)) continue;
        const int64_t was = busy_between(s, stream, wait->from, wait->to);
        if (was > *busy) *busy = was, longest = stream;
    }
    return longest;
}

/* --- what work waited for --- */

/* Finds why work that was ready had not begun: another copy in the same direction ran, kernels
 * filled the device, or more streams had work than there are hardware queues. */
static void judge_ready(struct search *s, const struct work *work, struct wait *wait)
{
    const uint32_t device = work_device(s->run, work);
    const uint32_t begin = s->timelines.first[device], end = s->timelines.first[device + 1];
    const int64_t at =
        wait->to - RELEASE_NS; /* work that still ran at this time may have made room by ending */
    double filled = 0;
    for (uint32_t i = begin; i < end && i - begin < STREAMS_ASKED; i++) {
        const uint32_t other =
            timeline_running(&s->timelines.by_stream[s->timelines.busiest[i]], s->run, at);
        if (other == NONE || s->timelines.busiest[i] == work->stream) continue;
        const struct work *running = &s->run->works[other];
        if (work->kind == WORK_COPY && running->kind == WORK_COPY && running->way == work->way) {
            wait->cause = CAUSE_COPY_ENGINE;
            wait->behind = running->stream;
            return;
        }
        const double fills = kernel_fills(s->run, running);
        if (fills > 0) filled += fills;
    }
    if (work->kind == WORK_KERNEL && filled >= 1) wait->cause = CAUSE_DEVICE_FULL;
    else if (queued_streams(&s->queued[device], s->run, s->holds, device, at) > HARDWARE_QUEUES)
        wait->cause = CAUSE_HARDWARE_QUEUE;
}

/* Fills in the waits of one work. `own`: when all work before it on its stream had ended. */
static int waits_of(struct search *s, uint32_t number, int64_t own, struct wait waits[4])
{
    const struct work *work = &s->run->works[number];
    const struct hold *hold = &s->holds[number];
    const int64_t enqueued = earlier(hold->enqueued, work->begin),
                  ready = earlier(hold->ready, work->begin);
    const int64_t without_legacy = earlier(hold->without_legacy, work->begin);
    int count = 0;
    const struct host_wait *host = work->call == NONE ? NULL : &s->waits[work->call];
    if (host && host->call != NONE) {
        const struct call *call = &s->run->calls[host->call];
        waits[count++] = (struct wait){
            later(own, enqueued - (call->end - call->begin)), enqueued, CAUSE_HOST, host->stream};
    }
    if (hold->cause == CAUSE_EVENT && hold->blocker != NONE)
        waits[count++] = (struct wait){
            later(own, enqueued), ready, CAUSE_EVENT, s->run->works[hold->blocker].stream};
    if (hold->cause == CAUSE_LEGACY)
        waits[count++] =
            (struct wait){later(enqueued, later(own, without_legacy)), ready, CAUSE_LEGACY, NONE};
    struct wait *last = &waits[count];
    *last = (struct wait){later(enqueued, later(own, ready)), work->begin, CAUSE_UNKNOWN, NONE};
    if (last->to - last->from > RELEASE_NS) {
        judge_ready(s, work, last);
        count++;
    }
    return count;
}

/* --- what late work lost --- */

static void keep(struct search *s, struct late late, int64_t lost)
{
    struct overlap *found = s->found;
    late.lost = lost;
    array_add(found->lates, found->late_count, found->late_capacity, late);
}

/* Judges one wait of a work that can still lose `budget` ns, and returns what the wait lost. */
static int64_t lose(struct search *s, uint32_t number, struct wait *wait, int64_t budget)
{
    const uint32_t own = s->run->works[number].stream;
    int64_t busy = 0;
    if (wait->to <= wait->from + RELEASE_NS) return 0;
    if (wait->behind == NONE) wait->behind = longest_at_work(s, wait, own, &busy);
    else if (wait->behind != own &&
             s->run->streams[wait->behind].device == s->run->streams[own].device)
        busy = busy_between(s, wait->behind, wait->from, wait->to);
    const int64_t lost = earlier(busy, budget);
    if (lost <= 0) return 0;
    struct timeline *behind = &s->timelines.by_stream[wait->behind];
    const struct late late = {number, wait->behind,
        behind->works[timeline_last(behind, s->run, wait->to)], wait->cause, 0};
    keep(s, late, lost);
    s->rests[own].late = late;
    s->rests[own].left = busy - lost;
    return lost;
}

/* Judges work right behind work that waited: without the wait, this work would have begun earlier
 * too. Returns how many ns of this work would have run earlier. */
static int64_t follow(struct search *s, uint32_t number, struct rest *rest)
{
    const struct work *work = &s->run->works[number];
    const int64_t enqueued = s->holds[number].enqueued;
    const bool at_once = rest->left > 0 && work->begin - rest->end <= RELEASE_NS &&
                         (enqueued < rest->end || rest->late.cause == CAUSE_HOST);
    const int64_t movable = rest->late.cause == CAUSE_HOST ? INT64_MAX : work->begin - enqueued;
    const int64_t lost =
        at_once ? earlier(earlier(work->end - work->begin, rest->left), movable) : 0;
    if (lost <= 0) {
        rest->left = 0;
        return 0;
    }
    struct late late = rest->late;
    late.work = number;
    keep(s, late, lost);
    rest->left -= lost;
    return lost;
}

static void judge(struct search *s, uint32_t number)
{
    const struct work *work = &s->run->works[number];
    struct rest *rest = &s->rests[work->stream];
    struct wait waits[4];
    const int count = waits_of(s, number, rest->end, waits);
    int64_t lost = 0;
    for (int i = 0; i < count; i++)
        lost += lose(s, number, &waits[i], work->end - work->begin - lost);
    if (!lost) lost = follow(s, number, rest);
    rest->end = later(rest->end, work->end);
    int64_t *moved = moved_of(s, work->stream);
    moved[rest->works] = (rest->works ? moved[rest->works - 1] : 0) + lost;
    rest->works++;
}

/* --- pairs of streams --- */

static int by_pair(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    return ORDER(a->first, b->first) ?: ORDER(a->second, b->second) ?: ORDER(a->cause, b->cause) ?: ORDER(a->late, b->late);
}

static int by_loss(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    return ORDER(b->lost, a->lost) ?: by_pair(left, right);
}

/* The share of the device's span that a pair must have lost to count: less may be chance. */
static const double PAIR_SHARE = 0.01;
/* The share of the less busy stream's time for which a pair may overlap and still count. */
static const double TOGETHER_SHARE = 0.1;

static bool counts(const struct search *s, const struct idles *idles, const struct pair *pair)
{
    const struct span *span = &idles->devices[s->run->streams[pair->second].device];
    if ((double)pair->lost <= PAIR_SHARE * (double)(span->end - span->begin)) return false;
    const struct timeline *first = &s->timelines.by_stream[pair->first],
                          *second = &s->timelines.by_stream[pair->second];
    const int64_t shorter = earlier(first->busy[first->count - 1], second->busy[second->count - 1]);
    return (double)timeline_together(first, second, s->run) < TOGETHER_SHARE * (double)shorter;
}

static void make_pairs(struct search *s, const struct idles *idles)
{
    struct overlap *found = s->found;
    struct pair *each = array_zeros(found->late_count, sizeof *each);
    for (uint32_t i = 0; i < found->late_count; i++) {
        const struct late *late = &found->lates[i];
        each[i] = (struct pair){
            late->behind, s->run->works[late->work].stream, late->cause, 1, i, late->lost};
    }
    qsort(each, found->late_count, sizeof *each, by_pair);
    for (size_t i = 0, next; i < found->late_count; i = next) {
        struct pair sum = each[i];
        for (next = i + 1; next < found->late_count && each[next].first == sum.first &&
                           each[next].second == sum.second && each[next].cause == sum.cause;
            next++) {
            sum.lost += each[next].lost;
            sum.times++;
            if (found->lates[sum.late].lost < each[next].lost) sum.late = each[next].late;
        }
        if (counts(s, idles, &sum))
            array_add(found->pairs, found->pair_count, found->pair_capacity, sum);
    }
    free(each);
    if (found->pair_count) qsort(found->pairs, found->pair_count, sizeof *found->pairs, by_loss);
}

void overlap_make(struct overlap *overlap, const struct run *run, const struct hold *holds,
    const struct idles *idles)
{
    *overlap = (struct overlap){0};
    struct search s = {.run = run, .holds = holds, .found = overlap};
    timelines_make(&s.timelines, run);
    s.moved = array_zeros(run->work_count, sizeof *s.moved);
    s.queued = array_zeros(run->device_count, sizeof *s.queued);
    s.waits = host_waits_make(run);
    s.rests = array_zeros(run->stream_count, sizeof *s.rests);
    for (size_t i = 0; i < run->stream_count; i++) s.rests[i].end = INT64_MIN;
    for (uint32_t i = 0; i < run->work_count; i++) judge(&s, i);
    make_pairs(&s, idles);
    for (size_t i = 0; i < run->device_count; i++) free(s.queued[i].begins), free(s.queued[i].ends);
    free(s.queued);
    free(s.moved);
    free(s.waits);
    free(s.rests);
    timelines_free(&s.timelines);
}
