/* Judges one event alone, and keeps what this folder's other files need to judge several events
 * together. */
#include "tools/custream/check/check.h"
#include "tools/custream/lanes.h"
#include "tools/custream/trace/value.h"

#include <math.h>
#include <yyjson.h>

/* Beyond 2^53 (in ns 104 days) a reader in JavaScript cannot tell two integers apart. */
#define EXACT_MAX 9007199254740992.0

/* The lanes on which rows of a category may lie. */
enum place { ANYWHERE, ON_HOST, ON_GPU, ON_SYNC_LANE };
static const struct {
    const char *name;
    enum place place;
} categories[] = {
    {"cuda_driver", ON_HOST},
    {"cuda_runtime", ON_HOST},
    {"kernel", ON_GPU},
    {"gpu_memcpy", ON_GPU},
    {"gpu_memset", ON_GPU},
    {"gpu_graph", ON_GPU},
    {"gpu_range", ON_GPU},
    {"cuda_sync", ON_SYNC_LANE},
    {"cuda_event", ANYWHERE},
    {"overhead", ANYWHERE},
    {"cs_policy", ANYWHERE},
    {"cs_stream", ANYWHERE},
    {"user_annotation", ANYWHERE},
    {"cs_callback", ANYWHERE},
    {"cs_loss", ANYWHERE},
    {"cs_dep", ANYWHERE},
    {"cs_peer", ANYWHERE},
    {"cs_audit", ANYWHERE},
    {"cs_window", ON_HOST},
};

#define BREACH(event, rule, ...) check_breach((event)->check, (event)->line, rule, __VA_ARGS__)

/* Returns the text of a member; "": there is none. */
static const char *text_in(yyjson_val *object, const char *name)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, name));
    return text ? text : "";
}

bool natural_in(yyjson_val *value, double max, uint64_t *number)
{
    const double n = yyjson_is_raw(value) ? strtod(yyjson_get_raw(value), NULL) : -1;
    if (!(n >= 0 && n <= max && n == floor(n))) return false;
    *number = (uint64_t)n;
    return true;
}

static bool is_number(yyjson_val *value, uint32_t number)
{
    uint64_t n;
    return natural_in(value, UINT32_MAX, &n) && n == number;
}

static int name_compare(const void *left, const void *right)
{
    return strcmp(
        yyjson_get_str(*(yyjson_val *const *)left), yyjson_get_str(*(yyjson_val *const *)right));
}

/* Judges that no name stands twice in an object: readers differ in which of the two they take. */
static bool judge_members(const struct event *event, yyjson_val *object)
{
    enum { FEW = 64 };
    const size_t count = yyjson_obj_size(object);
    yyjson_val *few[FEW], **names = count > FEW ? array_zeros(count, sizeof *names) : few, *name,
                          *value;
    const char *twice = NULL;
    size_t i, n;
    yyjson_obj_foreach(object, i, n, name, value) names[i] = name;
    if (count) qsort(names, count, sizeof *names, name_compare);
    for (i = 1; i < count && !twice; i++)
        if (yyjson_equals(names[i - 1], names[i])) twice = yyjson_get_str(names[i]);
    const bool good = !twice || BREACH(event, 0, "\"%s\" stands twice in one object", twice);
    if (names != few) free(names);
    return good;
}

/* Reads microseconds with at most three decimals, digit by digit: a double has too few digits. */
static bool judge_time(const struct event *event, const char *name, int64_t *ns)
{
    yyjson_val *value = yyjson_obj_get(event->object, name);
    const char *text = yyjson_get_raw(value), *point = text ? strchr(text, '.') : NULL;
    if (!value) return BREACH(event, 1, "no %s", name);
    if (!text) return BREACH(event, 1, "%s is not a number", name);
    if (*text == '-') return BREACH(event, 1, "%s is negative", name);
    if (!value_ns(value, ns))
        return BREACH(event, 1, "%s is not finite, or longer than 73 years", name);
    if (strpbrk(text, "eE")) {
        const double us = strtod(text, NULL);
        if (us * 1000 > EXACT_MAX)
            return BREACH(event, 1, "%s is beyond 104 days, and not written out", name);
        *ns = llrintl((long double)us * 1000);
        return (double)*ns / 1000 == us ||
               BREACH(event, 1, "%s has more than three decimals", name);
    }
    return !point || strlen(point) <= 4 || !point[4 + strspn(point + 4, "0")] ||
           BREACH(event, 1, "%s has more than three decimals", name);
}

