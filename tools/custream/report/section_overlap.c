/* Table "serialized": streams that ran one after the other, why, and what that cost. */
#include "tools/custream/model/model.h"
#include "tools/custream/model/table.h"
#include "tools/custream/report/inside.h"

/* What to do about each cause; none of those that no stream waits for another by. */
static const char *const remedies[CAUSES] = {
    [CAUSE_LEGACY] = "use no legacy default stream: give its work a stream made with CU_STREAM_NON_BLOCKING, or try "
                     "CUSTREAM_DEFAULT_STREAM=per-thread after CUSTREAM_DEFAULT_STREAM=audit",
    [CAUSE_EVENT] = "if the second does not need all that the first did: record the event earlier, or leave out cuStreamWaitEvent",
    [CAUSE_COPY_ENGINE] = "one engine copies in this direction: nothing is gained by more streams; copy less, or at another time",
    [CAUSE_DEVICE_FULL] = "the first filled the device: little is gained by more streams, unless its kernels get smaller",
    [CAUSE_HARDWARE_QUEUE] = "use fewer streams at once, or set CUDA_DEVICE_MAX_CONNECTIONS up to 32",
    [CAUSE_HOST] = "enqueue the second before waiting for the first; let cuStreamWaitEvent order what depends on each other",
    [CAUSE_UNKNOWN] = "the trace does not say why; look at the two in the timeline",
};

static const struct column columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES},         {"first", "at work", UNIT_TEXT, COLUMN_NAMES | COLUMN_CUT_END},
    {"second", "waited", UNIT_TEXT, COLUMN_NAMES | COLUMN_CUT_END},       {"cause", "cause", UNIT_TEXT, COLUMN_NAMES},
    {"lost_ns", "lost at most", UNIT_NS, 0}, {"times", "times", UNIT_COUNT, 0},
    {"first_work", "work", UNIT_TEXT, 0},    {"second_work", "waited for it", UNIT_TEXT, 0},
    {"remedy", "to do", UNIT_TEXT, COLUMN_BELOW},
};
enum { DEVICE, FIRST, SECOND, CAUSE, LOST, TIMES, FIRST_WORK, SECOND_WORK, REMEDY, COLUMNS };

void section_overlap(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table = report_table(report, "serialized", "Streams that ran one after the other", columns, COLUMNS);
    table->note = sample_note(report, run) ?:
        "Lost is an upper bound: so much of the second stream's work could have run while the first was at work. Pairs that lost less than 1 % of "
        "the GPU's time, or overlapped for 10 % or more of theirs, are left out.";
    table->shown = 10;
    for (size_t i = 0; i < of->overlap.pair_count; i++) {
        const struct pair *pair = &of->overlap.pairs[i];
        const struct late *late = &of->overlap.lates[pair->late];
        struct cell *row = table_row(table);
        row[DEVICE].number = run->devices[run->streams[pair->second].device].ordinal;
        row[FIRST].text = stream_label(report, run, pair->first);
        row[SECOND].text = stream_label(report, run, pair->second);
        row[CAUSE].text = cause_info[pair->cause].key;
        row[LOST].number = (double)pair->lost;
        row[TIMES].number = pair->times;
        row[FIRST_WORK].text = text_in(run, run->works[late->during].name);
        row[SECOND_WORK].text = text_in(run, run->works[late->work].name);
        row[REMEDY].text = remedies[pair->cause];
    }
}
