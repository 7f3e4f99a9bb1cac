/* The header and trailer of a merged trace, and the rows that name its processes. */
#include <inttypes.h>
#include <string.h>
#include <yyjson.h>

#include "shim/base/claim.h"
#include "shim/base/no_room.h"
#include "tools/custream/merge/plan.h"
#include "tools/custream/lanes.h"

/* Puts ,"NAME":VALUE; nothing if `value` is NULL. */
static void member_put(struct rope *to, const char *name, yyjson_val *value)
{
    if (!value) return;
    rope_print(to, ",\"%s\":", name);
    row_print(to, value);
}

static const char *const flag[] = {"false", "true"};

static void clocks_put(struct rope *to, const struct plan *plan)
{
    static const char by_start[] =
        "each process begins at 0: times of two processes say nothing about each other";
    static const char by_fleet[] =
        "by the clocks that custream fleet found: of each process, what its clock was ahead of the "
        "fleet's "
        "is taken off; times of two processes differ by clock_error_ns at most";
    static const char by_wall[] = "by baseTimeNanoseconds, the wall clock: times of two processes "
                                  "of one host differ by clock_error_ns at "
                                  "most, if nobody has set its clock between their starts; times "
                                  "of several hosts are as good as their "
                                  "clocks were synchronised";
    uint64_t most = 0, next = 0; /* the two largest errors: two clocks may differ by their sum */
    bool unknown = false;
    for (size_t p = 0; p < plan->process_count; p++) {
        const struct process *process = &plan->processes[p];
        unknown |= !process->has_error;
        if (process->error_ns > most) next = most, most = process->error_ns;
        else if (process->error_ns > next) next = process->error_ns;
    }
    if (plan->align_start) return rope_print(to, "\"align\":\"start\",\"clocks\":\"%s\"", by_start);
    rope_print(to,
        "\"align\":\"%s\",\"clock_error_ns\":%" PRIu64
        ",\"clock_error_unknown\":%s,\"clocks\":\"%s\"",
        plan->clocks.count ? "clocks" : "clock", most + next, flag[unknown],
        plan->clocks.count ? by_fleet : by_wall);
}

static void file_put(struct rope *to, const struct plan *plan, const struct file *file)
{
    const struct process *process = &plan->processes[file->process];
    const struct clock *clock = process->clock;
    rope_print(to, "{\"file\":");
    rope_string(to, file->shown, strlen(file->shown));
    rope_print(to, ",\"process\":\"%s\",\"pid\":%" PRIu64, process->label, file->pid);
    if (file->has_rank)
        rope_print(to, ",\"rank\": %" PRIu64 ",\"world_size\":%" PRIu64, file->rank, file->world);
    member_put(to, "host", kept_at(file, KEPT_METADATA, "/host"));
    member_put(to, "job", kept_at(file, KEPT_METADATA, "/job"));
    if (file->part) rope_print(to, ",\"part\":%" PRIu64, file->part);
    if (file->has_base) rope_print(to, ",\"baseTimeNanoseconds\":%" PRId64, file->base);
    rope_print(to, ",\"shift_ns\":%" PRId64, time_merged(process, process->first) - process->first);
    if (clock)
        rope_print(to, ",\"clock\":{\"offset_ns\":%.0f,\"drift_ppb\":%.3f,\"error_ns\":%.0f}",
            clock->offset_ns, clock->drift_ppb, clock->error_ns);
    if (file->has_error) rope_print(to, ",\"clock_error_ns\":%" PRIu64, file->error_ns);
    member_put(to, "gpu_sample", kept_at(file, KEPT_METADATA, "/gpu_sample"));
    rope_print(
        to, ",\"truncated\":%s,\"complete\":%s,\"pids\":{", flag[file->cut], flag[file->complete]);
    for (size_t g = 0; g < file->group_count; g++) {
        const char *pid = file->groups[g].pid;
        rope_print(to, *pid == '"' ? "%s%s:%" PRIu32 : "%s\"%s\":%" PRIu32, g ? "," : "", pid,
            file->groups[g].merged);
    }
    rope_print(to, "}}");
}

/* --- header and trailer of a cut trace of one process --- */

/* Returns how many seconds of the window the files cover. */
static double cut_seconds(const struct plan *plan)
{
    int64_t end = plan->begin;
    for (size_t i = 0; i < plan->file_count; i++)
        if (plan->files[i].first <= plan->files[i].last && plan->files[i].last > end)
            end = plan->files[i].last;
    const int64_t until = plan->begin + plan->window[1] < end ? plan->begin + plan->window[1] : end,
                  from = plan->begin + plan->window[0];
    return until > from ? (double)(until - from) * 1e-9 : 0;
}

