#include "tools/custream/model/steps.h"
#include "tools/custream/model/table.h"

enum { LEAST = 5 /* fewer times are no steps */, TRIES = 8 };

struct repeats repeats_make(
    const struct steady *steady, uint32_t times, int64_t first, int64_t last, text name)
{
    const double most = 0.8, length = (double)(steady->end - steady->begin),
                 span = (double)(last - first);
    const double period = times > 1 ? span / (times - 1) : 0;
    return period > 0 && span + period >= most * length ? (struct repeats){times, period, name}
                                                        : (struct repeats){0};
}

enum { ALL_THREADS = NONE - 1 };

/* A thing that may repeat: GPU work, a wait of the host that is no copy, or a range. The work's
 * call, the wait or the range began in the steady part. */
struct entry {
    text name;
    uint32_t thread, stream;
    int64_t at; /* when it began */
};

/* Reads number `i` of all work, then all calls, then all ranges. False: it is no entry. */
static bool entry_read(
    const struct run *run, const struct steady *steady, size_t i, struct entry *entry)
{
    int64_t called;
    if (i < run->work_count) {
        const struct work *work = &run->works[i];
        const struct call *call = work->call == NONE ? NULL : &run->calls[work->call];
        *entry = (struct entry){work->name, call ? call->thread : NONE, work->stream, work->begin};
        called = call ? call->begin : work->begin;
    } else if (i - run->work_count < run->call_count) {
        const struct call *call = &run->calls[i - run->work_count];
        if (call->works || !call_waits(call)) return false;
        *entry = (struct entry){call->name, call->thread, call->stream, called = call->begin};
    } else {
        const struct range *range = &run->ranges[i - run->work_count - run->call_count];
        *entry = (struct entry){range->name, range->thread, NONE, called = range->begin};
    }
    return called >= steady->begin && called <= steady->end;
}

static size_t entry_count(const struct run *run)
{
    return run->work_count + run->call_count + run->range_count;
}

static int by_time(const void *a, const void *b)
{
    return ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

/* Returns how often the entry comes in the steady part, widened by a period at both ends, as the
 * part may lack a piece of its first or last step. 0: fewer than three of four intervals between
 * the entry's begins are near the period. */
static uint32_t regular_times(const struct run *run, const struct steady *steady,
    const struct repeats *repeats, uint32_t thread, uint32_t stream)
{
    const struct steady wide = {steady->begin - (int64_t)repeats->period,
        steady->end + (int64_t)repeats->period, steady->kernel};
    int64_t *begins = NULL;
    size_t count = 0, capacity = 0, near = 0;
    struct entry entry;
    for (size_t i = 0; i < entry_count(run); i++)
        if (entry_read(run, &wide, i, &entry) && entry.name == repeats->name &&
            (entry.thread == thread || thread == ALL_THREADS) && entry.stream == stream)
            array_add(begins, count, capacity, entry.at);
    qsort(begins, count, sizeof *begins, by_time);
    for (size_t i = 1; i < count; i++) {
        const double between = (double)(begins[i] - begins[i - 1]);
        near += between >= repeats->period / 2 && between <= repeats->period * 2;
    }
    free(begins);
    return 4 * near >= 3 * (count - 1) ? (uint32_t)count : 0;
}

/* The sums of an entry's tally, and of the tally of all entries that came equally often. */
enum { FIRST, LAST, NAME, THREAD, STREAM };
enum { ENTRIES, ONE /* one of them */ };

static void entry_add(struct tallies *entries, const struct entry *entry, uint32_t thread)
{
    struct tally *tally = TALLY_OF(entries, entry->name, thread, entry->stream);
    if (!tally->times++) tally->sum[FIRST] = tally->sum[LAST] = (double)entry->at;
    tally->sum[FIRST] = fmin(tally->sum[FIRST], (double)entry->at);
    tally->sum[LAST] = fmax(tally->sum[LAST], (double)entry->at);
    tally->sum[NAME] = entry->name;
    tally->sum[THREAD] = thread;
    tally->sum[STREAM] = entry->stream;
}

static int more_entries_first(const void *a, const void *b)
{
    const struct tally *one = a, *other = b;
    return ORDER(other->sum[ENTRIES], one->sum[ENTRIES]) ?: ORDER(one->key, other->key);
}

struct repeats repeats_of_work(const struct run *run, const struct steady *steady)
{
    struct tallies entries = {0}, times = {0};
    struct repeats found = {0};
    struct entry entry;
    for (size_t i = 0; i < entry_count(run); i++) {
        if (!entry_read(run, steady, i, &entry)) continue;
        entry_add(&entries, &entry, entry.thread);
        entry_add(&entries, &entry, ALL_THREADS);
    }
    for (size_t i = 0; i < entries.count; i++) {
        if (entries.rows[i].times < LEAST) continue;
        struct tally *tally = tally_of(&times, entries.rows[i].times);
        if (!tally->sum[ENTRIES]++) tally->sum[ONE] = (double)i;
    }
    if (times.count) qsort(times.rows, times.count, sizeof *times.rows, more_entries_first);
    for (size_t i = 0; i < times.count && i < TRIES && !found.times; i++) {
        const struct tally *one = &entries.rows[(size_t)times.rows[i].sum[ONE]];
        struct repeats repeats = repeats_make(steady, (uint32_t)one->times,
            (int64_t)one->sum[FIRST], (int64_t)one->sum[LAST], (text)one->sum[NAME]);
        if (repeats.times)
            repeats.times = regular_times(
                run, steady, &repeats, (uint32_t)one->sum[THREAD], (uint32_t)one->sum[STREAM]);
        if (repeats.times) found = repeats;
    }
    tallies_free(&entries);
    tallies_free(&times);
    return found;
}
