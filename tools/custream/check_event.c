/* One event, judged alone; what takes several events to judge is put aside for check_lane.c and check_flow.c. */
#include "tools/custream/check.h"

#include "tools/custream/command.h"
#include "tools/custream/lanes.h"
#include "tools/custream/merge/piece.h"
#include "tools/custream/merged.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beyond 2^53 a reader in JavaScript cannot tell two integers apart; in nanoseconds that is 104 days, so later times are read from the text. */
#define EXACT_MAX 9007199254740992.0

struct event {
    struct check *check;
    uint64_t line;
    const cJSON *object;
    const char *text; /* of the object */
    const char *name, *category; /* "" if there is none */
    char phase;
    uint32_t pid, tid;
    int64_t ts, end; /* end: ts but for a slice with a duration */
    struct lane *lane;
};

/* Where a category's rows may lie. */
enum place { ANYWHERE, ON_HOST, ON_GPU, ON_SYNC_LANE, IN_FLOWS };
static const struct category {
    const char *name;
    enum place place;
} categories[] = {
    {"cuda_driver", ON_HOST},      {"cuda_runtime", ON_HOST}, {"kernel", ON_GPU},     {"gpu_memcpy", ON_GPU},  {"gpu_memset", ON_GPU},
    {"gpu_graph", ON_GPU},         {"gpu_range", ON_GPU},
    {"cuda_sync", ON_SYNC_LANE},   {"cuda_event", ANYWHERE},  {"overhead", ANYWHERE}, {"cs_policy", ANYWHERE}, {"cs_stream", ANYWHERE},
    {"user_annotation", ANYWHERE}, {"cs_callback", ANYWHERE}, {"cs_loss", ANYWHERE},  {"cs_dep", ANYWHERE},    {"ac2g", IN_FLOWS},
    {"cs_peer", ANYWHERE},         {"cs_audit", ANYWHERE},  {"cs_window", ON_HOST},
};

static const struct category *category_find(const char *name)
{
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (!strcmp(categories[i].name, name)) return &categories[i];
    return NULL;
}

bool is_gpu_pid(const struct check *check, uint32_t pid) { return check->merged ? pid >= MERGED_GPUS : pid < GPU_PIDS; }
uint32_t gpu_ordinal(const struct check *check, uint32_t pid) { return check->merged ? merged_gpu_ordinal(pid) : pid; }

#define BREACH(event, rule, ...) check_breach((event)->check, (event)->line, rule, __VA_ARGS__)

static const cJSON *member(const cJSON *object, const char *name) { return cJSON_GetObjectItemCaseSensitive(object, name); }

static const char *member_text(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(member(object, name));
    return text ? text : "";
}

static bool is_natural(const cJSON *item, double max)
{
    return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= max && item->valuedouble == floor(item->valuedouble);
}

/* Readers differ in which of two they take. */
static bool judge_members(const struct event *event, const cJSON *object)
{
    const cJSON *one, *other;
    cJSON_ArrayForEach(one, object)
        for (other = one->next; other; other = other->next)
            if (*one->string == *other->string && !strcmp(one->string, other->string)) return BREACH(event, 0, "\"%s\" stands twice in one object", one->string);
    return true;
}

static bool judge_long_time_in(const struct event *event, const char *text, const char *name, int64_t *ns)
{
    const struct piece piece = member_at(text, (const char *const[]){name, NULL});
    const char *point = piece.at ? memchr(piece.at, '.', piece.length) : NULL;
    if (!piece.at || !piece_ns(piece, ns)) return BREACH(event, 1, "%s is not finite, or longer than 73 years", name);
    if (memchr(piece.at, 'e', piece.length) || memchr(piece.at, 'E', piece.length)) return BREACH(event, 1, "%s is beyond 104 days, and not written out", name);
    return !point || piece.at + piece.length - point <= 4 || BREACH(event, 1, "%s has more than three decimals", name);
}

/* Whoever writes a row anew may put blanks between its members, which pieces do not have. */
static bool judge_long_time(const struct event *event, const char *name, int64_t *ns)
{
    char *text = strdup(event->text);
    if (!text) out_of_memory();
    cJSON_Minify(text);
    const bool good = judge_long_time_in(event, text, name, ns);
    free(text);
    return good;
}

