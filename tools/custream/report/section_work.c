/* The work of the GPU by name: kernels, copies, graph launches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/model/table.h"
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

static const struct column kernel_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES},
    {"name", "kernel", UNIT_TEXT, COLUMN_NAMES},
    {"times", "times", UNIT_COUNT, 0},
    {"sampled", "sampled", UNIT_COUNT, 0},
    {"total_ns", "total", UNIT_NS, 0},
    {"about_total_ns", "total, about", UNIT_NS, 0},
    {"mean_ns", "mean", UNIT_NS, 0},
    {"shortest_ns", "shortest", UNIT_NS, 0},
    {"longest_ns", "longest", UNIT_NS, 0},
    {"blocks", "blocks", UNIT_COUNT, 0},
    {"threads", "threads a block", UNIT_COUNT, 0},
    {"fills", "fills GPU", UNIT_SHARE, 0},
};

static const struct column copy_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES},
    {"direction", "direction", UNIT_TEXT, COLUMN_NAMES},
    {"memory", "memory", UNIT_TEXT, COLUMN_NAMES},
    {"times", "times", UNIT_COUNT, 0},
    {"bytes", "bytes", UNIT_BYTES, 0},
    {"total_ns", "total", UNIT_NS, 0},
    {"rate", "rate", UNIT_GBPS, 0},
};

static const struct column graph_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES},
    {"graph", "graph", UNIT_TEXT, COLUMN_NAMES},
    {"times", "launches", UNIT_COUNT, 0},
    {"total_ns", "total", UNIT_NS, 0},
    {"mean_ns", "mean", UNIT_NS, 0},
    {"longest_ns", "longest", UNIT_NS, 0},
    {"nodes", "nodes", UNIT_COUNT, 0},
};

enum { ROWS_SHOWN = 20 };

/* All work of the run, or its sample. */
struct works {
    const struct work *rows;
    size_t count;
};

static const char *of_sample(struct report *report, const struct run *run)
{
    return run_sample(run) ? report_text(report, "Of the sampled calls only: one in %u.", run_sample(run)) : NULL;
}

static uint32_t ordinal_of(const struct run *run, uint32_t device) { return run->devices[device].ordinal; }

static const char *text_or_null(const struct run *run, text name) { return name ? text_in(run, name) : NULL; }

/* --- kernels --- */

/* Sums of a row; of how many kernels the shape, and how much of the device they fill, is known. LAUNCHES, MEAN: of a sample. */
enum { KERNEL_BLOCKS, KERNEL_THREADS, KERNEL_SHAPES, KERNEL_FILLS, KERNEL_FILLS_KNOWN, KERNEL_LAUNCHES, KERNEL_MEAN };

static void kernel_add(struct tally *tally, const struct run *run, const struct work *work)
{
    tally_add(tally, work->end - work->begin);
    if (work->shape == NONE) return;
    const struct shape *shape = &run->shapes[work->shape];
    const double fills = kernel_fills(run, work);
    tally->sum[KERNEL_BLOCKS] += (double)shape->grid[0] * shape->grid[1] * shape->grid[2];
    tally->sum[KERNEL_THREADS] += (double)shape->block[0] * shape->block[1] * shape->block[2];
    tally->sum[KERNEL_SHAPES]++;
    if (isnan(fills)) return;
    tally->sum[KERNEL_FILLS] += fills;
    tally->sum[KERNEL_FILLS_KNOWN]++;
}

static double mean_known(double sum, double times) { return times > 0 ? sum / times : NAN; }

