#include "tools/custream/verdict.h"
#include "shim/base/json.h"
#include "tools/custream/command.h"

const cJSON *member_of(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

double number_in(const cJSON *object, const char *name)
{
    const cJSON *item = member_of(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

double number_or_0(const cJSON *object, const char *name)
{
    const double n = number_in(object, name);
    return n < 0 ? 0 : n;
}

const char *text_member(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(member_of(object, name));
}

static cs_u64 count(const cJSON *object, const char *name)
{
    return (cs_u64)number_or_0(object, name);
}

/* Returns the count of all parts together if the trailer has it, else `own`, that of this file. */
static cs_u64 in_all(const cJSON *totals, const char *all, cs_u64 own)
{
    return member_of(totals, all) ? count(totals, all) : own;
}

/* Joins names: "A, B"; NULL: there are none. */
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

void verdict_read(struct cs_verdict *verdict, const cJSON *trailer, char *room, size_t size)
{
    const cJSON *totals = member_of(trailer, "totals"),
                *not_written = member_of(totals, "not_written"), *gpu = member_of(totals, "gpu");
    const cJSON *recovered = member_of(totals, "recovered");
    const char *source = text_member(gpu, "source");
    *verdict = (struct cs_verdict){
        .calls = in_all(totals, "calls_in_all_parts", count(totals, "calls")),
        .operations = in_all(totals, "gpu_work_in_all_parts",
            count(gpu, "kernels") + count(gpu, "copies") + count(gpu, "memsets") +
                count(gpu, "graphs") + count(gpu, "ranges")),
        .lost_calls = in_all(totals, "lost_in_all_parts", count(totals, "lost_records")),
        .lost_work = in_all(totals, "gpu_work_lost_in_all_parts",
            count(gpu, "lost") + count(not_written, "gpu_work")),
        .complete = !cJSON_IsFalse(member_of(totals, "complete")),
        .ended = text_member(totals, "ended"),
        .ended_by = text_member(totals, "ended_by"),
        .recovered = recovered,
        /* No call is missing if sound rings were added. Bytes are cut off only if the rings are
         * damaged. */
        .all_calls = member_of(recovered, "rows") && !count(recovered, "cut_bytes") &&
                     !member_of(recovered, "threads_not_kept") &&
                     !member_of(totals, "no_memory_for"),
        .calls_not_written = count(not_written, "calls"),
        .work_not_written = count(not_written, "gpu_work"),
        .no_memory_for = list_of(room, size, member_of(totals, "no_memory_for")),
        .no_gpu_times = totals && (!source || !strcmp(source, "none")),
        .sample = count(gpu, "sample"),
        .untimed = in_all(totals, "gpu_work_without_times_in_all_parts",
            count(gpu, "launches_without_kernel") + count(gpu, "without_times")),
        .without_call =
            in_all(totals, "gpu_work_without_call_in_all_parts", count(gpu, "without_call")),
        .gpu_cause = source && !strcmp(source, "events") ? NULL : text_member(gpu, "cause"),
    };
    for (int i = 0; i < CS_NO_ROOM_KINDS; i++)
        verdict->no_room[i] = count(member_of(totals, "no_room"), cs_no_room_info[i].name);
    verdict->no_room[CS_NO_ROOM_FOR_OBJECTS] = count(totals, "untracked_objects");
}

/* --- JSON that is printed --- */

cJSON *json_add(cJSON *object, const char *name, cJSON *item)
{
    if (!item || !cJSON_AddItemToObject(object, name, item)) out_of_memory();
    return item;
}

void json_add_number(cJSON *object, const char *name, double number)
{
    json_add(object, name, cJSON_CreateNumber(number));
}

cJSON *text_or_null(const char *text)
{
    return text && *text ? cJSON_CreateString(text) : cJSON_CreateNull();
}

void json_text_put(const char *text)
{
    const unsigned char *at = (const unsigned char *)text, *const end = at + strlen(text);
    while (at < end) {
        const int length = cs_utf8_length(at, end);
        if (length) fwrite(at, 1, (size_t)length, stdout);
        else fputs("\xef\xbf\xbd", stdout);
        at += length ? length : 1;
    }
}

void json_row_put(const struct json_member *members, size_t count)
{
    cJSON *row = cJSON_CreateObject();
    for (size_t i = 0; i < count; i++) json_add(row, members[i].name, members[i].value);
    char *text = cJSON_PrintUnformatted(row);
    if (!text) out_of_memory();
    json_text_put(text);
    cJSON_free(text);
    cJSON_Delete(row);
}
