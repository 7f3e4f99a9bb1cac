/* Pauses: a thread makes no call. Did it compute, wait for another thread, or wait for something
 * outside CUDA? The trace has the thread's processor time only at the edges of long pauses and long
 * calls (docs/trace.md). Of the processor time from one reading to the next, the pause used what is
 * left after the calls and the short own code between the readings. */
#include <math.h>

#include "tools/custream/model/load.h"
#include "tools/custream/model/views.h"

COMPARES(clocks_by_time, struct clock, ORDER(a->thread, b->thread) ?: ORDER(a->at, b->at))
COMPARES(pauses_by_call, struct pause, ORDER(a->call, b->call))

static int64_t between(int64_t least, int64_t ns, int64_t most)
{
    return ns < least ? least : ns > most ? most : ns;
}

/* A thread's time since the last reading of its processor time. */
struct since {
    int64_t cpu;   /* the reading; -1: none yet */
    int64_t other; /* ns in calls and in short own code since the reading */
    int64_t sure; /* the part of `other` that was surely on a processor: all but calls that may have
                     slept */
};

static void since_passes(struct since *since, int64_t ns, bool sure)
{
    if (ns <= 0) return;
    since->other += ns;
    if (sure) since->sure += ns;
}

/* Whether the thread may have slept in the call: the call is long, or waits. */
static bool may_sleep(const struct call *call)
{
    enum { LONG_NS = 20000 };
    return call->end - call->begin > LONG_NS || call_waits(call);
}

/* Takes the thread's next reading, if it was made at `at`. *used: the processor time since the
 * reading before; -1: there is none. */
static bool clock_take(const struct run *run, size_t *next, const struct call *call, int64_t at,
    struct since *since, int64_t *used)
{
    while (*next < run->clock_count && run->clocks[*next].thread == call->thread &&
           run->clocks[*next].at < at)
        ++*next; /* of a call in another call */
    const struct clock *clock = *next < run->clock_count ? &run->clocks[*next] : NULL;
    if (!clock || clock->thread != call->thread || clock->at != at) return false;
    /* a clock that goes back is that of a later thread with the same number */
    *used = since->cpu < 0 || clock->cpu < since->cpu ? -1 : clock->cpu - since->cpu;
    *next += 1;
    *since = (struct since){clock->cpu, since->other, since->sure};
    return true;
}

static void thread_pauses(struct run *run, uint32_t thread, size_t *next)
{
    struct since since = {.cpu = -1};
    int64_t ended = INT64_MIN;
    for (uint32_t i = run->thread_calls.begins[thread]; i < run->thread_calls.begins[thread + 1];
        i++) {
        const uint32_t index = run->thread_calls.members[i];
        const struct call *call = &run->calls[index];
        const bool first = ended == INT64_MIN;
        const int64_t gap = first || call->begin < ended ? 0 : call->begin - ended;
        struct pause pause = {.call = index, .waker = NONE, .ns = gap};
        int64_t used;
        if (clock_take(run, next, call, call->begin, &since, &used)) {
            pause.measured = used >= 0;
            pause.low = between(0, used - since.other, gap);
            pause.high = between(pause.low, used - since.sure, gap);
            since.other = since.sure = 0;
        } else since_passes(&since, gap, gap < OWN_CODE_NS);
        pause.missing = gap >= OWN_CODE_NS && calls_miss(run, ended, call->begin);
        if (first || gap >= OWN_CODE_NS)
            array_add(run->pauses, run->pause_count, run->pause_capacity, pause);
        const int64_t begin = call->begin > ended ? call->begin : ended;
        if (clock_take(run, next, call, call->end, &since, &used)) since.other = since.sure = 0;
        else since_passes(&since, call->end - begin, !may_sleep(call));
        if (call->end > ended) ended = call->end;
    }
}

bool pause_computes(const struct pause *pause)
{
    return pause->measured && 10 * pause->low >= 9 * pause->ns;
}

/* When the number of threads changes that make calls, or that compute in a pause. A pause in which
 * a thread did both compute and wait counts as calls: nobody knows when it did what. So does one in
 * which a thread computed for which no other waited. */
struct turn {
    int64_t at;
    int calling, computing;
};

COMPARES(turns_by_time, struct turn, ORDER(a->at, b->at))

/* Whether the thread waited for nearly all of a pause, for whatever. */
static bool pause_waits(const struct pause *pause)
{
    return pause->ns && pause->measured && !pause->missing && 10 * pause->high <= pause->ns;
}

/* Returns the pause in which another thread computed when this one ended: of the next to end, so
 * that many threads take no more time. NULL: there is none. */
static const struct pause *computing_at(const struct run *run, const struct pause *pause)
{
    enum { NEAR = 16 };
    const int64_t at = run->calls[pause->call].begin;
    const uint32_t thread = run->calls[pause->call].thread;
    const struct pause *end = run->pauses + run->pause_count;
    for (const struct pause *other = pause; other < end && other < pause + NEAR; other++) {
        const struct call *call = &run->calls[other->call];
        if (call->thread != thread && !other->missing && pause_computes(other) &&
            call->begin - other->ns <= at)
            return other;
    }
    return NULL;
}

