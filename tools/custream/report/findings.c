#include "tools/custream/model/views.h"
#include "tools/custream/model/what_if.h"
#include "tools/custream/report/inside.h"

#include <stdarg.h>

/* The list of all findings. docs/findings.md has a heading for each; an id never changes. */
const struct rule rules[] = {
    {"CS101", "the legacy default stream kept streams apart", look_legacy, PRICED,
        .remedy =
            "give its work a stream of its own, made with CU_STREAM_NON_BLOCKING; or run with "
            "CUSTREAM_DEFAULT_STREAM=audit, and if it finds nothing with "
            "CUSTREAM_DEFAULT_STREAM=per-thread",
        .experiment = {.words = "no legacy"}},
    {"CS102", "a blocking stream waited for the legacy default stream", look_blocking, PRICED,
        .remedy = "make it with CU_STREAM_NON_BLOCKING (cudaStreamNonBlocking)",
        .experiment = {.words = "no legacy"}},
    {"CS103", "the whole device is synchronised in a loop", look_synchronisation, PRICED,
        .remedy =
            "wait for an event or a stream instead of the device, and enqueue the next work before "
            "waiting",
        .experiment = {.words = "no cuCtxSynchronize", .narrow = true}},
    {"CS104", "synchronous copies", look_blocking_copies, PRICED,
        .remedy = "use cuMemcpyAsync with pinned memory, and wait for it where the data is used",
        .experiment = {.words = "copies do not block", .narrow = true, .further = "no waits"}},
    {"CS105", "copies from or to pageable memory", look_pageable, PRICED,
        .remedy = "use pinned memory (cuMemHostAlloc, cudaMallocHost, pin_memory=True)",
        .experiment = {.words = "pinned", .narrow = true, .further = "pinned and ahead"}},
    {"CS106", "memory is allocated or freed between launches", look_allocations, PRICED,
        .remedy =
            "allocate once and keep it, or use cuMemAllocAsync and cuMemFreeAsync (a memory pool)",
        .experiment = {.words = "allocations=0", .narrow = true}},
    {"CS107", "many short kernels, and the GPU waits for their launches", look_launches, PRICED,
        .remedy = "put them into a CUDA graph, or do more work in one kernel",
        .experiment = {.words = "graph", .narrow = true}},
    {"CS108", "a wait for an event that was recorded long before, or never", look_event_waits,
        PARTLY_IN_CALLS,
        .remedy = "record the event behind the work that the wait is for, every time"},
    {"CS109", "waits for events that order nothing", NULL, PRICED,
        .remedy = "leave out cuStreamWaitEvent where the stream's own order is enough"},
    {"CS110", "streams or events made in a loop, or never destroyed", look_objects, PARTLY_IN_CALLS,
        .remedy = "make them once and use them again; destroy them at the end"},
    {"CS111", "more streams had work at once than there are hardware queues", look_hardware_queues,
        PRICED, .remedy = "use fewer streams at once, or set CUDA_DEVICE_MAX_CONNECTIONS up to 32",
        .experiment = {.words = "no queues"}},
    {"CS112", "priorities without effect", look_priorities, ANYWAY,
        .remedy =
            "ask for a priority in cuCtxGetStreamPriorityRange; it only counts while other streams "
            "have work"},
    {"CS113", "a loop that asks again and again whether work is done", look_spinning, IN_CALLS,
        .remedy =
            "wait by cuEventSynchronize (with CU_EVENT_BLOCKING_SYNC) or do other work between"},
    {"CS114", "copies in both directions, one after the other", look_copy_engines, PRICED,
        .remedy = "put copies to the device and from it on two streams, with two buffers",
        .experiment = {.words = "no copies"}},
    {"CS115", "calls failed", look_failed, IN_CALLS,
        .remedy = "read the result of every call; an error of earlier work may come back from a "
                  "later call"},
    {"CS116", "host functions held a stream", look_host_functions, PRICED,
        .remedy = "do less in cuLaunchHostFunc: wake a thread, and let the stream go on",
        .experiment = {.words = "host functions=0", .narrow = true}},
    {"CS117", "the GPU waits for the program's own code", look_own_code, PRICED,
        .remedy = "do it on other threads, ahead of time, or on the GPU",
        .experiment = {.words = "own code=0", .narrow = true}},
    {"CS118", "several threads share a stream", look_shared_streams, PRICED,
        .remedy = "give each thread a stream of its own; for the default stream, run with "
                  "CUSTREAM_DEFAULT_STREAM=per-thread",
        .experiment = {.words = "per-thread"}},
    {"CS119", "small kernels run one after the other", look_small_kernels, PRICED,
        .remedy =
            "put kernels that do not need each other on several streams, or into one graph with "
            "branches; or make one larger kernel of them",
        .experiment = {.words = "two at once", .further = "side by side"}},
    {"CS120", "waits for events keep streams apart", look_events, PRICED,
        .remedy = "if a stream does not need what it waits for, leave out cuStreamWaitEvent "
                  "(wait_stream); "
                  "or record the event earlier",
        .experiment = {.words = "no events"}},
    {"CS121", "the host waits for a stream or an event in a loop", look_stream_waits, PRICED,
        .remedy = "enqueue the next work before waiting, and read results later",
        .experiment = {.words = "no stream waits", .narrow = true, .further = "no waits"}},
    {"CS122", "kernels and copies wait for each other on a stream", look_copies, PRICED,
        .remedy = "copy the next data on a stream of its own while kernels run, with two buffers",
        .experiment = {.words = "no copies"}},
    {"CS123", "the GPU is busy all the time", look_full, ANYWAY, .last = true,
        .remedy = "make these kernels faster, or give them less to do"},
    {"CS124", "the GPU waits for the host", look_host, PRICED, .last = true,
        .remedy = "enqueue work earlier, from another thread, or as a CUDA graph",
        .experiment = {.words = "host=0"}},
    {"CS125", "threads wait for each other", look_locks, PRICED,
        .remedy = "hold a lock for the launch only and not for the wait, or give threads queues",
        .experiment = {.words = "no locks"}},
    {"CS126", "the GPU waits for a thread that waits for something outside CUDA", look_outside,
        PRICED,
        .remedy = "find what the thread waits for (py-spy dump, gdb): a lock, a queue, a file, "
                  "Python's interpreter lock; let another thread prepare it, or hold it for less "
                  "time",
        .experiment = {.words = "no waits outside CUDA", .narrow = true}},
    {"CS127", "many small copies of pageable memory, one by one", NULL, PRICED,
        .remedy = "gather the data in one pinned buffer, and copy it at once and ahead",
        .experiment = {.words = "pinned and ahead", .narrow = true}},
    {"CS128", "no thread gives the GPU work", look_silence, PRICED,
        .remedy =
            "find what the program does then (py-spy dump, perf): a thread that makes no CUDA "
            "call computes or waits; prepare the data ahead, or on the GPU",
        .experiment = {.words = "no silence"}},
};
const size_t rule_count = sizeof rules / sizeof *rules;
_Static_assert(sizeof rules / sizeof *rules <= 64, "a bit a rule");

