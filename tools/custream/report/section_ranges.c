/* The ranges that the program named (NVTX), how long the GPU was busy with the work of their calls,
 * and how long the GPU was idle because their threads did something else. */
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

/* The ranges around calls, as sets: consecutive calls of a thread mostly share a set. */
struct around {
    const struct run *run;
    uint32_t *row;     /* by range: its row in the table */
    uint32_t *set[2];  /* by call: the set of its thread's ranges, and the process's; 0: none */
    uint32_t *members; /* the rows of all sets: set s has members[begins[s] .. begins[s + 1]) */
    size_t member_count, member_capacity;
    size_t *begins;
    size_t set_count, set_capacity;
};

/* Ranges that have begun and not ended, on one thread or in the process. */
struct open {
    uint32_t *ranges;
    size_t count, capacity;
    int64_t soonest; /* when the first of these ranges ends */
};

static bool open_drop(struct open *open, const struct run *run, int64_t now)
{
    size_t kept = 0;
    if (!open->count || open->soonest > now) return false;
    open->soonest = INT64_MAX;
    for (size_t i = 0; i < open->count; i++) {
        const int64_t end = run->ranges[open->ranges[i]].end;
        if (end <= now) continue;
        open->ranges[kept++] = open->ranges[i];
        if (end < open->soonest) open->soonest = end;
    }
    open->count = kept;
    return true;
}

static void set_begin(struct around *around)
{
    array_add(around->begins, around->set_count, around->set_capacity, around->member_count);
}

/* Makes the sets of the calls `calls` (NULL: all) from ranges; both are in order. */
static void around_sweep(struct around *around, uint32_t *sets, const uint32_t *calls,
    size_t call_count, const uint32_t *ranges, size_t range_count)
{
    const struct run *run = around->run;
    struct open open = {0};
    size_t next = 0;
    uint32_t set = 0;
    for (size_t i = 0; i < call_count && range_count; i++) {
        const uint32_t c = calls ? calls[i] : (uint32_t)i;
        const int64_t now = run->calls[c].begin;
        if (!run->calls[c].works) continue;
        bool changed = open_drop(&open, run, now);
        for (; next < range_count && run->ranges[ranges[next]].begin <= now; next++) {
            const int64_t end = run->ranges[ranges[next]].end;
            if (end <= now) continue;
            if (!open.count || end < open.soonest) open.soonest = end;
            array_add(open.ranges, open.count, open.capacity, ranges[next]);
            changed = true;
        }
        for (size_t n = 0; changed && n < open.count; n++)
            array_add(around->members, around->member_count, around->member_capacity,
                around->row[open.ranges[n]]);
        if (changed && open.count) set_begin(around);
        if (changed) set = open.count ? (uint32_t)around->set_count - 2 : 0;
        sets[c] = set;
    }
    free(open.ranges);
}

static void around_make(struct around *around)
{
    const struct run *run = around->run;
    uint32_t *threads = array_zeros(run->range_count, sizeof *threads); /* thread_count: none */
    for (size_t r = 0; r < run->range_count; r++)
        threads[r] =
            run->ranges[r].thread == NONE ? (uint32_t)run->thread_count : run->ranges[r].thread;
    struct groups by_thread =
        groups_make(run->thread_count + 1, threads, run->range_count, sizeof *threads, 0);
    const uint32_t *first = by_thread.begins, *calls = run->thread_calls.begins;
    around->set[0] = array_zeros(run->call_count, sizeof *around->set[0]);
    around->set[1] = array_zeros(run->call_count, sizeof *around->set[1]);
    set_begin(around);
    set_begin(around); /* set 0 is empty */
    for (size_t t = 0; t < run->thread_count; t++)
        around_sweep(around, around->set[0], run->thread_calls.members + calls[t],
            calls[t + 1] - calls[t], by_thread.members + first[t], first[t + 1] - first[t]);
    first += run->thread_count;
    around_sweep(around, around->set[1], NULL, run->call_count, by_thread.members + first[0],
        first[1] - first[0]);
    groups_free(&by_thread);
    free(threads);
}

/* Adds for each row how long any of its work ran. Works are in order of begin. */
static void add_busy(struct tallies *tallies, const struct around *around)
{
    const struct run *run = around->run;
    int64_t *until = array_zeros(tallies->count, sizeof *until);
    for (size_t i = 0; i < tallies->count; i++) until[i] = INT64_MIN;
    for (size_t w = 0; w < run->work_count; w++) {
        const struct work *work = &run->works[w];
        for (int which = 0; which < 2 && work->call != NONE; which++) {
            const uint32_t set = around->set[which][work->call];
            for (size_t m = around->begins[set]; m < around->begins[set + 1]; m++) {
                const uint32_t row = around->members[m];
                if (work->end <= until[row]) continue;
                tallies->rows[row].sum[RANGE_GPU_BUSY] +=
                    (double)(work->end - (work->begin > until[row] ? work->begin : until[row]));
                until[row] = work->end;
            }
        }
    }
    free(until);
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
    struct around around = {.run = run, .row = array_zeros(run->range_count, sizeof(uint32_t))};
    struct tallies tallies = {0};
    for (size_t r = 0; r < run->range_count; r++) {
        struct tally *tally =
            tally_of(&tallies, key_of(run->ranges[r].domain, run->ranges[r].name));
        tally_add(tally, run->ranges[r].end - run->ranges[r].begin);
        around.row[r] = (uint32_t)(tally - tallies.rows);
    }
    around_make(&around);
    add_busy(&tallies, &around);
    for (size_t i = 0; i < of->idles.count; i++) {
        const struct idle *idle = &of->idles.rows[i];
        if (idle->cause == CAUSE_HOST && idle->range != NONE)
            tallies.rows[around.row[idle->range]].sum[RANGE_IDLE_HOST] +=
                (double)(idle->end - idle->begin);
    }
    tallies_put(report, of, &tallies, table, range_own);
    table->shown = ROWS_SHOWN;
    free_all(around.row, around.set[0], around.set[1], around.members, around.begins);
}
