/* Wakers: whose call let a thread go on that had waited. A trace has no locks and queues. So this
 * is a guess from times: the thread waited until another thread's call ended, and may have computed
 * before and behind. A thread that polls ends calls, too. So each pause tells how probable it is
 * that some call of the other thread ends so near at a random time. Over many pauses, the sum of
 * -log of these is about their count if only chance is at work. The thread with the most evidence
 * explains pauses first; the next one has to explain others. */
#include <math.h>

#include "tools/custream/model/load.h"
#include "tools/custream/model/views.h"

/* A pause in which a thread may have waited. */
struct slept {
    int64_t begin, end, low, high; /* the thread was on a processor for `low` to `high` ns */
    struct pause *row;
};

/* The evidence of one pause that one other thread ended it. */
struct look {
    uint32_t waker;  /* the call whose end is nearest to where a wake is expected; NONE */
    bool may;        /* it is so near that it may have ended the pause */
    double evidence; /* -log of the probability that chance puts an end so near */
};

/* Which ends of another thread's calls are looked at. */
enum how {
    STOPS,    /* those behind which that thread paused or ended: it may have worked for this one */
    ALL_ENDS, /* all */
    AS_USUAL, /* all; the thread may compute before and behind its wait, as it usually does */
    HOW_COUNT,
};

/* Steps to the next end of a thread's call in the pause, from the place *at in run->thread_calls. A
 * call in another call counts as none. False: there is none. */
static bool next_end(const struct run *run, const struct slept *pause, enum how how, uint32_t last,
    uint32_t *at, int64_t *ended)
{
    const uint32_t *calls = run->thread_calls.members;
    for (; *at < last; ++*at) {
        const struct call *call = &run->calls[calls[*at]];
        if (call->begin >= pause->end) break;
        if (call->end <= *ended || call->end > pause->end) continue;
        if (how == STOPS && *at + 1 < last &&
            run->calls[calls[*at + 1]].begin - call->end < OWN_CODE_NS)
            continue;
        *ended = call->end;
        ++*at;
        return true;
    }
    return false;
}

static int64_t waited_in(const struct slept *pause)
{
    return pause->end - pause->begin - (pause->low + pause->high) / 2;
}

/* Returns the place of the first call of a thread that may end in the pause. */
static uint32_t place_in(const struct run *run, const struct slept *pause, uint32_t thread)
{
    const uint32_t first = run->thread_calls.begins[thread];
    const size_t at = FIRST_NOT(i, first, run->thread_calls.begins[thread + 1],
        run->calls[run->thread_calls.members[i]].begin < pause->begin);
    return (uint32_t)at - (at > first);
}

/* Returns how far the end of a call, `ago` before the pause's end, is from where a wake is
 * expected: the thread computed all before it waited, or all behind that, or `usual` behind. */
static int64_t far_from(const struct slept *pause, int64_t ago, int64_t usual)
{
    const int64_t off = ago < pause->low    ? pause->low - ago
                        : ago > pause->high ? ago - pause->high
                                            : 0,
                  far = ago < off ? ago : off;
    return usual && llabs(ago - usual) < far ? llabs(ago - usual) : far;
}

/* Looks for the call of the other thread that may have ended the pause. */
static struct look look_at(
    const struct run *run, const struct slept *pause, enum how how, uint32_t thread, int64_t usual)
{
    const uint32_t last = run->thread_calls.begins[thread + 1],
                   first = place_in(run, pause, thread);
    const int64_t took = pause->end - pause->begin;
    struct look look = {NONE, false, 0};
    int64_t ended = pause->begin, covered = 0, far = INT64_MAX;
    for (uint32_t at = first; next_end(run, pause, how, last, &at, &ended);) {
        const int64_t now = far_from(pause, pause->end - ended, usual);
        if (now > far) continue;
        far = now;
        look.waker = run->thread_calls.members[at - 1];
    }
    if (look.waker == NONE || far > waited_in(pause) / 2) return look;
    /* the times that are as near to some end, without those that are near to two */
    const int64_t near =
        (pause->low <= 2 * far ? pause->high + far : 3 * far + pause->high - pause->low) +
        (usual ? 2 * far : 0);
    ended = pause->begin;
    int64_t before = ended - near;
    for (uint32_t at = first; next_end(run, pause, how, last, &at, &ended); before = ended)
        covered += ended - before < near ? ended - before : near;
    if (look.waker == run->thread_calls.members[last - 1]) covered = near; /* a thread that ended */
    const double chance = (double)covered / (double)took;
    look.may = chance < 0.5;
    look.evidence = -log(chance > 1 ? 1 : chance < 1e-3 ? 1e-3 : chance);
    return look;
}

COMPARES(by_time, int64_t, ORDER(*a, *b))

/* Returns the middle of `count` times and, in *off, how far they usually are from it. */
static int64_t middle_of(int64_t *times, size_t count, int64_t *off)
{
    qsort(times, count, sizeof *times, by_time);
    const int64_t middle = times[count / 2];
    for (size_t i = 0; i < count; i++) times[i] = llabs(times[i] - middle);
    qsort(times, count, sizeof *times, by_time);
    *off = times[count / 2];
    return middle;
}

/* Returns how long the thread usually computed behind the other one's last call; 0: not known. If
 * these calls are at the same place behind the pauses' begins, this thread woke the other one. */
