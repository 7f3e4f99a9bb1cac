#include "tools/custream/convert/stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/lane.h"
#include "shim/base/perfetto.h"
#include "tools/custream/command.h"
#include "tools/custream/convert/value.h"
#include "tools/custream/merged.h"
#include "tools/custream/report/numbers.h"

/* Numbers of the format that nobody else needs. */
enum { /* InternedData, its messages for GPUs */
    CONTEXTS = 23, SPECIFICATIONS = 24, IID = 1, CONTEXT_PID = 2, CONTEXT_API = 3, SPECIFICATION_NAME = 2, SPECIFICATION_DESCRIPTION = 3,
    SPECIFICATION_CATEGORY = 4, API_CUDA = 4, CATEGORY_OTHER = 0, CATEGORY_COMPUTE = 2
};
enum { /* GpuRenderStageEvent and what is in it */
    EVENT_ID = 1, DURATION = 2, CONTEXT = 5, EXTRA_DATA = 6, SUBMISSION = 10, GPU = 11, HW_QUEUE = 13, STAGE = 14, WAITS = 18, LAUNCH = 21,
    EXTRA_NAME = 1, EXTRA_VALUE = 2, LAUNCH_GRID = 1, LAUNCH_BLOCK = 2, LAUNCH_ARG = 3, ARG_NAME = 2, ARG_UINT = 4
};
enum { SEQUENCE = CS_PF_SEQUENCES, CLEARED = 1, NEEDS = 2 }; /* TracePacket.SequenceFlags */

/* Work that may share its correlation with other work, as nodes of a graph do: who waits for it waits for what of it ends last. */
struct last {
    uint64_t id, end_ns;
};

struct stages {
    void (*put)(void *of, const char *bytes, size_t n);
    void *of;
    char *room;
    size_t size;
    bool begun;
    uint32_t specifications; /* numbers that have been given */
    uint64_t further;        /* events with a number of their own */
    struct numbers hosts, lanes, queues, stages, told, current, lasts_by;
    struct last *lasts;
    size_t last_count, last_capacity;
    char **texts; /* what lanes are called */
    size_t text_count, text_capacity;
};

/* The row that is being read: what its members say. */
struct work {
    struct piece name, category, args, ts, dur;
    uint64_t pid, tid, stream, correlation, context;
    struct piece grid, block, waits;
    bool of_graph;
};

struct stages *stages_new(void (*put)(void *of, const char *bytes, size_t n), void *of)
{
    struct stages *s = calloc(1, sizeof *s);
    if (!s) out_of_memory();
    s->put = put;
    s->of = of;
    return s;
}

void stages_free(struct stages *s)
{
    struct numbers *const all[] = {&s->hosts, &s->lanes, &s->queues, &s->stages, &s->told, &s->current, &s->lasts_by};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) numbers_free(all[i]);
    for (size_t i = 0; i < s->text_count; i++) free(s->texts[i]);
    free(s->texts);
    free(s->lasts);
    free(s->room);
    free(s);
}

/* --- which process, which GPU --- */

static bool is_gpu(uint64_t pid) { return pid < CS_GPU_PIDS || pid >= MERGED_GPUS; }
static uint32_t gpu_of(uint64_t pid) { return pid < CS_GPU_PIDS ? (uint32_t)pid : merged_gpu_ordinal((uint32_t)pid); }
static uint32_t place_of(uint64_t pid) { return pid < CS_GPU_PIDS ? 0 : (uint32_t)(pid - MERGED_GPUS) / MERGED_GPU_STEP; }

/* --- the row --- */