/* The least share of the run's steady part that a gain must be, to be worth a change of the
 * program. */
static const double WORTH_SHARE = 0.01;
/* The share of the recorded length from which on a replay is too far off to be trusted. */
static const double MUCH_OFF = 0.05;
enum { EVIDENCE_MAX = 16 << 10 };

/* Returns the gain of an experiment at this place. */
static struct gain priced(struct findings *to, const struct subject *place, const char *words)
{
    struct what_if what = {0};
    struct gain gain = {0, 0};
    char error[512];
    if (to->replay && what_if_read(&what, &to->of->run, words, error)) {
        if (to->rule->experiment.narrow && place->kind == PLACE_THREAD)
            what.change.where = OF_THREAD;
        if (to->rule->experiment.narrow && place->kind == PLACE_STREAM)
            what.change.where = OF_STREAM;
        what.change.place = place->number;
        what.change.from = to->steady.begin;
        what.change.to = to->steady.end;
        gain_of(&gain, to->replay, &what.change, what.split);
    }
    what_if_free(&what);
    return gain;
}

void rule_is(struct findings *to, const char *id)
{
    for (to->rule = rules; strcmp(to->rule->id, id) != 0;) to->rule++;
}

void finding(
    struct findings *to, struct subject place, struct extent extent, const char *format, ...)
{
    char evidence[EVIDENCE_MAX];
    va_list args;
    struct find find = {.rule = to->rule, .low = NAN, .high = NAN, .times = extent.times};
    struct find *last = to->count ? &to->rows[to->count - 1] : NULL;
    if (to->rule->experiment.words && !to->rule->experiment.narrow && last &&
        last->rule == to->rule) {
        last->times += extent.times; /* the first find's experiment has changed all places */
        return;
    }
    if (to->rule->experiment.words) {
        const struct gain gain = priced(to, &place, to->rule->experiment.words),
                          more = to->rule->experiment.further
                                     ? priced(to, &place, to->rule->experiment.further)
                                     : gain;
        find.low = gain.low > 0 ? (double)gain.low : 0;
        /* The gain of the further experiment counts if the first gain is worth a finding, or if the
         * host waited there for about as long as that gain: two waits may hold the same time. */
        const bool counts = more.high > gain.high && ((double)gain.high >= to->worth ||
                                                         (double)more.high <= 1.2 * extent.waited);
        find.high = (double)(counts ? more.high : gain.high);
    } else if (extent.most > 0) find.low = 0, find.high = extent.most;
    if (to->rule->shows == PRICED && !(find.high >= to->worth)) {
        if (to->replay) to->minor |= UINT64_C(1) << (to->rule - rules);
        return;
    }
    va_start(args, format);
    vsnprintf(evidence, sizeof evidence, format, args);
    va_end(args);
    find.place = place.kind == PLACE_DEVICE   ? find_device(to, place.number)
                 : place.kind == PLACE_THREAD ? find_thread(to, place.number)
                 : place.kind == PLACE_STREAM ? find_stream(to, place.number)
                                              : place.words;
    find.evidence = report_text(to->report, "%s", evidence);
    array_add(to->rows, to->count, to->capacity, find);
}