static int64_t usual_of(
    const struct run *run, const struct slept *pauses, size_t pause_count, uint32_t thread)
{
    enum { ENOUGH = 8 };
    int64_t *ago = array_zeros(2 * pause_count, sizeof *ago), *behind = ago + pause_count;
    size_t count = 0;
    for (size_t i = 0; i < pause_count; i++) {
        const struct slept *pause = &pauses[i];
        int64_t ended = pause->begin;
        uint32_t at = place_in(run, pause, thread);
        if (pause->row->waker != NONE) continue;
        while (next_end(run, pause, AS_USUAL, run->thread_calls.begins[thread + 1], &at, &ended)) {}
        if (ended == pause->begin || pause->end - ended > pause->high + waited_in(pause) / 2)
            continue;
        ago[count] = pause->end - ended;
        behind[count++] = ended - pause->begin;
    }
    int64_t usual = 0, off, off_behind;
    if (count >= ENOUGH) {
        usual = middle_of(ago, count, &off);
        middle_of(behind, count, &off_behind);
        if (off >= off_behind) usual = 0;
    }
    free(ago);
    return usual;
}

double evidence_enough(uint32_t count) { return count + 4 * sqrt(count) - 1.5; }

/* Finds the thread with the most evidence, and lets it explain what it may. False: no evidence of
 * any thread is enough. `looks`: by thread, those of all pauses. */
static bool best_explains(
    const struct run *run, const struct slept *pauses, size_t count, const struct look *looks)
{
    double most = 0;
    bool any = false;
    const struct look *best = NULL;
    for (uint32_t t = 0; t < run->thread_count; t++) {
        const struct look *look = &looks[t * count];
        double evidence = 0;
        uint32_t looked = 0;
        for (size_t i = 0; i < count; i++)
            if (look[i].waker != NONE && pauses[i].row->waker == NONE) {
                evidence += look[i].evidence;
                looked++;
            }
        const double beyond = looked ? (evidence - evidence_enough(looked)) / sqrt(looked) : 0;
        if (beyond > most) most = beyond, best = look;
    }
    for (size_t i = 0; best && i < count; i++)
        if (best[i].may && pauses[i].row->waker == NONE) {
            pauses[i].row->waker = best[i].waker;
            any = true;
        }
    return any;
}

/* Finds who ended the pauses of a thread. What is left is looked at in the next way. */
static void pauses_look(
    const struct run *run, const struct slept *pauses, size_t count, uint32_t thread)
{
    struct look *looks = array_zeros(run->thread_count * count, sizeof *looks);
    for (enum how how = STOPS; how < HOW_COUNT; how++) {
        for (uint32_t t = 0; t < run->thread_count; t++) {
            const int64_t usual =
                how == AS_USUAL && t != thread ? usual_of(run, pauses, count, t) : 0;
            for (size_t i = 0; i < count; i++)
                looks[t * count + i] = t == thread || (how == AS_USUAL && !usual)
                                           ? (struct look){NONE, false, 0}
                                           : look_at(run, &pauses[i], how, t, usual);
        }
        while (best_explains(run, pauses, count, looks)) {}
    }
    free(looks);
}

/* Returns the call behind which a thread was made, probably: the last that ended before the
 * thread's first call, of those behind which their threads paused. */
static uint32_t maker_of(const struct run *run, uint32_t thread, int64_t begin)
{
    const uint32_t *calls = run->thread_calls.members;
    uint32_t maker = NONE;
    for (uint32_t t = 0; t < run->thread_count; t++) {
        const uint32_t first = run->thread_calls.begins[t], end = run->thread_calls.begins[t + 1];
        size_t i = FIRST_NOT(c, first, end, run->calls[calls[c]].begin < begin);
        const int64_t next = i < end ? run->calls[calls[i]].begin : INT64_MAX;
        if (t == thread || i == first) continue;
        const struct call *last = &run->calls[calls[i - 1]];
        if (last->end <= begin && next - last->end >= OWN_CODE_NS &&
            (maker == NONE || last->end > run->calls[maker].end))
            maker = calls[i - 1];
    }
    return maker;
}

void wakers_find(const struct run *run, uint32_t thread, struct pause *pauses, size_t count)
{
    /* With many threads, only some pauses of each are looked at, and no thread's maker. */
    enum { LOOKS = 1000000, MAKERS = 1000 };
    const size_t threads = run->thread_count, most = LOOKS / (threads * threads);
    struct slept *slept = array_zeros(count, sizeof *slept);
    size_t slept_count = 0;
    for (struct pause *pause = pauses; pause < pauses + count; pause++) {
        const int64_t end = run->calls[pause->call].begin;
        if (!pause->ns) {
            const uint32_t maker = threads > MAKERS ? NONE : maker_of(run, thread, end);
            pause->missing = maker != NONE && calls_miss(run, run->calls[maker].end, end);
            if (!pause->missing) pause->waker = maker;
        } else if (slept_count < most && !pause->missing && !pause_computes(pause))
            slept[slept_count++] = (struct slept){end - pause->ns, end,
                pause->measured ? pause->low : 0, pause->measured ? pause->high : 0, pause};
    }
    if (slept_count) pauses_look(run, slept, slept_count, thread);
    free(slept);
}
