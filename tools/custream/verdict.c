#include "tools/custream/verdict.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static cs_u64 count(const cJSON *object, const char *name)
{
    const cJSON *item = member(object, name);
    return cJSON_IsNumber(item) && item->valuedouble > 0 ? (cs_u64)item->valuedouble : 0;
}

/* Of a part, what all parts together have. */
static cs_u64 in_all(const cJSON *totals, const char *all, const char *own)
{
    return member(totals, all) ? count(totals, all) : count(totals, own);
}

static cs_u64 operations(const cJSON *totals)
{
    static const char *const kinds[] = {"kernels", "copies", "memsets", "graphs", "ranges"};
    cs_u64 n = 0;
    if (member(totals, "gpu_work_in_all_parts")) return count(totals, "gpu_work_in_all_parts");
    for (size_t i = 0; i < CS_COUNT(kinds); i++) n += count(member(totals, "gpu"), kinds[i]);
    return n;
}

/* "A, B"; NULL: none. */
static const char *list_of(char *text, size_t size, const cJSON *names)
{
    size_t n = 0;
    const cJSON *one;
    cJSON_ArrayForEach(one, names) {
        const char *name = cJSON_GetStringValue(one);
        n = cs_verdict_put(
            text, size, n, "%s%s", one == names->child ? "" : ", ", name ? name : "?");
    }
    return n ? text : NULL;
}

/* Its rings were added, whole: where bytes had to be cut off, they are damaged. */
static bool has_all_calls(const cJSON *totals)
{
    const cJSON *recovered = member(totals, "recovered");
    return member(recovered, "rows") && !count(recovered, "cut_bytes") &&
           !member(recovered, "threads_not_kept") && !member(totals, "no_memory_for");
}

void verdict_read(struct cs_verdict *verdict, const cJSON *trailer, char *room, size_t size)
{
    const cJSON *totals = member(trailer, "totals"), *not_written = member(totals, "not_written"),
                *gpu = member(totals, "gpu");
    const char *source = cJSON_GetStringValue(member(gpu, "source")),
               *const untimed_in_all = "gpu_work_without_times_in_all_parts";
    *verdict = (struct cs_verdict){
        .calls = in_all(totals, "calls_in_all_parts", "calls"),
        .operations = operations(totals),
        .lost_calls = in_all(totals, "lost_in_all_parts", "lost_records"),
        .lost_work = member(totals, "gpu_work_lost_in_all_parts")
                         ? count(totals, "gpu_work_lost_in_all_parts")
                         : count(gpu, "lost") + count(not_written, "gpu_work"),
        .complete = !cJSON_IsFalse(member(totals, "complete")),
        .ended = cJSON_GetStringValue(member(totals, "ended")),
        .ended_by = cJSON_GetStringValue(member(totals, "ended_by")),
        .recovered = member(totals, "recovered"),
        .all_calls = has_all_calls(totals),
        .calls_not_written = count(not_written, "calls"),
        .work_not_written = count(not_written, "gpu_work"),
        .no_memory_for = list_of(room, size, member(totals, "no_memory_for")),
        .no_gpu_times = totals && (!source || !strcmp(source, "none")),
        .sample = count(gpu, "sample"),
        .untimed = member(totals, untimed_in_all)
                       ? count(totals, untimed_in_all)
                       : count(gpu, "launches_without_kernel") + count(gpu, "without_times"),
        .without_call = member(totals, "gpu_work_without_call_in_all_parts")
                            ? count(totals, "gpu_work_without_call_in_all_parts")
                            : count(gpu, "without_call"),
        .gpu_cause =
            source && !strcmp(source, "events") ? NULL : cJSON_GetStringValue(member(gpu, "cause")),
    };
    for (int i = 0; i < CS_NO_ROOM_KINDS; i++)
        verdict->no_room[i] = count(member(totals, "no_room"), cs_no_room_info[i].name);
    verdict->no_room[CS_NO_ROOM_FOR_OBJECTS] = count(totals, "untracked_objects");
}