static bool judge_id(const struct event *event, const char *name, uint32_t *id)
{
    yyjson_val *value = yyjson_obj_get(event->object, name);
    uint64_t number;
    if (!natural_in(value, UINT32_MAX, &number))
        return BREACH(
            event, 2, "%s is %s", name, value ? "not a 32-bit unsigned integer" : "missing");
    *id = (uint32_t)number;
    return true;
}

static bool judge_metadata(struct event *event)
{
    if (!strcmp(event->name, "process_name") || !strcmp(event->name, "thread_name")) {
        if (!yyjson_is_str(yyjson_obj_get(event->args, "name")))
            return BREACH(event, 3, "%s without args.name", event->name);
    }
    if (strcmp(event->name, "thread_name")) return true;
    struct lane *lane = lane_of(event->check, event->pid, event->tid);
    /* A lane with a name may get a better name later. */
    if (lane->first_event && !lane->named)
        return BREACH(event, 3, "pid %u tid %u gets its name after its first event, on line %llu",
            lane->pid, lane->tid, (unsigned long long)lane->first_event);
    lane->named = true;
    yyjson_val *stream = yyjson_obj_get(event->args, "cs.stream");
    const uint32_t of = cs_lane_stream_of(event->tid);
    lane->with_stream = stream != NULL;
    if (stream && !is_number(stream, of < CS_LANE_LEGACY ? 0 : of))
        return BREACH(event, 3, "args.cs.stream is not the stream of tid %u", event->tid);
    return true;
}

static bool judge_gpu_row(const struct event *event)
{
    yyjson_val *device = yyjson_obj_get(event->args, "device"),
               *stream = yyjson_obj_get(event->args, "stream");
    if (device && !is_number(device, event->lane->gpu))
        return BREACH(event, 2, "args.device is not the pid: a GPU's pid is its ordinal");
    if (stream && !is_number(stream, lane_stream(event->tid, event->lane->with_stream)))
        return BREACH(event, 3, "args.stream is not the lane's stream, %u",
            lane_stream(event->tid, event->lane->with_stream));
    if (!strcmp(event->category, "gpu_memcpy") && strncmp(event->name, "Memcpy ", 7))
        return BREACH(event, 8, "a gpu_memcpy is named \"Memcpy ...\"");
    if (!strcmp(event->category, "gpu_memset") && strncmp(event->name, "Memset ", 7))
        return BREACH(event, 8, "a gpu_memset is named \"Memset ...\"");
    return true;
}

static bool judge_place(const struct event *event, enum place place)
{
    const bool on_gpu = event->lane->gpu != TRACE_NO_GPU;
    if (place == ON_HOST && on_gpu)
        return BREACH(event, 2, "%s on pid %u: below %u are the GPUs", event->category, event->pid,
            CS_GPU_PIDS);
    if (place == ON_GPU && !on_gpu)
        return BREACH(
            event, 2, "%s on pid %u: a GPU's pid is its ordinal", event->category, event->pid);
    if (place == ON_SYNC_LANE &&
        !(on_gpu && event->lane->with_stream && cs_lane_kind_of(event->tid) == CS_LANE_SYNC))
        return BREACH(event, 5,
            "cuda_sync on pid %u tid %u: synchronisation goes to the stream's lane for it, its "
            "number * %u + %u",
            event->pid, event->tid, CS_LANE_STEP, cs_lane_tid(0, CS_LANE_SYNC, 0));
    if (place == ON_GPU) return judge_gpu_row(event);
    if (yyjson_obj_get(event->args, "stream"))
        return BREACH(event, 7,
            "args.stream on a %s row: only kernel, gpu_memcpy and gpu_memset have it",
            event->category);
    return true;
}