static void kernel_put(struct table *table, const struct run *run, const struct tally *tally)
{
    const double *sum = tally->sum;
    const bool sample = run_sample(run), timed = tally->times;
    TABLE_PUT(table, kernel_columns, CELL_NUMBER(ordinal_of(run, key_high(tally->key))), CELL_TEXT(text_in(run, key_low(tally->key))),
              CELL_NUMBER(sample ? sum[KERNEL_LAUNCHES] : (double)tally->times), CELL_NUMBER(sample ? (double)tally->times : NAN),
              CELL_NUMBER(sample ? NAN : (double)tally->total), CELL_NUMBER(sample && timed ? (double)tally->total : NAN),
              CELL_NUMBER(sample ? sum[KERNEL_MEAN] : tally_mean(tally)), CELL_NUMBER(timed ? (double)tally->shortest : NAN),
              CELL_NUMBER(timed ? (double)tally->longest : NAN),
              CELL_NUMBER(mean_known(sum[KERNEL_BLOCKS], sum[KERNEL_SHAPES])), CELL_NUMBER(mean_known(sum[KERNEL_THREADS], sum[KERNEL_SHAPES])),
              CELL_NUMBER(mean_known(sum[KERNEL_FILLS], sum[KERNEL_FILLS_KNOWN])));
}

/* The launches of a trace that times one in N. Each is recorded, so they can be counted. */
static void launches_count(struct tallies *tallies, const struct run *run)
{
    const text unnamed = text_find(&run->texts, "kernel"); /* as work is called whose kernel has no name */
    for (size_t c = 0; c < run->call_count; c++) {
        const struct call *call = &run->calls[c];
        const text name = call->what ? call->what : unnamed;
        if (call_kind(call) != CS_KIND_LAUNCH || call->result || call->captured || call->stream == NONE || !name) continue;
        tally_of(tallies, key_of(run->streams[call->stream].device, name))->sum[KERNEL_LAUNCHES]++;
    }
}

/* From here on a row's total is about that of all its launches. Those of which none was timed have none. */
static void totals_estimate(struct tallies *tallies)
{
    for (size_t i = 0; i < tallies->count; i++) {
        struct tally *tally = &tallies->rows[i];
        const double mean = tally->times ? tally_mean(tally) : NAN;
        if (tally->times) tally->total = (int64_t)(mean * tally->sum[KERNEL_LAUNCHES]);
        tally->sum[KERNEL_MEAN] = mean;
    }
}

static void kernels(struct report *report, const struct run *run, const struct works *works)
{
    struct table *table = TABLE_NEW(report, "kernels", "The kernels", kernel_columns);
    struct tallies tallies = {0};
    for (size_t w = 0; w < works->count; w++) {
        const struct work *work = &works->rows[w];
        if (work->kind == WORK_KERNEL) kernel_add(tally_of(&tallies, key_of(work_device(run, work), work->name)), run, work);
    }
    table->note = "\"fills GPU\" is an estimate, from the shape of the launch and the limits of the GPU.";
    if (run_sample(run)) {
        launches_count(&tallies, run);
        totals_estimate(&tallies);
        table->note = report_text(report, "One call in %u was timed. \"times\" counts all launches; \"total, about\" is the mean of the sampled ones times that. %s",
                                  run_sample(run), table->note);
    }
    tallies_sort(&tallies);
    for (size_t i = 0; i < tallies.count; i++) kernel_put(table, run, &tallies.rows[i]);
    table->shown = ROWS_SHOWN;
    tallies_free(&tallies);
}

/* --- copies --- */

enum { COPY_BYTES, COPY_WAY };

/* "Memcpy HtoD (Pinned -> Device)": what stands in the brackets. NULL: there are none. */
static const char *memory_of(struct report *report, const char *name)
{
    const char *open = strchr(name, '('), *close = open ? strrchr(open, ')') : NULL;
    return close ? report_text(report, "%.*s", (int)(close - open - 1), open + 1) : NULL;
}

static void copy_put(struct table *table, struct report *report, const struct run *run, const struct tally *tally)
{
    const char *name = text_in(run, key_low(tally->key)), *way = cs_way_name[(int)tally->sum[COPY_WAY]];
    TABLE_PUT(table, copy_columns, CELL_NUMBER(ordinal_of(run, key_high(tally->key))), CELL_TEXT(way ? way : name), CELL_TEXT(memory_of(report, name)),
              CELL_NUMBER(tally->times), CELL_NUMBER(tally->sum[COPY_BYTES]), CELL_NUMBER(tally->total),
              CELL_NUMBER(mean_known(tally->sum[COPY_BYTES], (double)tally->total)));
}

