/* Rules about calls by themselves: objects that are made again and again, queries in a loop, calls
 * that failed. */
#include <math.h>

#include "tools/custream/command.h"
#include "tools/custream/report/inside.h"

/* --- CS110: streams and events --- */

/* So many are too many: made one by one with something done in between, or never destroyed. A pool
 * lives as long as the program by design, and is made in a few goes: objects that come in more of
 * them are no pool. */
enum { MANY_OBJECTS = 100, GOES_OF_A_POOL = 10 };

static bool makes_stream(const struct call *call)
{
    return call_kind(call) == CS_KIND_STREAM && call_how(call, CS_HOW_CREATES);
}
static bool makes_event(const struct call *call) { return call->call == CS_CALL_cuEventCreate; }

struct makings {
    uint64_t all, between; /* between: with something put on a stream since the last one */
};

static struct makings count_makings(const struct run *run, bool (*makes)(const struct call *))
{
    struct makings makings = {0};
    bool used = false;
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        if (call->works || call_how(call, CS_HOW_RECORDS) || call_kind(call) == CS_KIND_WAIT)
            used = true;
        if (call->result || !makes(call)) continue;
        makings.all++;
        if (used) makings.between++;
        used = false;
    }
    return makings;
}

static void report_makings(
    struct findings *to, const char *objects, bool (*makes)(const struct call *), double leaked)
{
    const struct makings makings = count_makings(&to->of->run, makes);
    const bool in_a_loop = makings.between >= MANY_OBJECTS,
               never_destroyed = leaked >= MANY_OBJECTS && makings.between > GOES_OF_A_POOL;
    if (!in_a_loop && !never_destroyed) return;
    int64_t idle = 0;
    for (size_t i = 0; in_a_loop && i < to->of->idles.count; i++) {
        const struct idle *row = &to->of->idles.rows[i];
        if (row->cause == CAUSE_HOST && row->call != NONE && makes(&to->of->run.calls[row->call]))
            idle += row->end - row->begin;
    }
    finding(to, NONE, objects, idle ? (double)idle : NAN,
        in_a_loop ? makings.between : (uint64_t)leaked,
        report_text(to->report,
            "%lu %s made, %lu of them after streams were used since the one before; %.0f never "
            "destroyed",
            (unsigned long)makings.all, objects, (unsigned long)makings.between, leaked));
}

void look_objects(struct findings *to)
{
    report_makings(
        to, "streams", makes_stream, run_number(&to->of->run, "totals.leaked_streams", 0));
    report_makings(to, "events", makes_event, run_number(&to->of->run, "totals.leaked_events", 0));
}

/* --- CS113: queries --- */

/* A loop that asks more often than this many times a second, for so many times, does nothing else.
 */
enum { QUERIES_A_SECOND = 1000, QUERIES = 100 };

/* Queries of one thing, one after the other, by one thread. */
struct spin {
    const struct call *first, *last;
    uint64_t queries;
};

struct spun {
    uint64_t queries, loops;
    int64_t time;
};

static bool asks_same(const struct call *a, const struct call *b)
{
    return a->call == b->call && a->stream == b->stream && a->what == b->what;
}

static void end_spin(struct spun *spun, struct spin *spin)
{
    if (spin->queries >= QUERIES) {
        const int64_t time = spin->last->end - spin->first->begin;
        if ((double)(spin->queries - 1) * 1e9 >
            (double)(spin->last->begin - spin->first->begin) * QUERIES_A_SECOND) {
            spun->queries += spin->queries;
            spun->time += time;
            spun->loops++;
        }
    }
    *spin = (struct spin){0};
}

void look_spinning(struct findings *to)
{
    const struct run *run = &to->of->run;
    for (uint32_t thread = 0; thread < run->thread_count; thread++) {
        struct spun spun = {0};
        struct spin spin = {0};
        for (uint32_t i = run->thread_calls.begins[thread];
            i < run->thread_calls.begins[thread + 1]; i++) {
            const struct call *call = &run->calls[run->thread_calls.members[i]];
            if (spin.queries && !asks_same(spin.first, call)) end_spin(&spun, &spin);
            if (call_kind(call) != CS_KIND_QUERY) continue;
            if (!spin.queries++) spin.first = call;
            spin.last = call;
        }
        end_spin(&spun, &spin);
        if (spun.loops)
            finding(to, NONE, find_thread(to, thread), NAN, spun.loops,
                report_text(to->report, "queries: %lu, in %s of the thread's time",
                    (unsigned long)spun.queries, find_time(to, (double)spun.time)));
    }
}

/* --- CS115: failed calls --- */

/* Results that are no failure. That work is not done yet is what a query and cuEventElapsedTime may
 * say; that the driver has ended is what libraries are told which give back their objects as the
 * process ends. */
struct expected {
    text not_ready, deinitialized;
};

static bool failed(const struct call *call, const struct expected *expected)
{
    const enum cs_kind kind = call_kind(call);
    if (!call->result || call->result == expected->deinitialized) return false;
    return call->result != expected->not_ready || (kind != CS_KIND_QUERY && kind != CS_KIND_EVENT);
}

static int by_failure(const void *left, const void *right)
{
    const struct call *a = *(const struct call *const *)left,
                      *b = *(const struct call *const *)right;
    if (a->name != b->name) return a->name < b->name ? -1 : 1;
    if (a->result != b->result) return a->result < b->result ? -1 : 1;
    return a < b ? -1 : a > b;
}

void look_failed(struct findings *to)
{
    const struct run *run = &to->of->run;
    const struct expected expected = {text_find(&run->texts, "CUDA_ERROR_NOT_READY"),
        text_find(&run->texts, "CUDA_ERROR_DEINITIALIZED")};
    const struct call **calls = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < run->call_count; i++) {
        if (!failed(&run->calls[i], &expected)) continue;
        calls = array_room(calls, count, &capacity, sizeof *calls);
        calls[count++] = &run->calls[i];
    }
    if (count) qsort(calls, count, sizeof *calls, by_failure);
    for (size_t i = 0, next; i < count; i = next) {
        const struct call *first = calls[i];
        for (next = i + 1; next < count && calls[next]->name == first->name &&
                           calls[next]->result == first->result;)
            next++;
        finding(to, NONE, text_in(run, first->name), NAN, next - i,
            report_text(to->report,
                "it returned %s, the first time to %s, %s after the trace's begin",
                text_in(run, first->result), find_thread(to, first->thread),
                find_time(to, (double)(first->begin - run->begin))));
    }
    free(calls);
}
