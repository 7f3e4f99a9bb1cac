/* The GPU's work by name, the streams on which it ran, and the host's calls by name. */
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

/* What rows keep in tally->sum. KERNEL_SHAPES and KERNEL_FILLS_KNOWN count kernels,
 * GRAPH_NODES_KNOWN counts launches of graphs. KERNEL_LAUNCHES and KERNEL_MEAN are for a sample.
 * COPY_WAY: an enum cs_way. */
enum {
    KERNEL_BLOCKS,
    KERNEL_THREADS,
    KERNEL_SHAPES,
    KERNEL_FILLS,
    KERNEL_FILLS_KNOWN,
    KERNEL_LAUNCHES,
    KERNEL_MEAN
};
enum { COPY_BYTES, COPY_WAY };
enum { GRAPH_NODES, GRAPH_NODES_KNOWN };
enum { CALL_FAILED };
enum { STREAM_ALONE, STREAM_OVERLAPPED };

static const struct column kernel_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, CELL_DEVICE},
    {"name", "kernel", UNIT_TEXT, COLUMN_NAMES, CELL_NAME},
    {"times", "times", UNIT_COUNT, 0, CELL_TIMES},
    {"sampled", "sampled", UNIT_COUNT, 0, 0},
    {"total_ns", "total", UNIT_NS, 0, CELL_TOTAL},
    {"about_total_ns", "total, about", UNIT_NS, 0, 0},
    {"mean_ns", "mean", UNIT_NS, 0, CELL_MEAN},
    {"shortest_ns", "shortest", UNIT_NS, 0, CELL_SHORTEST},
    {"longest_ns", "longest", UNIT_NS, 0, CELL_LONGEST},
    {"blocks", "blocks", UNIT_COUNT, 0, CELL_RATIO(KERNEL_BLOCKS, KERNEL_SHAPES)},
    {"threads", "threads a block", UNIT_COUNT, 0, CELL_RATIO(KERNEL_THREADS, KERNEL_SHAPES)},
    {"fills", "fills GPU", UNIT_SHARE, 0, CELL_RATIO(KERNEL_FILLS, KERNEL_FILLS_KNOWN)},
};

static const struct column copy_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, CELL_DEVICE},
    {"direction", "direction", UNIT_TEXT, COLUMN_NAMES, 0},
    {"memory", "memory", UNIT_TEXT, COLUMN_NAMES, 0},
    {"times", "times", UNIT_COUNT, 0, CELL_TIMES},
    {"bytes", "bytes", UNIT_BYTES, 0, CELL_SUM(COPY_BYTES)},
    {"total_ns", "total", UNIT_NS, 0, CELL_TOTAL},
    {"rate", "rate", UNIT_GBPS, 0, 0},
};

static const struct column graph_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, CELL_DEVICE},
    {"graph", "graph", UNIT_TEXT, COLUMN_NAMES, 0},
    {"times", "launches", UNIT_COUNT, 0, CELL_TIMES},
    {"total_ns", "total", UNIT_NS, 0, CELL_TOTAL},
    {"mean_ns", "mean", UNIT_NS, 0, CELL_MEAN},
    {"longest_ns", "longest", UNIT_NS, 0, CELL_LONGEST},
    {"nodes", "nodes", UNIT_COUNT, 0, CELL_RATIO(GRAPH_NODES, GRAPH_NODES_KNOWN)},
};

enum { ROWS_SHOWN = 20 };

/* The works of the run, or its sample. */
struct works {
    const struct work *rows;
    size_t count;
};

static const char *of_sample(struct report *report, const struct run *run)
{
    return run_sample(run)
               ? report_text(report, "Of the sampled calls only: one in %u.", run_sample(run))
               : NULL;
}

/* --- kernels --- */

enum {
    COLUMN_TIMES = 2,
    COLUMN_SAMPLED,
    COLUMN_TOTAL,
    COLUMN_ABOUT,
    COLUMN_MEAN,
    COLUMN_SHORTEST,
    COLUMN_LONGEST
};

static void sample_own(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row)
{
    (void)report, (void)of;
    row[COLUMN_TIMES].number = tally->sum[KERNEL_LAUNCHES];
    row[COLUMN_SAMPLED].number = (double)tally->times;
    if (tally->times) row[COLUMN_ABOUT].number = (double)tally->total;
    else row[COLUMN_SHORTEST].number = row[COLUMN_LONGEST].number = NAN;
    row[COLUMN_TOTAL].number = NAN;
    row[COLUMN_MEAN].number = tally->sum[KERNEL_MEAN];
}

