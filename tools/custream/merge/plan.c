#include "tools/custream/merge/plan.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <yyjson.h>

#include "shim/base/lane.h"
#include "tools/custream/command.h"
#include "tools/custream/merge/window.h"
#include "tools/custream/lanes.h"
#include "tools/custream/trace/foreign.h"

static const char NAME[] = "custream merge";

const char *const kept_names[KEPTS] = {"distributedInfo", "metadata", "totals", "deviceProperties",
    "defaultStreamAudit", "neverDestroyed"};

static __attribute__((format(printf, 3, 4))) bool refuse(
    const struct plan *plan, const struct file *file, const char *format, ...)
{
    struct refusal own;
    char *why = plan->refusals ? plan->refusals[file->given].why : own.why;
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof own.why, format, args);
    va_end(args);
    if (!plan->refusals) complain(NAME, "%s: %s", file->shown, why);
    return false;
}

/* --- ids --- */

static const uint64_t range_begins[ID_RANGES + 1] = {0, UINT64_C(1) << 40, UINT64_C(1) << 41,
    UINT64_C(1) << 42, UINT64_C(1) << 43, UINT64_C(1) << 44, UINT64_C(1) << 53};

static int id_range(uint64_t id)
{
    int range = 0;
    while (range < ID_RANGES - 1 && id >= range_begins[range + 1]) range++;
    return range;
}

bool id_merged(const struct process *process, uint64_t id, uint64_t *merged)
{
    const int range = id_range(id);
    *merged = id + process->ids[range];
    return *merged < range_begins[range + 1];
}

/* --- one file --- */

const struct group *group_of(const struct file *file, yyjson_val *pid)
{
    const uint64_t key = value_hash(0, pid);
    for (size_t i = 0; i < file->group_count; i++)
        if (file->groups[i].key == key) return &file->groups[i];
    return NULL;
}

/* Writes the value as JSON; "": too long, or a list or an object. */
static void scalar_put(char to[GROUP_TEXT], yyjson_val *value)
{
    char *text = yyjson_is_ctn(value) ? NULL : value_json(value);
    snprintf(to, GROUP_TEXT, "%s", text && strlen(text) < GROUP_TEXT ? text : "");
    free(text);
}

/* Finds or adds the row's group. NULL: its pid is not valid. Rows without a pid share a group. */
static struct group *group_at(struct file *file, const struct merge_row *row)
{
    yyjson_val *pid = row->at[ROW_PID];
    struct group *group = (struct group *)group_of(file, pid),
                 made = {.key = value_hash(0, pid), .tid = "1"};
    if (group) return group;
    if (pid) scalar_put(made.pid, pid);
    if (pid && !*made.pid) return NULL;
    if (row->at[ROW_TID]) scalar_put(made.tid, row->at[ROW_TID]);
    if (!*made.tid) strcpy(made.tid, "1");
    made.has_number = !yyjson_is_str(pid) && value_natural(pid, &made.number);
    file->groups =
        array_room(file->groups, file->group_count, &file->group_capacity, sizeof *group);
    group = &file->groups[file->group_count++];
    *group = made;
    return group;
}

static void id_seen(struct file *file, yyjson_val *value)
{
    uint64_t id;
    if (!value_natural(value, &id)) return;
    const int range = id_range(id);
    const uint64_t count = id - range_begins[range] + 1;
    if (count > file->ids[range]) file->ids[range] = count;
}

