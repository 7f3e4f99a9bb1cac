/* Rules about how work is spread over streams, and how much of the GPU it fills. */
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

/* --- CS118: threads on one stream --- */

void look_shared_streams(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct tallies streams = {0}; /* sum[0]: the first thread; sum[1]: calls of other threads */
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        if (!call->works || call->stream == NONE) continue;
        struct tally *tally = tally_of(&streams, call->stream);
        if (!tally->times) tally->sum[0] = call->thread;
        if (tally->sum[0] != call->thread) tally->sum[1]++;
        tally_add(tally, 0);
    }
    const struct tally *most = NULL;
    for (size_t s = 0; s < streams.count; s++)
        if (streams.rows[s].sum[1] > 0 && (!most || most->sum[1] < streams.rows[s].sum[1]))
            most = &streams.rows[s];
    if (most)
        finding(to, OF(STREAM, (uint32_t)most->key), TIMES(most->times),
            "calls that enqueue work on this stream; %.0f of them by other threads than the first",
            most->sum[1]);
    tallies_free(&streams);
}

/* --- CS119: small kernels --- */

void look_small_kernels(struct findings *to)
{
    const double small = 0.5;
    const struct run *run = &to->of->run;
    struct tallies streams = {0}; /* sum[0]: what the kernels fill of the device, summed */
    for (size_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        const double fills = kernel_fills(run, work);
        if (!(fills < small)) continue;
        struct tally *tally = tally_of(&streams, work->stream);
        tally_add(tally, work->end - work->begin);
        tally->sum[0] += fills;
    }
    tallies_sort(&streams);
    if (streams.count && streams.rows[0].times > 1)
        finding(to, OF(STREAM, (uint32_t)streams.rows[0].key), TIMES(streams.rows[0].times),
            "kernels that fill less than half of the GPU, %s on the average, ran for %s",
            SHOWN(UNIT_SHARE, streams.rows[0].sum[0] / (double)streams.rows[0].times),
            SHOWN(UNIT_NS, streams.rows[0].total));
    tallies_free(&streams);
}

/* --- CS123, CS124: if nothing else is found --- */

/* Whether another experiment gains a twentieth of the steady part. */
static bool is_found(const struct findings *to)
{
    const double least = (double)(to->steady.end - to->steady.begin) / 20;
    for (size_t i = 0; i < to->count; i++)
        if ((to->rows[i].rule->shows == PRICED && to->rows[i].high >= least) ||
            (to->rows[i].rule->look == look_full && to->rule->look != look_full))
            return true;
    return false;
}

/* How long kernels and graphs ran on a device in the run's steady part. */
struct full {
    int64_t covered; /* the time up to this moment is counted */
    int64_t busy, graphs;
    struct tallies kernels;
};

static void full_report(struct findings *to, uint32_t device, struct full *full)
{
    const struct run *run = &to->of->run;
    const double length = (double)(to->steady.end - to->steady.begin);
    tallies_sort(&full->kernels);
    if (full->graphs > full->busy / 2)
        finding(to, OF(DEVICE, device), TIMES(0),
            "graphs ran for %s of the run's steady part; what ran in them is in the trace with "
            "CUSTREAM_GRAPH=node",
            SHOWN(UNIT_SHARE, (double)full->graphs / length));
    else
        finding(to, OF(DEVICE, device), TIMES(full->kernels.rows[0].times),
            "kernels ran for %s of the run's steady part; %s took %s of that",
            SHOWN(UNIT_SHARE, (double)full->busy / length),
            text_in(run, (text)full->kernels.rows[0].key),
            SHOWN(UNIT_SHARE, (double)full->kernels.rows[0].total / (double)full->busy));
}

void look_full(struct findings *to)
{
    const double least = 0.9;
    const struct run *run = &to->of->run;
    if (is_found(to)) return;
    struct full *fulls = array_zeros(run->device_count, sizeof *fulls);
    for (uint32_t d = 0; d < run->device_count; d++) fulls[d].covered = to->steady.begin;
    for (size_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        struct full *full = &fulls[work_device(run, work)];
        const int64_t end = work->end < to->steady.end ? work->end : to->steady.end,
                      from = work->begin > full->covered ? work->begin : full->covered;
        if ((work->kind != WORK_KERNEL && work->kind != WORK_GRAPH) || end <= from) continue;
        full->covered = end;
        full->busy += end - from;
        if (work->kind == WORK_GRAPH) full->graphs += end - from;
        else tally_add(tally_of(&full->kernels, work->name), end - from);
    }
    for (uint32_t d = 0; d < run->device_count; d++) {
        struct full *full = &fulls[d];
        if (full->busy >= least * (double)(to->steady.end - to->steady.begin) && full->busy)
            full_report(to, d, full);
        tallies_free(&full->kernels);
    }
    free(fulls);
}

void look_host(struct findings *to)
{
    const struct run *run = &to->of->run;
    const struct table *calls = report_find(to->report, "calls"); /* the longest total first */
    if (is_found(to) || !run->work_count || !calls->row_count) return;
    finding(to, OF(DEVICE, run->streams[run->works[0].stream].device), TIMES(run->call_count),
        "calls took %s, of which %s %s; the rest is the program's own code between them",
        SHOWN(UNIT_NS, table_sum(calls, "total_ns")), table_text(calls, 0, "call"),
        SHOWN(UNIT_NS, table_number(calls, 0, "total_ns")));
    /* If the gain is far above this idle time, most of it lies before or behind the GPU's work. */
    int64_t idle = 0; /* the GPU's idle time that the host or the launch's way to the GPU caused */
    for (size_t i = 0; i < to->of->idles.count; i++) {
        const struct idle *row = &to->of->idles.rows[i];
        if (row->cause <= CAUSE_LAUNCH && row->end > to->steady.begin &&
            row->begin < to->steady.end)
            idle += row->end - row->begin;
    }
    if (is_found(to) && to->rows[to->count - 1].high > 2 * (double)idle) to->count--;
}
