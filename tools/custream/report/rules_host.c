/* Rules about the host: what a thread does between the launches of work. Each counts the calls of
 * one kind by thread or stream; the experiment tells what they cost. */
#include "tools/custream/model/replay.h"
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

/* A rule that counts calls in the steady part. */
struct calls_rule {
    bool (*matches)(const struct run *run, const struct call *call);
    bool by_stream; /* else by thread */
    uint64_t least; /* how many calls of a place make a find, at least */
    const char *what;
};

static void look_calls(struct findings *to, const struct calls_rule *rule)
{
    const struct run *run = &to->of->run;
    struct tallies places = {0};
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        const uint32_t place = rule->by_stream ? call->stream : call->thread;
        if (call->begin < to->steady.begin || call->end > to->steady.end) continue;
        if (call->result || place == NONE || !rule->matches(run, call)) continue;
        struct tally *tally = tally_of(&places, place);
        if (call->end - call->begin >= tally->longest) tally->sum[0] = (double)i;
        tally_add(tally, call->end - call->begin);
    }
    for (size_t p = 0; p < places.count; p++) {
        const struct tally *tally = &places.rows[p];
        const uint32_t place = (uint32_t)tally->key;
        if (tally->times < rule->least) continue;
        finding(to, rule->by_stream ? OF(STREAM, place) : OF(THREAD, place),
            (struct extent){.times = tally->times, .waited = (double)tally->total, .most = 0},
            "%s for %s, at most %s at once, in %s", rule->what, SHOWN(UNIT_NS, tally->total),
            SHOWN(UNIT_NS, tally->longest), text_in(run, run->calls[(size_t)tally->sum[0]].name));
    }
    tallies_free(&places);
}

/* Waits that come so often are a loop; fewer may be the ends of phases. */
enum { LOOP = 5 };

static bool waits_for_all(const struct run *run, const struct call *call)
{
    (void)run;
    return call_kind(call) == CS_KIND_SYNC && call_how(call, CS_HOW_WIDE);
}
void look_synchronisation(struct findings *to)
{
    look_calls(to, &(struct calls_rule){
                       waits_for_all, false, LOOP, "the thread waited for all work of the GPU"});
}

static bool waits_for_one(const struct run *run, const struct call *call)
{
    (void)run;
    return call_kind(call) == CS_KIND_SYNC && !call_how(call, CS_HOW_WIDE);
}
void look_stream_waits(struct findings *to)
{
    look_calls(to, &(struct calls_rule){waits_for_one, false, LOOP, "the thread waited"});
}

/* --- copies --- */

/* Whether a synchronous copy waited. An asynchronous copy waits only if its memory is pageable,
 * which is another rule's finding. */
static bool copies_and_waits(const struct run *run, const struct call *call)
{
    return call_kind(call) == CS_KIND_COPY && call->works == 1 &&
           !strstr(text_in(run, call->name), "Async") &&
           call->end >= run->works[run->works_of[call->work]].end;
}
void look_blocking_copies(struct findings *to)
{
    look_calls(to, &(struct calls_rule){copies_and_waits, true, 1,
                       "the host waited in copies until they were done,"});
}

/* CS105 and CS127. In small copies the calls take the time, not the bytes. */
static void report_pageable(struct findings *to, const struct tallies *streams, bool small)
{
    enum { MANY_COPIES = 20, SMALL_BYTES = 64 << 10 };
    rule_is(to, small ? "CS127" : "CS105");
    for (size_t s = 0; s < streams->count; s++) {
        const struct tally *tally = &streams->rows[s];
        const double mean = tally->sum[0] / (double)tally->times;
        if ((tally->times >= MANY_COPIES && mean <= SMALL_BYTES) != small) continue;
        finding(to, OF(STREAM, (uint32_t)tally->key), TIMES(tally->times),
            "copies of pageable memory, %s in all%s%s, took %s (%s); their calls took %s of the "
            "host",
            SHOWN(UNIT_BYTES, tally->sum[0]), small ? ", each of about " : "",
            small ? SHOWN(UNIT_BYTES, mean) : "", SHOWN(UNIT_NS, tally->total),
            SHOWN(UNIT_GBPS, tally->sum[0] / (double)tally->total), SHOWN(UNIT_NS, tally->sum[1]));
    }
}

