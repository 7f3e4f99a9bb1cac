/*
 * Rules about the host: things that it did while the GPU was idle, though the GPU need not have
 * waited for them; and launches that do not keep up with the GPU.
 *
 * If the host had not waited in a call, all that came after the call would have come earlier, by
 * the call's time. So the idle time after it would be shorter by that time, or by the host's part
 * of the idle time if that is less.
 */

#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

struct search {
    struct findings *to;
    const struct run *run;
    struct host_wait *waits; /* by call */
    struct numbers pageable; /* by a name's text: 1 if it names a copy of pageable memory, else 0 */
    struct numbers allocates; /* the texts of calls that allocate or free */
};

/* The call that is to blame for a gap, and its part of the gap. */
struct blame {
    int64_t cost;
    uint32_t call; /* NONE: no call */
};
static const struct blame nobody = {0, NONE};

typedef bool matcher(struct search *s, const struct call *call);

/* A rule of this file. */
struct host_rule {
    struct blame (*blame)(struct search *s, const struct gap *gap, matcher *matches);
    matcher *matches;                           /* the calls to blame */
    uint32_t (*place)(const struct call *call); /* returns the call's thread or stream */
    const char *(*name)(struct findings *to, uint32_t place);
    uint64_t least;   /* how many gaps of a place make a find, at least */
    const char *what; /* the begin of the evidence */
    const char *(*more)(struct search *s, uint32_t place); /* the end of the evidence; NULL: none */
};

static uint32_t thread_of(const struct call *call) { return call->thread; }
static uint32_t stream_of(const struct call *call) { return call->stream; }
static int64_t duration(const struct call *call) { return call->end - call->begin; }
static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* --- all rules --- */

static void look(struct findings *to, const struct host_rule *rule, struct search *s)
{
    struct tallies tolls = {0}; /* by device and place. sum[0]: the call of the longest gap */
    struct gap gap;
    s->to = to;
    s->waits = host_waits_make(s->run);
    for (size_t at = 0; gap_next(&to->of->idles, s->run, &at, &gap);) {
        const struct blame blame = rule->blame(s, &gap, rule->matches);
        const uint32_t place = blame.cost > 0 ? rule->place(&s->run->calls[blame.call]) : NONE;
        if (place == NONE) continue;
        struct tally *toll = tally_of(&tolls, key_of(gap.device, place));
        if (blame.cost > toll->longest) toll->sum[0] = blame.call;
        tally_add(toll, blame.cost);
    }
    for (size_t i = 0; i < tolls.count; i++) {
        const struct tally *toll = &tolls.rows[i];
        const uint32_t place = key_low(toll->key);
        if (toll->times < rule->least) continue;
        finding(to, key_high(toll->key), rule->name(to, place), (double)toll->total, toll->times,
            "%s: at most %s at once, by %s%s", rule->what, SHOWN(UNIT_NS, toll->longest),
            text_in(s->run, s->run->calls[(size_t)toll->sum[0]].name),
            rule->more ? rule->more(s, place) : "");
    }
    tallies_free(&tolls);
    free(s->waits);
}

/* Returns the wait that the enqueuing thread was in when the gap began; NONE. */
static uint32_t wait_before(const struct search *s, const struct gap *gap)
{
    const uint32_t enqueuing = s->run->works[gap->next].call;
    uint32_t wait = enqueuing == NONE ? NONE : s->waits[enqueuing].call;
    while (wait != NONE && s->run->calls[wait].begin >= gap->begin) wait = s->waits[wait].call;
    return wait != NONE && s->run->calls[wait].end + RELEASE_NS >= gap->begin ? wait : NONE;
}

static struct blame blame_wait(struct search *s, const struct gap *gap, matcher *matches)
{
    const uint32_t wait = wait_before(s, gap);
    if (wait == NONE || !matches(s, &s->run->calls[wait])) return nobody;
    return (struct blame){earlier(gap->host, duration(&s->run->calls[wait])), wait};
}

/* Blames the matching calls of the enqueuing thread in the gap. The last one stands for all. */
static struct blame blame_calls(struct search *s, const struct gap *gap, matcher *matches)
{
    struct blame blame = nobody;
    int64_t sum = 0;
    for (size_t i = gap->first; i < gap->last; i++) {
        const struct idle *piece = &s->to->of->idles.rows[i];
        if (piece->cause != CAUSE_HOST || piece->call == NONE || piece->call == blame.call ||
            !matches(s, &s->run->calls[piece->call]))
            continue;
        blame.call = piece->call;
        sum += duration(&s->run->calls[piece->call]);
    }
    blame.cost = earlier(gap->host, sum);
    return blame;
}

