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

/* GPU work, or a wait of the host that is no copy, that was called in the steady part. */
struct entry {
    text name;
    uint32_t thread, stream;
    int64_t at; /* when the work, or the waiting call, began */
};

/* Reads entry `i`: all work, and all calls behind it. False: it is none. */
static bool entry_read(
    const struct run *run, const struct steady *steady, size_t i, struct entry *entry)
{
    int64_t called;
    if (i < run->work_count) {
        const struct work *work = &run->works[i];
        const struct call *call = work->call == NONE ? NULL : &run->calls[work->call];
        *entry = (struct entry){work->name, call ? call->thread : NONE, work->stream, work->begin};
        called = call ? call->begin : work->begin;
    } else {
        const struct call *call = &run->calls[i - run->work_count];
        if (call->works || !call_waits(call)) return false;
        *entry = (struct entry){call->name, call->thread, call->stream, call->begin};
        called = call->begin;
    }
    return called >= steady->begin && called <= steady->end;
}

static int by_time(const void *a, const void *b)
{
    return ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

/* Whether three of four times from one such entry to the next are near the mean. */
static bool is_regular(const struct run *run, const struct steady *steady,
    const struct repeats *repeats, uint32_t thread, uint32_t stream)
{
    int64_t *begins = array_zeros(repeats->times, sizeof *begins);
    size_t count = 0, near = 0;
    struct entry entry;
    for (size_t i = 0; i < run->work_count + run->call_count; i++)
        if (entry_read(run, steady, i, &entry) && entry.name == repeats->name &&
            entry.thread == thread && entry.stream == stream)
            begins[count++] = entry.at;
    qsort(begins, count, sizeof *begins, by_time);
    for (size_t i = 1; i < count; i++) {
        const double between = (double)(begins[i] - begins[i - 1]);
        near += between >= repeats->period / 2 && between <= repeats->period * 2;
    }
    free(begins);
    return 4 * near >= 3 * (count - 1);
}

/* The sums of an entry's tally, and of the tally of all entries that came equally often. */
enum { FIRST, LAST, NAME, THREAD, STREAM };
enum { ENTRIES, ONE /* one of them */ };

static void entries_add(struct tallies *entries, const struct run *run, const struct steady *steady)
{
    struct entry entry;
    for (size_t i = 0; i < run->work_count + run->call_count; i++) {
        if (!entry_read(run, steady, i, &entry)) continue;
        struct tally *tally = TALLY_OF(entries, entry.name, entry.thread, entry.stream);
        if (!tally->times++) tally->sum[FIRST] = tally->sum[LAST] = (double)entry.at;
        tally->sum[FIRST] = fmin(tally->sum[FIRST], (double)entry.at);
        tally->sum[LAST] = fmax(tally->sum[LAST], (double)entry.at);
        tally->sum[NAME] = entry.name;
        tally->sum[THREAD] = entry.thread;
        tally->sum[STREAM] = entry.stream;
    }
}

static int more_entries_first(const void *a, const void *b)
{
    const struct tally *one = a, *other = b;
    return ORDER(other->sum[ENTRIES], one->sum[ENTRIES]) ?: ORDER(one->key, other->key);
}

/* Whether the steady part lacks a piece of its first or last step: there is one more step than was
 * counted if its own kernel, which it does not lack, divides better by that. */
static bool is_cut(const struct tallies *entries, const struct steady *steady, double times)
{
    double whole = 0;
    for (size_t i = 0; i < entries->count && !whole; i++)
        if (steady->kernel && entries->rows[i].sum[NAME] == steady->kernel)
            whole = (double)entries->rows[i].times;
    return whole >= 2 * times &&
           fabs(remainder(whole / (times + 1), 1)) < fabs(remainder(whole / times, 1));
}

struct repeats repeats_of_work(const struct run *run, const struct steady *steady)
{
    struct tallies entries = {0}, times = {0};
    struct repeats found = {0};
    entries_add(&entries, run, steady);
    for (size_t i = 0; i < entries.count; i++) {
        if (entries.rows[i].times < LEAST) continue;
        struct tally *tally = tally_of(&times, entries.rows[i].times);
        if (!tally->sum[ENTRIES]++) tally->sum[ONE] = (double)i;
    }
    if (times.count) qsort(times.rows, times.count, sizeof *times.rows, more_entries_first);
    for (size_t i = 0; i < times.count && i < TRIES && !found.times; i++) {
        const struct tally *one = &entries.rows[(size_t)times.rows[i].sum[ONE]];
        const struct repeats repeats = repeats_make(steady, (uint32_t)one->times,
            (int64_t)one->sum[FIRST], (int64_t)one->sum[LAST], (text)one->sum[NAME]);
        if (repeats.times && is_regular(run, steady, &repeats, (uint32_t)one->sum[THREAD],
                                 (uint32_t)one->sum[STREAM]))
            found = repeats;
    }
    found.times += found.times && is_cut(&entries, steady, found.times);
    tallies_free(&entries);
    tallies_free(&times);
    return found;
}
