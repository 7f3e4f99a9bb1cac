/* The idle time of each device by cause, and, for the host's part, by what the thread was doing. */
#include "tools/custream/report/inside.h"

static const struct column idle_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"cause", "cause", UNIT_TEXT, COLUMN_NAMES, 0},
    {"why", "the next work waited for", UNIT_TEXT, 0, 0},
    {"idle_ns", "idle", UNIT_NS, 0, CELL_TOTAL},
    {"share", "share", UNIT_SHARE, 0, 0},
    {"times", "times", UNIT_COUNT, 0, CELL_TIMES},
    {"longest_ns", "longest", UNIT_NS, 0, CELL_LONGEST},
    {"example", "the longest", UNIT_TEXT, COLUMN_BELOW, 0},
};

static const struct column host_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"thread", "thread", UNIT_TEXT, COLUMN_NAMES, 0},
    {"doing", "it was", UNIT_TEXT, COLUMN_NAMES, 0},
    {"call", "call", UNIT_TEXT, COLUMN_NAMES, 0},
    {"range", "range", UNIT_TEXT, COLUMN_NAMES, 0},
    {"idle_ns", "idle", UNIT_NS, 0, CELL_TOTAL},
    {"share", "share", UNIT_SHARE, 0, 0},
    {"times", "times", UNIT_COUNT, 0, CELL_TIMES},
    {"longest_ns", "longest", UNIT_NS, 0, CELL_LONGEST},
};

/* Places in tally->sum of a row. IDLE_LAST: the first piece, as an index in idles->rows, in the
 * gap that was added last. IDLE_LAST_NS: the sum of this gap's pieces so far. IDLE_LONGEST: the
 * first piece in the gap with the largest sum. */
enum { IDLE_LAST, IDLE_LAST_NS, IDLE_LONGEST };

/* Adds a piece of idle time. All pieces of one gap together count once in tally->times, and their
 * sum counts for tally->longest. */
static void idle_add(struct tally *tally, const struct idles *idles, size_t index)
{
    const struct idle *idle = &idles->rows[index];
    const int64_t ns = idle->end - idle->begin;
    if (!tally->times || idles->rows[(size_t)tally->sum[IDLE_LAST]].next != idle->next) {
        tally->sum[IDLE_LAST] = (double)index;
        tally->sum[IDLE_LAST_NS] = 0;
        tally->times++;
    }
    tally->total += ns;
    tally->sum[IDLE_LAST_NS] += (double)ns;
    if (tally->sum[IDLE_LAST_NS] <= (double)tally->longest) return;
    tally->longest = (int64_t)tally->sum[IDLE_LAST_NS];
    tally->sum[IDLE_LONGEST] = tally->sum[IDLE_LAST];
}

static const struct idle *longest_of(const struct model *of, const struct tally *tally)
{
    return &of->idles.rows[(size_t)tally->sum[IDLE_LONGEST]];
}

static double share_of(const struct model *of, const struct tally *tally)
{
    const struct device_usage *device = &of->usage.devices[longest_of(of, tally)->device];
    return (double)tally->total / (double)device->at_work[0];
}

/* --- by cause --- */

/* Describes an idle time: "at 0.5 s, before sgemm on stream 14; the event was recorded on stream
 * 13, behind copy on stream 13". */
static const char *example(struct report *report, const struct model *of, const struct idle *idle)
{
    const struct run *run = &of->run;
    const struct work *next = &run->works[idle->next];
    const struct hold *hold = &of->holds[idle->next];
    const char *name = work_label(report, run, next),
               *stream = stream_label(report, run, next->stream);
    const char *at =
        report_text(report, "at %.6f s, before %s on %s", (double)idle->begin / 1e9, name, stream);
    if (idle->cause == CAUSE_EVENT && hold->record != NONE &&
        run->calls[hold->record].stream != NONE)
        at = report_text(report, "%s; the event was recorded on %s", at,
            stream_label(report, run, run->calls[hold->record].stream));
    if (hold->blocker == NONE || (idle->cause != CAUSE_EVENT && idle->cause != CAUSE_LEGACY))
        return at;
    const struct work *blocker = &run->works[hold->blocker];
    return report_text(report, "%s, behind %s on %s", at, work_label(report, run, blocker),
        stream_label(report, run, blocker->stream));
}

static void cause_own(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row)
{
    const struct idle *idle = longest_of(of, tally);
    row[0].number = of->run.devices[idle->device].ordinal;
    row[1].text = cause_info[idle->cause].key;
    row[2].text = cause_info[idle->cause].title;
    row[4].number = share_of(of, tally);
    row[7].text = example(report, of, idle);
}

/* --- by what the host did --- */

static void host_own(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row)
{
    const struct run *run = &of->run;
    const struct idle *idle = longest_of(of, tally);
    row[0].number = run->devices[idle->device].ordinal;
    row[1].text = thread_label(report, run, idle_thread(run, idle));
    row[2].text = doing_word[idle->doing];
    if (idle->call != NONE) row[3].text = text_in(run, run->calls[idle->call].name);
    if (idle->range != NONE) row[4].text = text_in(run, run->ranges[idle->range].name);
    row[6].number = share_of(of, tally);
}

void section_idle(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table =
        TABLE_NEW(report, "idle", "Where the GPU was idle, and why", idle_columns);
    struct tallies causes = {0}, doings = {0};
    table->note = sample_note(report, run);
    for (size_t i = 0; i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        idle_add(tally_of(&causes, idle->cause), &of->idles, i);
        if (i + 1 == of->idles.count || idle[1].device != idle->device)
            tallies_put(report, of, &causes, table, cause_own);
        if (idle->cause == CAUSE_HOST)
            idle_add(TALLY_OF(&doings, idle->device, idle_thread(run, idle), idle->doing,
                         idle->call == NONE ? 0 : run->calls[idle->call].name,
                         idle->range == NONE ? 0 : run->ranges[idle->range].name),
                &of->idles, i);
    }
    table = TABLE_NEW(
        report, "idle_host", "What the host did while the GPU waited for it", host_columns);
    table->note = sample_note(report, run);
    table->shown = 10;
    tallies_put(report, of, &doings, table, host_own);
}