/* --- CS103, CS104: waits --- */

static bool call_waits_for_all(struct search *s, const struct call *call)
{
    (void)s;
    return call_kind(call) == CS_KIND_SYNC && call_how(call, CS_HOW_WIDE);
}

void look_synchronisation(struct findings *to)
{
    /* Fewer waits may be the ends of phases; so many are a loop. */
    static const struct host_rule rule = {blame_wait, call_waits_for_all, thread_of, find_thread, 5,
        "the GPU was idle after the thread had waited for all of it", NULL};
    look(to, &rule, &(struct search){.run = &to->of->run});
}

static bool call_copies(struct search *s, const struct call *call)
{
    (void)s;
    return call_kind(call) == CS_KIND_COPY;
}

void look_blocking_copies(struct findings *to)
{
    static const struct host_rule rule = {blame_wait, call_copies, stream_of, find_stream, 1,
        "the GPU was idle after the host had waited for a copy", NULL};
    look(to, &rule, &(struct search){.run = &to->of->run});
}

/* --- CS105: pageable memory --- */

static bool work_pageable(struct search *s, const struct work *work)
{
    if (work->kind != WORK_COPY) return false;
    uint32_t *known = numbers_at(&s->pageable, work->name, NONE);
    if (*known == NONE)
        *known = strstr(text_in(s->run, work->name), "Pageable") != NULL; /* as Kineto names it */
    return *known;
}

static bool call_pageable(struct search *s, const struct call *call)
{
    return call->works && work_pageable(s, &s->run->works[s->run->works_of[call->work]]);
}

/* Blames copies of pageable memory. The driver copies through memory of its own: before a copy to
 * the device begins, and during the call of a copy from the device. */
static struct blame blame_pageable(struct search *s, const struct gap *gap, matcher *matches)
{
    struct blame blame = blame_calls(s, gap, matches);
    if (blame.call == NONE) blame = blame_wait(s, gap, matches);
    const struct work *next = &s->run->works[gap->next];
    if (next->call != NONE && work_pageable(s, next))
        blame = (struct blame){blame.cost + gap->launch, next->call};
    return blame;
}

/* Tells how long pageable copies took. That is no cost: how long pinned ones take is not known. */
static const char *pageable_copies(struct search *s, uint32_t stream)
{
    int64_t took = 0;
    for (size_t w = 0; w < s->run->work_count; w++) {
        const struct work *work = &s->run->works[w];
        if (work->stream == stream && work_pageable(s, work)) took += work->end - work->begin;
    }
    return report_text(s->to->report,
        "; the copies themselves took %s, and pinned memory makes them shorter too",
        SHOWN(UNIT_NS, took));
}

void look_pageable(struct findings *to)
{
    static const struct host_rule rule = {blame_pageable, call_pageable, stream_of, find_stream, 1,
        "the GPU was idle while or after pageable memory was copied", pageable_copies};
    struct search s = {.run = &to->of->run};
    look(to, &rule, &s);
    numbers_free(&s.pageable);
}

/* --- CS106: memory --- */

/* Calls that allocate or free and are not in the call table, by their names in other tools'
 * traces. */
static const char *const allocating[] = {"cudaMalloc", "cudaFree", "cudaMallocHost",
    "cudaHostAlloc", "cudaFreeHost", "cudaMallocManaged", "cudaMallocPitch", "cuMemAlloc_v2",
    "cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuMemAllocManaged"};

static bool call_allocates(struct search *s, const struct call *call)
{
    if (call_kind(call) == CS_KIND_MEMORY)
        return call->stream == NONE && !call_how(call, CS_HOW_PREFETCHES);
    return call->call == CS_CALL_NONE && numbers_get(&s->allocates, call->name, 0);
}

void look_allocations(struct findings *to)
{
    static const struct host_rule rule = {blame_calls, call_allocates, thread_of, find_thread, 1,
        "the GPU was idle while the thread allocated or freed memory", NULL};
    struct search s = {.run = &to->of->run};
    for (size_t i = 0; i < sizeof allocating / sizeof *allocating; i++) {
        const text name = text_find(&s.run->texts, allocating[i]);
        if (name) *numbers_at(&s.allocates, name, 1) = 1;
    }
    look(to, &rule, &s);
    numbers_free(&s.allocates);
}