const char *find_stream(struct findings *to, uint32_t stream)
{
    const struct run *run = &to->of->run;
    const char *label = stream_label(to->report, run, stream);
    return run->device_count < 2 ? label
                                 : report_text(to->report, "%s of GPU %u", label,
                                       run->devices[run->streams[stream].device].ordinal);
}

const char *find_device(struct findings *to, uint32_t device)
{
    return report_text(to->report, "GPU %u", to->of->run.devices[device].ordinal);
}

const char *find_thread(struct findings *to, uint32_t thread)
{
    return thread_label(to->report, &to->of->run, thread);
}

static int by_gain(const void *left, const void *right)
{
    const struct find *a = left, *b = right;
    const double gain_a = isnan(a->high) ? -1 : a->high, gain_b = isnan(b->high) ? -1 : b->high;
    return ORDER(gain_b, gain_a) ?: ORDER(a->rule, b->rule) ?: ORDER(b->times, a->times);
}

/* --- the table --- */

static const struct column columns[] = {
    {"id", "id", UNIT_TEXT, COLUMN_NAMES, 0},
    {"title", "finding", UNIT_TEXT, 0, 0},
    {"stream", "where", UNIT_TEXT, COLUMN_NAMES, 0},
    {"gain_low_ns", "gains", UNIT_NS, 0, 0},
    {"gain_high_ns", "at most", UNIT_NS, 0, 0},
    {"gain_step_ns", "of a step", UNIT_NS, 0, 0},
    {"times", "times", UNIT_COUNT, 0, 0},
    {"evidence", "evidence", UNIT_TEXT, 0, 0},
    {"remedy", "remedy", UNIT_TEXT, 0, 0},
    {"what_if", "experiment", UNIT_TEXT, 0, 0},
    {"page", "page", UNIT_TEXT, 0, 0},
};

/* Returns the ids of the rules with this `shows`: "CS113 and CS115". */
static const char *rules_in_calls(struct report *report, enum shows shows)
{
    const char *list = "";
    size_t left = 0;
    for (size_t i = 0; i < rule_count; i++) left += rules[i].shows == shows;
    for (size_t i = 0; i < rule_count; i++)
        if (rules[i].shows == shows)
            list = report_text(report, "%s%s%s", list, rules[i].id,
                --left > 1 ? ", "
                : left     ? " and "
                           : "");
    return list;
}

static const char no_replay[] = "Calls of GPU work are missing, so no gain is known.";

static const char *nothing_found(struct report *report, const struct findings *found)
{
    const struct run *run = &found->of->run;
    if (run_sample(run))
        return "The rules that need no GPU times found nothing to change; the tables say the rest.";
    if (found->replay) return "No rule found anything to change; the tables say the rest.";
    if (run_has_times(run) && !run->work_count) return "The trace has no GPU work to gain from.";
    if (run_has_times(run))
        return report_text(report, "%s Other rules found nothing; see the tables.", no_replay);
    return report_text(report,
        "Without GPU times only %s could be judged, and %s in part: they found nothing to change. "
        "The tables say the rest.",
        rules_in_calls(report, IN_CALLS), rules_in_calls(report, PARTLY_IN_CALLS));
}

