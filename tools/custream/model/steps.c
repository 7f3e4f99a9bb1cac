/* Finds the steps that GPU work, waits of the host and ranges show. A level is what a loop does: a
 * step, a layer in a step, or a log every ten steps. The begins of one kernel, or of its bursts,
 * cut the steady part into intervals. They are a level if nearly all that comes as often comes in
 * each interval, and equally often. The steps are the outermost level, or the one in it that has
 * only logs, evaluations or variants of its kernels around it. If a level in them might be meant
 * they are not known. */
#include "tools/custream/model/steps.h"

#include <math.h>

struct repeats repeats_make(
    const struct steady *steady, uint32_t times, int64_t first, int64_t last, text name)
{
    const double most = 0.8, length = (double)(steady->end - steady->begin),
                 span = (double)(last - first);
    const double period = times > 1 ? span / (times - 1) : 0;
    return period > 0 && span + period >= most * length ? (struct repeats){times, period, name}
                                                        : (struct repeats){0};
}

enum {
    PAUSED = NONE - 1, /* the stream of calls behind a pause */
    FEWEST = 3,        /* fewer times are no level */
};

/* A thing that may repeat. */
struct entry {
    text name;
    uint32_t stream;
    enum what {
        WHAT_OTHER,
        WHAT_KERNEL,
        WHAT_GRAPH,
        WHAT_INPUT,  /* a copy to the device */
        WHAT_RESULT, /* a copy from it */
        WHAT_WAIT,
        WHAT_PAUSE, /* the call behind a pause of its thread */
    } what;
    int64_t at, called; /* when it began, and when its call began */
};

/* The entries of one name on one stream, in order. */
struct series {
    text name;
    enum what what;
    uint32_t times; /* how many were called in the steady part */
};

/* The begins of a series that may begin a level. A begin at most `apart` behind the one before is
 * left out: it is in the same burst. */
struct beat {
    uint32_t series, times;
    int64_t apart;
};

struct finder {
    const struct run *run;
    const struct steady *steady;
    bool *paused; /* by call: its thread made no call for OWN_CODE_NS before it */
    struct series *series;
    size_t series_count, series_capacity;
    struct groups entries; /* numbers of entries, by series */
    struct beat *beats;
    size_t beat_count, beat_capacity;
};

/* Reads number `i` of all work, then all calls, then all ranges. False: it is no entry. */
static bool entry_read(const struct finder *f, size_t i, struct entry *entry)
{
    const struct run *run = f->run;
    if (i < run->work_count) {
        const struct work *work = &run->works[i];
        const enum what what = work->kind == WORK_KERNEL  ? WHAT_KERNEL
                               : work->kind == WORK_GRAPH ? WHAT_GRAPH
                               : work->kind != WORK_COPY  ? WHAT_OTHER
                               : work->way == CS_WAY_HtoD ? WHAT_INPUT
                               : work->way == CS_WAY_DtoH ? WHAT_RESULT
                                                          : WHAT_OTHER;
        *entry = (struct entry){work->name, work->stream, what, work->begin,
            work->call == NONE ? work->begin : run->calls[work->call].begin};
    } else if (i - run->work_count < run->call_count) {
        const struct call *call = &run->calls[i - run->work_count];
        const bool waits = !call->works && call_waits(call);
        if (!waits && !f->paused[i - run->work_count]) return false;
        *entry = (struct entry){call->name, waits ? call->stream : PAUSED,
            waits ? WHAT_WAIT : WHAT_PAUSE, call->begin, call->begin};
    } else {
        const struct range *range = &run->ranges[i - run->work_count - run->call_count];
        *entry = (struct entry){range->name, NONE, WHAT_OTHER, range->begin, range->begin};
    }
    return true;
}

static bool in_part(const struct steady *part, const struct entry *entry)
{
    return entry->called >= part->begin && entry->called <= part->end;
}

static void series_collect(struct finder *f)
{
    const struct run *run = f->run;
    const size_t count = run->work_count + run->call_count + run->range_count;
    struct numbers of_key = {0};
    uint32_t *of = array_none(count);
    int64_t *ended = array_zeros(run->thread_count, sizeof *ended);
    struct entry entry;
    f->paused = array_zeros(run->call_count, sizeof *f->paused);
    for (size_t t = 0; t < run->thread_count; t++) ended[t] = INT64_MIN / 2;
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        f->paused[i] = call->begin - ended[call->thread] >= OWN_CODE_NS;
        if (call->end > ended[call->thread]) ended[call->thread] = call->end;
    }
    for (size_t i = 0; i < count; i++) {
        if (!entry_read(f, i, &entry)) continue;
        of[i] = *numbers_at(&of_key, key_of(entry.name, entry.stream), (uint32_t)f->series_count);
        if (of[i] == f->series_count)
            array_add(f->series, f->series_count, f->series_capacity,
                ((struct series){entry.name, entry.what, 0}));
        f->series[of[i]].times += in_part(f->steady, &entry);
    }
    f->entries = groups_make(f->series_count, of, count, sizeof *of, 0);
    numbers_free(&of_key);
    free(of);
    free(ended);
}

