/* The program that was run, how complete its trace is, and how busy each device was. */
#include <time.h>

#include "shim/base/no_room.h"
#include "shim/base/options.h"
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"
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
    {"program", "program", UNIT_TEXT, COLUMN_NAMES, 0},
    {"pid", "process", UNIT_COUNT, COLUMN_NAMES, 0},
    {"rank", "rank", UNIT_COUNT, 0, 0},
    {"source", "GPU times", UNIT_TEXT, 0, 0},
    {"wall_ns", "ran for", UNIT_NS, 0, 0},
    {"calls", "calls", UNIT_COUNT, 0, 0},
    {"works", "GPU work", UNIT_COUNT, 0, 0},
    {"sample", "one call timed in", UNIT_COUNT, 0, 0},
    {"threads", "threads", UNIT_COUNT, 0, 0},
    {"streams", "streams", UNIT_COUNT, 0, 0},
    {"unused_streams", "unused", UNIT_COUNT, 0, 0},
    {"whole", "whole", UNIT_TEXT, 0, 0},
    {"lost_calls", "lost calls", UNIT_COUNT, 0, 0},
    {"lost_works", "lost GPU work", UNIT_COUNT, 0, 0},
    {"host", "host", UNIT_TEXT, 0, 0},
    {"began", "began", UNIT_TEXT, 0, 0},
    {"command_line", "command line", UNIT_TEXT, 0, 0},
    {"settings", "settings", UNIT_TEXT, 0, 0},
    {"recorded_by", "recorded by", UNIT_TEXT, 0, 0},
};

static const struct column device_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES, 0},
    {"name", "name", UNIT_TEXT, 0, 0},
    {"span_ns", "span", UNIT_NS, 0, 0},
    {"busy_ns", "busy", UNIT_NS, 0, 0},
    {"busy", "busy", UNIT_SHARE, 0, 0},
    {"idle_ns", "idle", UNIT_NS, 0, 0},
    {"idle", "idle", UNIT_SHARE, 0, 0},
    {"at_once", "at once", UNIT_COUNT, 0, 0},
    {"at_work_0", "0 at work", UNIT_SHARE, 0, 0},
    {"at_work_1", "1", UNIT_SHARE, 0, 0},
    {"at_work_2", "2", UNIT_SHARE, 0, 0},
    {"at_work_3", "3 or more", UNIT_SHARE, 0, 0},
    {"works", "GPU work", UNIT_COUNT, 0, 0},
    {"before_ns", "before", UNIT_NS, 0, 0},
    {"before_call", "longest call", UNIT_TEXT, 0, 0},
    {"before_call_times", "times", UNIT_COUNT, 0, 0},
    {"before_call_ns", "for", UNIT_NS, 0, 0},
    {"before_no_call_ns", "in no call", UNIT_NS, 0, 0},
    {"after_ns", "after", UNIT_NS, 0, 0},
};

/* --- whether the trace is whole --- */

enum { WHOLE_MAX = 512 };
#define MISSING(...) \
    (line_add(m, "%s", m->left < WHOLE_MAX ? "; " : ""), line_add(m, __VA_ARGS__))

static void missing_count(struct line *m, double count, const char *one, const char *many)
{
    if (count > 0) MISSING("%.0f %s", count, count == 1 ? one : many);
}

/* Tells how much work has no times. `most`: "at most " or ""; `where`: words behind the number, or
 * "". */
static void missing_works(struct line *m, const char *most, double count, const char *where)
{
    if (count > 0)
        MISSING("%s%.0f piece%s of GPU work without times%s", most, count, plural(count), where);
}

static void missing_launches(struct line *m, const char *most, double count)
{
    if (count > 0)
        MISSING("%s%.0f %s", most, count,
            count == 1 ? "launch without its kernel" : "launches without their kernels");
}

/* GPU work that has no times. */
struct untimed {
    /* sums over the parts; they still count work that one part missed and a later part has */
    double without_times, launches;
    double all;   /* without_times + launches, less what a later part has, up to the newest part */
    bool said;    /* the parts themselves tell `all` */
    bool at_most; /* `all` may count work that came after the newest part */
};