/* Microseconds with at most three decimals, into nanoseconds. */
static bool judge_time(const struct event *event, const char *name, int64_t *ns)
{
    const cJSON *item = member(event->object, name);
    if (!item) return BREACH(event, 1, "no %s", name);
    if (!cJSON_IsNumber(item)) return BREACH(event, 1, "%s is not a number", name);
    double us = item->valuedouble;
    if (us < 0) return BREACH(event, 1, "%s is negative", name);
    if (!(us * 1000 <= EXACT_MAX)) return judge_long_time(event, name, ns);
    /* What three decimals are read as is the quotient, rounded as all quotients are. The product is exact: a long double has the ten bits more. */
    *ns = llrintl((long double)us * 1000);
    if ((double)*ns / 1000 != us) return BREACH(event, 1, "%s has more than three decimals", name);
    return true;
}

static bool judge_id(const struct event *event, const char *name, uint32_t *id)
{
    const cJSON *item = member(event->object, name);
    if (!is_natural(item, UINT32_MAX)) return BREACH(event, 2, "%s is %s", name, item ? "not a 32-bit unsigned integer" : "missing");
    *id = (uint32_t)item->valuedouble;
    return true;
}

static bool judge_counter(const struct event *event)
{
    const cJSON *args = member(event->object, "args"), *value;
    if (!cJSON_IsObject(args) || !args->child) return BREACH(event, 11, "a counter without a value in args");
    cJSON_ArrayForEach(value, args)
        if (!cJSON_IsNumber(value)) return BREACH(event, 11, "the counter's %s is not a number", value->string);
    return true;
}

static bool judge_metadata(struct event *event)
{
    if (!strcmp(event->name, "process_name") || !strcmp(event->name, "thread_name")) {
        if (!cJSON_IsString(member(member(event->object, "args"), "name"))) return BREACH(event, 3, "%s without args.name", event->name);
    }
    if (strcmp(event->name, "thread_name")) return true;
    struct lane *lane = lane_of(event->check, event->pid, event->tid);
    /* A lane that has its name can be given a better one later. */
    if (lane->first_event && !lane->named)
        return BREACH(event, 3, "pid %u tid %u gets its name after its first event, on line %llu", lane->pid, lane->tid,
                      (unsigned long long)lane->first_event);
    lane->named = true;
    const cJSON *stream = member(member(event->object, "args"), "cs.stream");
    const uint32_t of = cs_lane_stream_of(event->tid);
    lane->with_stream = stream != NULL;
    if (stream && !(cJSON_IsNumber(stream) && stream->valuedouble == (of < CS_LANE_LEGACY ? 0 : of)))
        return BREACH(event, 3, "args.cs.stream is not the stream of tid %u", event->tid);
    return true;
}

static bool judge_gpu_row(const struct event *event)
{
    const cJSON *args = member(event->object, "args"), *device = member(args, "device"), *stream = member(args, "stream");
    if (device && !(cJSON_IsNumber(device) && device->valuedouble == gpu_ordinal(event->check, event->pid)))
        return BREACH(event, 2, "args.device is not the pid: a GPU's pid is its ordinal");
    if (stream && !(cJSON_IsNumber(stream) && stream->valuedouble == lane_stream(event->tid, event->lane->with_stream)))
        return BREACH(event, 3, "args.stream is not the lane's stream, %u", lane_stream(event->tid, event->lane->with_stream));
    if (!strcmp(event->category, "gpu_memcpy") && strncmp(event->name, "Memcpy ", 7)) return BREACH(event, 8, "a gpu_memcpy is named \"Memcpy ...\"");
    if (!strcmp(event->category, "gpu_memset") && strncmp(event->name, "Memset ", 7)) return BREACH(event, 8, "a gpu_memset is named \"Memset ...\"");
    return true;
}

static bool judge_place(const struct event *event, enum place place)
{
    bool on_gpu = is_gpu_pid(event->check, event->pid);
    if (place == ON_HOST && on_gpu) return BREACH(event, 2, "%s on pid %u: below %u are the GPUs", event->category, event->pid, GPU_PIDS);
    if (place == ON_GPU && !on_gpu) return BREACH(event, 2, "%s on pid %u: a GPU's pid is its ordinal", event->category, event->pid);
    if (place == ON_SYNC_LANE && !(on_gpu && lane_kind(event->tid, event->lane->with_stream) == CS_LANE_SYNC))
        return BREACH(event, 5, "cuda_sync on pid %u tid %u: synchronisation goes to the stream's lane for it, its number * %u + %u", event->pid, event->tid,
                      CS_LANE_STEP, cs_lane_tid(0, CS_LANE_SYNC, 0));
    if (place == ON_GPU) return judge_gpu_row(event);
    if (member(member(event->object, "args"), "stream"))
        return BREACH(event, 7, "args.stream on a %s row: only kernel, gpu_memcpy and gpu_memset have it", event->category);
    return true;
}