/* Returns, by thread, whether others waited for it while it computed. Then their pauses end at the
 * same place in its own, often near the end. If they have nothing to do with it, they end anywhere,
 * and -log of the place is 1 on the average. */
static bool *awaited_make(const struct run *run)
{
    bool *awaited = array_zeros(run->thread_count, sizeof *awaited);
    double *evidence = array_zeros(run->thread_count, sizeof *evidence);
    uint32_t *looked = array_zeros(run->thread_count, sizeof *looked);
    for (size_t i = 0; i < run->pause_count; i++) {
        const struct pause *pause = &run->pauses[i];
        const struct pause *other =
            pause_waits(pause) && pause->waker == NONE ? computing_at(run, pause) : NULL;
        if (!other) continue;
        const struct call *call = &run->calls[other->call];
        const double place =
            (double)(call->begin - run->calls[pause->call].begin) / (double)other->ns;
        evidence[call->thread] -= log(place < 1e-3 ? 1e-3 : place > 1 ? 1 : place);
        looked[call->thread]++;
    }
    for (uint32_t t = 0; t < run->thread_count; t++)
        awaited[t] = looked[t] && evidence[t] > evidence_enough(looked[t]);
    free_all(evidence, looked);
    return awaited;
}

/* Finds when no thread made calls. A thread makes none before its first call and behind its last.
 */
static void silences_make(struct run *run)
{
    struct turn *turns = array_zeros(2 * (run->thread_count + run->pause_count), sizeof *turns);
    bool *awaited = awaited_make(run);
    size_t count = 0;
    int calling = 0, computing = 0;
    int64_t before[2] = {0};
    for (uint32_t t = 0; t < run->thread_count; t++) {
        const uint32_t *calls = run->thread_calls.members, first = run->thread_calls.begins[t],
                       end = run->thread_calls.begins[t + 1];
        if (first == end) continue;
        turns[count++] = (struct turn){run->calls[calls[first]].begin, 1, 0};
        turns[count++] = (struct turn){run->calls[calls[end - 1]].end, -1, 0};
    }
    for (const struct pause *pause = run->pauses; pause < run->pauses + run->pause_count; pause++) {
        const int64_t end = run->calls[pause->call].begin;
        const bool computes = pause->ns && !pause->missing && pause_computes(pause) &&
                              awaited[run->calls[pause->call].thread];
        if (!computes && !pause_waits(pause)) continue;
        turns[count++] = (struct turn){end - pause->ns, -1, computes};
        turns[count++] = (struct turn){end, 1, -computes};
    }
    if (count) qsort(turns, count, sizeof *turns, turns_by_time);
    for (size_t i = 0; i < count; i++) {
        calling += turns[i].calling;
        computing += turns[i].computing;
        if (calling || i + 1 == count || turns[i + 1].at == turns[i].at) continue;
        array_add(run->silences, run->silence_count, run->silence_capacity,
            ((struct silence){
                turns[i].at, turns[i + 1].at, computing > 0, {before[0], before[1]}}));
        before[computing > 0] += turns[i + 1].at - turns[i].at;
    }
    free_all(turns, awaited);
}

static int64_t silence_until(const struct run *run, bool computing, int64_t at)
{
    const size_t next = FIRST_NOT(i, 0, run->silence_count, run->silences[i].begin < at);
    if (!next) return 0;
    const struct silence *last = &run->silences[next - 1];
    const int64_t in_it = (at < last->end ? at : last->end) - last->begin;
    return last->before[computing] + (last->computing == computing ? in_it : 0);
}

int64_t silence_between(const struct run *run, bool computing, int64_t from, int64_t to)
{
    return silence_until(run, computing, to) - silence_until(run, computing, from);
}

void pauses_make(struct run *run)
{
    size_t next = 0;
    if (run->clock_count) qsort(run->clocks, run->clock_count, sizeof *run->clocks, clocks_by_time);
    for (uint32_t t = 0; t < run->thread_count; t++) {
        while (next < run->clock_count && run->clocks[next].thread < t) next++;
        const size_t before = run->pause_count;
        thread_pauses(run, t, &next);
        if (run->pause_count > before)
            wakers_find(run, t, &run->pauses[before], run->pause_count - before);
    }
    if (run->pause_count) qsort(run->pauses, run->pause_count, sizeof *run->pauses, pauses_by_call);
    if (run->clock_count) silences_make(run);
}

const struct pause *pause_before(const struct run *run, uint32_t call)
{
    const size_t at = FIRST_NOT(i, 0, run->pause_count, run->pauses[i].call < call);
    return at < run->pause_count && run->pauses[at].call == call ? &run->pauses[at] : NULL;
}

double pause_waited(const struct pause *pause)
{
    return pause && pause->measured && pause->ns > 0
               ? 1 - (double)(pause->low + pause->high) / 2 / (double)pause->ns
               : 0;
}

enum host_doing pause_doing(const struct pause *pause)
{
    return pause && pause->missing                          ? DOING_NOTHING_KNOWN
           : pause && pause->ns > 0 && pause->waker != NONE ? DOING_THREAD
           : pause_waited(pause) > 0.5                      ? DOING_OUTSIDE
                                                            : DOING_OWN_CODE;
}
