/* Turns rows of a trace into rows of a run. */
#include <math.h>

#include "tools/custream/lanes.h"
#include "tools/custream/model/load.h"
#include "tools/custream/trace/format.h"
#include "tools/custream/trace/row.h"

/* Adds a row to a table of the run. */
#define ADD(run, row, ...) \
    array_add((run)->row##s, (run)->row##_count, (run)->row##_capacity, __VA_ARGS__)

/* --- what rows name --- */

static uint32_t device_at(struct run *run, uint32_t ordinal)
{
    const uint32_t at = *numbers_at(&run->loading->devices, ordinal, (uint32_t)run->device_count);
    if (at == run->device_count) ADD(run, device, (struct device){.ordinal = ordinal});
    return at;
}

/* Returns the index of a key. A new key gets the index `next`, and sets *fresh. */
static uint32_t index_of(
    struct nearest *last, struct numbers *known, uint64_t key, size_t next, bool *fresh)
{
    *fresh = false;
    if (last->key == key && last->known) return last->index;
    uint32_t *at = numbers_at(known, key, NONE);
    if ((*fresh = *at == NONE)) *at = (uint32_t)next;
    *last = (struct nearest){key, *at, true};
    return *at;
}

static uint32_t stream_at(struct run *run, uint32_t ordinal, uint32_t lane)
{
    struct loading *l = run->loading;
    bool fresh;
    const uint32_t stream =
        index_of(&l->last_stream, &l->streams, key_of(ordinal, lane), run->stream_count, &fresh);
    if (fresh)
        ADD(run, stream,
            (struct stream){.lane = lane,
                .device = device_at(run, ordinal),
                .begin = INT64_MIN,
                .end = INT64_MAX});
    return stream;
}

/* Returns the index of a row's shape. A file numbers shapes in the order of their first use. */
static uint32_t shape_of(struct run *run, const struct trace_row *row)
{
    if (!row->shape) return NONE;
    const uint32_t shape = run->loading->first_shape + row->shape_number;
    if (shape == run->shape_count) ADD(run, shape, *row->shape);
    return shape;
}

/* --- rows --- */

static bool is_gpu(const struct trace_row *row) { return row->gpu != TRACE_NO_GPU; }
static int64_t begin_of(const struct trace_row *row) { return row_number(row, KEY_TS, 0); }
static int64_t end_of(const struct trace_row *row)
{
    const int64_t lasted = row_number(row, KEY_DUR, 0);
    return begin_of(row) + (lasted > 0 ? lasted : 0);
}
static uint32_t thread_of(struct run *run, const struct trace_row *row)
{
    struct loading *l = run->loading;
    const uint32_t tid = (uint32_t)row_number(row, KEY_TID, 0);
    const uint64_t key = key_of((uint32_t)row_number(row, KEY_PID, 0), tid);
    bool fresh;
    const uint32_t thread = index_of(&l->last_thread, &l->threads, key, run->thread_count, &fresh);
    if (fresh) ADD(run, thread, (struct thread){.tid = tid});
    return thread;
}

/* Returns the stream of a row. Finding the stream's index may move the table, so the index is found
 * first. */
static struct stream *stream_row(struct run *run, const struct trace_row *row)
{
    const uint32_t stream = stream_at(run, row->gpu, row_stream(row));
    return &run->streams[stream];
}

static uint32_t stream_named(struct run *run, const struct trace_row *row)
{
    if (!row_has(row, KEY_CS_STREAM)) return NONE;
    return stream_at(
        run, (uint32_t)row_number(row, KEY_CS_DEVICE, 0), (uint32_t)row->number[KEY_CS_STREAM]);
}

static void load_call(struct run *run, const struct trace_row *row)
{
    struct call call = {.begin = begin_of(row),
        .end = end_of(row),
        .thread = thread_of(run, row),
        .stream = stream_named(run, row),
        .work = (uint32_t)row_number(row, KEY_CORRELATION, 0),
        .name = row_word(row, KEY_NAME),
        .result = row_word(row, KEY_RESULT)};
    uint32_t *at = numbers_at(&run->loading->calls, call.name, NONE);
    if (*at == NONE) *at = (uint32_t)(call_named(text_in(run, call.name)) - cs_call_info);
    call.call = (enum cs_call) * at;
    const bool of_event = call_kind(&call) == CS_KIND_WAIT ||
                          (call_kind(&call) == CS_KIND_EVENT && call_how(&call, CS_HOW_RECORDS));
    /* CU_EVENT_RECORD_EXTERNAL serves for waits too: CU_EVENT_WAIT_EXTERNAL has the same value */
    const char *flags = text_in(run, row_word(row, KEY_FLAGS)), /* "EXTERNAL (1)" */
        *number = strrchr(flags, '(');
    call.external =
        of_event && strtol(number ? number + 1 : flags, NULL, 0) & CU_EVENT_RECORD_EXTERNAL;
    call.elsewhere = (call.external && call_kind(&call) == CS_KIND_EVENT) ||
                     row_has(row, KEY_ELSEWHERE) || call.call == CS_CALL_cuIpcGetEventHandle ||
                     call.call == CS_CALL_cuGraphAddEventRecordNode ||
                     call.call == CS_CALL_cuGraphEventRecordNodeSetEvent ||
                     call.call == CS_CALL_cuGraphExecEventRecordNodeSetEvent;
    call.what = call_kind(&call) == CS_KIND_LAUNCH ? row_word(row, KEY_KERNEL)
                                                   : (uint32_t)row_number(row, KEY_EVENT, 0);
    if (call_kind(&call) == CS_KIND_MEMOP) call.what = row_word(row, KEY_ADDRESS);
    call.captured = row_number(row, KEY_CAPTURED, 0);
    call.awaited = call.work != 0;
    /* the row process_name tells the pid, but another tool's trace may lack it */
    if (!run->ours && !run->pid) run->pid = (uint32_t)row_number(row, KEY_PID, 0);
    call.shape = shape_of(run, row);
    ADD(run, call, call);
    if (row_has(row, KEY_CPU))
        ADD(run, clock, (struct clock){call.begin, row->number[KEY_CPU], call.thread});
    if (row_has(row, KEY_CPU_END))
        ADD(run, clock, (struct clock){call.end, row->number[KEY_CPU_END], call.thread});
}

/* Returns the direction in a copy's name: HtoD of "Memcpy HtoD (Pinned -> Device)"; CS_WAY_ANY: the
 * name tells none. */
static enum cs_way way_of(struct run *run, text name)
{
    static const char before[] = "Memcpy ";
    uint32_t *at = numbers_at(&run->loading->ways, name, CS_WAY_COUNT);
    if (*at != CS_WAY_COUNT) return (enum cs_way) * at;
    const char *word = text_in(run, name);
    *at = CS_WAY_ANY;
    if (strncmp(word, before, sizeof before - 1)) return CS_WAY_ANY;
    word += sizeof before - 1;
    const size_t length = strcspn(word, " ");
    for (uint32_t way = 1; way < CS_WAY_COUNT; way++)
        if (strlen(cs_way_name[way]) == length && !memcmp(cs_way_name[way], word, length))
            *at = way;
    if (length == 4 && !memcmp(word, "PtoP", 4)) *at = CS_WAY_PEER; /* Kineto's spelling */
    return (enum cs_way) * at;
}

static void load_work(struct run *run, const struct trace_row *row, enum work_kind kind)
{
    struct work work = {.begin = begin_of(row),
        .end = end_of(row),
        .stream = stream_at(run, row->gpu, row_stream(row)),
        .call = (uint32_t)row_number(row, KEY_CORRELATION, 0),
        .name = row_word(row, KEY_NAME),
        .shape = shape_of(run, row),
        .graph = (uint32_t)row_number(row, KEY_GRAPH, 0),
        .kind = kind,
        .bytes = (uint64_t)row_number(row, KEY_BYTES, 0)};
    if (kind == WORK_COPY) work.way = way_of(run, work.name);
    if (row_has(row, KEY_GRAPH_NODE))
        work.node = (uint32_t)(row->number[KEY_GRAPH_NODE] + 1) & 0xffffff;
    struct stream *stream = &run->streams[work.stream];
    if (!stream->context) stream->context = (uint32_t)row_number(row, KEY_CONTEXT, 0);
    stream->works++;
    ADD(run, work, work);
}

/* Returns how a row's range is cut: the end of a part cuts each range that is open then. */
static enum cs_cut cut_of(const struct run *run, const struct trace_row *row)
{
    const text key = row_word(row, KEY_CUT), note = row_word(row, KEY_NOTE);
    return format_cut(key ? text_in(run, key) : NULL, note ? text_in(run, note) : NULL);
}

static bool is_continued(enum cs_cut cut)
{
    return cut == CS_CUT_CONTINUED || cut == CS_CUT_CONTINUED_GOES_ON;
}

static bool goes_on(enum cs_cut cut)
{
    return cut == CS_CUT_GOES_ON || cut == CS_CUT_CONTINUED_GOES_ON;
}

uint32_t run_open_range(const struct run *run, const struct trace_row *row)
{
    return row_word(row, KEY_CAT) == run->loading->words[WORD_RANGE]
               ? numbers_get(&run->loading->open_ranges, row_word(row, KEY_LOCAL), NONE)
               : NONE;
}

/* Loads one end of a process's range. The rows of the begin and the end have the same id. */
static void load_range_end(struct run *run, const struct trace_row *row, bool begins)
{
    if (row_word(row, KEY_CAT) != run->loading->words[WORD_RANGE]) return;
    uint32_t *at = numbers_at(&run->loading->open_ranges, row_word(row, KEY_LOCAL), NONE);
    if (begins) {
        *at = (uint32_t)run->range_count;
        ADD(run, range,
            (struct range){begin_of(row), INT64_MAX, NONE, row_word(row, KEY_NAME),
                row_word(row, KEY_DOMAIN), row_word(row, KEY_LOCAL), is_continued(cut_of(run, row)),
                false, row_word(row, KEY_NOTE), (uint32_t)row_number(row, KEY_PID, 0)});
    } else if (*at != NONE) {
        run->ranges[*at].end = begin_of(row);
        run->ranges[*at].continues = goes_on(cut_of(run, row));
        *at = NONE;
    }
}

/* Loads a mark of a stream's life. Only the begin has an origin. */
static void load_life(struct run *run, const struct trace_row *row)
{
    const text origin = row_word(row, KEY_ORIGIN);
    struct stream *stream = stream_row(run, row);
    stream->lived = true;
    if (!row_has(row, KEY_ORIGIN)) {
        stream->destroyed = row_number(row, KEY_DESTROYED, 0);
        if (stream->destroyed) stream->end = begin_of(row);
        if (row_has(row, KEY_META_NAME)) stream->name = row_word(row, KEY_META_NAME);
        return;
    }
    stream->known = true;
    stream->name =
        row_has(row, KEY_META_NAME) ? row_word(row, KEY_META_NAME) : row_word(row, KEY_NAME);
    stream->origin = origin == run->loading->words[WORD_LEGACY]       ? ORIGIN_LEGACY
                     : origin == run->loading->words[WORD_PER_THREAD] ? ORIGIN_PER_THREAD
                                                                      : ORIGIN_CREATED;
    stream->non_blocking = !strcmp(text_in(run, row_word(row, KEY_FLAGS)), "non-blocking");
    stream->origin_said = origin;
    stream->flags = row_word(row, KEY_FLAGS);
    stream->priority = (int)row_number(row, KEY_PRIORITY, 0);
    stream->priority_said = row_has(row, KEY_PRIORITY);
    stream->requested = (int)row_number(row, KEY_REQUESTED, stream->priority);
    stream->by_policy = row_number(row, KEY_BY_POLICY, 0);
    stream->created_by = row_word(row, KEY_CREATED_BY);
    stream->library = row_word(row, KEY_LIBRARY);
    stream->thread = (uint32_t)row_number(row, KEY_THREAD, 0);
    if (stream->begin == INT64_MIN)
        stream->begin = begin_of(row); /* of several parts, the first part's begin counts */
}

static void load_meta(struct run *run, const struct trace_row *row)
{
    const struct loading *l = run->loading;
    const text what = row_word(row, KEY_NAME), name = row_word(row, KEY_META_NAME);
    if (what == l->words[WORD_PROCESS_NAME]) {
        if (is_gpu(row)) device_at(run, row->gpu); /* the device's properties tell its name */
        else if (!run->program)
            run->program = name, run->pid = (uint32_t)row_number(row, KEY_PID, 0);
    } else if (what == l->words[WORD_THREAD_NAME]) {
        const uint32_t thread = is_gpu(row) ? NONE : thread_of(run, row);
        if (thread != NONE) run->threads[thread].name = name;
        else if (row_number(row, KEY_CS_STREAM, -1) &&
                 lane_is_streams_own(
                     (uint32_t)row_number(row, KEY_TID, 0), row_has(row, KEY_CS_STREAM)))
            stream_row(run, row)->name = name;
    }
}

static void load_slice(struct run *run, const struct trace_row *row)
{
    const struct loading *l = run->loading;
    const text cat = row_word(row, KEY_CAT);
    if (!cat) return;
    for (enum work_kind kind = 0; kind < WORK_KINDS; kind++)
        if (cat == l->words[WORD_KERNEL + kind]) {
            if (is_gpu(row)) load_work(run, row, kind);
            return;
        }
    if (cat == l->words[WORD_DRIVER] || (cat == l->words[WORD_RUNTIME] && !run->ours))
        load_call(run, row);
    else if (cat == l->words[WORD_CALLBACK]) {
        const uint32_t thread = thread_of(run, row), stream = stream_named(run, row);
        run->threads[thread].callbacks = true;
        ADD(run, callback,
            (struct callback){begin_of(row), end_of(row),
                begin_of(row) - row_number(row, KEY_DELAY, 0), stream, thread});
    } else if (cat == l->words[WORD_RANGE]) {
        const uint32_t thread = thread_of(run, row);
        const enum cs_cut cut = cut_of(run, row);
        ADD(run, range,
            (struct range){begin_of(row), end_of(row), thread, row_word(row, KEY_NAME),
                row_word(row, KEY_DOMAIN), 0, is_continued(cut), goes_on(cut), 0, 0});
    } else if (cat == l->words[WORD_LOSS] || cat == l->words[WORD_WINDOW]) {
        const bool closed = cat == l->words[WORD_WINDOW],
                   no_times = closed || row_word(row, KEY_NAME) == l->words[WORD_NO_TIMES];
        array_add(run->losses, run->loss_count, run->loss_capacity,
            (struct loss){begin_of(row), end_of(row), (uint64_t)row_number(row, KEY_COUNT, 0),
                (uint64_t)row_number(row, KEY_GPU_WORK, 0), row_word(row, KEY_CAUSE), no_times,
                closed});
    }
}

void run_take_row(void *of, const struct trace_row *row)
{
    struct run *run = of;
    const char *ph = text_in(run, row_word(row, KEY_PH));
    run->rows++;
    switch (*ph) {
    case 'X': load_slice(run, row); break;
    case 'i':
        if (is_gpu(row) && row_word(row, KEY_CAT) == run->loading->words[WORD_LIFE])
            load_life(run, row);
        break;
    case 'b': load_range_end(run, row, true); break;
    case 'e': load_range_end(run, row, false); break;
    case 'M': load_meta(run, row); break;
    }
}

/* --- facts --- */

enum { FACTS_MAX = 4096 }; /* a bound: another tool's file may have any number of them */

void run_take_fact(void *of, const struct trace_fact *fact)
{
    struct run *run = of;
    if (!strcmp(fact->path, "metadata.tool"))
        run->ours = !strncmp(text_in(run, fact->value), "custream ", 9);
    if (!strcmp(fact->path, "baseTimeNanoseconds")) run->base = fact->whole;
    if (!strncmp(fact->path, "metadata.merged.", 16)) run->loading->merged = true;
    struct facts *facts = &run->facts;
    if (facts->count >= FACTS_MAX) return;
    const text name = text_number(&run->texts, fact->path, strlen(fact->path));
    const uint32_t at = *numbers_at(&facts->index, name, (uint32_t)facts->count);
    if (at == facts->count) array_add(facts->rows, facts->count, facts->capacity, (struct fact){0});
    facts->rows[at] = (struct fact){fact->value, fact->number};
}

const struct fact *run_fact(const struct run *run, const char *path)
{
    const text name = text_find(&run->texts, path);
    const uint32_t at = name ? numbers_get(&run->facts.index, name, NONE) : NONE;
    return at == NONE ? NULL : &run->facts.rows[at];
}

double run_number(const struct run *run, const char *path, double otherwise)
{
    const struct fact *fact = run_fact(run, path);
    return fact && !fact->value ? fact->number : otherwise;
}

uint32_t run_count(const struct run *run, const char *path, uint32_t otherwise)
{
    const double number = run_number(run, path, otherwise);
    return number >= 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
}

uint32_t run_queues(const struct run *run) { return run_count(run, "metadata.max_connections", 8); }

double run_cut_seconds(const struct run *run)
{
    return run_fact(run, "metadata.cut.from_ns") ? run_number(run, "metadata.cut.seconds", 0) : 0;
}

const char *run_source(const struct run *run)
{
    const struct fact *source = run_fact(run, "totals.gpu.source");
    if (!source) source = run_fact(run, "metadata.gpu_time_source");
    return source ? text_in(run, source->value) : NULL;
}

bool run_has_times(const struct run *run)
{
    const char *source = run_source(run);
    return !run_sample(run) && (run->work_count || !source || strcmp(source, "none"));
}

uint32_t run_sample(const struct run *run)
{
    const uint32_t sample =
        run_count(run, "totals.gpu.sample", run_count(run, "metadata.gpu_sample", 0));
    return sample > 1 ? sample : 0;
}

/* --- files --- */

void run_begin(struct run *run, struct texts texts)
{
#define WORD_SPELLED(word, spelled) spelled,
    static const char *const words[] = {WORDS(WORD_SPELLED)};
    *run = (struct run){.begin = INT64_MAX, .end = INT64_MIN, .texts = texts};
    run->loading = array_zeros(1, sizeof *run->loading);
    for (int word = 0; word < WORD_COUNT; word++)
        run->loading->words[word] = text_number(&run->texts, words[word], strlen(words[word]));
}

void run_init(struct run *run)
{
    struct texts texts;
    texts_init(&texts);
    run_begin(run, texts);
}

void facts_free(struct facts *facts)
{
    free(facts->rows);
    numbers_free(&facts->index);
}

static void load_progress(void *of, uint64_t bytes)
{
    const struct loading *l = ((struct run *)of)->loading;
    if (l->progress) l->progress(l->progress_of, bytes);
}

static bool is_merged(void *of)
{
    const struct run *run = of;
    return run->loading->merged;
}

/* Whether the file is of one run. A file of custream merge is not: its GPUs and facts belong to
 * several runs. */
static bool single(const struct run *run, char error[256])
{
    if (!run->loading->merged) return true;
    snprintf(error, 256,
        "made by 'custream merge': a report is of one run; give it the files that this one was "
        "made of");
    return false;
}

bool run_load(struct run *run, const char *path, void (*progress)(void *of, uint64_t bytes),
    void *of, char error[256])
{
    const struct trace_sink sink = {.of = run,
        .row = run_take_row,
        .fact = run_take_fact,
        .progress = load_progress,
        .left = &run->left,
        .enough = is_merged,
        .last = run->last_bytes,
        .partly = &run->end_only};
    run->loading->progress = progress;
    run->loading->first_shape = (uint32_t)run->shape_count;
    run->loading->progress_of = of;
    const uint32_t pid = run->pid;
    const int64_t base = run->base;
    const size_t losses = run->loss_count, known = run->work_count + run->call_count;
    run->program = 0;
    struct facts before = run->facts;
    run->facts = (struct facts){0};
    const enum trace_end end = trace_read(path, &run->texts, &sink, error);
    struct part part = {.number = run_count(run, "part", 0),
        .without_times = run_number(run, "totals.gpu.without_times", 0),
        .launches_without_kernel = run_number(run, "totals.gpu.launches_without_kernel", 0),
        .without_call = run_number(run, "totals.gpu.without_call", 0),
        .untimed_in_all = run_number(run, "totals.gpu_work_without_times_in_all_parts", NAN),
        .lost_in_all = {run_number(run, "totals.lost_in_all_parts", NAN),
            run_number(run, "totals.gpu_work_lost_in_all_parts", NAN)},
        .continues = run_number(run, "totals.continues", 0) != 0,
        .recovered = run_fact(run, "totals.recovered.cut_bytes")};
    for (size_t i = losses; i < run->loss_count; i++) {
        part.lost.calls += (double)run->losses[i].calls;
        part.lost.works += (double)run->losses[i].works;
    }
    run->cut |= end == TRACE_CUT;
    const unsigned long long times = run->left.times, others = run->left.others;
    bool loaded = end != TRACE_UNREADABLE && single(run, error);
    if (loaded && !run->ours && run->work_count + run->call_count <= known) {
        snprintf(error, 256,
            "no call and no GPU work in it is understood; it has %llu events, %llu without a "
            "usable time and %llu without a phase",
            (unsigned long long)run->rows + times + others, times, others);
        loaded = false;
    } else if (loaded && run->loading->files && (run->pid != pid || run->base != base)) {
        snprintf(error, 256,
            "of another run than the files before it (process %u, not %u): a report is of one run "
            "and its parts",
            run->pid, pid);
        loaded = false;
    }
    /* No part may be read twice. Only custream's own files tell which part they are. */
    for (size_t i = 0; run->ours && run->base && loaded && i < run->part_count; i++) {
        loaded = run->parts[i].number != part.number;
        if (!loaded && part.number)
            snprintf(error, 256, "part %u of the trace, as a file before it: give each part once",
                part.number);
        else if (!loaded) snprintf(error, 256, "the same trace as a file before it: give it once");
    }
    bool newest = true;
    for (size_t i = 0; i < run->part_count; i++) newest &= run->parts[i].number < part.number;
    if (loaded) ADD(run, part, part);
    if (loaded && !newest) { /* the newest part's facts stay */
        const struct facts older = run->facts;
        run->facts = before;
        before = older;
    }
    facts_free(&before);
    run->loading->files += loaded;
    return loaded;
}

static bool is_identified(void *of)
{
    const struct run *run = of;
    return run->loading->merged || (run->program && run->base);
}

bool run_identify(const char *path, struct identity *identity, char error[256])
{
    struct run run;
    run_init(&run);
    const struct trace_sink sink = {
        .of = &run, .row = run_take_row, .fact = run_take_fact, .enough = is_identified};
    const enum trace_end end = trace_read(path, &run.texts, &sink, error);
    *identity = (struct identity){run.pid, run.base};
    const bool read = end != TRACE_UNREADABLE && single(&run, error);
    run_free(&run);
    return read;
}