/* Adds the beats of a series: all its begins, and its bursts. Bursts are found by the distances of
 * begins: none is twice the longest in a burst, and less than that between bursts. */
static void beats_add(struct finder *f, uint32_t series)
{
    enum { SIZES = 128, DOUBLE = 2 /* a distance of twice the length is two sizes larger */ };
    const uint32_t *entries = f->entries.members, end = f->entries.begins[series + 1];
    uint32_t sizes[SIZES] = {0}, count = 0;
    int64_t first = 0, last = 0;
    struct entry entry;
    for (uint32_t i = f->entries.begins[series]; i < end; i++) {
        entry_read(f, entries[i], &entry);
        if (!in_part(f->steady, &entry)) continue;
        const double ns = fmax((double)(entry.at - last), 1);
        if (count++) sizes[(int)(DOUBLE * log2(ns))]++;
        else first = entry.at;
        last = entry.at;
    }
    for (int size = 0; size < SIZES && count > 1; count -= sizes[size++])
        if (sizes[size] && (size < DOUBLE || !(sizes[size - 1] || sizes[size - 2])) &&
            repeats_make(f->steady, count, first, last, 0).times)
            array_add(f->beats, f->beat_count, f->beat_capacity,
                ((struct beat){series, count, (int64_t)exp2((double)size / DOUBLE) - 1}));
}

COMPARES(fewer_first, struct beat, ORDER(a->times, b->times) ?: ORDER(a->series, b->series))

/* --- levels --- */

struct level {
    struct repeats repeats; /* times 0: this is no level */
    bool taken;             /* its begins are regular, so that all entries were looked at */
    bool constant;          /* nearly all its intervals hold as many entries as the one before */
    bool uneven;            /* a kernel comes more often in a few of its intervals */
    bool evaluates;         /* many kernels do, and many do not: some steps have forwards behind */
    bool waits; /* each interval has something that the host does for steps and hardly for layers:
                   a copy, a wait, a pause, or a graph's launch */
    /* Things that come once in each interval. host: as `waits`. result: a copy from the device.
     * work: a kernel or a copy to the device. */
    bool host, result, work;
};

/* Takes the begins of a beat in the steady part, and in a period before and behind it, as the part
 * may lack a piece of its first or last step. Zeros: fewer than three of four intervals are near
 * the period. calls: when the calls of the begins began. */
static struct repeats beat_take(const struct finder *f, const struct beat *beat, int64_t *calls)
{
    const struct steady *steady = f->steady;
    const int64_t period = (steady->end - steady->begin) / beat->times;
    const struct steady wide = {steady->begin - period, steady->end + period, 0};
    int64_t first = 0, last = 0, before = 0;
    uint32_t count = 0, near = 0;
    struct entry entry;
    for (uint32_t i = f->entries.begins[beat->series]; i < f->entries.begins[beat->series + 1];
        i++) {
        entry_read(f, f->entries.members[i], &entry);
        if (!in_part(&wide, &entry)) continue;
        const bool in_burst = count && entry.at - before <= beat->apart;
        before = entry.at;
        if (in_burst) continue;
        if (!count) first = entry.at;
        else near += 2 * (entry.at - last) >= period && entry.at - last <= 2 * period;
        calls[count++] = entry.called;
        last = entry.at;
    }
    return count >= FEWEST && 4 * near >= 3 * (count - 1)
               ? repeats_make(steady, count, first, last, f->series[beat->series].name)
               : (struct repeats){0};
}

/* How often a series comes in the intervals between the begins of a level. `held` counts the
 * entries of all series in each interval. */
struct presence {
    uint32_t each; /* the mean, rounded; 0: not in each interval, or in fewer than 49 of 50 */
    uint32_t same; /* how many intervals have as many as the one before */
    bool outside;  /* the series comes right before the first begin, or behind the last one */
};

static struct presence presence_of(const struct finder *f, uint32_t series, const int64_t *begins,
    const struct repeats *repeats, uint32_t *held)
{
    const uint32_t intervals = repeats->times - 1, end = f->entries.begins[series + 1];
    uint32_t at = 0, times = 0, before = 0, with = 0, all = 0;
    struct presence presence = {0};
    struct entry entry;
    for (uint32_t i = f->entries.begins[series]; i < end; i++) {
        entry_read(f, f->entries.members[i], &entry);
        if (entry.called < begins[0]) {
            presence.outside |= (double)(begins[0] - entry.called) < repeats->period;
            continue;
        }
        for (; at < intervals && entry.called >= begins[at + 1]; at++, times = 0) {
            with += times > 0;
            presence.same += at && times == before;
            all += before = times;
        }
        presence.outside |= at == intervals;
        if (at == intervals) break;
        times++;
        held[at] += f->series[series].what != WHAT_PAUSE;
    }
    if (at < intervals) {
        with += times > 0;
        presence.same += at && times == before;
        all += times;
    }
    if (with + 1 + intervals / 50 > intervals) presence.each = (all + intervals / 2) / intervals;
    return presence;
}

