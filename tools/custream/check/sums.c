/* Adds up the rows of a trace: struct sums in check.h. */
#include "tools/custream/check/check.h"

#include <yyjson.h>

#include "tools/custream/trace/format.h"

/* Async spans with lower ids are process ranges, others a thread's ranges that could not nest. */
#define CROSSING_SPANS (UINT64_C(1) << 40)

const struct work_kind work_kinds[WORK_KINDS] = {{"kernel", "kernels"}, {"gpu_memcpy", "copies"},
    {"gpu_memset", "memsets"}, {"gpu_graph", "graphs"}, {"gpu_range", "ranges"},
    {"overhead", "overhead"}};
enum { OVERHEAD = 5 };

/* Returns a member that is a natural number; 0: there is none. */
static uint64_t natural(yyjson_val *object, const char *name)
{
    uint64_t number = 0;
    natural_in(yyjson_obj_get(object, name), 0x1p63, &number);
    return number;
}

/* --- which rows are records --- */

/* Whether a row of a range counts. A range in several parts counts once: a thread's in the part
 * where it ends, a process's in the part where it begins. */
static bool annotation_counts(const struct event *event)
{
    if (event->phase == 'e' || event->phase == 'n') return false;
    const enum cs_cut cut = format_cut(yyjson_get_str(yyjson_obj_get(event->args, "cs.cut")),
        yyjson_get_str(yyjson_obj_get(event->args, "cs.note")));
    if (cut == CS_CUT_NONE) return true;
    const bool process_range = event->phase == 'b' && natural(yyjson_obj_get(event->object, "id2"),
                                                          "local") < CROSSING_SPANS;
    return process_range ? cut != CS_CUT_CONTINUED
                         : cut != CS_CUT_GOES_ON && cut != CS_CUT_CONTINUED_GOES_ON;
}

/* --- calls and work --- */

static void call_add(struct sums *sums, const struct event *event)
{
    const uint64_t correlation = natural(event->args, "correlation");
    if (!strncmp(event->name, "cuStreamBeginCapture", 20) ||
        !strncmp(event->name, "cuStreamEndCapture", 18))
        sums->captures = true;
    if (event->ts < sums->host_from) sums->host_from = event->ts;
    if (!correlation) return;
    if (correlation > sums->correlation_max) sums->correlation_max = correlation;
    array_add(sums->calls, sums->call_count, sums->call_capacity,
        (struct call){.correlation = correlation,
            .ts = event->ts,
            .end = event->end,
            .tid = event->tid,
            .stream = (uint32_t)natural(event->args, "cs.stream"),
            .device = (uint16_t)natural(event->args, "cs.device"),
            .launches =
                !strncmp(event->name, "cuLaunch", 8) && strncmp(event->name, "cuLaunchHost", 12)});
}

/* --- losses --- */

/* Adds the lost calls and pieces of GPU work of a cs_loss slice: one number or both. */
static bool loss_add(const struct event *event)
{
    struct sums *sums = &event->check->sums;
    yyjson_val *calls = yyjson_obj_get(event->args, "count"),
               *work = yyjson_obj_get(event->args, "gpu_work");
    uint64_t lost_calls = 0, lost_work = 0;
    if ((!calls && !work) || (calls && !natural_in(calls, 0x1p53, &lost_calls)) ||
        (work && !natural_in(work, 0x1p53, &lost_work)))
        return check_breach(event->check, event->line, 10,
            "a cs_loss slice without an integer args.count or args.gpu_work");
    sums->lost_calls += lost_calls;
    sums->lost_work += lost_work;
    sums->no_lane |= format_loss(yyjson_get_str(yyjson_obj_get(event->args, "cs.loss")),
                         yyjson_get_str(yyjson_obj_get(event->args, "cause"))) == CS_LOSS_NO_LANE;
    return true;
}

bool sums_row(const struct event *event)
{
    struct sums *sums = &event->check->sums;
    sums->recorded += !strcmp(event->category, "user_annotation")
                          ? strchr("XiIb", event->phase) && annotation_counts(event)
                          : event->phase == 'X' && ONE_OF(event->category, "cuda_driver",
                                                       "cuda_runtime", "cs_callback", "cs_policy");
    if (event->phase != 'X') return true;
    if (!strcmp(event->category, "cs_loss")) return loss_add(event);
    if (!strcmp(event->category, "cuda_driver")) sums->driver_calls++, call_add(sums, event);
    if (!strcmp(event->category, "cs_window"))
        array_add(sums->gaps, sums->gap_count, sums->gap_capacity,
            (struct gap){event->ts, event->end, event->line});
    if (!strcmp(event->category, "cs_stream") && !strcmp(event->name, "capture"))
        sums->captures = true;
    int kind = 0;
    while (kind < WORK_KINDS && strcmp(event->category, work_kinds[kind].category)) kind++;
    if (kind == WORK_KINDS) return true;
    const uint64_t correlation = natural(event->args, "correlation"),
                   lane = (uint64_t)event->pid << 32 | (uint32_t)natural(event->args, "stream");
    sums->kinds[kind]++;
    if (kind == OVERHEAD) return true;
    sums->without_call += !correlation;
    if (correlation)
        array_add(
            sums->works, sums->work_count, sums->work_capacity, (struct work){correlation, lane});
    return true;
}