/* By their names, which tell the way and both kinds of memory. */
static void copies(struct report *report, const struct run *run, const struct works *works)
{
    struct table *table = TABLE_NEW(report, "copies", "The copies", copy_columns);
    table->note = of_sample(report, run);
    struct tallies tallies = {0};
    for (size_t w = 0; w < works->count; w++) {
        const struct work *work = &works->rows[w];
        if (work->kind != WORK_COPY) continue;
        struct tally *tally = tally_of(&tallies, key_of(work_device(run, work), work->name));
        tally_add(tally, work->end - work->begin);
        tally->sum[COPY_BYTES] += (double)work->bytes;
        tally->sum[COPY_WAY] = work->way;
    }
    tallies_sort(&tallies);
    for (size_t i = 0; i < tallies.count; i++) copy_put(table, report, run, &tallies.rows[i]);
    tallies_free(&tallies);
}

/* --- graphs --- */

enum { GRAPH_NODES, GRAPH_NODES_KNOWN };

/* Numbers of graphs, and with this bit texts: names of graphs that have no number. */
#define GRAPH_NAMED (UINT32_C(1) << 31)

static struct tally *graph_of(struct tallies *tallies, const struct run *run, const struct work *work)
{
    return tally_of(tallies, key_of(work_device(run, work), work->graph ? work->graph : work->name | GRAPH_NAMED));
}

/* A launch whose nodes are shown: it lasts from the first's begin to the last's end. */
static void graph_of_nodes(struct tallies *tallies, const struct run *run, const struct call *call)
{
    const uint32_t *works = run->works_of + call->work;
    const struct work *first = &run->works[works[0]];
    int64_t begin = INT64_MAX, end = INT64_MIN;
    if (!first->graph || first->kind == WORK_GRAPH) return;
    for (uint32_t i = 0; i < call->works; i++) {
        const struct work *work = &run->works[works[i]];
        if (work->begin < begin) begin = work->begin;
        if (work->end > end) end = work->end;
    }
    struct tally *tally = graph_of(tallies, run, first);
    tally_add(tally, end - begin);
    tally->sum[GRAPH_NODES] += call->works;
    tally->sum[GRAPH_NODES_KNOWN]++;
}

static void graph_put(struct table *table, struct report *report, const struct run *run, const struct tally *tally)
{
    const uint32_t graph = key_low(tally->key);
    const char *name = graph & GRAPH_NAMED ? text_or_null(run, graph & ~GRAPH_NAMED) : report_text(report, "graph %u", graph);
    TABLE_PUT(table, graph_columns, CELL_NUMBER(ordinal_of(run, key_high(tally->key))), CELL_TEXT(name), CELL_NUMBER(tally->times), CELL_NUMBER(tally->total),
              CELL_NUMBER(tally_mean(tally)), CELL_NUMBER(tally->longest), CELL_NUMBER(mean_known(tally->sum[GRAPH_NODES], tally->sum[GRAPH_NODES_KNOWN])));
}

static void graphs(struct report *report, const struct run *run, const struct works *works)
{
    struct table *table = TABLE_NEW(report, "graphs", "The graphs", graph_columns);
    table->note = of_sample(report, run);
    struct tallies tallies = {0};
    for (size_t w = 0; w < works->count; w++) {
        const struct work *work = &works->rows[w];
        if (work->kind == WORK_GRAPH) tally_add(graph_of(&tallies, run, work), work->end - work->begin);
    }
    for (size_t c = 0; c < run->call_count; c++)
        if (run->calls[c].works) graph_of_nodes(&tallies, run, &run->calls[c]);
    tallies_sort(&tallies);
    for (size_t i = 0; i < tallies.count; i++) graph_put(table, report, run, &tallies.rows[i]);
    table->shown = ROWS_SHOWN;
    tallies_free(&tallies);
}

void section_work(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    const struct works works = run_sample(run) ? (struct works){run->sampled, run->sampled_count} : (struct works){run->works, run->work_count};
    kernels(report, run, &works);
    copies(report, run, &works);
    graphs(report, run, &works);
}
