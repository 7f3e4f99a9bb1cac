/* Where each device was idle, by cause; and of the host's part, what the thread was doing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/model/table.h"
#include "tools/custream/report/inside.h"
#include "tools/custream/trace/numbers.h"

static const struct column idle_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES},      {"cause", "cause", UNIT_TEXT, COLUMN_NAMES},     {"why", "the next work waited for", UNIT_TEXT, 0},
    {"idle_ns", "idle", UNIT_NS, 0},      {"share", "share", UNIT_SHARE, 0},   {"times", "times", UNIT_COUNT, 0},
    {"longest_ns", "longest", UNIT_NS, 0}, {"example", "the longest", UNIT_TEXT, COLUMN_BELOW},
};
enum { IDLE_DEVICE, IDLE_CAUSE, IDLE_WHY, IDLE_NS, IDLE_SHARE, IDLE_TIMES, IDLE_LONGEST, IDLE_EXAMPLE, IDLE_COLUMNS };

static const struct column host_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES},    {"thread", "thread", UNIT_TEXT, COLUMN_NAMES},   {"doing", "it was", UNIT_TEXT, COLUMN_NAMES},     {"call", "call", UNIT_TEXT, COLUMN_NAMES},
    {"range", "range", UNIT_TEXT, COLUMN_NAMES},    {"idle_ns", "idle", UNIT_NS, 0},     {"share", "share", UNIT_SHARE, 0},    {"times", "times", UNIT_COUNT, 0},
    {"longest_ns", "longest", UNIT_NS, 0},
};
enum { HOST_DEVICE, HOST_THREAD, HOST_DOING, HOST_CALL, HOST_RANGE, HOST_NS, HOST_SHARE, HOST_TIMES, HOST_LONGEST, HOST_COLUMNS };

/* Idle time of one kind, summed. What lies in one gap is one time. */
struct sum {
    const struct idle *longest, *last; /* the first row of the longest time, and of the last one */
    int64_t ns, longest_ns, last_ns;
    uint64_t times;
};

static void sum_add(struct sum *sum, const struct idle *idle)
{
    const int64_t ns = idle->end - idle->begin;
    sum->ns += ns;
    if (!sum->last || sum->last->next != idle->next) {
        sum->last = idle;
        sum->last_ns = 0;
        sum->times++;
    }
    sum->last_ns += ns;
    if (sum->longest && sum->last_ns <= sum->longest_ns) return;
    sum->longest = sum->last;
    sum->longest_ns = sum->last_ns;
}

static int longer_first(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    return x->ns > y->ns ? -1 : x->ns < y->ns;
}

static int64_t idle_of(const struct model *of, uint32_t device)
{
    const struct span *span = &of->idles.devices[device];
    return span->end - span->begin - span->busy;
}

/* --- by cause --- */

/* What the longest of them was: "before sgemm on stream 14; recorded on stream 13 behind copy". */
static const char *example(struct report *report, const struct model *of, const struct idle *idle)
{
    const struct run *run = &of->run;
    const struct work *next = &run->works[idle->next];
    const struct hold *hold = &of->holds[idle->next];
    const char *name = work_label(report, run, next), *stream = stream_label(report, run, next->stream);
    const char *at = report_text(report, "at %.6f s, before %s on %s", (double)idle->begin / 1e9, name, stream);
    if (idle->cause == CAUSE_EVENT && hold->record != NONE && run->calls[hold->record].stream != NONE)
        at = report_text(report, "%s; the event was recorded on %s", at, stream_label(report, run, run->calls[hold->record].stream));
    if (hold->blocker == NONE || (idle->cause != CAUSE_EVENT && idle->cause != CAUSE_LEGACY)) return at;
    const struct work *blocker = &run->works[hold->blocker];
    return report_text(report, "%s, behind %s on %s", at, work_label(report, run, blocker), stream_label(report, run, blocker->stream));
}