static bool judge_category(const struct event *event)
{
    bool in_flow = strchr("stf", event->phase);
    if (!*event->category) return BREACH(event, 8, "no cat");
    const struct category *category = category_find(event->category);
    if (!category) return BREACH(event, 8, "unknown cat \"%.60s\"", event->category);
    if (in_flow != (category->place == IN_FLOWS) && !(in_flow && !strcmp(event->category, "cs_dep")))
        return BREACH(event, 8, "cat \"%s\" is %s", event->category, in_flow ? "none of flows" : "for flows");
    return in_flow || judge_place(event, category->place);
}

static bool judge_flow(const struct event *event)
{
    const cJSON *id = member(event->object, "id");
    if (!is_natural(id, EXACT_MAX)) return BREACH(event, 6, "a flow's id is an integer below 2^53");
    if (event->phase == 'f' && strcmp(member_text(event->object, "bp"), "e")) return BREACH(event, 6, "f without \"bp\":\"e\"");
    if (!strcmp(event->category, "ac2g") && strcmp(event->name, "ac2g")) return BREACH(event, 6, "an ac2g flow has the name ac2g");
    event->check->sums.arrows += event->phase == 'f' && !strcmp(event->category, "ac2g");
    flow_add(event->check,
             (struct flow_end){.ts = event->ts, .id = (uint64_t)id->valuedouble, .line = event->line, .lane = event->lane, .phase = event->phase,
                               .inside = !strcmp(event->category, "cs_dep")});
    return true;
}

static bool is_true(const struct event *event, const char *name) { return cJSON_IsTrue(member(event->object, name)); }

/* A slice that is an end of an arrow itself: bind_id, with flow_out where it begins and flow_in where it ends. */
static bool judge_bound(const struct event *event)
{
    const cJSON *id = member(event->object, "bind_id");
    const bool out = is_true(event, "flow_out"), in = is_true(event, "flow_in");
    if (!id && !member(event->object, "flow_out") && !member(event->object, "flow_in")) return true;
    if (!is_natural(id, EXACT_MAX)) return BREACH(event, 6, "a bind_id is an integer below 2^53");
    if (in == out) return BREACH(event, 6, "with a bind_id goes either \"flow_out\":true or \"flow_in\":true");
    event->check->sums.arrows += in;
    flow_add(event->check, (struct flow_end){.ts = event->ts, .id = (uint64_t)id->valuedouble, .line = event->line, .lane = event->lane, .phase = in ? 'f' : 's',
                                             .bound = true});
    return true;
}

static bool judge_slice(struct event *event)
{
    struct slice slice = {.ts = event->ts, .line = event->line};
    event->check->slices++;
    if (event->phase == 'B') {
        lane_open(event->lane, slice);
        return true;
    }
    int64_t duration;
    if (!judge_time(event, "dur", &duration)) return false;
    if (duration < 1) return BREACH(event, 1, "dur is below 0.001");
    slice.end = event->end = slice.ts + duration;
    lane_add(event->lane, slice);
    return judge_bound(event);
}

static bool judge_end(const struct event *event)
{
    struct slice *slice = lane_close(event->lane);
    if (!slice) return BREACH(event, 4, "E without a B on pid %u tid %u", event->pid, event->tid);
    if (event->ts < slice->ts) return BREACH(event, 4, "E before its B, which is on line %llu", (unsigned long long)slice->line);
    slice->end = event->ts;
    return true;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    do hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    while (*text++);
    return hash;
}

/* An id is a number or a string; in id2 it says whether it is the process's or the trace's. */
static bool judge_async(const struct event *event)
{
    const cJSON *id = member(event->object, "id"), *scoped = member(event->object, "id2");
    if (scoped) id = member(scoped, "local") ? member(scoped, "local") : member(scoped, "global");
    if (!cJSON_IsString(id) && !is_natural(id, EXACT_MAX)) return BREACH(event, 4, "an async %c without id", event->phase);
    if (event->phase == 'n') return true;
    char number[64] = "";
    snprintf(number, sizeof number, "%u %.0f", event->pid, cJSON_IsNumber(id) ? id->valuedouble : -1);
    uint64_t span = hash_text(hash_text(hash_text(0xcbf29ce484222325, event->category), event->name), number);
    if (cJSON_IsString(id)) span = hash_text(span, id->valuestring);
    async_add(event->check, (struct async_end){.ts = event->ts, .span = span, .line = event->line, .phase = event->phase});
    return true;
}

