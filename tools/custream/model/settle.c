/* Puts the rows in order and ties them to each other, once all are loaded. */

#include "tools/custream/model/load.h"
#include "tools/custream/model/views.h"

const char *const work_kind_name[WORK_KINDS] = {"kernels", "copies", "memsets", "graphs", "ranges"};

/* --- calls and groups --- */

const struct cs_call_info *call_named(const char *name)
{
    for (uint32_t i = 1; name && i < CS_CALL_COUNT; i++)
        if (!strcmp(cs_call_info[i].name, name)) return &cs_call_info[i];
    return &cs_call_info[0];
}

struct groups groups_make(
    size_t group_count, const void *rows, size_t row_count, size_t size, size_t offset)
{
    struct groups groups = {array_zeros(group_count + 2, sizeof *groups.begins),
        array_zeros(row_count, sizeof *groups.members)};
    uint32_t *next = groups.begins + 1; /* in the end, next[g] is where group g + 1 begins */
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < row_count; i++) {
            const uint32_t group = *(const uint32_t *)((const char *)rows + i * size + offset);
            if (group == NONE) continue;
            if (round) groups.members[next[group]++] = (uint32_t)i;
            else next[group + 1]++;
        }
        for (size_t g = 1; !round && g < group_count; g++) next[g] += next[g - 1];
    }
    return groups;
}

void groups_free(struct groups *groups)
{
    free(groups->begins);
    free(groups->members);
    *groups = (struct groups){0};
}

/* --- order --- */

/* Orders rows by begin. Of two rows that begin at once the longer comes first, as it encloses the
 * other. */
static int by_time(int64_t a_begin, int64_t a_end, int64_t b_begin, int64_t b_end)
{
    return ORDER(a_begin, b_begin) ?: ORDER(b_end, a_end);
}

COMPARES(calls_by_time, struct call, by_time(a->begin, a->end, b->begin, b->end))
COMPARES(ranges_by_time, struct range, by_time(a->begin, a->end, b->begin, b->end))
COMPARES(losses_by_time, struct loss, by_time(a->begin, a->end, b->begin, b->end))
COMPARES(callbacks_by_time, struct callback, by_time(a->enqueued, a->end, b->enqueued, b->end))
/* Of works that begin at once, the shorter comes first. */
COMPARES(works_by_time, struct work, ORDER(a->begin, b->begin) ?: ORDER(a->end, b->end))
COMPARES(parts_by_number, struct part, ORDER(a->number, b->number))

/* Sorts rows. Most tables are in order already, so this is tested first. */
static void sort(void *rows, size_t count, size_t size, int (*order)(const void *, const void *))
{
    size_t i = 1;
    while (i < count && order((char *)rows + (i - 1) * size, (char *)rows + i * size) <= 0) i++;
    if (i < count) qsort(rows, count, size, order);
}

/* --- works and calls --- */

struct tie {
    uint32_t correlation, call;
};

COMPARES(ties_by_number, struct tie, ORDER(a->correlation, b->correlation))

/* Returns the calls that have a correlation, sorted by it. Sets `work` of each call to 0. */
static struct tie *ties_make(struct run *run, size_t *count)
{
    size_t n = 0;
    for (size_t i = 0; i < run->call_count; i++) n += run->calls[i].work != 0;
    struct tie *ties = array_zeros(n, sizeof *ties);
    *count = 0;
    for (size_t i = 0; i < run->call_count; i++) {
        if (run->calls[i].work) ties[(*count)++] = (struct tie){run->calls[i].work, (uint32_t)i};
        run->calls[i].work = 0;
    }
    sort(ties, n, sizeof *ties, ties_by_number);
    return ties;
}