static bool judge_category(const struct event *event)
{
    const bool in_flow = strchr("stf", event->phase);
    if (!*event->category) return BREACH(event, 8, "no cat");
    size_t c = 0;
    while (
        c < sizeof categories / sizeof *categories && strcmp(categories[c].name, event->category))
        c++;
    if (c == sizeof categories / sizeof *categories)
        return BREACH(event, 8, "unknown cat \"%.60s\"", event->category);
    if (in_flow && strcmp(event->category, "cs_dep"))
        return BREACH(event, 8, "cat \"%s\" is none of flows", event->category);
    if (!strcmp(event->category, "cs_audit")) {
        const char *verdict = text_in(event->args, "verdict");
        const bool hazard = !strcmp(verdict, "hazard");
        if (!hazard && strcmp(verdict, "nobody needed it"))
            return BREACH(event, 8, "a cs_audit row without a known args.verdict");
        event->check->hazards += hazard;
    }
    return in_flow || judge_place(event, categories[c].place);
}

static bool flow_add(const struct event *event, uint64_t id, char phase, bool bound)
{
    struct check *check = event->check;
    array_add(check->flows, check->flow_count, check->flow_capacity,
        (struct flow_end){event->ts, id, event->line, event->lane, phase, bound});
    return true;
}

static bool judge_flow(const struct event *event)
{
    uint64_t id;
    if (!natural_in(yyjson_obj_get(event->object, "id"), EXACT_MAX, &id))
        return BREACH(event, 6, "a flow's id is an integer below 2^53");
    if (event->phase == 'f' && strcmp(text_in(event->object, "bp"), "e"))
        return BREACH(event, 6, "f without \"bp\":\"e\"");
    return flow_add(event, id, event->phase, false);
}

/* Judges a slice with a bind_id: an arrow begins (flow_out) or ends (flow_in) at it. */
static bool judge_bound(const struct event *event)
{
    yyjson_val *const object = event->object, *bound = yyjson_obj_get(object, "bind_id");
    yyjson_val *begins = yyjson_obj_get(object, "flow_out"),
               *ends = yyjson_obj_get(object, "flow_in");
    const bool out = yyjson_is_true(begins), in = yyjson_is_true(ends);
    uint64_t id;
    if (!bound && !begins && !ends) return true;
    if (!natural_in(bound, EXACT_MAX, &id))
        return BREACH(event, 6, "a bind_id is an integer below 2^53");
    if (in == out)
        return BREACH(event, 6, "with a bind_id goes either \"flow_out\":true or \"flow_in\":true");
    event->check->sums.arrows += in;
    return flow_add(event, id, in ? 'f' : 's', true);
}

static bool clock_add(const struct event *event, const char *name, int64_t at)
{
    yyjson_val *value = yyjson_obj_get(event->args, name);
    struct lane *lane = event->lane;
    int64_t cpu;
    if (!value) return true;
    if (!value_ns(value, &cpu) || cpu < 0) return BREACH(event, 13, "args.%s is no time", name);
    array_add(lane->readings, lane->reading_count, lane->reading_capacity,
        (struct reading){at, cpu, event->end, event->line});
    return true;
}

static bool judge_slice(struct event *event)
{
    struct lane *lane = event->lane;
    int64_t duration;
    event->check->slices++;
    if (!judge_time(event, "dur", &duration)) return false;
    if (duration < 1) return BREACH(event, 1, "dur is below 0.001");
    event->end = event->ts + duration;
    array_add(lane->slices, lane->count, lane->capacity,
        (struct slice){event->ts, event->end, event->line});
    return clock_add(event, "cpu_us", event->ts) && clock_add(event, "cpu_end_us", event->end) &&
           judge_bound(event);
}

static bool async_add(const struct event *event, uint64_t span, char phase, bool life)
{
    struct check *check = event->check;
    array_add(check->asyncs, check->async_count, check->async_capacity,
        (struct async_end){event->ts, span, event->line, phase, life});
    return true;
}