/* Returns the gain if the changes of all findings' experiments are made at once. Of the changes
 * that split streams only the one with the largest gain takes part. */
static double gain_together(const struct findings *found)
{
    struct what_if all = {0};
    struct gain gain = {0, 0};
    double split_gain = 0;
    char error[512];
    for (size_t i = 0; found->replay && i < found->count; i++) {
        struct what_if one;
        const char *words = found->rows[i].rule->experiment.words;
        if (!words) continue;
        if (what_if_read(&one, &found->of->run, words, error)) {
            change_add(&all.change, &one.change);
            if (one.split != SPLIT_NONE && found->rows[i].high > split_gain) {
                split_gain = found->rows[i].high;
                all.split = one.split;
            }
        }
        what_if_free(&one);
    }
    all.change.from = found->steady.begin;
    all.change.to = found->steady.end;
    if (found->replay) gain_of(&gain, found->replay, &all.change, all.split);
    double most = (double)gain.high; /* at least the gain of each further experiment */
    for (size_t i = 0; i < found->count; i++)
        if (found->rows[i].high > most) most = found->rows[i].high;
    return most;
}

/* Returns the note of the table: what its rows do not say. */
static const char *note_of(struct findings *found)
{
    size_t priced_rows = 0;
    const char *minor = "";
    uint64_t only = found->minor;
    for (size_t row = 0; row < found->count; row++)
        only &= ~(UINT64_C(1) << (found->rows[row].rule - rules));
    for (size_t i = 0; i < rule_count; i++)
        if (only >> i & 1)
            minor = report_text(found->report, "%s%s%s", minor, *minor ? ", " : "", rules[i].id);
    if (!found->replay && found->of->run.work_count && run_has_times(&found->of->run))
        return no_replay;
    const char *note = "A gain is how much shorter the run is when it is played again with the "
                       "change. Gains do not add up: two findings may gain the same time.";
    for (size_t i = 0; i < found->count; i++)
        priced_rows += found->rows[i].rule->experiment.words != NULL;
    const double recorded = found->replay ? (double)replay_recorded(found->replay) : 0,
                 off = recorded > 0 ? fabs((double)unchanged_length(found->replay) / recorded - 1)
                                    : 0;
    if (off > MUCH_OFF)
        note = report_text(found->report,
            "%s The run as it was replays %s off: do not trust the gains.", note,
            SHOWN(UNIT_SHARE, off));
    if (priced_rows > 1)
        note = report_text(found->report, "%s All together gain about %s.", note,
            SHOWN(UNIT_NS, gain_together(found)));
    return *minor ? report_text(
                        found->report, "%s Below 1 %% of the run's steady part: %s.", note, minor)
                  : note;
}

void section_findings(struct report *report, const struct model *of)
{
    struct findings found = {.of = of, .report = report};
    found.steady = of->steady;
    if (of->run.work_count) found.replay = replay_make(of);
    found.worth = WORTH_SHARE * (double)(found.steady.end - found.steady.begin);
    for (int last = 0; last < 2; last++)
        for (const struct rule *rule = rules; rule < rules + rule_count; rule++) {
            if (!rule->look || rule->last != last) continue;
            found.rule = rule;
            rule->look(&found);
        }
    if (found.count) qsort(found.rows, found.count, sizeof *found.rows, by_gain);
    struct table *table = TABLE_NEW(report, "findings", "What to change", columns);
    table->note = note_of(&found);
    replay_free(found.replay);
    table->shown = 20;
    table->none = nothing_found(report, &found);
    const double steps = table_number(report_find(report, "steady"), 0, "steps");
    for (size_t i = 0; i < found.count; i++) {
        const struct find *find = &found.rows[i];
        TABLE_PUT(table, columns, CELL(find->rule->id), CELL(find->rule->title), CELL(find->place),
            CELL(find->low), CELL(find->high), CELL(find->high / steps), CELL(find->times),
            CELL(find->evidence), CELL(find->rule->remedy), CELL(find->rule->experiment.words),
            CELL(report_text(report, "docs/findings.md#cs%s", find->rule->id + 2)));
    }
    free(found.rows);
}