static bool survey_row(void *of, struct json *json, char error[256])
{
    struct file *file = of;
    struct merge_row row;
    yyjson_val *waits;
    size_t i, count;
    int64_t ts, duration = 0;
    file->rows++;
    const bool good = row_read(&row, json->value);
    struct group *group = good ? group_at(file, &row) : NULL;
    if (!group) {
        snprintf(error, 256, "event %llu has %s", (unsigned long long)file->rows,
            good ? "no pid that is one" : "no ph, or a member twice");
        return false;
    }
    id_seen(file, row.at[ROW_ID]);
    id_seen(file, row.at[ROW_BIND_ID]);
    id_seen(file, row.at[ROW_CORRELATION]);
    yyjson_arr_foreach(row.at[ROW_WAIT_IDS], i, count, waits) id_seen(file, waits);
    if (file->range && yyjson_equals_str(row.at[ROW_CAT], "user_annotation") &&
        yyjson_equals_str(row.at[ROW_NAME], file->range)) {
        file->range_crosses |= row.ph == 'b';
        if (row.ph == 'X' && value_ns(row.at[ROW_TS], &ts) &&
            value_ns(row.at[ROW_DUR], &duration) &&
            (file->range_until < file->range_from || ts + duration > file->range_until)) {
            file->range_from = ts;
            file->range_until = ts + duration;
        }
        duration = 0;
    }
    if (row.ph == 'M') {
        const bool name = yyjson_equals_str(row.at[ROW_NAME], "process_name");
        yyjson_val *value = row.at[name ? ROW_ARGS_NAME : ROW_ARGS_LABELS];
        char **to = name ? &group->name : &group->labels;
        if (!name && !yyjson_equals_str(row.at[ROW_NAME], "process_labels")) return true;
        if (!yyjson_is_str(value)) return true;
        free(*to);
        *to = value_json(value);
        return true;
    }
    if (!value_ns(row.at[ROW_TS], &ts) ||
        (row.at[ROW_DUR] && !value_ns(row.at[ROW_DUR], &duration))) {
        snprintf(
            error, 256, "event %llu has no time that is a number", (unsigned long long)file->rows);
        return false;
    }
    if (file->first > file->last) file->first = file->last = ts;
    if (ts < file->first) file->first = ts;
    if (ts + duration > file->last) file->last = ts + duration;
    return true;
}

static bool survey_member(void *of, struct json *json, char error[256])
{
    struct file *file = of;
    (void)error;
    const char *number = yyjson_get_raw(json->value);
    if (!strcmp(json->name, "baseTimeNanoseconds") && number && strlen(number) < 20 &&
        !number[strspn(number, "0123456789")]) {
        file->has_base = true;
        file->base = strtoll(number, NULL, 10);
    }
    file->format = json->format;
    if (!strcmp(json->name, "part")) value_natural(json->value, &file->part);
    for (int k = 0; k < KEPTS; k++) {
        if (strcmp(json->name, kept_names[k])) continue;
        yyjson_doc_free(file->kept[k]);
        file->kept[k] = value_copy(json->value);
    }
    return true;
}

yyjson_val *kept_at(const struct file *file, enum kept kept, const char *path)
{
    return yyjson_doc_ptr_get(file->kept[kept], path);
}

static void file_settle(struct file *file)
{
    yyjson_val *complete = kept_at(file, KEPT_TOTALS, "/complete");
    file->ours = metadata_is_ours(kept_at(file, KEPT_METADATA, ""));
    file->has_error =
        value_natural(kept_at(file, KEPT_METADATA, "/clock_error_ns"), &file->error_ns);
    file->has_rank = value_natural(kept_at(file, KEPT_INFO, "/rank"), &file->rank);
    if (!value_natural(kept_at(file, KEPT_INFO, "/world_size"), &file->world)) file->world = 1;
    file->has_totals = file->ours && complete;
    file->complete =
        !file->cut && !yyjson_is_false(complete) && !kept_at(file, KEPT_TOTALS, "/ended");
    for (size_t i = 0; i < file->group_count; i++) {
        struct group *group = &file->groups[i];
        const char *called[] = {group->labels, group->name};
        uint32_t gpu = TRACE_NO_GPU;
        if (!group->has_number) continue;
        for (int n = 0; n < 2 && gpu == TRACE_NO_GPU; n++)
            gpu =
                gpu_of_process(file->ours, (int64_t)group->number, called[n] ? called[n] + 1 : "");
        group->gpu =
            gpu != TRACE_NO_GPU &&
            group->number < MERGED_GPUS; /* a merged trace's GPUs count as processes here */
        group->ordinal = group->gpu ? gpu : 0;
        if (!group->gpu && group->name && !file->pid) file->pid = group->number;
    }
}

static bool survey(const struct plan *plan, struct file *file)
{
    const struct source_sink sink = {.of = file, .row = survey_row, .member = survey_member};
    char error[256];
    struct stat about;
    file->last = -1;
    if (!stat(file->path, &about) && !S_ISREG(about.st_mode) &&
        !S_ISDIR(about.st_mode)) /* the second reading of a pipe would wait for ever */
        return refuse(plan, file, "no regular file, and it is to be read twice");
    const enum json_step end = source_read(file->path, file->skip_to, &sink, error);
    if (end == JSON_BROKEN) return refuse(plan, file, "%s", error);
    file->cut = end == JSON_CUT;
    if (file->cut)
        complain(NAME,
            "%s: truncated, as when a process is killed while it writes; merged are the %llu "
            "events before that",
            file->shown, (unsigned long long)file->rows);
    if (!stat(file->path, &about)) file->device = about.st_dev, file->inode = about.st_ino;
    file_settle(file);
    return true;
}