static bool all_complete(const struct plan *plan)
{
    bool complete = true;
    for (size_t i = 0; i < plan->file_count; i++)
        complete &= plan->range ? !plan->files[i].cut : plan->files[i].complete;
    return complete; /* with --range, each whole file is complete, as the range has ended */
}

/* Puts the file's own header; if the process has several parts, the newest part's. */
static void cut_header_put(struct rope *to, const struct plan *plan)
{
    const struct file *file = &plan->files[plan->file_count - 1];
    if (file->has_rank)
        rope_print(to,
            "\"distributedInfo\": {\"rank\": %" PRIu64 ", \"world_size\": %" PRIu64 "},\n",
            file->rank, file->world);
    rope_print(to, "\"metadata\":"); /* the library overwrites only files that have this member */
    row_print(to, kept_at(file, KEPT_METADATA, ""));
    to->length--;
    rope_print(to, ",\"cut\":{\"%s\":", plan->range ? "range" : "from_ns");
    if (plan->range) rope_string(to, plan->range, strlen(plan->range));
    else rope_print(to, "%" PRId64, plan->base + plan->begin + plan->window[0]);
    rope_print(to, ",\"seconds\":%.9f,\"files\":%zu}},\n\"traceEvents\":[", cut_seconds(plan),
        plan->file_count);
}

/* Puts the file's trailer without its counts, which are not those of the cut. Readers count the
 * cut's rows. */
static void cut_trailer_put(struct rope *to, const struct plan *plan)
{
    const struct file *file = &plan->files[plan->file_count - 1];
    yyjson_val *source = kept_at(file, KEPT_TOTALS, "/gpu/source");
    rope_print(to, "\n],\"traceName\":\"custream\"");
    member_put(to, kept_names[KEPT_DEVICES], kept_at(file, KEPT_DEVICES, ""));
    rope_print(to, ",\n\"totals\":{\"complete\":%s", flag[all_complete(plan)]);
    if (source) {
        rope_print(to, ",\"gpu\":{\"source\":");
        row_print(to, source);
        member_put(to, "sample", kept_at(file, KEPT_METADATA, "/gpu_sample"));
        rope_print(to, "}");
    }
    rope_print(to, "}}\n");
}

/* --- names --- */

static void row_begin(struct rope *to, const struct group *group, const char *name)
{
    rope_print(to, "%s\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%s,\"args\":{",
        to->at[to->length - 1] == '[' ? "" : ",", name, group->merged,
        strcmp(group->tid, "0") ? group->tid : "1");
}

/* Puts a JSON string without its quotes. */
static void inside_put(struct rope *to, const char *string)
{
    rope_put(to, string + 1, strlen(string) - 2);
}

static void group_put(struct rope *to, const struct file *file, const struct process *process,
    const struct group *group)
{
    const bool host = group->has_number && group->number == file->pid;
    const uint32_t place = (uint32_t)file->process * MERGED_GPU_STEP;
    row_begin(to, group, "process_name");
    rope_print(to, "\"name\":\"%s, ", process->label);
    if (group->gpu) rope_print(to, "GPU %" PRIu32, group->ordinal);
    else if (host) rope_print(to, "host");
    else if (group->name) inside_put(to, group->name);
    else if (*group->pid == '"') inside_put(to, group->pid);
    else rope_print(to, "process %s", group->pid);
    rope_print(to, "\"}}");
    if (group->name) {
        row_begin(to, group, "process_labels");
        rope_print(to, "\"labels\":\"");
        inside_put(to, group->name);
        if (host) rope_print(to, ", pid %" PRIu64, file->pid);
        rope_print(to, "\"}}");
    }
    row_begin(to, group, "process_sort_index");
    rope_print(to, "\"sort_index\":%" PRIu32 "}}",
        group->gpu ? place + 1 + group->ordinal
        : host     ? place
                   : place + MERGED_GPU_STEP - 1);
}

void header_put(struct rope *to, const struct plan *plan)
{
    unsigned format = CS_TRACE_FORMAT; /* the lowest of the files' formats: all rows fit it */
    for (size_t i = 0; i < plan->file_count; i++)
        if (plan->files[i].ours && plan->files[i].format < format) format = plan->files[i].format;
    rope_print(to, CS_TRACE_BEGIN("%u") "%" PRId64 ",\n", format ?: 1, plan->base);
    if (plan->alone) return cut_header_put(to, plan); /* names come with the file's own rows */
    rope_print(to, "\"metadata\":{\"tool\":\"custream " CUSTREAM_VERSION_STRING "\",\"merged\":{");
    clocks_put(to, plan);
    if (plan->windowed)
        rope_print(to, ",\"window_ns\":[%" PRId64 ",%" PRId64 "]", plan->begin + plan->window[0],
            plan->begin + plan->window[1]);
    rope_print(to, ",\n\"files\":[");
    for (size_t i = 0; i < plan->file_count; i++) {
        rope_print(to, i ? ",\n" : "\n");
        file_put(to, plan, &plan->files[i]);
    }
    rope_print(to, "]}},\n\"traceEvents\":[");
    for (size_t i = 0; i < plan->file_count; i++) {
        const struct file *file = &plan->files[i];
        for (size_t g = 0; g < file->group_count; g++)
            if (file->groups[g].first)
                group_put(to, file, &plan->processes[file->process], &file->groups[g]);
    }
}