static struct untimed parts_untimed(const struct run *run)
{
    struct untimed untimed = {0};
    for (size_t i = 0; i < run->part_count; i++) {
        const struct part *part = &run->parts[i];
        const bool says = !isnan(part->untimed_in_all);
        untimed.without_times += part->without_times;
        untimed.launches += part->launches_without_kernel;
        /* A part's untimed_in_all no longer counts work that an earlier part missed and that has
         * come since. In a recovered part it only repeats the number of the part before. */
        const double sum = untimed.all + part->without_times + part->launches_without_kernel;
        untimed.all = !says              ? sum
                      : !part->recovered ? part->untimed_in_all
                                         : fmax(sum, part->untimed_in_all);
        untimed.said |= says;
        untimed.at_most = !says || part->recovered || part->continues;
    }
    return untimed;
}

/* Tells how much is untimed, and of which kind if the parts tell that. */
static void missing_untimed(struct line *m, const struct run *run)
{
    char where[64];
    const struct untimed untimed = parts_untimed(run);
    const char *most = untimed.said && untimed.at_most ? "at most " : "";
    if (untimed.said && !parts_all(run)) {
        snprintf(where, sizeof where, " in parts 1 to %u", run->parts[run->part_count - 1].number);
        missing_works(m, most, untimed.all, where);
    } else if (!untimed.said || untimed.all == untimed.without_times + untimed.launches) {
        missing_works(m, most, untimed.without_times, "");
        missing_launches(m, most, untimed.launches);
    } else if (untimed.without_times > 0) missing_works(m, most, untimed.all, "");
    else missing_launches(m, most, untimed.all);
}

/* Tells why the file ended before the process did. */
static void missing_end(struct line *m, const struct run *run)
{
    const struct fact *ended = run_fact(run, "totals.ended"),
                      *memory = run_fact(run, "totals.no_memory_for.0"),
                      *by = run_fact(run, "totals.ended_by");
    if (run->cut) MISSING("the file ends inside an event");
    if (run_fact(run, "totals.recovered.cut_bytes") && !run_fact(run, "totals.recovered.rows"))
        MISSING("recovered up to the last whole event");
    if (ended) MISSING("ended: %s", text_in(run, ended->value));
    if (memory)
        MISSING("no memory for %s%s", text_in(run, memory->value),
            run_fact(run, "totals.no_memory_for.1") ? " and more" : "");
    if (by) MISSING("ended by %s", text_in(run, by->value));
    if (m->left == WHOLE_MAX && run_number(run, "totals.complete", 0) == 0)
        MISSING("the process had not ended when the trailer was written");
}

static void missing_parts(struct line *m, const struct run *run)
{
    const double deleted = run_number(run, "totals.parts_deleted", 0);
    uint32_t next = (uint32_t)deleted + 1; /* the part that is expected next */
    missing_count(m, deleted, "part deleted", "parts deleted");
    for (size_t i = 0; i < run->part_count; i++) {
        const uint32_t part = run->parts[i].number;
        if (part == next + 1) MISSING("part %u is not among the files", next);
        else if (part > next) MISSING("parts %u to %u are not among the files", next, part - 1);
        if (part >= next) next = part + 1;
    }
    if (parts_continue(run)) MISSING("another part follows");
}

static void missing_lost(
    struct line *m, double there, double all, const char *one, const char *many)
{
    char elsewhere[64];
    missing_count(m, there, one, many);
    snprintf(elsewhere, sizeof elsewhere, "%s in parts that are not among the files",
        all - there == 1 ? one : many);
    missing_count(m, all - there, elsewhere, elsewhere);
}

/* Returns what was lost in the parts that are there. */
static struct lost parts_lost(const struct run *run)
{
    struct lost lost = {0};
    for (size_t i = 0; i < run->part_count; i++) {
        lost.calls += run->parts[i].lost.calls;
        lost.works += run->parts[i].lost.works;
    }
    return lost;
}

