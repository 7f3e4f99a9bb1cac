/* The host's waits for a device, and the work for which the host waited. */
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

static const struct column wait_columns[] = {
    {"call", "call", UNIT_TEXT, COLUMN_NAMES, 0},
    {"thread", "thread", UNIT_TEXT, COLUMN_NAMES, 0},
    {"for", "for", UNIT_TEXT, COLUMN_NAMES, 0},
    {"times", "times", UNIT_COUNT, 0, CELL_TIMES},
    {"blocked_ns", "blocked", UNIT_NS, 0, CELL_TOTAL},
    {"longest_ns", "longest", UNIT_NS, 0, CELL_LONGEST},
};

enum {
    COPY_BLOCKS_NS = 20000, /* a synchronous copy this short is taken to have waited for nothing */
    ROWS_SHOWN = 20,
};

/* The parts of a row's tally->sum: the index of its first wait in of->waits, and whether the trace
 * can lack what the waits were for. */
enum { WAIT_FIRST, WAIT_UNKNOWN };

/* Returns the stream of what the host waited for; NONE: nothing is found. */
static uint32_t wait_stream(const struct run *run, const struct wait *wait)
{
    if (wait->work != NONE) return run->works[wait->work].stream;
    return wait->function == NONE ? NONE : run->callbacks[wait->function].stream;
}

static void wait_add(
    struct tallies *tallies, const struct model *of, size_t index, const struct periods *no_works)
{
    const struct run *run = &of->run;
    const struct wait *wait = &of->waits.rows[index];
    const struct call *call = &run->calls[wait->call];
    const uint32_t stream = wait_stream(run, wait);
    const bool unknown =
        call->external || !run_has_times(run) || periods_meet(no_works, call->begin, call->end);
    struct tally *tally = TALLY_OF(tallies, call->name, call->thread,
        wait->work != NONE ? run->works[wait->work].name
        : stream == NONE   ? unknown
                           : 0,
        stream);
    if (!tally->times) {
        tally->sum[WAIT_FIRST] = (double)index;
        tally->sum[WAIT_UNKNOWN] = unknown;
    }
    tally_add(tally, call->end - call->begin);
}

static void wait_own(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row)
{
    const struct run *run = &of->run;
    const struct wait *wait = &of->waits.rows[(size_t)tally->sum[WAIT_FIRST]];
    const struct call *call = &run->calls[wait->call];
    const uint32_t stream = wait_stream(run, wait);
    row[0].text = text_in(run, call->name);
    row[1].text = thread_label(report, run, call->thread);
    row[2].text = tally->sum[WAIT_UNKNOWN] > 0 ? "not known" : "nothing that still ran";
    if (stream != NONE)
        row[2].text = report_text(report, "%s on %s",
            wait->work == NONE ? "a host function" : text_in(run, run->works[wait->work].name),
            stream_label(report, run, stream));
}

void section_host(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table =
        TABLE_NEW(report, "host_waits", "Where the host waited for the GPU", wait_columns);
    struct periods no_works = periods_lost(run, works_lost, 0);
    struct tallies found = {0};
    for (size_t i = 0; i < of->waits.count; i++) {
        const struct call *call = &run->calls[of->waits.rows[i].call];
        if (call_kind(call) != CS_KIND_COPY || call->end - call->begin > COPY_BLOCKS_NS)
            wait_add(&found, of, i, &no_works);
    }
    free(no_works.rows);
    tallies_put(report, of, &found, table, wait_own);
    table->shown = ROWS_SHOWN;
}