void look_pageable(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct tallies streams = {0}; /* sum[0]: the copies' bytes; sum[1]: ns in their calls */
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        const struct work *work = call->works ? &run->works[run->works_of[call->work]] : NULL;
        if (!work || !work_is_pageable(run, work)) continue;
        struct tally *tally = tally_of(&streams, work->stream);
        tally_add(tally, work->end - work->begin);
        tally->sum[0] += (double)work->bytes;
        tally->sum[1] += (double)(call->end - call->begin);
    }
    report_pageable(to, &streams, false);
    report_pageable(to, &streams, true);
    tallies_free(&streams);
}

/* --- memory --- */

void look_allocations(struct findings *to)
{
    look_calls(to,
        &(struct calls_rule){call_allocates, false, LOOP, "the thread allocated or freed memory"});
}

/* --- launches --- */

/* A kernel is short if the host needs about as long to launch the next: a launch takes 2 to 10 us,
 * and some frameworks' own code 10 to 50 us. */
enum { SHORT_NS = 50000, MANY = 20 };

void look_launches(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct tallies threads = {0};
    for (size_t t = 0; t < run->thread_count; t++) {
        int64_t before = INT64_MIN;
        bool waited = false; /* the first launch behind a wait is in no row */
        for (uint32_t i = run->thread_calls.begins[t]; i < run->thread_calls.begins[t + 1]; i++) {
            const struct call *call = &run->calls[run->thread_calls.members[i]];
            const struct work *work = call->works ? &run->works[run->works_of[call->work]] : NULL;
            const int64_t gap = before == INT64_MIN ? 0 : call->begin - before;
            before = call->end;
            if (call_kind(call) == CS_KIND_SYNC) waited = true;
            if (call_kind(call) != CS_KIND_LAUNCH || !work) continue;
            const bool in_row = !waited && work->end - work->begin <= SHORT_NS;
            waited = false;
            if (!in_row) continue;
            struct tally *tally = tally_of(&threads, t);
            tally_add(tally, call->end - call->begin);
            tally->sum[0] += (double)(work->end - work->begin);
            if (gap > 0 && gap < OWN_CODE_NS) tally->sum[1] += (double)gap;
        }
    }
    for (size_t i = 0; i < threads.count; i++) {
        const struct tally *tally = &threads.rows[i];
        const double times = (double)tally->times;
        if (tally->times < MANY) continue;
        finding(to, OF(THREAD, (uint32_t)tally->key), TIMES(tally->times),
            "kernels of %s on the average; each took %s of the host to launch, and %s of its own "
            "code before",
            SHOWN(UNIT_NS, tally->sum[0] / times), SHOWN(UNIT_NS, tally_mean(tally)),
            SHOWN(UNIT_NS, tally->sum[1] / times));
    }
    tallies_free(&threads);
}

/* --- host functions --- */

void look_host_functions(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct tallies streams = {0};
    for (size_t i = 0; i < run->callback_count; i++)
        if (run->callbacks[i].stream != NONE)
            tally_add(tally_of(&streams, run->callbacks[i].stream),
                run->callbacks[i].end - run->callbacks[i].begin);
    for (size_t s = 0; s < streams.count; s++)
        finding(to, OF(STREAM, (uint32_t)streams.rows[s].key), TIMES(streams.rows[s].times),
            "host functions of this stream ran for %s, at most %s at once; work behind them waited",
            SHOWN(UNIT_NS, streams.rows[s].total), SHOWN(UNIT_NS, streams.rows[s].longest));
    tallies_free(&streams);
}

/* --- own code --- */

/* A pause that long is worth a finding even if it is the only one. Shorter ones, if they are few,
 * may be the system's. */
enum { LONG_NS = 100000000 };

/* Pauses of a thread, or of all, in the steady part. */
struct pauses {
    int64_t total, longest;
    int64_t known;     /* ns of `total` for which the trace has the thread's processor time */
    int64_t low, high; /* the thread was on a processor for `low` to `high` ns of `known` */
    uint64_t times;
    uint32_t threads;        /* how many threads paused so */
    uint32_t before, behind; /* the calls on both sides of the longest pause */
};