/* --- files together --- */

static bool same_process(const struct file *a, const struct file *b)
{
    return a->ours && b->ours && a->has_base && b->has_base && a->base == b->base &&
           a->pid == b->pid;
}

/* Whether the file may be merged with the files before it. */
static bool file_fits(const struct plan *plan, const struct file *file)
{
    for (const struct file *a = plan->files; a < file; a++) {
        if (a->device == file->device && a->inode == file->inode)
            return refuse(plan, file, "the same file as %s", a->shown);
        if (same_process(a, file) && (!a->part || a->part == file->part))
            return refuse(plan, file, "the same trace as %s, of process %llu", a->shown,
                (unsigned long long)file->pid);
    }
    if (!plan->align_start && !file->has_base && (plan->given > 1 || plan->wall))
        return refuse(plan, file,
            "no baseTimeNanoseconds, so nothing says when it was; --align=start lets all begin at "
            "0");
    const int64_t ahead =
        file->base -
        (int64_t)time(NULL) *
            1000000000; /* within TIME_MAX / 2 of now, two processes are at most TIME_MAX apart */
    if (plan->refusals && plan->given > 1 && (ahead > TIME_MAX / 2 || ahead < -TIME_MAX / 2))
        return refuse(plan, file, "it began more than 36 years before now, or after");
    return true;
}

static void file_free(struct file *file)
{
    for (size_t g = 0; g < file->group_count; g++)
        free(file->groups[g].name), free(file->groups[g].labels);
    for (int k = 0; k < KEPTS; k++) yyjson_doc_free(file->kept[k]);
    free(file->groups);
}

static void file_leave_out(struct plan *plan, size_t i)
{
    file_free(&plan->files[i]);
    memmove(&plan->files[i], &plan->files[i + 1], (--plan->file_count - i) * sizeof *plan->files);
}

static void processes_find(struct plan *plan)
{
    plan->process_count = 0;
    plan->ranked = false;
    for (size_t i = 0; i < plan->file_count; i++) {
        struct file *file = &plan->files[i];
        file->process = plan->process_count;
        for (size_t other = 0; other < i && file->process == plan->process_count; other++)
            if (same_process(&plan->files[other], file)) file->process = plan->files[other].process;
        struct process *process = &plan->processes[file->process];
        if (file->process == plan->process_count) {
            plan->process_count++;
            *process = (struct process){.order = i,
                .base = file->base,
                .rank = file->rank,
                .pid = file->pid,
                .first = INT64_MAX};
        }
        if (file->first <= file->last && file->first < process->first) process->first = file->first;
        if (file->error_ns > process->error_ns) process->error_ns = file->error_ns;
        process->has_error |= file->has_error;
        for (int range = 0; range < ID_RANGES; range++)
            if (file->ids[range] > process->ids[range]) process->ids[range] = file->ids[range];
        plan->ranked |= file->world > 1 || (file->has_rank && plan->files[0].has_rank &&
                                               file->rank != plan->files[0].rank);
    }
}

static const struct plan *sorted; /* for compare_processes(): qsort passes no further argument */

COMPARES(compare_processes, struct process,
    (sorted->ranked ? ORDER(a->rank, b->rank) : 0)
        ?: (sorted->align_start ? 0 : ORDER(a->base, b->base)) ?: ORDER(a->order, b->order))

/* Sorts by process, then by part. */
COMPARES(compare_files, struct file, ORDER(a->process, b->process) ?: ORDER(a->part, b->part))

static void processes_sort(struct plan *plan)
{
    size_t *found = array_zeros(plan->file_count, sizeof *found);
    for (size_t i = 0; i < plan->file_count; i++)
        found[i] = plan->processes[plan->files[i].process].order;
    sorted = plan;
    qsort(plan->processes, plan->process_count, sizeof *plan->processes, compare_processes);
    for (size_t i = 0; i < plan->file_count; i++)
        for (size_t p = 0; p < plan->process_count; p++)
            if (plan->processes[p].order == found[i]) plan->files[i].process = p;
    qsort(plan->files, plan->file_count, sizeof *plan->files, compare_files);
    free(found);
}

/* Returns the process that has the most ids in a range of ids that is too small for all processes;
 * process_count: no range is too small. */