static void kernels(struct report *report, const struct model *of, const struct works *works)
{
    const struct run *run = &of->run;
    struct table *table = TABLE_NEW(report, "kernels", "The kernels", kernel_columns);
    struct tallies tallies = {0};
    for (size_t w = 0; w < works->count; w++) {
        const struct work *work = &works->rows[w];
        if (work->kind != WORK_KERNEL) continue;
        struct tally *tally = tally_of(&tallies, key_of(work_device(run, work), work->name));
        tally_add(tally, work->end - work->begin);
        if (work->shape == NONE) continue;
        const struct shape *shape = &run->shapes[work->shape];
        const double fills = kernel_fills(run, work);
        tally->sum[KERNEL_BLOCKS] += (double)shape->grid[0] * shape->grid[1] * shape->grid[2];
        tally->sum[KERNEL_THREADS] += (double)shape->block[0] * shape->block[1] * shape->block[2];
        tally->sum[KERNEL_SHAPES]++;
        if (isnan(fills)) continue;
        tally->sum[KERNEL_FILLS] += fills;
        tally->sum[KERNEL_FILLS_KNOWN]++;
    }
    table->note =
        "\"fills GPU\" is an estimate, from the shape of the launch and the limits of the GPU.";
    if (run_sample(run)) {
        /* Each launch is recorded. Work whose kernel has no name is called "kernel". */
        const text unnamed = text_find(&run->texts, "kernel");
        for (size_t c = 0; c < run->call_count; c++) {
            const struct call *call = &run->calls[c];
            const text name = call->what ? call->what : unnamed;
            if (call_kind(call) != CS_KIND_LAUNCH || call->result || call->captured ||
                call->stream == NONE || !name)
                continue;
            tally_of(&tallies, key_of(run->streams[call->stream].device, name))
                ->sum[KERNEL_LAUNCHES]++;
        }
        for (size_t i = 0; i < tallies.count; i++) { /* a row without a timed launch has no total */
            struct tally *tally = &tallies.rows[i];
            tally->sum[KERNEL_MEAN] = tally->times ? tally_mean(tally) : NAN;
            if (tally->times)
                tally->total = (int64_t)(tally->sum[KERNEL_MEAN] * tally->sum[KERNEL_LAUNCHES]);
        }
        table->note = report_text(report,
            "One call in %u was timed. \"times\" counts all launches; \"total, about\" is the mean "
            "of the sampled ones times that. %s",
            run_sample(run), table->note);
    }
    tallies_put(report, of, &tallies, table, run_sample(run) ? sample_own : NULL);
    table->shown = ROWS_SHOWN;
}

/* --- copies --- */

static void copy_own(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row)
{
    const char *name = text_in(&of->run, key_low(tally->key));
    row[1].text = cs_way_name[(int)tally->sum[COPY_WAY]] ?: name;
    /* "Pinned -> Device" in "Memcpy HtoD (Pinned -> Device)" */
    const char *open = strchr(name, '('), *close = open ? strrchr(open, ')') : NULL;
    if (close) row[2].text = report_text(report, "%.*s", (int)(close - open - 1), open + 1);
    if (tally->total > 0) row[6].number = tally->sum[COPY_BYTES] / (double)tally->total;
}

/* Makes the table of copies, by their names: these tell the direction and both kinds of memory. */
static void copies(struct report *report, const struct model *of, const struct works *works)
{
    const struct run *run = &of->run;
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
    tallies_put(report, of, &tallies, table, copy_own);
}

/* --- graphs --- */

/* Set in a key that has the name of a graph instead of its number. */
#define GRAPH_NAMED (UINT32_C(1) << 31)

static struct tally *graph_of(
    struct tallies *tallies, const struct run *run, const struct work *work)
{
    return tally_of(tallies,
        key_of(work_device(run, work), work->graph ? work->graph : work->name | GRAPH_NAMED));
}

/* Adds a launch whose nodes are shown, from the first begin of a node to the last end of a node. */
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

static void graph_own(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row)
{
    const uint32_t graph = key_low(tally->key), name = graph & ~GRAPH_NAMED;
    if (!(graph & GRAPH_NAMED)) row[1].text = report_text(report, "graph %u", graph);
    else if (name) row[1].text = text_in(&of->run, name);
}

static void graphs(struct report *report, const struct model *of, const struct works *works)
{
    const struct run *run = &of->run;
    struct table *table = TABLE_NEW(report, "graphs", "The graphs", graph_columns);
    table->note = of_sample(report, run);
    struct tallies tallies = {0};
    for (size_t w = 0; w < works->count; w++) {
        const struct work *work = &works->rows[w];
        if (work->kind == WORK_GRAPH)
            tally_add(graph_of(&tallies, run, work), work->end - work->begin);
    }
    for (size_t c = 0; c < run->call_count; c++)
        if (run->calls[c].works) graph_of_nodes(&tallies, run, &run->calls[c]);
    tallies_put(report, of, &tallies, table, graph_own);
    table->shown = ROWS_SHOWN;
}