static void pauses_add(struct pauses *to, const struct pauses *from)
{
    to->total += from->total;
    to->known += from->known;
    to->low += from->low;
    to->high += from->high;
    to->times += from->times;
    to->threads += from->threads;
    if (from->longest <= to->longest) return;
    to->longest = from->longest;
    to->before = from->before;
    to->behind = from->behind;
}

/* Whether, for half of a pause or longer, all threads waited for one that computed. */
static bool is_for_computing(const struct run *run, const struct pause *pause)
{
    const int64_t end = run->calls[pause->call].begin;
    return 2 * silence_between(run, true, end - pause->ns, end) >= pause->ns;
}

/* Adds up a thread's pauses in which it waited for something outside CUDA for a quarter of the
 * time, or those in which it computed for so long. Leaves out where calls are missing. What it
 * waited for another thread of the program is no wait for something outside. */
static struct pauses pauses_of(const struct findings *to, uint32_t thread, bool outside)
{
    const double part = 0.25;
    const struct run *run = &to->of->run;
    const uint32_t *calls = run->thread_calls.members;
    struct pauses pauses = {0};
    uint32_t before = NONE;
    for (uint32_t i = run->thread_calls.begins[thread]; i < run->thread_calls.begins[thread + 1];
        i++) {
        const struct call *call = &run->calls[calls[i]];
        const struct pause *pause =
            before != NONE && call->begin - run->calls[before].end >= OWN_CODE_NS
                ? pause_before(run, calls[i])
                : NULL;
        const double waited = pause_waited(pause);
        const bool for_thread =
            pause && (pause->waker != NONE ? outside || !pause->measured
                                           : outside && is_for_computing(run, pause));
        if (pause && call->begin > to->steady.begin && call->begin <= to->steady.end &&
            !pause->missing && !for_thread && (outside ? waited : 1 - waited) >= part)
            pauses_add(&pauses, &(struct pauses){.total = pause->ns,
                                    .longest = pause->ns,
                                    .known = pause->measured ? pause->ns : 0,
                                    .low = pause->measured ? pause->low : 0,
                                    .high = pause->measured ? pause->high : 0,
                                    .times = 1,
                                    .before = before,
                                    .behind = calls[i]});
        /* no call inside another one */
        if (before == NONE || call->end > run->calls[before].end) before = calls[i];
    }
    pauses.threads = pauses.times > 0;
    return pauses;
}

/* Says how much of the pauses the thread was on a processor; "" if the trace has no clock. */
static const char *processor_time(struct findings *to, const struct pauses *pauses)
{
    const char *low = SHOWN(UNIT_NS, pauses->low), *high = SHOWN(UNIT_NS, pauses->high);
    if (!pauses->known) return "";
    return report_text(to->report, "; on a processor for %s%s%s of %s", low,
        strcmp(low, high) ? " to " : "", strcmp(low, high) ? high : "",
        pauses->known == pauses->total ? "that" : SHOWN(UNIT_NS, pauses->known));
}

static void report_pauses(struct findings *to, struct subject place, const struct pauses *pauses)
{
    const struct run *run = &to->of->run;
    const struct call *before = &run->calls[pauses->before];
    int64_t until = INT64_MAX;
    const uint32_t range =
        thread_range_at(run, before->thread, before->end + pauses->longest / 2, &until);
    const bool one = pauses->threads == 1;
    finding(to, place, TIMES(pauses->times),
        "%s for %s%s; the longest time took %s, between %s and %s%s%s%s%s",
        one ? "the thread made no call" : "the threads made no call, added up,",
        SHOWN(UNIT_NS, pauses->total), processor_time(to, pauses), SHOWN(UNIT_NS, pauses->longest),
        text_in(run, before->name), text_in(run, run->calls[pauses->behind].name),
        one ? "" : " on ", one ? "" : find_thread(to, before->thread),
        range == NONE ? "" : ", in range ",
        range == NONE ? "" : text_in(run, run->ranges[range].name));
}