/* The marks of a stream's life: one at its begin, which says where it comes from, and one at its end. */
static bool judge_life(const struct event *event)
{
    const cJSON *args = member(event->object, "args"), *stream = member(args, "cs.stream");
    const bool begins = member(args, "origin") != NULL, ends = member(args, "destroyed") || member(args, "continues");
    if (!is_natural(stream, CS_LANE_STREAMS - 1)) return BREACH(event, 8, "a cs_stream mark without args.cs.stream");
    if (begins == ends) return BREACH(event, 8, "a cs_stream mark is the begin of a life (args.origin) or its end (destroyed, continues)");
    char life[64];
    snprintf(life, sizeof life, "life of %u %.0f", event->pid, stream->valuedouble);
    async_add(event->check, (struct async_end){.ts = event->ts, .span = hash_text(0xcbf29ce484222325, life), .line = event->line, .phase = begins ? 'b' : 'e', .life = true});
    return true;
}

static bool judge_by_phase(struct event *event)
{
    switch (event->phase) {
    case 'i': return strcmp(event->category, "cs_stream") || judge_life(event);
    case 'X':
    case 'B': return judge_slice(event);
    case 's':
    case 't':
    case 'f': return judge_flow(event);
    case 'b':
    case 'n':
    case 'e': return judge_async(event);
    }
    return true;
}

/* What the trailer's totals are held against. */
static bool add_up(const struct event *event)
{
    return sums_row(event->check, &(struct row){.line = event->line,
                                                .name = event->name,
                                                .category = event->category,
                                                .phase = event->phase,
                                                .pid = event->pid,
                                                .tid = event->tid,
                                                .ts = event->ts,
                                                .end = event->end,
                                                .object = event->object,
                                                .args = member(event->object, "args")});
}

/* An event with a time: everything but metadata. */
static bool judge_timed(struct event *event)
{
    if (!judge_time(event, "ts", &event->ts)) return false;
    event->end = event->ts;
    struct lane *lane = event->lane = lane_of(event->check, event->pid, event->tid);
    if (!lane->first_event) lane->first_event = event->line;
    if (is_gpu_pid(event->check, event->pid) && !lane->named) return BREACH(event, 3, "pid %u tid %u has no thread_name yet", event->pid, event->tid);
    if (event->phase == 'E') return judge_end(event);
    if (event->phase == 'C') return judge_counter(event);
    if (!judge_category(event)) return false;
    if (!strcmp(event->category, "cs_audit") && !audit_row_judge(event->check, event->line, member(event->object, "args"))) return false;
    return judge_by_phase(event) && add_up(event);
}

static bool judge(struct event *event)
{
    const cJSON *args = member(event->object, "args");
    if (!judge_members(event, event->object)) return false;
    if (args && !cJSON_IsObject(args)) return BREACH(event, 0, "args is no object");
    if (!judge_members(event, args)) return false;
    const char *phase = member_text(event->object, "ph");
    if (strlen(phase) != 1 || !strchr("MXBECiIbnestf", *phase)) return BREACH(event, 0, "no known ph");
    event->phase = *phase;
    event->name = member_text(event->object, "name");
    event->category = member_text(event->object, "cat");
    if (!*event->name && !strchr("Ee", *phase)) return BREACH(event, 0, "no name");
    if (!judge_id(event, "pid", &event->pid) || !judge_id(event, "tid", &event->tid)) return false;
    if (!event->tid) return BREACH(event, 2, "tid is 0, which Perfetto turns into the pid");
    return event->phase == 'M' ? judge_metadata(event) : judge_timed(event);
}

bool check_event(struct check *check, uint64_t line, const char *json)
{
    struct event event = {.check = check, .line = line, .text = json};
    cJSON *object = cJSON_ParseWithOpts(json, NULL, true);
    event.object = object;
    bool good = cJSON_IsObject(object) ? judge(&event) : BREACH(&event, 9, object ? "not an object" : "not one JSON object on one line");
    check->events++;
    cJSON_Delete(object);
    return good;
}