/* --- trailer --- */

struct sum {
    const char *path; /* a JSON pointer below "totals" */
    uint64_t value;
};

static bool sums_make(const struct plan *plan, struct sum *sums, size_t count)
{
    for (size_t i = 0; i < plan->file_count; i++)
        for (size_t s = 0; s < count; s++) {
            uint64_t value;
            /* The no_room counts in a process's last part already include its earlier parts. */
            const bool counts = i + 1 == plan->file_count ||
                                plan->files[i + 1].process != plan->files[i].process ||
                                strncmp(sums[s].path, "/no_room", 8);
            if (!plan->files[i].has_totals) return false;
            if (value_natural(kept_at(&plan->files[i], KEPT_TOTALS, sums[s].path), &value))
                sums[s].value += counts ? value : 0;
            else if (!strchr(sums[s].path + 1, '/')) return false;
        }
    return true;
}

/* Puts ,"GROUP":{...} with the sums from..end. Sums of 0 are put only with `zeros`. */
static void sums_put(
    struct rope *to, const char *group, const struct sum *from, const struct sum *end, bool zeros)
{
    bool first = true;
    for (const struct sum *sum = from; sum < end; sum++) {
        if (!sum->value && !zeros) continue;
        if (first) rope_print(to, ",\"%s\":{", group);
        rope_print(
            to, "%s\"%s\":%" PRIu64, first ? "" : ",", strrchr(sum->path, '/') + 1, sum->value);
        first = false;
    }
    if (!first) rope_print(to, "}");
}

/* Puts the sums of the files' totals; no sums with a window, or if a file has no totals. */
static void totals_put(struct rope *to, const struct plan *plan)
{
    enum {
        RECORDED,
        LOST,
        NOT_WRITTEN,
        KERNELS = NOT_WRITTEN + 2,
        NO_ROOM = KERNELS + 8,
        SUMS = NO_ROOM + CS_NO_ROOM_KINDS
    };
    struct sum sums[SUMS] = {{.path = "/recorded"}, {.path = "/lost_records"},
        {.path = "/not_written/calls"}, {.path = "/not_written/gpu_work"}, {.path = "/gpu/kernels"},
        {.path = "/gpu/copies"}, {.path = "/gpu/memsets"}, {.path = "/gpu/graphs"},
        {.path = "/gpu/ranges"}, {.path = "/gpu/overhead"}, {.path = "/gpu/without_call"},
        {.path = "/gpu/lost"}};
    char paths[CS_NO_ROOM_KINDS][64];
    for (int kind = 0; kind < CS_NO_ROOM_KINDS; kind++) {
        snprintf(paths[kind], sizeof paths[kind], "/no_room/%s", cs_no_room_info[kind].name);
        sums[NO_ROOM + kind].path = paths[kind];
    }
    rope_print(to, "\"totals\":{\"complete\":%s", flag[all_complete(plan)]);
    if (!plan->windowed && sums_make(plan, sums, SUMS)) {
        rope_print(to, ",\"recorded\":%" PRIu64 ",\"lost_records\":%" PRIu64, sums[RECORDED].value,
            sums[LOST].value);
        sums_put(to, "not_written", sums + NOT_WRITTEN, sums + KERNELS,
            sums[NOT_WRITTEN].value || sums[NOT_WRITTEN + 1].value);
        sums_put(to, "no_room", sums + NO_ROOM, sums + SUMS, false);
        sums_put(to, "gpu", sums + KERNELS, sums + NO_ROOM, true);
    }
    rope_print(to, "}");
}

void trailer_put(struct rope *to, const struct plan *plan)
{
    if (plan->alone) return cut_trailer_put(to, plan);
    rope_print(to, "\n],\"traceName\":\"custream merge\",\n");
    totals_put(to, plan);
    rope_print(to, ",\n\"merged\":[");
    for (size_t i = 0; i < plan->file_count; i++) {
        rope_print(to, i ? ",\n{\"file\":" : "\n{\"file\":");
        rope_string(to, plan->files[i].shown, strlen(plan->files[i].shown));
        for (int k = 0; k < KEPTS; k++)
            member_put(to, kept_names[k], kept_at(&plan->files[i], (enum kept)k, ""));
        rope_print(to, "}");
    }
    rope_print(to, "]}\n");
}