static void look_pauses(struct findings *to, bool outside)
{
    const size_t found = to->count;
    if (!to->replay) return;
    struct pauses all = {0};
    for (uint32_t t = 0; t < to->of->run.thread_count; t++) {
        const struct pauses pauses = pauses_of(to, t, outside);
        if (pauses.times < LOOP && pauses.longest < LONG_NS) continue;
        report_pauses(to, OF(THREAD, t), &pauses);
        pauses_add(&all, &pauses);
    }
    /* If threads take turns, or wait for one that computes, changing one gains little. */
    const size_t alone = to->count;
    double sum = 0;
    for (size_t i = found; i < alone; i++) sum += to->rows[i].high;
    if (all.threads && to->of->run.thread_count > 1)
        report_pauses(to,
            OF_WORDS(all.threads > 1 ? "all threads"
                                     : find_thread(to, to->of->run.calls[all.before].thread)),
            &all);
    if (to->count == alone) return;
    to->count = alone;
    if (to->rows[alone].high < 2 * sum) return;
    to->rows[found] = to->rows[alone];
    to->count = found + 1;
}
void look_own_code(struct findings *to) { look_pauses(to, false); }
void look_outside(struct findings *to) { look_pauses(to, true); }

/* --- CS128: nobody gives the GPU work --- */

/* Each thread's pauses may hide another one's. So this is a finding only if it gains twice as much
 * as any other. */
void look_silence(struct findings *to)
{
    const struct run *run = &to->of->run;
    const size_t others = to->count;
    int64_t total = 0, longest = 0;
    uint64_t times = 0;
    for (size_t i = 0; i < run->silence_count; i++) {
        const struct silence *is = &run->silences[i];
        if (is->begin < to->steady.begin || is->end > to->steady.end || is->computing ||
            is->end - is->begin < OWN_CODE_NS)
            continue;
        total += is->end - is->begin;
        times++;
        if (is->end - is->begin > longest) longest = is->end - is->begin;
    }
    if (times < LOOP && longest < LONG_NS) return;
    finding(to, OF_WORDS("all threads"), TIMES(times),
        "no thread of the program made a call for %s, at most %s at once, and those that make "
        "calls were not on a processor",
        SHOWN(UNIT_NS, total), SHOWN(UNIT_NS, longest));
    for (size_t i = 0; to->count > others && i < others; i++)
        if (to->rows[others].high < 2 * to->rows[i].high) to->count = others;
}

/* --- CS125: threads that take turns --- */

/* Returns, by thread, the name of the work that it enqueued most often; 0: it enqueued none. */
static text *likes_of(const struct run *run)
{
    text *likes = array_zeros(run->thread_count, sizeof *likes);
    for (size_t t = 0; t < run->thread_count; t++) {
        struct tallies names = {0};
        uint64_t most = 0;
        for (uint32_t i = run->thread_calls.begins[t]; i < run->thread_calls.begins[t + 1]; i++) {
            const struct call *call = &run->calls[run->thread_calls.members[i]];
            if (!call->works) continue;
            const text name = run->works[run->works_of[call->work]].name;
            struct tally *tally = tally_of(&names, name);
            tally_add(tally, 1);
            if (tally->times > most) most = tally->times, likes[t] = name;
        }
        tallies_free(&names);
    }
    return likes;
}

/* Threads that do the same by turns may hold a lock. If they do different work, one hands it to the
 * other, and needs what the other one made. */
void look_locks(struct findings *to)
{
    const struct run *run = &to->of->run;
    uint32_t most = 0, thread = NONE, all = 0;
    uint32_t *wakes = array_zeros(run->thread_count, sizeof *wakes);
    text *likes = likes_of(run);
    for (size_t i = 0; to->replay && i < run->pause_count; i++) {
        const struct pause *pause = &run->pauses[i];
        const uint32_t of = run->calls[pause->call].thread;
        if (!pause->ns || pause->waker == NONE || !likes[of] ||
            likes[of] != likes[run->calls[pause->waker].thread])
            continue;
        all++;
        if (++wakes[of] > most) most = wakes[of], thread = of;
    }
    free(wakes);
    free(likes);
    if (!all) return;
    finding(to, OF(THREAD, thread), TIMES(all),
        "threads made no call for %s or longer, and went on as soon as another thread's call had "
        "ended",
        SHOWN(UNIT_NS, OWN_CODE_NS));
}