static void member_found(void *of, struct piece name, struct piece value)
{
    struct work *w = of;
    static const struct {
        const char *name;
        size_t at;
    } members[] = {{"name", offsetof(struct work, name)}, {"cat", offsetof(struct work, category)}, {"args", offsetof(struct work, args)},
                   {"ts", offsetof(struct work, ts)}, {"dur", offsetof(struct work, dur)}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (piece_named(name, members[i].name)) memcpy((char *)w + members[i].at, &value, sizeof value);
    if (piece_named(name, "pid")) piece_natural(value, &w->pid);
    if (piece_named(name, "tid")) piece_natural(value, &w->tid);
}

static void fact_found(void *of, struct piece name, struct piece value)
{
    struct work *w = of;
    if (piece_named(name, "stream")) piece_natural(value, &w->stream);
    else if (piece_named(name, "correlation")) piece_natural(value, &w->correlation);
    else if (piece_named(name, "context")) piece_natural(value, &w->context);
    else if (piece_named(name, "grid")) w->grid = value;
    else if (piece_named(name, "block")) w->block = value;
    else if (piece_named(name, "event_wait_ids")) w->waits = value;
    else if (piece_named(name, "graph")) w->of_graph = true;
}

static uint64_t lane_key(uint64_t pid, uint64_t tid) { return pid << 32 | (uint32_t)tid; }

/* Names of processes and lanes: they come before the work. */
static void meta_read(struct stages *s, const struct work *w)
{
    enum { SHOWN = 512 };
    static const char *const order[] = {"sort_index", NULL}, *const called[] = {"name", NULL};
    const bool of_object = w->args.at && *w->args.at == '{';
    uint64_t at;
    if (of_object && piece_is(w->name, "process_sort_index") && !is_gpu(w->pid) && piece_natural(member_at(w->args.at, order), &at))
        *numbers_at(&s->hosts, at / MERGED_GPU_STEP, 0) = (uint32_t)w->pid;
    if (!of_object || !piece_is(w->name, "thread_name") || !is_gpu(w->pid)) return;
    struct unquoted text = unquote(member_at(w->args.at, called));
    s->texts = array_room(s->texts, s->text_count, &s->text_capacity, sizeof *s->texts);
    char *kept = s->texts[s->text_count++] = strndup(text.at, text.length < SHOWN ? text.length : SHOWN);
    if (!kept) out_of_memory();
    *numbers_at(&s->lanes, lane_key(w->pid, w->tid), 0) = (uint32_t)s->text_count;
    unquoted_free(&text);
}

/* --- what is told once, in the packet of the work that needs it first --- */

/* A queue or a stage. */
static uint32_t specification(struct stages *s, char **at, struct numbers *known, uint64_t key, struct piece name, const char *description, unsigned category)
{
    uint32_t *number = numbers_at(known, key, 0);
    if (*number) return *number;
    *number = ++s->specifications;
    char *entry = cs_pf_nest(*at, SPECIFICATIONS), *end = cs_pf_put_text(cs_pf_uint(entry, IID, *number), SPECIFICATION_NAME, name.at, name.length);
    end = cs_pf_uint(cs_pf_put_text(end, SPECIFICATION_DESCRIPTION, description, strlen(description)), SPECIFICATION_CATEGORY, category);
    *at = cs_pf_nested(entry, end);
    return *number;
}

static uint32_t queue_of(struct stages *s, char **at, const struct work *w)
{
    char made[40], description[80];
    const uint32_t tid = cs_lane_tid((uint32_t)w->stream, CS_LANE_WORK, 0);
    const uint32_t text = numbers_get(&s->lanes, lane_key(w->pid, tid), 0);
    const int n = snprintf(made, sizeof made, "stream %u", (unsigned)w->stream);
    const struct piece name = text ? (struct piece){s->texts[text - 1], strlen(s->texts[text - 1])} : (struct piece){made, (size_t)n};
    snprintf(description, sizeof description, "CUDA stream %u of GPU %u", (unsigned)w->stream, gpu_of(w->pid));
    return specification(s, at, &s->queues, lane_key(w->pid, w->stream), name, description, CATEGORY_OTHER);
}

/* What work is called is the name of its stage: so versions show it that do not know that an event may have a name. */
static uint32_t stage_of(struct stages *s, char **at, const struct work *w)
{
    char category[32];
    struct unquoted name = unquote(w->name);
    const bool computes = piece_is(w->category, "kernel") || piece_is(w->category, "gpu_graph");
    snprintf(category, sizeof category, "%.*s", (int)w->category.length - 2, w->category.at + 1);
    const uint32_t number = specification(s, at, &s->stages, piece_hash(piece_hash(7, w->category), w->name), (struct piece){name.at, name.length}, category,
                                          computes ? CATEGORY_COMPUTE : CATEGORY_OTHER);
    unquoted_free(&name);
    return number;
}

/* CUDA's number of the context, if no other process has one of that number. The stream's work says it when it changes. */
static uint64_t context_of(struct stages *s, char **at, const struct work *w)
{
    uint32_t *current = numbers_at(&s->current, lane_key(w->pid, w->stream), 0);
    if (w->context) *current = (uint32_t)w->context;
    const uint32_t place = place_of(w->pid), host = numbers_get(&s->hosts, place, 0);
    const uint64_t number = (uint64_t)place << 24 | *current;
    uint32_t *told = numbers_at(&s->told, number, 0);
    if (*told) return number;
    *told = 1;
    char *entry = cs_pf_nest(*at, CONTEXTS), *end = cs_pf_uint(entry, IID, number);
    if (host) end = cs_pf_uint(end, CONTEXT_PID, host);
    *at = cs_pf_nested(entry, cs_pf_uint(end, CONTEXT_API, API_CUDA));
    return number;
}

/* --- which event --- */

static bool may_be_several(const struct work *w) { return w->of_graph || !piece_is(w->category, "kernel"); }

/* Its correlation, if it is the first of that. */
static uint64_t event_id(struct stages *s, const struct work *w, uint64_t end_ns)
{
    enum { FURTHER = 60 }; /* correlations are less than 1 << FURTHER */
    if (w->correlation && !may_be_several(w)) return w->correlation;
    uint32_t *known = w->correlation ? numbers_at(&s->lasts_by, w->correlation, 0) : NULL;
    const uint64_t id = known && !*known ? w->correlation : (uint64_t)1 << FURTHER | ++s->further;
    if (!known) return id;
    if (!*known) {
        s->lasts = array_room(s->lasts, s->last_count, &s->last_capacity, sizeof *s->lasts);
        s->lasts[s->last_count++] = (struct last){id, end_ns};
        *known = (uint32_t)s->last_count;
    }
    struct last *last = &s->lasts[*known - 1];
    if (end_ns > last->end_ns) *last = (struct last){id, end_ns};
    return id;
}

static char *put_waits(struct stages *s, char *at, struct piece waits)
{
    uint64_t correlation;
    while (piece_next(&waits, &correlation)) {
        const uint32_t known = numbers_get(&s->lasts_by, correlation, 0);
        at = cs_pf_uint(at, WAITS, known ? s->lasts[known - 1].id : correlation);
    }
    return at;
}

/* --- arguments --- */

static char *put_lengths(char *at, unsigned field, struct piece list)
{
    uint32_t lengths[VALUE_LIST];
    if (!list.at || *list.at != '[' || value_list(list, lengths) != 3) return at;
    char *start = cs_pf_nest(at, field);
    return cs_pf_nested(start, cs_pf_uint(cs_pf_uint(cs_pf_uint(start, 1, lengths[0]), 2, lengths[1]), 3, lengths[2]));
}

/* How a kernel is launched, with numbers that stay numbers. */
static bool is_of_launch(struct piece name)
{
    return piece_named(name, "registers per thread") || piece_named(name, "shared memory") || piece_named(name, "local memory per thread");
}

static void launch_found(void *of, struct piece name, struct piece value)
{
    char **at = of;
    uint64_t number;
    if (!is_of_launch(name) || !piece_natural(value, &number)) return;
    char *start = cs_pf_nest(*at, LAUNCH_ARG);
    *at = cs_pf_nested(start, cs_pf_uint(cs_pf_put_text(start, ARG_NAME, name.at, name.length), ARG_UINT, number));
}

static char *put_launch(char *at, const struct work *w)
{
    if (!w->grid.at) return at;
    char *start = cs_pf_nest(at, LAUNCH), *end = put_lengths(put_lengths(start, LAUNCH_GRID, w->grid), LAUNCH_BLOCK, w->block);
    members_each(w->args.at, launch_found, &end);
    return cs_pf_nested(start, end);
}

/* All else is text. */
static void extra_found(void *of, struct piece name, struct piece value)
{
    static const char *const elsewhere[] = {"stream", "correlation", "context", "grid", "block", "event_wait_ids"};
    char **at = of;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (piece_named(name, elsewhere[i])) return;
    if (is_of_launch(name)) return;
    struct unquoted text = unquote(value);
    const struct piece shown = *value.at == '"' ? (struct piece){text.at, text.length} : value;
    char *start = cs_pf_nest(*at, EXTRA_DATA);
    *at = cs_pf_nested(start, cs_pf_put_text(cs_pf_put_text(start, EXTRA_NAME, name.at, name.length), EXTRA_VALUE, shown.at, shown.length));
    unquoted_free(&text);
}

/* --- packets --- */

static char *put_event(struct stages *s, char *at, const struct work *w, int64_t begin_ns, int64_t length_ns)
{
    char *data = cs_pf_nest(at, CS_PF_INTERNED), *told = data; /* one message: of several, readers take the last */
    const uint64_t context = context_of(s, &told, w);
    const uint32_t queue = queue_of(s, &told, w), stage = stage_of(s, &told, w);
    if (told > data) at = cs_pf_nested(data, told);
    char *event = cs_pf_nest(at, CS_PF_RENDER_STAGE), *end = put_waits(s, event, w->waits); /* before it is itself one that may be waited for */
    end = cs_pf_uint(cs_pf_uint(end, EVENT_ID, event_id(s, w, (uint64_t)(begin_ns + length_ns))), DURATION, (uint64_t)length_ns);
    end = cs_pf_uint(cs_pf_uint(end, HW_QUEUE, queue), STAGE, stage);
    end = cs_pf_uint(cs_pf_uint(end, GPU, gpu_of(w->pid)), CONTEXT, context);
    if (w->correlation && w->correlation <= UINT32_MAX) end = cs_pf_uint(end, SUBMISSION, w->correlation);
    end = put_launch(end, w);
    members_each(w->args.at, extra_found, &end);
    return cs_pf_nested(event, end);
}

static bool is_work(const struct work *w)
{
    static const char *const categories[] = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "gpu_range"};
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (piece_is(w->category, categories[i])) return is_gpu(w->pid) && w->args.at && *w->args.at == '{';
    return false;
}

void stages_row(struct stages *s, const char *text, size_t length)
{
    struct work w = {0};
    int64_t begin_ns, length_ns;
    members_each(text, member_found, &w);
    if (!w.category.at) meta_read(s, &w);
    if (!is_work(&w) || !piece_ns(w.ts, &begin_ns) || !piece_ns(w.dur, &length_ns) || begin_ns < 0 || length_ns < 0) return;
    members_each(w.args.at, fact_found, &w);
    while (s->size < 8 * length + 4096) s->room = array_room(s->room, s->size, &s->size, 1);
    char *packet = cs_pf_nest(s->room, CS_PF_PACKET), *at = cs_pf_uint(cs_pf_uint(packet, CS_PF_TIMESTAMP, (uint64_t)begin_ns), CS_PF_SEQUENCE, SEQUENCE);
    at = cs_pf_uint(at, CS_PF_SEQUENCE_FLAGS, s->begun ? NEEDS : CLEARED | NEEDS);
    s->begun = true;
    s->put(s->of, s->room, (size_t)(cs_pf_nested(packet, put_event(s, at, &w, begin_ns, length_ns)) - s->room));
}