/* --- CS107: launches --- */

/* A kernel is short if a launch takes as long: 2 to 10 us, with a framework's own code 60. */
enum { SHORT_NS = 50000 };
/* A longer gap is not explained by a launch. */
enum { LAUNCH_GAP_NS = 100000 };
/* The least number of short kernels in a row that are worth a graph. */
enum { KERNELS_IN_A_ROW = 20 };

/* Short kernels, one after the other, with the host's time between them. Memsets and copies within
 * the device, which frameworks put between such kernels, belong to the stretch: a graph can have
 * them, too. */
struct stretch {
    int64_t idle, busy;
    uint64_t kernels, others;
    int64_t last_end; /* when its last gap ended */
    uint32_t stream;  /* the stream of its last kernel */
};

struct launches {
    struct stretch sum, longest; /* sums over a device's stretches, and its longest one */
    uint64_t stretches;
};

static void end_stretch(struct launches *launches, struct stretch *now)
{
    if (now->kernels >= KERNELS_IN_A_ROW) {
        if (now->idle > launches->longest.idle) launches->longest = *now;
        launches->sum.idle += now->idle;
        launches->sum.busy += now->busy;
        launches->sum.kernels += now->kernels;
        launches->sum.others += now->others;
        launches->stretches++;
    }
    *now = (struct stretch){0};
}

static void end_device(struct findings *to, struct launches *launches, uint32_t device)
{
    const struct stretch *sum = &launches->sum;
    if (launches->stretches) {
        const uint64_t all = sum->kernels + sum->others;
        finding(to, device, find_stream(to, launches->longest.stream), (double)sum->idle, all,
            "%s of %s, with %s of idle time before each, on the average; up to %lu in a row",
            sum->others ? "kernels, memsets and copies on the GPU," : "kernels",
            SHOWN(UNIT_NS, (double)sum->busy / (double)all),
            SHOWN(UNIT_NS, (double)sum->idle / (double)all),
            (unsigned long)(launches->longest.kernels + launches->longest.others));
    }
    *launches = (struct launches){0};
}

static bool is_other(const struct work *work)
{
    return work->kind == WORK_SET || (work->kind == WORK_COPY && work->way == CS_WAY_DtoD);
}

/* Whether nothing but the launch of a short kernel, or of a memset or copy among these, explains a
 * gap: the thread did not wait for the GPU in it. */
static bool is_launch(const struct run *run, const struct idles *idles, const struct gap *gap)
{
    const struct work *next = &run->works[gap->next];
    int64_t order = 0; /* ns in which the work waited for earlier work on its stream */
    for (size_t i = gap->first; i < gap->last; i++) {
        const struct idle *piece = &idles->rows[i];
        if (piece->cause == CAUSE_HOST && piece->doing == DOING_BLOCKED) return false;
        if (piece->cause == CAUSE_ORDER) order += piece->end - piece->begin;
    }
    return gap->host + gap->launch + order == gap->end - gap->begin &&
           gap->end - gap->begin <= LAUNCH_GAP_NS &&
           (next->kind == WORK_KERNEL || is_other(next)) && !next->graph &&
           next->end - next->begin <= SHORT_NS;
}

void look_launches(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct launches launches = {0};
    struct stretch now = {0};
    struct gap gap, last = {.device = NONE};
    for (size_t at = 0; gap_next(&to->of->idles, run, &at, &gap); last = gap) {
        const bool follows =
            gap.device == last.device && now.kernels && gap.begin - now.last_end <= SHORT_NS;
        if (!follows) end_stretch(&launches, &now);
        if (last.device != NONE && last.device != gap.device)
            end_device(to, &launches, last.device);
        if (!is_launch(run, &to->of->idles, &gap)) {
            end_stretch(&launches, &now);
            continue;
        }
        now.last_end = gap.end;
        if (!gap.host && !gap.launch) continue;
        now.idle += gap.host + gap.launch;
        now.busy += run->works[gap.next].end - run->works[gap.next].begin;
        *(is_other(&run->works[gap.next]) ? &now.others : &now.kernels) += 1;
        now.stream = run->works[gap.next].stream;
    }
    end_stretch(&launches, &now);
    if (last.device != NONE) end_device(to, &launches, last.device);
}
