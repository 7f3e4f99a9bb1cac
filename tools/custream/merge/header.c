/* What a merged trace says of itself, and what its processes are called. */
#include <inttypes.h>
#include <string.h>

#include "shim/base/no_room.h"
#include "tools/custream/merge/write.h"
#include "tools/custream/merged.h"
#include "tools/custream/show.h"

/* Paths may hold anything. */
static void text_write(struct out *out, const char *text)
{
    struct glyph glyph;
    out_text(out, "\"");
    for (; (text = glyph_next(text, &glyph));) {
        if (glyph.length == 1 && strchr("\"\\", *glyph.bytes)) out_text(out, "\\");
        out_put(out, glyph.bytes, (size_t)glyph.length);
    }
    out_text(out, "\"");
}

static const char *flag(bool is) { return is ? "true" : "false"; }

/* Two clocks that are compared are each wrong by up to their error: those of the worst two processes. */
static uint64_t error_of(const struct plan *plan, bool *unknown)
{
    uint64_t most = 0, next = 0;
    *unknown = false;
    for (size_t p = 0; p < plan->process_count; p++) {
        const struct process *process = &plan->processes[p];
        *unknown |= !process->has_error;
        if (process->error_ns > most) next = most, most = process->error_ns;
        else if (process->error_ns > next) next = process->error_ns;
    }
    return most + next;
}

static void clocks_write(struct out *out, const struct plan *plan)
{
    bool unknown;
    const uint64_t error = error_of(plan, &unknown);
    if (plan->align_start) {
        out_text(out, "\"align\":\"start\",\"clocks\":\"each process begins at 0: times of two processes say nothing about each other\"");
        return;
    }
    out_print(out, "\"align\":\"%s\",\"clock_error_ns\":%" PRIu64 ",\"clock_error_unknown\":%s,\"clocks\":", plan->clocks.count ? "clocks" : "clock",
              error, flag(unknown));
    if (plan->clocks.count) {
        out_text(out, "\"by the clocks that custream fleet found: of each process, what its clock was ahead of the fleet's is taken off; times of two "
                      "processes differ by clock_error_ns at most\"");
        return;
    }
    out_text(out, "\"by baseTimeNanoseconds, the wall clock: times of two processes of one host differ by clock_error_ns at most, if nobody has set "
                  "its clock between their starts; times of several hosts are as good as their clocks were synchronised\"");
}

/* As the file's header has it; nothing, if it says nothing. */
static struct piece metadata_of(const struct file *file, const char *name)
{
    return file->kept[KEPT_METADATA] ? member_at(file->kept[KEPT_METADATA], (const char *const[]){name, NULL}) : (struct piece){0};
}

/* Of how many calls one has GPU times; nothing: of all, or of none. */
static struct piece sample_of(const struct file *file) { return metadata_of(file, "gpu_sample"); }

static void file_write(struct out *out, const struct plan *plan, const struct file *file)
{
    const struct process *process = &plan->processes[file->process];
    out_text(out, "{\"file\":");
    text_write(out, file->shown);
    out_print(out, ",\"process\":\"%s\",\"pid\":%" PRIu64, process->label, file->pid);
    if (file->has_rank) out_print(out, ",\"rank\": %" PRIu64 ",\"world_size\":%" PRIu64, file->rank, file->world);
    const struct piece host = metadata_of(file, "host"), job = metadata_of(file, "job");
    if (host.at) out_print(out, ",\"host\":%.*s", (int)host.length, host.at);
    if (job.at) out_print(out, ",\"job\":%.*s", (int)job.length, job.at);
    if (file->part) out_print(out, ",\"part\":%" PRIu64, file->part);
    if (file->has_base) out_print(out, ",\"baseTimeNanoseconds\":%" PRId64, file->base);
    out_print(out, ",\"shift_ns\":%" PRId64, time_merged(process, process->first) - process->first);
    const struct clock *clock = process->clock;
    if (clock) out_print(out, ",\"clock\":{\"offset_ns\":%.0f,\"drift_ppb\":%.3f,\"error_ns\":%.0f}", clock->offset_ns, clock->drift_ppb, clock->error_ns);
    if (file->has_error) out_print(out, ",\"clock_error_ns\":%" PRIu64, file->error_ns);
    const struct piece sample = sample_of(file);
    if (sample.at) out_print(out, ",\"gpu_sample\":%.*s", (int)sample.length, sample.at);
    out_print(out, ",\"truncated\":%s,\"complete\":%s,\"pids\":{", flag(file->cut), flag(file->complete));
    for (size_t g = 0; g < file->group_count; g++) {
        const char *pid = file->groups[g].pid;
        out_print(out, *pid == '"' ? "%s%s:%" PRIu32 : "%s\"%s\":%" PRIu32, g ? "," : "", pid, file->groups[g].merged);
    }
    out_text(out, "}}");
}

/* --- of a cut --- */

static const struct file *newest(const struct plan *plan) { return &plan->files[plan->file_count - 1]; }