static size_t ids_most(const struct plan *plan)
{
    for (int range = 0; range < ID_RANGES; range++) {
        uint64_t sum = 0;
        size_t most = 0;
        for (size_t p = 0; p < plan->process_count; p++) {
            sum += plan->processes[p].ids[range];
            if (plan->processes[p].ids[range] > plan->processes[most].ids[range]) most = p;
        }
        if (sum > range_begins[range + 1] - range_begins[range]) return most;
    }
    return plan->process_count;
}

static int64_t ahead_at(const struct process *process, int64_t ts)
{
    return process->clock ? clock_ahead(process->clock, process->base + ts) : 0;
}
int64_t time_merged(const struct process *process, int64_t ts)
{
    return ts + process->shift - ahead_at(process, ts);
}

/* Gives each process the clock of its rank. */
static bool clocks_settle(struct plan *plan)
{
    for (size_t i = 0; i < plan->file_count && plan->clocks.count; i++) {
        const struct file *file = &plan->files[i];
        struct process *process = &plan->processes[file->process];
        if (!file->has_rank)
            return complained(NAME, "%s: says no rank, and --clocks goes by it", file->shown);
        const bool settled = process->clock;
        process->clock = clock_of(&plan->clocks, file->rank);
        if (!process->clock)
            return complained(NAME, "%s: --clocks says nothing of rank %llu", file->shown,
                (unsigned long long)file->rank);
        if (settled) continue;
        process->error_ns += (uint64_t)process->clock->error_ns + 1;
        process->has_error &= process->clock->known;
    }
    return true;
}

static bool times_settle(struct plan *plan)
{
    plan->base = plan->align_start ? 0 : INT64_MAX;
    plan->begin = INT64_MAX;
    for (size_t p = 0; p < plan->process_count && !plan->align_start; p++) {
        const int64_t base = plan->processes[p].base - ahead_at(&plan->processes[p], 0);
        if (base < plan->base) plan->base = base;
    }
    for (size_t p = 0; p < plan->process_count; p++) {
        struct process *process = &plan->processes[p];
        if (process->first == INT64_MAX) process->first = 0;
        if (!plan->align_start && process->base - plan->base > TIME_MAX) {
            size_t i = 0;
            while (plan->files[i].process != p) i++;
            return complained(NAME,
                "%s: began more than 73 years after the first trace; --align=start lets all begin "
                "at 0",
                plan->files[i].shown);
        }
        process->shift = plan->align_start ? -process->first : process->base - plan->base;
        if (time_merged(process, process->first) < plan->begin)
            plan->begin = time_merged(process, process->first);
    }
    return true;
}

/* --- names and pids --- */

/* Returns how many bytes of a JSON string are shown, counted from behind its first quote: at most
 * 80, with no character or escape cut in half. */
static int label_length(const char *name)
{
    enum { SHOWN = 80 };
    int length = (int)strlen(name) - 2;
    if (length <= SHOWN) return length;
    const char *escape = memchr(name, '\\', SHOWN + 1);
    for (length = SHOWN; ((unsigned char)name[1 + length] & 0xc0) == 0x80; length--) continue;
    return escape && escape - name - 1 < length ? (int)(escape - name - 1) : length;
}

/* Labels each process "rank 3", or with its program's name. Processes with the same label get their
 * pid behind it, and if labels are still the same, their place. */
static void labels_settle(struct plan *plan)
{
    for (size_t p = 0; p < plan->process_count; p++) {
        struct process *process = &plan->processes[p];
        const char *name = "\"process\""; /* the host process's name */
        for (size_t i = plan->file_count; i-- > 0;)
            for (size_t g = plan->files[i].process == p ? plan->files[i].group_count : 0; g-- > 0;)
                if (!plan->files[i].groups[g].gpu && plan->files[i].groups[g].name)
                    name = plan->files[i].groups[g].name;
        if (plan->ranked)
            snprintf(process->label, sizeof process->label, "rank %llu",
                (unsigned long long)process->rank);
        else snprintf(process->label, sizeof process->label, "%.*s", label_length(name), name + 1);
    }
    for (int more = 0; more < 2; more++) {
        for (size_t p = 0; p < plan->process_count; p++) {
            plan->processes[p].twin = false;
            for (size_t other = 0; other < plan->process_count; other++)
                plan->processes[p].twin |=
                    other != p && !strcmp(plan->processes[p].label, plan->processes[other].label);
        }
        for (size_t p = 0; p < plan->process_count; p++) {
            struct process *process = &plan->processes[p];
            const size_t length = strlen(process->label);
            if (!process->twin) continue;
            if (more)
                snprintf(process->label + length, sizeof process->label - length, " #%zu", p + 1);
            else
                snprintf(process->label + length, sizeof process->label - length, " %llu",
                    (unsigned long long)process->pid);
        }
    }
}