static void by_cause(struct report *report, struct table *table, const struct model *of, uint32_t device)
{
    struct sum sums[CAUSES] = {0};
    for (size_t i = 0; i < of->idles.count; i++)
        if (of->idles.rows[i].device == device) sum_add(&sums[of->idles.rows[i].cause], &of->idles.rows[i]);
    qsort(sums, CAUSES, sizeof *sums, longer_first);
    for (int i = 0; i < CAUSES && sums[i].times; i++) {
        const struct cause_info *info = &cause_info[sums[i].longest->cause];
        struct cell *row = table_row(table);
        row[IDLE_DEVICE].number = of->run.devices[device].ordinal;
        row[IDLE_CAUSE].text = info->key;
        row[IDLE_WHY].text = info->title;
        row[IDLE_NS].number = (double)sums[i].ns;
        row[IDLE_SHARE].number = (double)sums[i].ns / (double)idle_of(of, device);
        row[IDLE_TIMES].number = (double)sums[i].times;
        row[IDLE_LONGEST].number = (double)sums[i].longest_ns;
        row[IDLE_EXAMPLE].text = example(report, of, sums[i].longest);
    }
}

/* --- by what the host did --- */

/* What tells rows of the host's part apart: numbers, so that no texts are compared. */
static uint64_t part(struct numbers *names, uint64_t before, uint32_t more)
{
    uint32_t *at = numbers_at(names, before << 32 | more, UINT32_MAX);
    if (*at == UINT32_MAX) *at = (uint32_t)names->count;
    return *at;
}

static uint64_t host_key(struct numbers *names, const struct run *run, const struct idle *idle)
{
    uint64_t key = part(names, 0, idle->device);
    key = part(names, key, idle_thread(run, idle));
    key = part(names, key, (uint32_t)idle->doing);
    key = part(names, key, idle->call == NONE ? 0 : run->calls[idle->call].name);
    return part(names, key, idle->range == NONE ? 0 : run->ranges[idle->range].name);
}

static void host_row(struct report *report, struct table *table, const struct model *of, const struct sum *sum)
{
    const struct run *run = &of->run;
    const struct idle *idle = sum->longest;
    struct cell *row = table_row(table);
    row[HOST_DEVICE].number = run->devices[idle->device].ordinal;
    row[HOST_THREAD].text = thread_label(report, run, idle_thread(run, idle));
    row[HOST_DOING].text = doing_word[idle->doing];
    if (idle->call != NONE) row[HOST_CALL].text = text_in(run, run->calls[idle->call].name);
    if (idle->range != NONE) row[HOST_RANGE].text = text_in(run, run->ranges[idle->range].name);
    row[HOST_NS].number = (double)sum->ns;
    row[HOST_SHARE].number = (double)sum->ns / (double)idle_of(of, idle->device);
    row[HOST_TIMES].number = (double)sum->times;
    row[HOST_LONGEST].number = (double)sum->longest_ns;
}

static void by_host(struct report *report, struct table *table, const struct model *of)
{
    struct numbers names = {0}, places = {0};
    struct sum *sums = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        if (idle->cause != CAUSE_HOST) continue;
        uint32_t *place = numbers_at(&places, host_key(&names, &of->run, idle), NONE);
        if (*place == NONE) {
            *place = (uint32_t)count;
            sums = array_room(sums, count, &capacity, sizeof *sums);
            sums[count++] = (struct sum){0};
        }
        sum_add(&sums[*place], idle);
    }
    if (count) qsort(sums, count, sizeof *sums, longer_first);
    for (size_t i = 0; i < count; i++) host_row(report, table, of, &sums[i]);
    free(sums);
    numbers_free(&names);
    numbers_free(&places);
}

void section_idle(struct report *report, const struct model *of)
{
    struct table *table = report_table(report, "idle", "Where the GPU was idle, and why", idle_columns, IDLE_COLUMNS);
    table->note = sample_note(report, &of->run);
    for (uint32_t device = 0; device < of->run.device_count; device++) by_cause(report, table, of, device);
    table = report_table(report, "idle_host", "What the host did while the GPU waited for it", host_columns, HOST_COLUMNS);
    table->note = sample_note(report, &of->run);
    table->shown = 10;
    by_host(report, table, of);
}