void section_work(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    const struct works works = run_sample(run) ? (struct works){run->sampled, run->sampled_count}
                                               : (struct works){run->works, run->work_count};
    kernels(report, of, &works);
    copies(report, of, &works);
    graphs(report, of, &works);
}

/* --- calls of the host --- */

static const struct column call_columns[] = {
    {"call", "call", UNIT_TEXT, COLUMN_NAMES, CELL_NAME},
    {"times", "times", UNIT_COUNT, 0, CELL_TIMES},
    {"failed", "failed", UNIT_COUNT, 0, CELL_SUM(CALL_FAILED)},
    {"total_ns", "total", UNIT_NS, 0, CELL_TOTAL},
    {"mean_ns", "mean", UNIT_NS, 0, CELL_MEAN},
    {"longest_ns", "longest", UNIT_NS, 0, CELL_LONGEST},
};

void section_calls(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    const text not_ready =
        text_find(&run->texts, "CUDA_ERROR_NOT_READY"); /* a query's answer, not a failure */
    struct table *table = TABLE_NEW(report, "calls", "The calls", call_columns);
    struct tallies tallies = {0};
    for (size_t c = 0; c < run->call_count; c++) {
        const struct call *call = &run->calls[c];
        struct tally *tally = tally_of(&tallies, call->name);
        tally_add(tally, call->end - call->begin);
        tally->sum[CALL_FAILED] +=
            call->result && !(call->result == not_ready && call_kind(call) == CS_KIND_QUERY);
    }
    tallies_put(report, of, &tallies, table, NULL);
    table->shown = ROWS_SHOWN;
}

/* --- streams: what each is, who made it, and how long it worked beside others --- */

static const struct column stream_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"stream", "stream", UNIT_TEXT, COLUMN_NAMES | COLUMN_CUT_END, 0},
    {"kind", "kind", UNIT_TEXT, 0, 0},
    {"priority", "priority", UNIT_TEXT, 0, 0},
    {"maker", "made by", UNIT_TEXT, 0, 0},
    {"works", "work", UNIT_COUNT, 0, 0},
    {"busy_ns", "busy", UNIT_NS, 0, CELL_TOTAL},
    {"alone_ns", "alone", UNIT_NS, 0, CELL_SUM(STREAM_ALONE)},
    {"overlapped_ns", "beside others", UNIT_NS, 0, CELL_SUM(STREAM_OVERLAPPED)},
};

static void stream_own(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row)
{
    static const char *const origins[] = {
        [ORIGIN_LEGACY] = "legacy", [ORIGIN_PER_THREAD] = "per-thread"};
    const struct run *run = &of->run;
    const struct stream *stream = &run->streams[tally->key];
    const text maker =
        stream->library ? stream->library
                        : stream->created_by; /* the library or program; if not known, the call */
    const bool created = stream->origin == ORIGIN_CREATED;
    row[0].number = run->devices[stream->device].ordinal;
    row[1].text = stream_label(report, run, (uint32_t)tally->key);
    if (stream->known) {
        row[2].text = !created               ? origins[stream->origin]
                      : stream->non_blocking ? "non-blocking"
                                             : "blocking";
        row[3].text =
            stream->requested == stream->priority
                ? report_text(report, "%d", stream->priority)
                : report_text(report, "asked %d, given %d", stream->requested, stream->priority);
    }
    if (maker) row[4].text = text_in(run, maker);
    row[5].number = stream->works;
}

void section_streams(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table = TABLE_NEW(report, "streams", "The streams", stream_columns);
    struct tallies tallies = {0};
    size_t unused = 0;
    for (uint32_t s = 0; s < run->stream_count; s++) {
        const struct stream_usage *busy = &of->usage.streams[s];
        if (!run->streams[s].works) {
            unused += run->streams[s].known;
            continue;
        }
        struct tally *tally = tally_of(&tallies, s);
        tally_add(tally, busy->busy);
        tally->sum[STREAM_ALONE] = (double)busy->alone;
        tally->sum[STREAM_OVERLAPPED] = (double)(busy->busy - busy->alone);
    }
    if (run_sample(run)) table->note = sample_note(report, run);
    else if (unused)
        table->note = report_text(report, "Without work, and not listed: %zu.", unused);
    tallies_put(report, of, &tallies, table, stream_own);
    table->shown = ROWS_SHOWN;
}