static void tie_works(struct run *run)
{
    size_t count, next = 0;
    struct tie *ties = ties_make(run, &count);
    for (size_t i = 0; i < run->work_count; i++) {
        struct work *work = &run->works[i];
        const struct tie wanted = {work->call, 0}, *found = work->call ? &ties[next] : NULL;
        /* Works mostly begin in the order of their calls. */
        if (found && (next >= count || found->correlation != work->call))
            found = bsearch(&wanted, ties, count, sizeof *ties, ties_by_number);
        if (found) next = (size_t)(found - ties) + 1;
        work->call = found ? found->call : NONE;
        if (found) run->calls[found->call].works++, run->calls[found->call].ended = true;
    }
    free(ties);
    uint32_t at = 0;
    for (size_t i = 0; i < run->call_count; i++)
        run->calls[i].work = at, at += run->calls[i].works, run->calls[i].works = 0;
    run->works_of = array_zeros(at, sizeof *run->works_of);
    for (size_t i = 0; i < run->work_count; i++) {
        if (run->works[i].call == NONE) continue;
        struct call *call = &run->calls[run->works[i].call];
        run->works_of[call->work + call->works++] = (uint32_t)i;
        if (call->stream == NONE)
            call->stream = run->works[i].stream; /* another tool's call does not name its stream */
    }
}

/* Moves the works of a sample to `sampled`: as most work is missing, a sample tells neither gaps
 * nor order. Readers of run->works then find no work. */
static void set_sample_apart(struct run *run)
{
    if (!run_sample(run)) return;
    run->sampled = run->works;
    run->sampled_count = run->work_count;
    run->works = NULL;
    run->work_count = run->work_capacity = 0;
    for (size_t i = 0; i < run->sampled_count; i++) run->sampled[i].call = NONE;
    for (size_t i = 0; i < run->call_count; i++) run->calls[i].works = 0;
    for (size_t i = 0; i < run->stream_count; i++) run->streams[i].works = 0;
}

/* --- events --- */

static bool is_of_event(const struct call *call)
{
    const enum cs_kind kind = call_kind(call);
    return call->what && (kind == CS_KIND_EVENT || kind == CS_KIND_WAIT || kind == CS_KIND_SYNC ||
                             kind == CS_KIND_QUERY);
}

/* Finds the record that each wait or query for an event is about, and marks calls whose record the
 * trace does not tell. */
static void settle_events(struct run *run)
{
    struct numbers elsewhere = {0}; /* by event: 1 if something else than a call records it */
    struct numbers records = {0};   /* by event: its last record so far */
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        if (call->elsewhere && call->what && !call->result)
            *numbers_at(&elsewhere, call->what, 0) = 1;
    }
    for (uint32_t i = 0; i < run->call_count; i++) {
        struct call *call = &run->calls[i];
        call->record = NONE;
        call->elsewhere = is_of_event(call) && numbers_get(&elsewhere, call->what, 0);
        if (!is_of_event(call)) continue;
        if (call->elsewhere || call->captured) call->external = true;
        if (call_kind(call) != CS_KIND_EVENT) {
            const uint32_t record = numbers_get(&records, call->what, NONE);
            if (record != NONE && run->calls[record].external) call->external = true;
            if (!call->external) call->record = record;
        } else if (call_how(call, CS_HOW_RECORDS) && !call->result)
            *numbers_at(&records, call->what, NONE) = i;
    }
    numbers_free(&elsewhere);
    numbers_free(&records);
}

/* --- sides of the legacy default stream --- */

/* Returns, by device, the context of its work; 0: the trace names none; NONE: there are several
 * contexts. A stream without work, but with a host function or a wait, belongs to this context. */
static uint32_t *only_contexts(const struct run *run)
{
    uint32_t *only = array_zeros(run->device_count, sizeof *only);
    const bool several = run_has_contexts(run);
    for (size_t d = 0; d < run->device_count && several; d++) only[d] = NONE;
    for (size_t s = 0; s < run->stream_count; s++) {
        const struct stream *stream = &run->streams[s];
        if (stream->context && !several)
            only[stream->device] = only[stream->device] && only[stream->device] != stream->context
                                       ? NONE
                                       : stream->context;
    }
    return only;
}

static void settle_sides(struct run *run)
{
    struct numbers contexts = {0};
    uint32_t *only = only_contexts(run);
    for (size_t s = 0; s < run->stream_count; s++) {
        struct stream *stream = &run->streams[s];
        const uint32_t context = stream->context ? stream->context : only[stream->device];
        stream->side = NONE;
        if (!stream->known || stream->non_blocking || context == NONE) continue;
        stream->side =
            2 * *numbers_at(&contexts, key_of(stream->device, context), (uint32_t)contexts.count) +
            (stream->origin != ORIGIN_LEGACY);
    }
    run->side_count = 2 * contexts.count;
    numbers_free(&contexts);
    free(only);
}

