/* The ranges that the program named (NVTX), how long the GPU was busy with the work of their calls,
 * and how long the GPU was idle because their threads did something else. */
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

enum { RANGE_GPU_BUSY, RANGE_IDLE_HOST, ROWS_SHOWN = 20 };

static const struct column range_columns[] = {
    {"name", "range", UNIT_TEXT, COLUMN_NAMES, CELL_NAME},
    {"domain", "domain", UNIT_TEXT, COLUMN_NAMES, 0},
    {"times", "times", UNIT_COUNT, 0, CELL_TIMES},
    {"total_ns", "total", UNIT_NS, 0, CELL_TOTAL},
    {"mean_ns", "mean", UNIT_NS, 0, CELL_MEAN},
    {"shortest_ns", "shortest", UNIT_NS, 0, CELL_SHORTEST},
    {"longest_ns", "longest", UNIT_NS, 0, CELL_LONGEST},
    {"gpu_busy_ns", "GPU busy with it", UNIT_NS, 0, CELL_SUM(RANGE_GPU_BUSY)},
    {"idle_host_ns", "GPU idle meanwhile", UNIT_NS, 0, CELL_SUM(RANGE_IDLE_HOST)},
};

/* Adds the time of a piece of work to each range that was open on the thread when the work's call
 * began. `until`: by row of the table, the time up to which work is counted. */
static void add_busy(struct tallies *tallies, const struct run *run, const uint32_t *row_of,
    int64_t *until, uint32_t thread, const struct work *work)
{
    const struct thread_ranges *ranges = &run->thread_ranges;
    const int64_t at = run->calls[work->call].begin;
    for (uint32_t place = thread_place_at(run, thread, at);
        place != NONE && ranges->latest[place] > at; place = ranges->parent[place]) {
        const uint32_t range = ranges->by_thread.members[place], row = row_of[range];
        if (run->ranges[range].end <= at || work->end <= until[row]) continue;
        tallies->rows[row].sum[RANGE_GPU_BUSY] +=
            (double)(work->end - (work->begin > until[row] ? work->begin : until[row]));
        until[row] = work->end;
    }
}

static void range_own(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row)
{
    (void)report;
    if (key_high(tally->key)) row[1].text = text_in(&of->run, key_high(tally->key));
}

void section_ranges(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table =
        TABLE_NEW(report, "ranges", "The ranges that the program named", range_columns);
    struct tallies tallies = {0};
    uint32_t *row_of = array_zeros(run->range_count, sizeof *row_of); /* by range */
    int64_t *until = array_zeros(run->range_count, sizeof *until);
    for (size_t r = 0; r < run->range_count; r++) {
        struct tally *tally =
            tally_of(&tallies, key_of(run->ranges[r].domain, run->ranges[r].name));
        tally_add(tally, run->ranges[r].end - run->ranges[r].begin);
        row_of[r] = (uint32_t)(tally - tallies.rows);
        until[r] = INT64_MIN;
    }
    for (size_t w = 0; w < run->work_count && run->range_count; w++) {
        const struct work *work = &run->works[w];
        const uint32_t process = (uint32_t)run->thread_count;
        if (work->call == NONE) continue;
        add_busy(&tallies, run, row_of, until, run->calls[work->call].thread, work);
        add_busy(&tallies, run, row_of, until, process, work);
    }
    for (size_t i = 0; i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        if (idle->cause == CAUSE_HOST && idle->range != NONE)
            tallies.rows[row_of[idle->range]].sum[RANGE_IDLE_HOST] +=
                (double)(idle->end - idle->begin);
    }
    tallies_put(report, of, &tallies, table, range_own);
    table->shown = ROWS_SHOWN;
    free_all(row_of, until);
}
