#include "tools/custream/report/inside.h"

#include <ctype.h>
#include <stdarg.h>

/* The list of all findings. docs/findings.md has a heading for each; an id never changes. */
const struct rule rules[] = {
    {"CS101", "the legacy default stream kept streams apart", look_legacy, IN_COSTS,
        "give its work a stream of its own, made with CU_STREAM_NON_BLOCKING; or run with "
        "CUSTREAM_DEFAULT_STREAM=audit, and if it finds nothing with "
        "CUSTREAM_DEFAULT_STREAM=per-thread"},
    {"CS102", "a blocking stream waited for the legacy default stream", look_blocking, IN_COSTS,
        "make it with CU_STREAM_NON_BLOCKING (cudaStreamNonBlocking)"},
    {"CS103", "the whole device is synchronised in a loop", look_synchronisation, IN_COSTS,
        "wait for an event or a stream instead of the device, and enqueue the next work before "
        "waiting"},
    {"CS104", "synchronous copies", look_blocking_copies, IN_COSTS,
        "use cuMemcpyAsync with pinned memory, and wait for it where the data is used"},
    {"CS105", "copies from or to pageable memory", look_pageable, IN_COSTS,
        "use pinned memory (cuMemHostAlloc, cudaMallocHost, pin_memory=True)"},
    {"CS106", "memory is allocated or freed between launches", look_allocations, IN_COSTS,
        "allocate once and keep it, or use cuMemAllocAsync and cuMemFreeAsync (a memory pool)"},
    {"CS107", "many short kernels, and the GPU waits for their launches", look_launches, IN_COSTS,
        "put them into a CUDA graph, or do more work in one kernel"},
    {"CS108", "a wait for an event that was recorded long before, or never", look_stale_waits,
        PARTLY_IN_CALLS, "record the event behind the work that the wait is for, every time"},
    {"CS109", "waits for events that order nothing", look_idle_waits, IN_COSTS,
        "leave out cuStreamWaitEvent where the stream's own order is enough"},
    {"CS110", "streams or events made in a loop, or never destroyed", look_objects, PARTLY_IN_CALLS,
        "make them once and use them again; destroy them at the end"},
    {"CS111", "more streams had work at once than there are hardware queues", look_hardware_queues,
        IN_COSTS, "use at most 8 streams at once, or set CUDA_DEVICE_MAX_CONNECTIONS up to 32"},
    {"CS112", "priorities without effect", look_priorities, ANYWAY,
        "ask for a priority in cuCtxGetStreamPriorityRange; it only counts while other streams "
        "have work"},
    {"CS113", "a loop that asks again and again whether work is done", look_spinning, IN_CALLS,
        "wait by cuEventSynchronize (with CU_EVENT_BLOCKING_SYNC) or do other work between"},
    {"CS114", "copies in both directions, one after the other", look_copy_engines, IN_COSTS,
        "put copies to the device and from it on two streams, with two buffers"},
    {"CS115", "calls failed", look_failed, IN_CALLS,
        "read the result of every call; an error of earlier work may come back from a later call"},
    {"CS116", "host functions held a stream", look_host_functions, IN_COSTS,
        "do less in cuLaunchHostFunc: wake a thread, and let the stream go on"},
};
const size_t rule_count = sizeof rules / sizeof *rules;

/* The share of its device's time that a find must have cost to be worth a change of the program. */
static const double WORTH_SHARE = 0.005;
enum { EVIDENCE_MAX = 16 << 10 };

void finding(struct findings *to, uint32_t device, const char *place, double cost, uint64_t times,
    const char *format, ...)
{
    char evidence[EVIDENCE_MAX];
    va_list args;
    if (to->rule->shows == IN_COSTS) {
        const struct span *span = &to->of->idles.devices[device];
        if (!(cost >= WORTH_SHARE * (double)(span->end - span->begin))) return;
    }
    va_start(args, format);
    vsnprintf(evidence, sizeof evidence, format, args);
    va_end(args);
    array_add(to->rows, to->count, to->capacity,
        (struct find){to->rule, place, cost, times, report_text(to->report, "%s", evidence)});
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

static int by_cost(const void *left, const void *right)
{
    const struct find *a = left, *b = right;
    const double cost_a = isnan(a->cost) ? -1 : a->cost, cost_b = isnan(b->cost) ? -1 : b->cost;
    return ORDER(cost_b, cost_a) ?: ORDER(a->rule, b->rule) ?: ORDER(b->times, a->times);
}

/* --- the table --- */

static const struct column columns[] = {
    {"id", "id", UNIT_TEXT, COLUMN_NAMES, 0},
    {"title", "finding", UNIT_TEXT, 0, 0},
    {"stream", "where", UNIT_TEXT, COLUMN_NAMES, 0},
    {"cost_ns", "costs at most", UNIT_NS, 0, 0},
    {"times", "times", UNIT_COUNT, 0, 0},
    {"evidence", "evidence", UNIT_TEXT, 0, 0},
    {"remedy", "remedy", UNIT_TEXT, 0, 0},
    {"page", "page", UNIT_TEXT, 0, 0},
};

/* Returns the link to a finding's heading in docs/findings.md. */
static const char *page_of(struct report *report, const char *id)
{
    char anchor[16] = {0};
    for (size_t i = 0; id[i] && i < sizeof anchor - 1; i++)
        anchor[i] = (char)tolower((unsigned char)id[i]);
    return report_text(report, "docs/findings.md#%s", anchor);
}

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

static const char *nothing_found(struct report *report, const struct run *run)
{
    if (run_sample(run))
        return "The rules that need no GPU times found nothing to change; the tables say the rest.";
    if (run_has_times(run)) return "No rule found anything to change; the tables say the rest.";
    return report_text(report,
        "Without GPU times only %s could be judged, and %s in part: they found nothing to change. "
        "The tables say the rest.",
        rules_in_calls(report, IN_CALLS), rules_in_calls(report, PARTLY_IN_CALLS));
}

void section_findings(struct report *report, const struct model *of)
{
    struct findings found = {.of = of, .report = report};
    for (found.rule = rules; found.rule < rules + rule_count; found.rule++)
        found.rule->look(&found);
    if (found.count) qsort(found.rows, found.count, sizeof *found.rows, by_cost);
    struct table *table = TABLE_NEW(report, "findings", "What to change", columns);
    table->note =
        "Costs are upper bounds. Two findings may cost the same time: costs do not add up.";
    table->shown = 20;
    table->none = nothing_found(report, &of->run);
    for (size_t i = 0; i < found.count; i++) {
        const struct find *find = &found.rows[i];
        TABLE_PUT(table, columns, CELL(find->rule->id), CELL(find->rule->title), CELL(find->place),
            CELL(find->cost), CELL(find->times), CELL(find->evidence), CELL(find->rule->remedy),
            CELL(page_of(report, find->rule->id)));
    }
    free(found.rows);
}
