/* What was run, whether the trace has all of it, and how busy each device was. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "shim/base/no_room.h"
#include "tools/custream/command.h"
#include "tools/custream/model/table.h"
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"
#include "tools/custream/show.h"
#include "tools/custream/trace/format.h"

const char *sample_note(struct report *report, const struct run *run)
{
    const uint32_t sample = run_sample(run);
    return sample ? report_text(report,
                        "Absent: it needs the GPU times of all calls, and the trace has those of "
                        "one in %u.",
                        sample)
                  : NULL;
}

static const struct column run_columns[] = {
    {"program", "program", UNIT_TEXT, COLUMN_NAMES},
    {"pid", "process", UNIT_COUNT, COLUMN_NAMES},
    {"rank", "rank", UNIT_COUNT, 0},
    {"source", "GPU times", UNIT_TEXT, 0},
    {"wall_ns", "ran for", UNIT_NS, 0},
    {"calls", "calls", UNIT_COUNT, 0},
    {"works", "GPU work", UNIT_COUNT, 0},
    {"sample", "one call timed in", UNIT_COUNT, 0},
    {"threads", "threads", UNIT_COUNT, 0},
    {"streams", "streams", UNIT_COUNT, 0},
    {"unused_streams", "unused", UNIT_COUNT, 0},
    {"whole", "whole", UNIT_TEXT, 0},
    {"lost_calls", "lost calls", UNIT_COUNT, 0},
    {"lost_works", "lost GPU work", UNIT_COUNT, 0},
};

static const struct column device_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES},
    {"name", "name", UNIT_TEXT, 0},
    {"span_ns", "span", UNIT_NS, 0},
    {"busy_ns", "busy", UNIT_NS, 0},
    {"busy", "busy", UNIT_SHARE, 0},
    {"idle_ns", "idle", UNIT_NS, 0},
    {"idle", "idle", UNIT_SHARE, 0},
    {"at_once", "at once", UNIT_COUNT, 0},
    {"at_work_0", "0 at work", UNIT_SHARE, 0},
    {"at_work_1", "1", UNIT_SHARE, 0},
    {"at_work_2", "2", UNIT_SHARE, 0},
    {"at_work_3", "3 or more", UNIT_SHARE, 0},
    {"works", "GPU work", UNIT_COUNT, 0},
    {"before_ns", "before", UNIT_NS, 0},
    {"before_call", "longest call", UNIT_TEXT, 0},
    {"before_call_times", "times", UNIT_COUNT, 0},
    {"before_call_ns", "for", UNIT_NS, 0},
    {"before_no_call_ns", "in no call", UNIT_NS, 0},
};

/* --- whether it is whole --- */

struct missing {
    char text[512];
    size_t length;
};

static __attribute__((format(printf, 2, 3))) void missing_add(
    struct missing *missing, const char *format, ...)
{
    const size_t room = sizeof missing->text - missing->length;
    va_list args;
    va_start(args, format);
    const int n =
        snprintf(missing->text + missing->length, room, "%s", missing->length ? "; " : "");
    const int m = (size_t)n < room ? vsnprintf(missing->text + missing->length + n,
                                         room - (size_t)n, format, args)
                                   : 0;
    va_end(args);
    missing->length += (size_t)(n + m) < room ? (size_t)(n + m) : room - 1;
}

static void missing_count(struct missing *missing, double count, const char *one, const char *many)
{
    if (count > 0) missing_add(missing, "%.0f %s", count, count == 1 ? one : many);
}

/* `most`: "at most ", or nothing; `where`: likewise. */
static void missing_works(
    struct missing *missing, const char *most, double count, const char *where)
{
    if (count > 0)
        missing_add(missing, "%s%.0f piece%s of GPU work without times%s", most, count,
            count == 1 ? "" : "s", where);
}

static void missing_launches(struct missing *missing, const char *most, double count)
{
    if (count > 0)
        missing_add(missing, "%s%.0f %s", most, count,
            count == 1 ? "launch without its kernel" : "launches without their kernels");
}

/* Which kind it is can be told where all parts are there, and add up or have one kind only. */
static void missing_untimed(struct missing *missing, const struct run *run)
{
    char where[64];
    const struct untimed untimed = parts_untimed(run);
    const char *most = untimed.said && untimed.at_most ? "at most " : "";
    if (untimed.said && !parts_all(run)) {
        snprintf(where, sizeof where, " in parts 1 to %u", run->parts[run->part_count - 1].number);
        missing_works(missing, most, untimed.all, where);
    } else if (!untimed.said || untimed.all == untimed.without_times + untimed.launches) {
        missing_works(missing, most, untimed.without_times, "");
        missing_launches(missing, most, untimed.launches);
    } else if (untimed.without_times > 0) missing_works(missing, most, untimed.all, "");
    else missing_launches(missing, most, untimed.all);
}