/* Sets the pid of each group. The pid of a GPU is merged_gpu_pid(), or with `alone` the GPU's
 * ordinal. A process keeps its own pid, in all its parts, if that is a number from CS_GPU_PIDS to
 * below MERGED_OTHERS and no group before it has that number. Other groups get numbers from
 * MERGED_OTHERS on. */
static void pids_settle(struct plan *plan)
{
    /* taken: the pids in use; known: the pid that a group got, by process and group */
    struct numbers taken = {0}, known = {0};
    uint32_t next = MERGED_OTHERS;
    for (size_t i = 0; i < plan->file_count; i++)
        for (size_t g = 0; g < plan->files[i].group_count; g++) {
            struct group *group = &plan->files[i].groups[g];
            const uint64_t pid = group->number, process = plan->files[i].process;
            uint32_t *merged =
                numbers_at(&known, group->key ^ process * UINT64_C(0x9e3779b97f4a7c15), 0);
            const bool keeps = group->has_number && pid >= CS_GPU_PIDS && pid < MERGED_OTHERS &&
                               !numbers_get(&taken, pid, 0);
            if (group->gpu)
                *merged = plan->alone ? group->ordinal
                                      : merged_gpu_pid((uint32_t)process, group->ordinal);
            else if (!*merged) *merged = keeps ? (uint32_t)pid : next++;
            group->merged = *merged;
            uint32_t *met = numbers_at(&taken, *merged, 0);
            group->first = !*met;
            *met = 1;
        }
    numbers_free(&taken);
    numbers_free(&known);
}

bool plan_make(struct plan *plan, char **paths, size_t count)
{
    enum { PROCESSES_MAX = 100000 };
    if (count > PROCESSES_MAX) return complained(NAME, "more than 100,000 files");
    plan->files = calloc(count, sizeof *plan->files);
    plan->processes = calloc(count, sizeof *plan->processes);
    if (!plan->files || !plan->processes) out_of_memory();
    plan->given = count;
    for (size_t i = 0; i < count; i++) {
        struct file *file = &plan->files[plan->file_count++];
        *file = (struct file){.path = paths[i],
            .shown = plan->shown ? plan->shown[i] : paths[i],
            .given = i,
            .range = plan->range,
            .skip_to = plan->skip_to,
            .range_until = -1};
        if (survey(plan, file) && file_fits(plan, file)) continue;
        if (!plan->refusals) return false;
        file_leave_out(plan, plan->file_count - 1);
    }
    processes_find(plan);
    for (size_t most; plan->refusals && (most = ids_most(plan)) < plan->process_count;
        processes_find(plan))
        for (size_t i = plan->file_count; i-- > 0;) {
            if (plan->files[i].process != most) continue;
            refuse(plan, &plan->files[i],
                "its ids, and those of the others, are more than fit a trace");
            file_leave_out(plan, i);
        }
    if (!plan->file_count) return false;
    processes_sort(plan);
    uint64_t next[ID_RANGES] = {0}; /* what to add to a process's ids: the counts of those before */
    for (size_t p = 0; p < plan->process_count; p++)
        for (int range = 0; range < ID_RANGES; range++) {
            const uint64_t used = plan->processes[p].ids[range];
            plan->processes[p].ids[range] = next[range];
            next[range] += used;
        }
    if (!clocks_settle(plan) || !times_settle(plan)) return false;
    if (plan->range && !window_of_range(plan)) return false;
    for (int i = 0; i < 2 && plan->wall; i++) {
        plan->window[i] -= plan->base + plan->begin;
        if (plan->window[i] < 0) plan->window[i] = 0;
    }
    if (!plan->wall && plan->windowed && !window_fits(plan)) return false;
    plan->alone = (plan->wall || plan->range) && plan->process_count == 1 && plan->files[0].ours;
    labels_settle(plan);
    pids_settle(plan);
    return true;
}

void plan_free(struct plan *plan)
{
    for (size_t i = 0; i < plan->file_count; i++) file_free(&plan->files[i]);
    clocks_free(&plan->clocks);
    free(plan->files);
    free(plan->processes);
}