static struct level level_make(const struct finder *f, const struct beat *beat)
{
    const uint32_t *members = f->entries.begins + beat->series;
    int64_t *begins = array_zeros(members[1] - members[0], sizeof *begins);
    struct level level = {.repeats = beat_take(f, beat, begins)};
    const uint32_t times = level.repeats.times;
    uint32_t all = 0, good = 0, outside = 0, even = 0, uneven = 0, changes = 0;
    uint32_t *held = array_zeros(times + 1, sizeof *held);
    bool computes = false;
    for (uint32_t s = 0; times && s < f->series_count; s++) {
        const enum what what = f->series[s].what;
        const struct presence presence = presence_of(f, s, begins, &level.repeats, held);
        if (f->series[s].times + 2 < times) continue;
        const bool present = presence.each > 0, work = what == WHAT_KERNEL || what == WHAT_GRAPH,
                   own = present && (presence.each == 1 || s == beat->series);
        if (what != WHAT_PAUSE) {
            all++;
            good += present && 2 * presence.same + 2 >= times;
            outside += present && presence.outside;
        }
        computes |= work;
        if (present && work) *(presence.same + 2 < times ? &uneven : &even) += 1;
        level.waits |= present && what >= WHAT_GRAPH;
        level.host |= own && what >= WHAT_GRAPH;
        level.result |= own && what == WHAT_RESULT;
        level.work |= own && (work || what == WHAT_INPUT);
    }
    for (uint32_t i = 1; i + 1 < times; i++) changes += held[i] != held[i - 1];
    level.taken = times > 0;
    level.constant = changes <= 2 + times / 1000;
    level.uneven = uneven > 0;
    level.evaluates = uneven && 3 * uneven >= even && 3 * even >= uneven;
    free(begins);
    free(held);
    if (!computes || 4 * good < 3 * all) level.repeats.times = 0;
    else if (4 * outside < 3 * good) /* behind the last begin is no step */
        level.repeats.times = times > FEWEST ? times - 1 : 0;
    return level;
}

struct repeats repeats_of_work(const struct run *run, const struct steady *steady)
{
    enum { LEAST = 5, TRIES = 40 };
    struct finder f = {.run = run, .steady = steady};
    struct level steps = {0};
    uint32_t finest = 0, inner = 0; /* inner: how many levels there are in a step */
    bool known = true, uneven = false, waits = false;
    series_collect(&f);
    for (uint32_t s = 0; s < f.series_count; s++) {
        waits |= f.series[s].what >= WHAT_GRAPH && f.series[s].times > 1;
        if (f.series[s].what != WHAT_PAUSE) beats_add(&f, s);
    }
    if (f.beat_count) qsort(f.beats, f.beat_count, sizeof *f.beats, fewer_first);
    for (size_t i = 0, tries = 0; i < f.beat_count && tries < TRIES; i++) {
        if (f.beats[i].times <= finest + 1) continue;
        const struct level level = level_make(&f, &f.beats[i]);
        tries += level.taken;
        if (!level.repeats.times || (level.repeats.times + 2 < 2 * finest && !level.constant))
            continue;
        finest = level.repeats.times;
        if (!steps.repeats.times || level.constant || (!inner && level.host && !steps.work) ||
            (!inner && level.host && level.evaluates && !steps.evaluates)) {
            steps = level; /* around it are at most variants, looks at results or evaluations */
            known = true;
            uneven = false;
            inner = 0;
            continue;
        }
        inner++;
        uneven |= level.uneven;
        if (level.evaluates && !steps.evaluates) known = false;
        /* batches, or steps: the level around may be the optimizer, or a log with kernels */
        if (level.host &&
            (steps.host || !steps.work || level.uneven || steps.repeats.times < LEAST))
            known = false;
    }
    if (!steps.waits && (!inner || waits)) known = false; /* maybe layers */
    if (!inner && steps.repeats.times < LEAST) known = false;
    if (uneven && (inner > 1 || steps.repeats.times < LEAST)) known = false;
    if (inner && !steps.work && (steps.result || inner > 1)) known = false;
    free_all(f.paused, f.series, f.beats);
    groups_free(&f.entries);
    return known ? steps.repeats : (struct repeats){0};
}