/* Why the file ended before the process did. */
static void missing_end(struct missing *missing, const struct run *run)
{
    const struct fact *ended = run_fact(run, "totals.ended"),
                      *memory = run_fact(run, "totals.no_memory_for.0"),
                      *by = run_fact(run, "totals.ended_by");
    if (run->cut) missing_add(missing, "the file ends inside an event");
    if (run_fact(run, "totals.recovered.cut_bytes") && !run_fact(run, "totals.recovered.rows"))
        missing_add(missing, "recovered up to the last whole event");
    if (ended) missing_add(missing, "ended: %s", text_in(run, ended->value));
    if (memory)
        missing_add(missing, "no memory for %s%s", text_in(run, memory->value),
            run_fact(run, "totals.no_memory_for.1") ? " and more" : "");
    if (by) missing_add(missing, "ended by %s", text_in(run, by->value));
    if (!missing->length && run_number(run, "totals.complete", 0) == 0)
        missing_add(missing, "the process had not ended when the trailer was written");
}

static void missing_parts(struct missing *missing, const struct run *run)
{
    const double deleted = run_number(run, "totals.parts_deleted", 0);
    uint32_t next = (uint32_t)deleted + 1; /* part that is to come */
    missing_count(missing, deleted, "part deleted", "parts deleted");
    for (size_t i = 0; i < run->part_count; i++) {
        const uint32_t part = run->parts[i].number;
        if (part == next + 1) missing_add(missing, "part %u is not among the files", next);
        else if (part > next)
            missing_add(missing, "parts %u to %u are not among the files", next, part - 1);
        if (part >= next) next = part + 1;
    }
    if (parts_continue(run)) missing_add(missing, "another part follows");
}

/* Times of which there is nothing, or no GPU work. */
static void missing_times(struct missing *missing, const struct run *run)
{
    double closed = 0, no_times = 0;
    for (size_t i = 0; i < run->loss_count; i++) {
        const struct loss *loss = &run->losses[i];
        if (loss->no_times)
            *(loss->closed ? &closed : &no_times) += (double)(loss->end - loss->begin);
    }
    char shown[SHOWN_MAX];
    if (closed > 0)
        missing_add(missing, "%s outside of windows", value_show(shown, UNIT_NS, closed));
    if (no_times > 0)
        missing_add(missing, "%s without GPU times", value_show(shown, UNIT_NS, no_times));
}

static void missing_lost(
    struct missing *missing, double there, double all, const char *one, const char *many)
{
    char elsewhere[64];
    missing_count(missing, there, one, many);
    snprintf(elsewhere, sizeof elsewhere, "%s in parts that are not among the files",
        all - there == 1 ? one : many);
    missing_count(missing, all - there, elsewhere, elsewhere);
}

static const char *whole_of(struct report *report, const struct run *run)
{
    struct missing missing = {0};
    const struct lost lost = parts_lost(run), all = parts_lost_in_all(run);
    double without_call = 0;
    if (!run->ours) return run->cut ? "the file ends inside an event" : WHOLE_NOT_SAID;
    if (run_cut_seconds(run) > 0)
        missing_add(&missing, "a cut of %.3f s out of a trace: all totals are those of the cut",
            run_cut_seconds(run));
    missing_end(&missing, run);
    if (run_sample(run))
        missing_add(&missing, "the GPU times of all calls but one in %u", run_sample(run));
    else if (!run_has_times(run))
        missing_add(&missing, "all GPU work, since no GPU times were taken");
    missing_parts(&missing, run);
    missing_times(&missing, run);
    missing_lost(&missing, lost.calls, all.calls, "call lost", "calls lost");
    missing_lost(
        &missing, lost.works, all.works, "piece of GPU work lost", "pieces of GPU work lost");
    missing_untimed(&missing, run);
    for (size_t i = 0; i < run->part_count; i++) without_call += run->parts[i].without_call;
    missing_count(&missing, without_call, "piece of GPU work without its call",
        "pieces of GPU work without their calls");
    for (int i = 0; i < CS_NO_ROOM_KINDS; i++) {
        char path[64];
        snprintf(path, sizeof path,
            i == CS_NO_ROOM_FOR_OBJECTS ? "totals.untracked_objects" : "totals.no_room.%s",
            cs_no_room_info[i].name);
        missing_count(
            &missing, run_number(run, path, 0), cs_no_room_info[i].one, cs_no_room_info[i].several);
    }
    const char *unknown =
        run_cut_seconds(run) > 0 ? NULL : format_unknown(run_count(run, "schemaVersion", 0));
    if (unknown) missing_add(&missing, "%s", unknown);
    return missing.length ? report_text(report, "%s", missing.text) : "yes";
}

/* --- the run --- */