/* Judges an end of an async span. Its id is a number or a string, in `id` or in id2. */
static bool judge_async(const struct event *event)
{
    yyjson_val *id = yyjson_obj_get(event->object, "id"),
               *scoped = yyjson_obj_get(event->object, "id2");
    uint64_t number;
    if (scoped) id = yyjson_obj_get(scoped, yyjson_obj_get(scoped, "local") ? "local" : "global");
    if (!natural_in(id, EXACT_MAX, &number) && !yyjson_is_str(id))
        return BREACH(event, 4, "an async %c without id", event->phase);
    if (event->phase == 'n') return true;
    const uint64_t span =
        value_hash(value_hash(value_hash(event->pid, yyjson_obj_get(event->object, "cat")),
                       yyjson_obj_get(event->object, "name")),
            id);
    return async_add(event, span, event->phase, false);
}

/* Judges a mark of a stream's life: its begin, which has the stream's origin, or its end. */
static bool judge_life(const struct event *event)
{
    yyjson_val *const args = event->args;
    const bool begins = yyjson_obj_get(args, "origin"),
               ends = yyjson_obj_get(args, "destroyed") || yyjson_obj_get(args, "continues");
    yyjson_val *const stream = yyjson_obj_get(args, "cs.stream");
    uint64_t number;
    if (!natural_in(stream, CS_LANE_STREAMS - 1, &number))
        return BREACH(event, 8, "a cs_stream mark without args.cs.stream");
    if (begins == ends)
        return BREACH(event, 8,
            "a cs_stream mark is the begin of a life (args.origin) or its end (destroyed, "
            "continues)");
    return async_add(event, value_hash(event->pid, stream), begins ? 'b' : 'e', true);
}

/* Judges an event with a time, which is any but metadata. */
static bool judge_timed(struct event *event)
{
    if (!judge_time(event, "ts", &event->ts)) return false;
    event->end = event->ts;
    struct lane *lane = event->lane = lane_of(event->check, event->pid, event->tid);
    if (!lane->first_event) lane->first_event = event->line;
    if (event->lane->gpu != TRACE_NO_GPU && !lane->named)
        return BREACH(event, 3, "pid %u tid %u has no thread_name yet", event->pid, event->tid);
    if (event->phase == 'C') {
        size_t i, n;
        yyjson_val *name, *value;
        if (!yyjson_obj_size(event->args))
            return BREACH(event, 11, "a counter without a value in args");
        yyjson_obj_foreach(event->args, i, n, name, value)
            if (!yyjson_is_raw(value))
                return BREACH(event, 11, "the counter's %s is not a number", yyjson_get_str(name));
        return true;
    }
    if (!judge_category(event)) return false;
    const bool is_life = event->phase == 'i' && !strcmp(event->category, "cs_stream");
    return (!is_life || judge_life(event)) && (event->phase != 'X' || judge_slice(event)) &&
           (!strchr("stf", event->phase) || judge_flow(event)) &&
           (!strchr("bne", event->phase) || judge_async(event)) && sums_row(event);
}

bool check_event(struct check *check, uint64_t line, yyjson_val *object)
{
    struct event is = {.check = check, .line = line, .object = object}, *event = &is;
    check->events++;
    if (!yyjson_is_obj(object)) return BREACH(event, 9, "not an object");
    event->args = yyjson_obj_get(object, "args");
    if (!judge_members(event, object)) return false;
    if (event->args && !yyjson_is_obj(event->args)) return BREACH(event, 0, "args is no object");
    if (event->args && !judge_members(event, event->args)) return false;
    const char *phase = text_in(object, "ph");
    if (strlen(phase) != 1 || !strchr("MXCiIbnestf", *phase))
        return BREACH(event, 0, "no known ph");
    event->phase = *phase;
    event->name = text_in(object, "name");
    event->category = text_in(object, "cat");
    if (!*event->name && *phase != 'e') return BREACH(event, 0, "no name");
    if (!judge_id(event, "pid", &event->pid) || !judge_id(event, "tid", &event->tid)) return false;
    if (!event->tid) return BREACH(event, 2, "tid is 0, which Perfetto turns into the pid");
    return event->phase == 'M' ? judge_metadata(event) : judge_timed(event);
}
