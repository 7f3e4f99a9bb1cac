/* The run's steady part: its steps, and for how long each device computed in it. Time in which a
 * kernel runs counts as computing, whatever else the device does at that time. */
#include "tools/custream/report/inside.h"

static const struct column steady_columns[] = {
    {"begin_ns", "begins at", UNIT_NS, 0, 0},
    {"steady_ns", "steady part", UNIT_NS, 0, 0},
    {"after_ns", "after it", UNIT_NS, 0, 0},
    {"before_call", "longest call before it", UNIT_TEXT, 0, 0},
    {"before_call_times", "times", UNIT_COUNT, 0, 0},
    {"before_call_ns", "for", UNIT_NS, 0, 0},
    {"before_no_call_ns", "in no call", UNIT_NS, 0, 0},
    {"kernel", "told by", UNIT_TEXT, 0, 0},
    {"steps", "steps", UNIT_COUNT, 0, 0},
    {"step_ns", "a step", UNIT_NS, 0, 0},
    {"step", "each begins with", UNIT_TEXT, 0, 0},
    {"range", "is a range", UNIT_COUNT, 0, 0},
};

static const struct column computing_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"kernels_ns", "computed", UNIT_NS, 0, 0},
    {"unknown_ns", "not known", UNIT_NS, 0, 0},
    {"copies_ns", "only copied or set", UNIT_NS, 0, 0},
    {"gone_ns", "not recorded", UNIT_NS, 0, 0},
    {"nothing_ns", "did nothing", UNIT_NS, 0, 0},
};

/* The kinds of work, in order of precedence. If several kinds run at once, the device counts as
 * doing the one that stands first here. */
enum { KERNELS, UNKNOWN, COPIES, GONE, KINDS };
static const int kind_of[WORK_KINDS] = {
    [WORK_KERNEL] = KERNELS,
    [WORK_COPY] = COPIES,
    [WORK_SET] = COPIES,
    [WORK_GRAPH] = UNKNOWN,
    [WORK_RANGE] = UNKNOWN,
};

/* The time in which work of a kind, or of a kind before it, ran. */
struct doing {
    int64_t until[KINDS], ns[KINDS];
};

static void time_add(
    struct doing *doing, int first, int64_t begin, int64_t end, const struct steady *steady)
{
    if (end > steady->end) end = steady->end;
    for (int kind = first; kind < KINDS; kind++) {
        int64_t from = begin > steady->begin ? begin : steady->begin;
        if (doing->until[kind] > from) from = doing->until[kind];
        if (end <= from) continue;
        doing->ns[kind] += end - from;
        doing->until[kind] = end;
    }
}

/* Adds the times up to `until` in which work is missing. *at: the next loss. */
static void losses_add(struct doing *devices, const struct run *run, size_t *at, int64_t until,
    const struct steady *steady)
{
    for (; *at < run->loss_count && run->losses[*at].begin <= until; ++*at) {
        const struct loss *loss = &run->losses[*at];
        for (uint32_t d = 0;
            (loss->works || loss->no_times || loss->closed) && d < run->device_count; d++)
            time_add(&devices[d], GONE, loss->begin, loss->end, steady);
    }
}

static void computing_table(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    const struct steady *steady = &of->steady;
    struct table *table =
        TABLE_NEW(report, "computing", "What the GPU did in the steady part", computing_columns);
    struct doing *devices = array_zeros(run->device_count, sizeof *devices);
    size_t loss = 0;
    table->note = sample_note(report, run);
    for (size_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        losses_add(devices, run, &loss, work->begin, steady);
        time_add(
            &devices[work_device(run, work)], kind_of[work->kind], work->begin, work->end, steady);
    }
    losses_add(devices, run, &loss, INT64_MAX, steady);
    for (uint32_t d = 0; d < run->device_count; d++) {
        const int64_t *ns = devices[d].ns;
        if (of->usage.devices[d].begin < of->usage.devices[d].end)
            TABLE_PUT(table, computing_columns, CELL(run->devices[d].ordinal), CELL(ns[KERNELS]),
                CELL(ns[UNKNOWN] - ns[KERNELS]), CELL(ns[COPIES] - ns[UNKNOWN]),
                CELL(ns[GONE] - ns[COPIES]), CELL(steady->end - steady->begin - ns[GONE]));
    }
    free(devices);
}

void section_steady(
    struct report *report, const struct model *of, const struct repeats *ranges, const char *range)
{
    const struct run *run = &of->run;
    const struct steady *steady = &of->steady;
    struct table *table = TABLE_NEW(report, "steady", "The steady part", steady_columns);
    const struct repeats repeats = ranges->times ? *ranges : repeats_of_work(run, steady);
    const struct before before = before_of(run, steady->begin);
    if (run->work_count)
        TABLE_PUT(table, steady_columns, CELL(steady->begin - run->begin),
            CELL(steady->end - steady->begin), CELL(run->end - steady->end),
            CELL(before.call ? text_in(run, before.call) : NULL),
            CELL(before.call ? before.times : NAN), CELL(before.call ? before.call_ns : NAN),
            CELL(before.no_call_ns), CELL(steady->kernel ? text_in(run, steady->kernel) : NULL),
            CELL(repeats.times ? repeats.times : NAN), CELL(repeats.times ? repeats.period : NAN),
            CELL(ranges->times   ? range
                 : repeats.times ? text_in(run, repeats.name)
                                 : NULL),
            CELL(repeats.times ? (double)(ranges->times > 0) : NAN));
    computing_table(report, of);
}