static const char *whole_of(struct report *report, const struct run *run)
{
    char text[WHOLE_MAX];
    struct line line = {text, sizeof text}, *m = &line;
    const struct lost lost = parts_lost(run), all = parts_lost_in_all(run);
    double without_call = 0;
    if (!run->ours) return run->cut ? "the file ends inside an event" : WHOLE_NOT_SAID;
    if (run_cut_seconds(run) > 0)
        MISSING("a cut of %.3f s out of a trace: all totals are those of the cut",
            run_cut_seconds(run));
    missing_end(m, run);
    if (run_sample(run)) MISSING("the GPU times of all calls but one in %u", run_sample(run));
    else if (!run_has_times(run)) MISSING("all GPU work, since no GPU times were taken");
    missing_parts(m, run);
    double closed = 0, no_times = 0; /* times of which nothing, or no GPU work, was recorded */
    for (size_t i = 0; i < run->loss_count; i++)
        if (run->losses[i].no_times)
            *(run->losses[i].closed ? &closed : &no_times) +=
                (double)(run->losses[i].end - run->losses[i].begin);
    if (closed > 0) MISSING("%s outside of windows", SHOWN(UNIT_NS, closed));
    if (no_times > 0) MISSING("%s without GPU times", SHOWN(UNIT_NS, no_times));
    missing_lost(m, lost.calls, all.calls, "call lost", "calls lost");
    missing_lost(m, lost.works, all.works, "piece of GPU work lost", "pieces of GPU work lost");
    missing_untimed(m, run);
    for (size_t i = 0; i < run->part_count; i++) without_call += run->parts[i].without_call;
    missing_count(m, without_call, "piece of GPU work without its call",
        "pieces of GPU work without their calls");
    for (int i = 0; i < CS_NO_ROOM_KINDS; i++) {
        char path[64];
        snprintf(path, sizeof path,
            i == CS_NO_ROOM_FOR_OBJECTS ? "totals.untracked_objects" : "totals.no_room.%s",
            cs_no_room_info[i].name);
        missing_count(
            m, run_number(run, path, 0), cs_no_room_info[i].one, cs_no_room_info[i].several);
    }
    const char *unknown =
        run_cut_seconds(run) > 0 ? NULL : format_unknown(run_count(run, "schemaVersion", 0));
    if (unknown) MISSING("%s", unknown);
    return m->left < WHOLE_MAX ? report_text(report, "%s", text) : "yes";
}

/* --- the run --- */

struct streams {
    uint32_t used, unused; /* unused: streams that the program made and gave nothing to do */
};

static struct streams streams_of(const struct run *run)
{
    struct streams streams = {0};
    bool *used = array_zeros(run->stream_count, sizeof *used);
    for (size_t c = 0; c < run->call_count; c++) {
        const struct call *call = &run->calls[c];
        const enum cs_kind kind = call_kind(call);
        /* Other calls only make, ask or wait for a stream. */
        if (call->stream != NONE && (cs_call_enqueues(call->call) || kind == CS_KIND_HOSTFN ||
                                        kind == CS_KIND_MEMOP || kind == CS_KIND_MEMORY))
            used[call->stream] = true;
    }
    for (size_t s = 0; s < run->stream_count; s++) {
        const struct stream *stream = &run->streams[s];
        if (used[s] || stream->works) streams.used++;
        else streams.unused += stream->known && stream->origin == ORIGIN_CREATED;
    }
    free(used);
    return streams;
}

static uint32_t calling_threads(const struct run *run)
{
    uint32_t threads = 0;
    for (size_t t = 0; t < run->thread_count; t++)
        threads += run->thread_calls.begins[t] != run->thread_calls.begins[t + 1];
    return threads;
}

/* Returns the program's rank; NAN: no launcher started the program as one of several. */
static double rank_of(const struct run *run)
{
    const double rank = run_number(run, "distributedInfo.rank", NAN);
    return rank > 0 || run_number(run, "distributedInfo.world_size", 1) > 1 ? rank : NAN;
}

/* Returns a text of the header; NULL: it is not there. */
static const char *word_of(const struct run *run, const char *path)
{
    const struct fact *fact = run_fact(run, path);
    return fact && fact->value ? text_in(run, fact->value) : NULL;
}

/* Returns when the run began, by the wall clock; NULL: not known. */
static const char *began_at(struct report *report, const struct run *run)
{
    const int64_t second_ns = 1000000000;
    const time_t second =
        (time_t)(run->base / second_ns + (run->base % second_ns + run->begin) / second_ns);
    struct tm at;
    char text[64];
    if (run->base <= 0 || !gmtime_r(&second, &at)) return NULL;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &at);
    return report_text(report, "%s", text);
}

/* Returns the settings that are not the preset ones; NULL: the trace does not have them. */
static const char *settings_of(struct report *report, const struct run *run)
{
    const char *list = NULL;
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        const struct cs_option_info *option = &cs_option_info[i];
        char path[128];
        snprintf(path, sizeof path, "metadata.options.%s", option->env);
        const char *value = word_of(run, path);
        if (!value) continue;
        if (!list) list = "";
        if (strcmp(value, option->preset))
            list = report_text(report, "%s%s%s=%s", list, *list ? " " : "", option->env, value);
    }
    return list && !*list ? "as preset" : list;
}