/* --- ranges --- */

enum {
    /* A part's end cuts all ranges of a thread at one moment. Nested ones go on 1 ns apart. */
    PIECES_APART_NS = 10000
};

/* Pieces that go on in the next part, as a list for each range's name. Of nested ranges of one
 * name, the outer one stands first in the list, as it goes on first. */
struct pieces {
    struct numbers first, last; /* by name: the first and last piece of its list */
    uint32_t *next;             /* by range: the next piece in the list */
};

/* Returns the range that the piece at `i` continues; NONE: the piece is the first, or the piece
 * before is not in the files. */
static uint32_t piece_before(struct pieces *pieces, const struct run *run, text name, size_t i)
{
    const struct range *piece = &run->ranges[i];
    /* a process range's id is unique, and pieces of several ranges may begin at once */
    if (piece->id) return numbers_get(&pieces->first, name, NONE);
    if (!piece->continued) return NONE;
    for (uint32_t *first = numbers_at(&pieces->first, name, NONE); *first != NONE;) {
        const uint32_t range = *first;
        *first = pieces->next[range];
        if (piece->begin - run->ranges[range].end <= PIECES_APART_NS) return range;
    }
    return NONE;
}

/* Joins the pieces into which the ends of parts have cut a range. */
static void join_ranges(struct run *run)
{
    struct pieces pieces = {.next = array_none(run->range_count)};
    size_t kept = 0;
    for (size_t i = 0; i < run->range_count; i++) {
        const struct range range = run->ranges[i];
        if (!range.continued && !range.continues) {
            run->ranges[kept++] = range;
            continue;
        }
        /* All pieces of a range share these numbers. Their bytes, as a text, are the key. */
        const uint32_t shared[] = {range.thread, range.id, range.name, range.domain};
        const text name = text_number(&run->texts, (const char *)shared, sizeof shared);
        uint32_t whole = piece_before(&pieces, run, name, i);
        const bool begins = whole == NONE;
        if (begins) run->ranges[whole = (uint32_t)kept++] = range;
        else if (run->ranges[whole].end < range.end) run->ranges[whole].end = range.end;
        if (range.id ? !begins : !range.continues) continue;
        uint32_t *first = numbers_at(&pieces.first, name, NONE);
        const bool alone = *first == NONE;
        if (alone) *first = whole;
        uint32_t *last = numbers_at(&pieces.last, name, NONE);
        if (!alone) pieces.next[*last] = whole;
        *last = whole;
    }
    run->range_count = kept;
    numbers_free(&pieces.first);
    numbers_free(&pieces.last);
    free(pieces.next);
}

/* --- devices, and the run's span --- */

/* Reads a device's properties from the n-th of the file's deviceProperties. */
static void settle_device(struct run *run, struct device *device, unsigned n)
{
    const struct {
        const char *name;
        uint32_t *value;
    } properties[] = {
        {"numSms", &device->sms},
        {"maxThreadsPerMultiprocessor", &device->sm_threads},
        {"maxBlocksPerMultiprocessor", &device->sm_blocks},
        {"regsPerMultiprocessor", &device->sm_registers},
        {"sharedMemPerMultiprocessor", &device->sm_shared_memory},
        {"asyncEngineCount", &device->copy_engines},
    };
    char path[64];
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        snprintf(path, sizeof path, "deviceProperties.%u.%s", n, properties[i].name);
        *properties[i].value = run_count(run, path, 0);
    }
    snprintf(path, sizeof path, "deviceProperties.%u.name", n);
    const struct fact *name = run_fact(run, path);
    if (name) device->name = name->value;
}

static void settle_devices(struct run *run)
{
    for (unsigned n = 0; n < 64; n++) {
        char path[64];
        snprintf(path, sizeof path, "deviceProperties.%u.id", n);
        if (!run_fact(run, path)) break;
        const uint32_t id = run_count(run, path, 0);
        for (size_t d = 0; d < run->device_count; d++)
            if (run->devices[d].ordinal == id) settle_device(run, &run->devices[d], n);
    }
}