static uint32_t calling_threads(const struct run *run)
{
    uint32_t threads = 0;
    for (size_t t = 0; t < run->thread_count; t++)
        threads += run->thread_calls.begins[t] != run->thread_calls.begins[t + 1];
    return threads;
}

/* A call that gives its stream something to do; others make it, ask it, or wait for it. */
static bool uses_stream(const struct call *call)
{
    const enum cs_kind kind = call_kind(call);
    return call->stream != NONE && (cs_call_enqueues(call->call) || kind == CS_KIND_HOSTFN ||
                                       kind == CS_KIND_MEMOP || kind == CS_KIND_MEMORY);
}

struct streams {
    uint32_t used, unused; /* unused: the program made it and gave it nothing to do */
};

static struct streams streams_of(const struct run *run)
{
    struct streams streams = {0};
    bool *used = array_zeros(run->stream_count, sizeof *used);
    for (size_t c = 0; c < run->call_count; c++)
        if (uses_stream(&run->calls[c])) used[run->calls[c].stream] = true;
    for (size_t s = 0; s < run->stream_count; s++) {
        const struct stream *stream = &run->streams[s];
        if (used[s] || stream->works) streams.used++;
        else streams.unused += stream->known && stream->origin == ORIGIN_CREATED;
    }
    free(used);
    return streams;
}

/* A program that no launcher started as one of several has none. */
static double rank_of(const struct run *run)
{
    const double rank = run_number(run, "distributedInfo.rank", NAN);
    return rank > 0 || run_number(run, "distributedInfo.world_size", 1) > 1 ? rank : NAN;
}

static void run_table(struct report *report, const struct run *run)
{
    struct table *table = TABLE_NEW(report, "run", "The run", run_columns);
    const struct lost lost =
        run->ours || run->loss_count ? parts_lost_in_all(run) : (struct lost){NAN, NAN};
    const struct streams streams = streams_of(run);
    const int64_t wall = run->end > run->begin ? run->end - run->begin : 0;
    TABLE_PUT(table, run_columns, CELL_TEXT(run->program ? text_in(run, run->program) : NULL),
        CELL_NUMBER(run->pid), CELL_NUMBER(rank_of(run)), CELL_TEXT(run_source(run)),
        CELL_NUMBER(wall), CELL_NUMBER(run->call_count),
        CELL_NUMBER(run->work_count + run->sampled_count),
        CELL_NUMBER(run_sample(run) ? run_sample(run) : NAN), CELL_NUMBER(calling_threads(run)),
        CELL_NUMBER(streams.used), CELL_NUMBER(streams.unused), CELL_TEXT(whole_of(report, run)),
        CELL_NUMBER(lost.calls), CELL_NUMBER(lost.works));
}

/* --- the devices --- */

static double share(double part, double whole) { return whole > 0 ? part / whole : NAN; }

static void device_put(struct table *table, const struct model *of, uint32_t d,
    const struct device_load *load, uint32_t works)
{
    const struct device *device = &of->run.devices[d];
    const struct span *span = &of->idles.devices[d];
    const double all = (double)(span->end - span->begin), busy = (double)span->busy;
    const struct before before = before_first_work(&of->run, span);
    TABLE_PUT(table, device_columns, CELL_NUMBER(device->ordinal),
        CELL_TEXT(device->name ? text_in(&of->run, device->name) : NULL), CELL_NUMBER(all),
        CELL_NUMBER(busy), CELL_NUMBER(share(busy, all)), CELL_NUMBER(all - busy),
        CELL_NUMBER(share(all - busy, all)), CELL_NUMBER(share(load->stream_time, busy)),
        CELL_NUMBER(share((double)load->at_work[0], all)),
        CELL_NUMBER(share((double)load->at_work[1], all)),
        CELL_NUMBER(share((double)load->at_work[2], all)),
        CELL_NUMBER(share((double)load->at_work[3], all)), CELL_NUMBER(works),
        CELL_NUMBER(before.ns), CELL_TEXT(before.call ? text_in(&of->run, before.call) : NULL),
        CELL_NUMBER(before.call ? before.times : NAN),
        CELL_NUMBER(before.call ? before.call_ns : NAN), CELL_NUMBER(before.no_call_ns));
}

/* A device on which nothing ran has no row. */
static void device_table(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table = TABLE_NEW(report, "devices", "The devices", device_columns);
    table->note = sample_note(report, run);
    struct concurrency concurrency;
    concurrency_make(&concurrency, run);
    for (uint32_t d = 0; d < run->device_count; d++) {
        uint32_t works = 0;
        for (size_t s = 0; s < run->stream_count; s++)
            if (run->streams[s].device == d) works += run->streams[s].works;
        if (works) device_put(table, of, d, &concurrency.devices[d], works);
    }
    concurrency_free(&concurrency);
}

void section_run(struct report *report, const struct model *of)
{
    run_table(report, &of->run);
    device_table(report, of);
}