static void run_table(struct report *report, const struct run *run)
{
    struct table *table = TABLE_NEW(report, "run", "The run", run_columns);
    const struct lost lost =
        run->ours || run->loss_count ? parts_lost_in_all(run) : (struct lost){NAN, NAN};
    const struct streams streams = streams_of(run);
    const int64_t wall = run->end > run->begin ? run->end - run->begin : 0;
    TABLE_PUT(table, run_columns, CELL(run->program ? text_in(run, run->program) : NULL),
        CELL(run->pid ? run->pid : NAN), CELL(rank_of(run)), CELL(run_source(run)), CELL(wall),
        CELL(run->call_count), CELL(run->work_count + run->sampled_count),
        CELL(run_sample(run) ? run_sample(run) : NAN), CELL(calling_threads(run)),
        CELL(streams.used), CELL(streams.unused), CELL(whole_of(report, run)), CELL(lost.calls),
        CELL(lost.works), CELL(word_of(run, "metadata.host")), CELL(began_at(report, run)),
        CELL(word_of(run, "metadata.command_line")), CELL(settings_of(report, run)),
        CELL(word_of(run, "metadata.tool")));
}

/* --- the devices --- */

static double share(double part, double whole) { return whole > 0 ? part / whole : NAN; }

struct before before_of(const struct run *run, int64_t first)
{
    struct periods no_works = periods_lost(run, works_lost, 0);
    struct before before = {
        .ns = periods_meet(&no_works, run->begin, first) ? NAN : (double)(first - run->begin),
        .no_call_ns = NAN};
    struct tallies calls = {0};
    int64_t reached = run->begin,
            none = 0; /* reached: the latest end of a call so far; none: ns in no call */
    for (size_t c = 0; c < run->call_count && run->calls[c].begin < first; c++) {
        const struct call *call = &run->calls[c];
        const int64_t end = call->end < first ? call->end : first;
        tally_add(tally_of(&calls, call->name), end - call->begin);
        if (call->begin > reached) none += call->begin - reached;
        if (end > reached) reached = end;
    }
    tallies_sort(&calls);
    if (calls.count) {
        before.call = (text)calls.rows[0].key;
        before.times = (double)calls.rows[0].times;
        before.call_ns = (double)calls.rows[0].total;
    }
    if (!calls_miss(run, run->begin, first)) before.no_call_ns = (double)(none + first - reached);
    tallies_free(&calls);
    free(no_works.rows);
    return before;
}

static void device_put(struct table *table, const struct model *of, uint32_t d, uint32_t works)
{
    const struct device *device = &of->run.devices[d];
    const struct device_usage *is = &of->usage.devices[d];
    const double all = (double)(is->end - is->begin), idle = (double)is->at_work[0],
                 busy = all - idle;
    const struct before before = before_of(&of->run, is->begin);
    TABLE_PUT(table, device_columns, CELL(device->ordinal),
        CELL(device->name ? text_in(&of->run, device->name) : NULL), CELL(all), CELL(busy),
        CELL(share(busy, all)), CELL(idle), CELL(share(idle, all)),
        CELL(share(is->stream_time, busy)), CELL(share((double)is->at_work[0], all)),
        CELL(share((double)is->at_work[1], all)), CELL(share((double)is->at_work[2], all)),
        CELL(share((double)is->at_work[3], all)), CELL(works), CELL(before.ns),
        CELL(before.call ? text_in(&of->run, before.call) : NULL),
        CELL(before.call ? before.times : NAN), CELL(before.call ? before.call_ns : NAN),
        CELL(before.no_call_ns), CELL(of->run.end - is->end));
}

/* Makes the table "devices". A device on which nothing ran has no row. */
static void device_table(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table = TABLE_NEW(report, "devices", "The devices", device_columns);
    table->note = sample_note(report, run);
    for (uint32_t d = 0; d < run->device_count; d++) {
        uint32_t works = 0;
        for (size_t s = 0; s < run->stream_count; s++)
            if (run->streams[s].device == d) works += run->streams[s].works;
        if (works) device_put(table, of, d, works);
    }
}

void section_run(struct report *report, const struct model *of)
{
    run_table(report, &of->run);
    device_table(report, of);
}
