/* What the rows of a trace add up to: see check_totals.h. */
#include "tools/custream/check_totals.h"
#include "tools/custream/check.h"
#include "tools/custream/command.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A lane of the host process for what came after the file's end: no thread has a number with that bit. */
#define CUT_LANE(pid) ((pid) ^ UINT32_C(1) << 30)
/* Ids of async spans from here on are ranges of one thread that could not nest; those below are process ranges. */
#define CROSSING_SPANS (UINT64_C(1) << 40)

static const char *const work_categories[WORK_KINDS] = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "gpu_range", "overhead"};
enum { OVERHEAD = 5 };

static const cJSON *member(const cJSON *object, const char *name) { return cJSON_GetObjectItemCaseSensitive(object, name); }

static uint64_t natural(const cJSON *item) { return cJSON_IsNumber(item) && item->valuedouble > 0 && item->valuedouble < 0x1p64 ? (uint64_t)item->valuedouble : 0; }

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(word, words[i])) return true;
    return false;
}

void sums_init(struct sums *sums) { *sums = (struct sums){.host_from = INT64_MAX}; }

void sums_free(struct sums *sums)
{
    free(sums->works);
    free(sums->calls);
    free(sums->gaps);
}

/* --- which rows are records --- */

/* A range that lasts longer than a part is in each, and counts in one: where it ends if it was pushed, where it began if it is the process's. */
static bool annotation_counts(const struct row *row)
{
    static const char *const goes_on[] = {"goes on in the next part", "began in an earlier part, and goes on in the next"};
    const char *note = cJSON_GetStringValue(member(row->args, "cs.note"));
    if (row->phase == 'e' || row->phase == 'n') return false;
    if (!note) return true;
    const bool process_range = row->phase == 'b' && natural(member(member(row->object, "id2"), "local")) < CROSSING_SPANS;
    if (process_range) return strcmp(note, "began in an earlier part") != 0;
    return !is_one_of(note, goes_on, sizeof goes_on / sizeof *goes_on);
}

static bool is_record(const struct row *row)
{
    static const char *const slices[] = {"cuda_driver", "cuda_runtime", "cs_callback", "cs_policy"};
    if (!strcmp(row->category, "user_annotation")) return strchr("XBiIb", row->phase) && annotation_counts(row);
    return strchr("XB", row->phase) && is_one_of(row->category, slices, sizeof slices / sizeof *slices);
}

/* --- calls and work --- */

static void call_add(struct sums *sums, const struct row *row)
{
    const uint64_t correlation = natural(member(row->args, "correlation"));
    if (!strncmp(row->name, "cuStreamBeginCapture", 20) || !strncmp(row->name, "cuStreamEndCapture", 18)) sums->captures = true;
    if (row->ts < sums->host_from) sums->host_from = row->ts;
    if (!correlation) return;
    if (correlation > sums->correlation_max) sums->correlation_max = correlation;
    sums->calls = array_room(sums->calls, sums->call_count, &sums->call_capacity, sizeof *sums->calls);
    sums->calls[sums->call_count++] = (struct call){.correlation = correlation,
                                                    .ts = row->ts,
                                                    .end = row->end,
                                                    .tid = row->tid,
                                                    .stream = (uint32_t)natural(member(row->args, "cs.stream")),
                                                    .device = (uint16_t)natural(member(row->args, "cs.device")),
                                                    .launches = !strncmp(row->name, "cuLaunch", 8) && strncmp(row->name, "cuLaunchHost", 12)};
}

static void work_add(struct sums *sums, const struct row *row, int kind)
{
    const uint64_t correlation = natural(member(row->args, "correlation"));
    sums->kinds[kind]++;
    if (kind == OVERHEAD) return;
    if (!correlation) {
        sums->without_call++;
        return;
    }
    sums->works = array_room(sums->works, sums->work_count, &sums->work_capacity, sizeof *sums->works);
    sums->works[sums->work_count++] = (struct work){correlation, (uint64_t)row->pid << 32 | (uint32_t)natural(member(row->args, "stream"))};
}

static void gap_add(struct sums *sums, const struct row *row)
{
    sums->gaps = array_room(sums->gaps, sums->gap_count, &sums->gap_capacity, sizeof *sums->gaps);
    sums->gaps[sums->gap_count++] = (struct gap){row->ts, row->end, row->line};
}

/* --- losses --- */

static bool is_count(const cJSON *item)
{
    return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= 9007199254740992.0 && item->valuedouble == floor(item->valuedouble);
}

/* Calls and pieces of GPU work: a slice has one of the two, or both. */
static bool loss_add(struct check *check, const struct row *row)
{
    const cJSON *calls = member(row->args, "count"), *work = member(row->args, "gpu_work");
    const char *cause = cJSON_GetStringValue(member(row->args, "cause"));
    if ((!calls && !work) || (calls && !is_count(calls)) || (work && !is_count(work)))
        return check_breach(check, row->line, 10, "a cs_loss slice without an integer args.count or args.gpu_work");
    check->sums.lost_calls += natural(calls);
    check->sums.lost_work += natural(work);
    check->sums.tells_work |= work != NULL;
    check->sums.no_lane |= cause && !strncmp(cause, "more streams", 12);
    if (cause && row->tid == CUT_LANE(row->pid)) snprintf(check->sums.cut_cause, sizeof check->sums.cut_cause, "%s", cause);
    return true;
}

bool sums_row(struct check *check, const struct row *row)
{
    struct sums *sums = &check->sums;
    const bool slice = strchr("XB", row->phase);
    sums->recorded += is_record(row);
    if (!slice) return true;
    if (!strcmp(row->category, "cs_loss")) return loss_add(check, row);
    if (!strcmp(row->category, "cuda_driver")) sums->driver_calls++, call_add(sums, row);
    if (!strcmp(row->category, "cs_window")) gap_add(sums, row);
    if (!strcmp(row->category, "cs_stream") && !strcmp(row->name, "capture")) sums->captures = true;
    for (int kind = 0; kind < WORK_KINDS; kind++)
        if (!strcmp(row->category, work_categories[kind])) work_add(sums, row, kind);
    return true;
}