static void span_add(struct run *run, int64_t begin, int64_t end)
{
    if (begin < run->begin) run->begin = begin;
    if (end > run->end) run->end = end;
}

static void settle_span(struct run *run)
{
    for (size_t i = 0; i < run->call_count; i++)
        span_add(run, run->calls[i].begin, run->calls[i].end);
    for (size_t i = 0; i < run->work_count; i++)
        span_add(run, run->works[i].begin, run->works[i].end);
    for (size_t i = 0; i < run->callback_count; i++)
        span_add(run, run->callbacks[i].begin, run->callbacks[i].end);
    for (size_t i = 0; i < run->range_count; i++)
        span_add(run, run->ranges[i].begin,
            run->ranges[i].end < INT64_MAX ? run->ranges[i].end : run->ranges[i].begin);
    if (run->begin > run->end) run->begin = run->end = 0;
    for (size_t i = 0; i < run->range_count; i++)
        if (run->ranges[i].end == INT64_MAX)
            run->ranges[i].end = run->end > run->ranges[i].begin ? run->end : run->ranges[i].begin;
}

static void loading_free(struct run *run)
{
    struct loading *l = run->loading;
    if (!l) return;
    struct numbers *const maps[] = {
        &l->devices, &l->streams, &l->threads, &l->calls, &l->ways, &l->open_ranges};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) numbers_free(maps[i]);
    free(l);
    run->loading = NULL;
}

void run_settle(struct run *run)
{
    loading_free(run);
    sort(run->calls, run->call_count, sizeof *run->calls, calls_by_time);
    sort(run->works, run->work_count, sizeof *run->works, works_by_time);
    sort(run->callbacks, run->callback_count, sizeof *run->callbacks, callbacks_by_time);
    sort(run->ranges, run->range_count, sizeof *run->ranges, ranges_by_time);
    join_ranges(run);
    sort(run->ranges, run->range_count, sizeof *run->ranges,
        ranges_by_time); /* joined ranges are longer now */
    sort(run->parts, run->part_count, sizeof *run->parts, parts_by_number);
    sort(run->losses, run->loss_count, sizeof *run->losses, losses_by_time);
    run->no_calls = periods_lost(run, calls_lost, 0);
    settle_span(run);
    tie_works(run);
    set_sample_apart(run);
    settle_events(run);
    settle_sides(run);
    run->thread_calls = GROUPS(run->thread_count, run->calls, run->call_count, thread);
    thread_ranges_make(run);
    pauses_make(run);
    settle_devices(run);
}

void run_free(struct run *run)
{
    loading_free(run);
    void *const tables[] = {run->calls, run->works, run->shapes, run->callbacks, run->streams,
        run->devices, run->threads, run->ranges, run->losses, run->no_calls.rows, run->clocks,
        run->pauses, run->silences, run->parts, run->works_of, run->sampled,
        run->thread_ranges.parent, run->thread_ranges.latest};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) free(tables[i]);
    facts_free(&run->facts);
    groups_free(&run->thread_calls);
    groups_free(&run->thread_ranges.by_thread);
    texts_free(&run->texts);
    *run = (struct run){0};
}

/* --- the model --- */

void model_init(struct model *model)
{
    *model = (struct model){0};
    run_init(&model->run);
}

void model_begin_again(struct model *model)
{
    const struct texts texts = model->run.texts;
    model->run.texts = (struct texts){0};
    model_free(model);
    *model = (struct model){0};
    run_begin(&model->run, texts);
}

void model_settle(struct model *model)
{
    const struct run *run = &model->run;
    run_settle(&model->run);
    order_make(run, &model->holds, &model->waits);
    usage_make(&model->usage, run);
    idles_make(&model->idles, run, model->holds);
    model->steady = steady_part(run);
}

void model_free(struct model *model)
{
    free_all(model->idles.rows, model->usage.devices, model->usage.streams, model->holds,
        model->waits.rows);
    run_free(&model->run);
}