/* How much of the window the files have. */
static double cut_seconds(const struct plan *plan)
{
    int64_t end = plan->begin;
    for (size_t i = 0; i < plan->file_count; i++)
        if (plan->files[i].first <= plan->files[i].last && plan->files[i].last > end) end = plan->files[i].last;
    const int64_t until = plan->begin + plan->window[1] < end ? plan->begin + plan->window[1] : end, from = plan->begin + plan->window[0];
    return until > from ? (double)(until - from) * 1e-9 : 0;
}

/* As the file's own: the newest one's, of several parts. */
static void cut_header_write(struct out *out, const struct plan *plan)
{
    const struct file *file = newest(plan);
    const char *metadata = file->kept[KEPT_METADATA];
    out_print(out, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%" PRId64 ",\n", plan->base);
    if (file->has_rank) out_print(out, "\"distributedInfo\": {\"rank\": %" PRIu64 ", \"world_size\": %" PRIu64 "},\n", file->rank, file->world);
    out_text(out, "\"metadata\":");
    out_put(out, metadata, strlen(metadata) - 1); /* it begins as those of all traces do, by which one may be written over */
    out_text(out, ",\"cut\":{");
    if (plan->range) out_text(out, "\"range\":"), text_write(out, plan->range);
    else out_print(out, "\"from_ns\":%" PRId64, plan->base + plan->begin + plan->window[0]);
    out_print(out, ",\"seconds\":%.9f,\"files\":%zu}},\n\"traceEvents\":[", cut_seconds(plan), plan->file_count);
}

/* Counts of the file are not those of the cut: its rows say them. */
static void cut_trailer_write(struct out *out, const struct plan *plan)
{
    const struct file *file = newest(plan);
    bool complete = true;
    for (size_t i = 0; i < plan->file_count && !plan->range; i++) complete &= plan->files[i].complete; /* a range has ended, even if its process goes on */
    const struct piece source = file->kept[KEPT_TOTALS] ? member_at(file->kept[KEPT_TOTALS], (const char *const[]){"gpu", "source", NULL}) : (struct piece){0},
                       sample = sample_of(file);
    out_text(out, "\n],\"traceName\":\"custream\",");
    if (file->kept[KEPT_DEVICES]) out_text(out, "\"deviceProperties\":"), out_text(out, file->kept[KEPT_DEVICES]), out_text(out, ",");
    out_print(out, "\n\"totals\":{\"complete\":%s", flag(complete));
    if (source.at) out_print(out, ",\"gpu\":{\"source\":%.*s", (int)source.length, source.at);
    if (source.at && sample.at) out_print(out, ",\"sample\":%.*s", (int)sample.length, sample.at);
    if (source.at) out_text(out, "}");
    out_text(out, "}}\n");
}

void header_write(struct out *out, const struct plan *plan)
{
    if (plan->alone) {
        cut_header_write(out, plan);
        return;
    }
    out_print(out, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%" PRId64 ",\n", plan->base);
    out_text(out, "\"metadata\":{\"tool\":\"custream " CUSTREAM_VERSION_STRING "\",\"merged\":{");
    clocks_write(out, plan);
    if (plan->windowed)
        out_print(out, ",\"window_ns\":[%" PRId64 ",%" PRId64 "]", plan->begin + plan->window[0], plan->begin + plan->window[1]);
    out_text(out, ",\n\"files\":[");
    for (size_t i = 0; i < plan->file_count; i++) {
        out_text(out, i ? ",\n" : "\n");
        file_write(out, plan, &plan->files[i]);
    }
    out_text(out, "]}},\n\"traceEvents\":[");
}

/* --- names --- */

static bool is_first(const struct plan *plan, size_t file, const struct group *group)
{
    for (size_t i = 0; i < file; i++)
        for (size_t g = 0; g < plan->files[i].group_count; g++)
            if (plan->files[i].groups[g].merged == group->merged) return false;
    return true;
}

static void row_begin(struct out *out, const struct group *group, const char *name, bool *first)
{
    out_print(out, "%s\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%s,\"args\":{", *first ? "" : ",", name, group->merged,
              strcmp(group->tid, "0") ? group->tid : "1");
    *first = false;
}

/* A JSON string's inside. */
static void inside_put(struct out *out, const char *string) { out_put(out, string + 1, strlen(string) - 2); }

static void group_write(struct out *out, const struct file *file, const struct process *process, const struct group *group, bool *first)
{
    char pid[24];
    snprintf(pid, sizeof pid, "%" PRIu64, file->pid);
    const bool host = !strcmp(group->pid, pid);
    const uint32_t place = (uint32_t)file->process * MERGED_GPU_STEP;
    row_begin(out, group, "process_name", first);
    out_print(out, "\"name\":\"%s, ", process->label);
    if (group->gpu) out_print(out, "GPU %" PRIu32, group->ordinal);
    else if (host) out_text(out, "host");
    else if (group->name) inside_put(out, group->name);
    else if (*group->pid == '"') inside_put(out, group->pid);
    else out_print(out, "process %s", group->pid);
    out_text(out, "\"}}");
    if (group->name) {
        row_begin(out, group, "process_labels", first);
        out_text(out, "\"labels\":\"");
        inside_put(out, group->name);
        if (host) out_print(out, ", pid %s", pid);
        out_text(out, "\"}}");
    }
    row_begin(out, group, "process_sort_index", first);
    out_print(out, "\"sort_index\":%" PRIu32 "}}", group->gpu ? place + 1 + group->ordinal : host ? place : place + MERGED_GPU_STEP - 1);
}

void names_write(struct out *out, const struct plan *plan)
{
    bool first = true;
    if (plan->alone) return; /* the rows have them */
    for (size_t i = 0; i < plan->file_count; i++) {
        const struct file *file = &plan->files[i];
        for (size_t g = 0; g < file->group_count; g++)
            if (is_first(plan, i, &file->groups[g])) group_write(out, file, &plan->processes[file->process], &file->groups[g], &first);
    }
}

/* --- trailer --- */

struct sum {
    const char *path[4];
    uint64_t value;
};

/* A part counts for itself, but what had no room for all parts up to it. Those of a process stand beside each other, the last one last. */
static bool counts(const struct plan *plan, size_t i, const struct sum *sum)
{
    return i + 1 == plan->file_count || plan->files[i + 1].process != plan->files[i].process || strcmp(sum->path[0], "no_room");
}

static bool sums_make(const struct plan *plan, struct sum *sums, size_t count)
{
    for (size_t i = 0; i < plan->file_count; i++)
        for (size_t s = 0; s < count; s++) {
            uint64_t value;
            const char *totals = plan->files[i].kept[KEPT_TOTALS];
            if (!plan->files[i].has_totals) return false;
            if (piece_natural(member_at(totals, sums[s].path), &value)) sums[s].value += counts(plan, i, &sums[s]) ? value : 0;
            else if (!sums[s].path[1]) return false;
        }
    return true;
}

/* What the files' own totals come to. In a window, and where a file has none, nothing can be said. */
static void totals_write(struct out *out, const struct plan *plan)
{
    enum { RECORDED, LOST, NOT_CALLS, NOT_WORK, KERNELS, NO_ROOM = KERNELS + 8, SUMS = NO_ROOM + CS_NO_ROOM_KINDS };
    struct sum sums[SUMS] = {{{"recorded"}, 0},           {{"lost_records"}, 0},      {{"not_written", "calls"}, 0}, {{"not_written", "gpu_work"}, 0},
                             {{"gpu", "kernels"}, 0},     {{"gpu", "copies"}, 0},     {{"gpu", "memsets"}, 0},       {{"gpu", "graphs"}, 0},
                             {{"gpu", "ranges"}, 0},      {{"gpu", "overhead"}, 0},   {{"gpu", "without_call"}, 0},  {{"gpu", "lost"}, 0}};
    bool complete = true, full = false;
    for (int s = NO_ROOM; s < SUMS; s++) sums[s] = (struct sum){{"no_room", cs_no_room_info[s - NO_ROOM].name}, 0};
    for (size_t i = 0; i < plan->file_count; i++) complete &= plan->files[i].complete;
    out_print(out, "\"totals\":{\"complete\":%s", flag(complete));
    if (!plan->windowed && sums_make(plan, sums, SUMS)) {
        out_print(out, ",\"recorded\":%" PRIu64 ",\"lost_records\":%" PRIu64, sums[RECORDED].value, sums[LOST].value);
        if (sums[NOT_CALLS].value || sums[NOT_WORK].value)
            out_print(out, ",\"not_written\":{\"calls\":%" PRIu64 ",\"gpu_work\":%" PRIu64 "}", sums[NOT_CALLS].value, sums[NOT_WORK].value);
        for (int s = NO_ROOM; s < SUMS; s++)
            if (sums[s].value) out_print(out, "%s\"%s\":%" PRIu64, full ? "," : ",\"no_room\":{", sums[s].path[1], sums[s].value), full = true;
        if (full) out_text(out, "}");
        for (int s = KERNELS; s < NO_ROOM; s++)
            out_print(out, "%s\"%s\":%" PRIu64, s == KERNELS ? ",\"gpu\":{" : ",", sums[s].path[1], sums[s].value);
        out_text(out, "}");
    }
    out_text(out, "}");
}

void trailer_write(struct out *out, const struct plan *plan)
{
    if (plan->alone) {
        cut_trailer_write(out, plan);
        return;
    }
    out_text(out, "\n],\"traceName\":\"custream merge\",\n");
    totals_write(out, plan);
    out_text(out, ",\n\"merged\":[");
    for (size_t i = 0; i < plan->file_count; i++) {
        const struct file *file = &plan->files[i];
        out_text(out, i ? ",\n{\"file\":" : "\n{\"file\":");
        text_write(out, file->shown);
        for (int k = 0; k < KEPTS; k++) {
            if (!file->kept[k]) continue;
            out_print(out, ",\"%s\":", kept_names[k]);
            out_text(out, file->kept[k]);
        }
        out_text(out, "}");
    }
    out_text(out, "]}\n");
}
