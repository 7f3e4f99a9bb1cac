/* The idle time of each device by cause, and, for the host's part, by what the thread was doing. */
#include "tools/custream/report/inside.h"

static const struct column idle_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"cause", "cause", UNIT_TEXT, COLUMN_NAMES, 0},
    {"why", "the next work waited for", UNIT_TEXT, 0, 0},
    {"idle_ns", "idle", UNIT_NS, 0, 0},
    {"share", "share", UNIT_SHARE, 0, 0},
    {"times", "times", UNIT_COUNT, 0, 0},
    {"longest_ns", "longest", UNIT_NS, 0, 0},
    {"example", "the longest", UNIT_TEXT, COLUMN_BELOW, 0},
};

static const struct column host_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"thread", "thread", UNIT_TEXT, COLUMN_NAMES, 0},
    {"doing", "it was", UNIT_TEXT, COLUMN_NAMES, 0},
    {"call", "call", UNIT_TEXT, COLUMN_NAMES, 0},
    {"range", "range", UNIT_TEXT, COLUMN_NAMES, 0},
    {"idle_ns", "idle", UNIT_NS, 0, 0},
    {"share", "share", UNIT_SHARE, 0, 0},
    {"times", "times", UNIT_COUNT, 0, 0},
    {"longest_ns", "longest", UNIT_NS, 0, 0},
};

/* Idle time of one kind, summed. Pieces in one gap count as one time. */
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
    return ORDER(((const struct sum *)b)->ns, ((const struct sum *)a)->ns);
}

static int64_t idle_of(const struct model *of, uint32_t device)
{
    const struct span *span = &of->idles.devices[device];
    return span->end - span->begin - span->busy;
}

/* --- by cause --- */

/* Describes an idle time: "before sgemm on stream 14; recorded on stream 13 behind copy". */
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

static void by_cause(
    struct report *report, struct table *table, const struct model *of, uint32_t device)
{
    struct sum sums[CAUSES] = {0};
    for (size_t i = 0; i < of->idles.count; i++)
        if (of->idles.rows[i].device == device)
            sum_add(&sums[of->idles.rows[i].cause], &of->idles.rows[i]);
    qsort(sums, CAUSES, sizeof *sums, longer_first);
    for (int i = 0; i < CAUSES && sums[i].times; i++) {
        const struct cause_info *info = &cause_info[sums[i].longest->cause];
        TABLE_PUT(table, idle_columns, CELL(of->run.devices[device].ordinal), CELL(info->key),
            CELL(info->title), CELL(sums[i].ns),
            CELL((double)sums[i].ns / (double)idle_of(of, device)), CELL(sums[i].times),
            CELL(sums[i].longest_ns), CELL(example(report, of, sums[i].longest)));
    }
}

/* --- by what the host did --- */

/* Returns a number for each kind of row of the host's part, so that no texts are compared. */
static uint32_t host_key(struct numbers *names, const struct run *run, const struct idle *idle)
{
    const uint32_t parts[] = {idle->device, idle_thread(run, idle), idle->doing,
        idle->call == NONE ? 0 : run->calls[idle->call].name,
        idle->range == NONE ? 0 : run->ranges[idle->range].name};
    uint32_t key = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        key = *numbers_at(names, key_of(key, parts[i]), (uint32_t)names->count + 1);
    return key;
}

static void host_row(
    struct report *report, struct table *table, const struct model *of, const struct sum *sum)
{
    const struct run *run = &of->run;
    const struct idle *idle = sum->longest;
    TABLE_PUT(table, host_columns, CELL(run->devices[idle->device].ordinal),
        CELL(thread_label(report, run, idle_thread(run, idle))), CELL(doing_word[idle->doing]),
        CELL(idle->call == NONE ? NULL : text_in(run, run->calls[idle->call].name)),
        CELL(idle->range == NONE ? NULL : text_in(run, run->ranges[idle->range].name)),
        CELL(sum->ns), CELL((double)sum->ns / (double)idle_of(of, idle->device)), CELL(sum->times),
        CELL(sum->longest_ns));
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
            array_add(sums, count, capacity, (struct sum){0});
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
    struct table *table =
        TABLE_NEW(report, "idle", "Where the GPU was idle, and why", idle_columns);
    table->note = sample_note(report, &of->run);
    for (uint32_t device = 0; device < of->run.device_count; device++)
        by_cause(report, table, of, device);
    table = TABLE_NEW(
        report, "idle_host", "What the host did while the GPU waited for it", host_columns);
    table->note = sample_note(report, &of->run);
    table->shown = 10;
    by_host(report, table, of);
}

/* --- streams that ran one after the other, why, and what that cost --- */

/* A remedy for each cause; NULL: no stream waits for another by this cause. */
static const char *const remedies[CAUSES] = {
    [CAUSE_LEGACY] = "use no legacy default stream: give its work a stream made with "
                     "CU_STREAM_NON_BLOCKING, or try "
                     "CUSTREAM_DEFAULT_STREAM=per-thread after CUSTREAM_DEFAULT_STREAM=audit",
    [CAUSE_EVENT] = "if the second does not need all that the first did: record the event earlier, "
                    "or leave out cuStreamWaitEvent",
    [CAUSE_COPY_ENGINE] = "one engine copies in this direction: nothing is gained by more streams; "
                          "copy less, or at another time",
    [CAUSE_DEVICE_FULL] = "the first filled the device: little is gained by more streams, unless "
                          "its kernels get smaller",
    [CAUSE_HARDWARE_QUEUE] =
        "use fewer streams at once, or set CUDA_DEVICE_MAX_CONNECTIONS up to 32",
    [CAUSE_HOST] = "enqueue the second before waiting for the first; let cuStreamWaitEvent order "
                   "what depends on each other",
    [CAUSE_UNKNOWN] = "the trace does not say why; look at the two in the timeline",
};

static const struct column serialized_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"first", "at work", UNIT_TEXT, COLUMN_NAMES | COLUMN_CUT_END, 0},
    {"second", "waited", UNIT_TEXT, COLUMN_NAMES | COLUMN_CUT_END, 0},
    {"cause", "cause", UNIT_TEXT, COLUMN_NAMES, 0},
    {"lost_ns", "lost at most", UNIT_NS, 0, 0},
    {"times", "times", UNIT_COUNT, 0, 0},
    {"first_work", "work", UNIT_TEXT, 0, 0},
    {"second_work", "waited for it", UNIT_TEXT, 0, 0},
    {"remedy", "to do", UNIT_TEXT, COLUMN_BELOW, 0},
};

void section_overlap(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table =
        TABLE_NEW(report, "serialized", "Streams that ran one after the other", serialized_columns);
    table->note = sample_note(report, run)
                      ?: "Lost is an upper bound: so much of the second stream's work could have "
                         "run while the first was at work. Pairs that lost less than 1 % of "
                         "the GPU's time, or overlapped for 10 % or more of theirs, are left out.";
    table->shown = 10;
    for (size_t i = 0; i < of->overlap.pair_count; i++) {
        const struct pair *pair = &of->overlap.pairs[i];
        const struct late *late = &of->overlap.lates[pair->late];
        TABLE_PUT(table, serialized_columns,
            CELL(run->devices[run->streams[pair->second].device].ordinal),
            CELL(stream_label(report, run, pair->first)),
            CELL(stream_label(report, run, pair->second)), CELL(cause_info[pair->cause].key),
            CELL(pair->lost), CELL(pair->times), CELL(text_in(run, run->works[late->during].name)),
            CELL(text_in(run, run->works[late->work].name)), CELL(remedies[pair->cause]));
    }
}
