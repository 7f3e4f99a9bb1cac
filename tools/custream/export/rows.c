#include "tools/custream/export/rows.h"

#include "tools/custream/command.h"
#include "tools/custream/export/batch.h"
#include "tools/custream/merged.h"
#include "tools/custream/model/model.h"
#include "tools/custream/trace/numbers.h"

/* Words that decide into which table a row goes, and words that the tables use. */
#define WORDS(WORD) \
    WORD(DRIVER, "cuda_driver") WORD(RUNTIME, "cuda_runtime") WORD(CALLBACK, "cs_callback") \
    WORD(KERNEL, "kernel") WORD(COPY, "gpu_memcpy") \
    WORD(SET, "gpu_memset") WORD(GRAPH, "gpu_graph") WORD(SPAN_OF_WORK, "gpu_range") \
    WORD(SYNC, "cuda_sync") WORD(DEPENDENCY, "cs_dep") \
    WORD(RANGE, "user_annotation") WORD(LOSS, "cs_loss") WORD(WAKE_UP, "wake-up") \
    WORD(THREAD_NAME, "thread_name") \
    WORD(IS_DRIVER, "driver") WORD(IS_RUNTIME, "runtime") WORD(IS_CALLBACK, "callback") \
    WORD(IS_RANGE, "range") WORD(IS_SPAN, "span") WORD(IS_MARK, "mark")
#define WORD_ENUMERATOR(word, spelled) WORD_##word,
enum word { WORDS(WORD_ENUMERATOR) WORD_COUNT };

struct open_span {
    int64_t begin;
    text name, domain, note;
    uint32_t process;
};

struct export
{
    struct model model; /* of the current file; all tables use its texts */
    struct texts *texts;
    text words[WORD_COUNT];
    bool begun; /* the first row has come */
    int64_t base;
    /* thread_names: by process and thread, the name; open: by a span's local id, its place in
     * `spans`, or NONE once it has ended */
    struct numbers thread_names, open;
    struct numbers file_of;   /* for a merged trace: by pid, the number of the file in it */
    struct numbers sample_of; /* by that number: of how many calls one has GPU times */
    uint32_t file; /* the number of the current file; NONE: no merged trace, or no row yet */
    bool merged;
    struct open_span *spans;
    size_t span_count, span_capacity;
};

static uint64_t pair(uint64_t high, uint64_t low) { return high << 32 | (low & UINT32_MAX); }
static bool is_gpu(const struct trace_row *row) { return row->gpu != TRACE_NO_GPU; }
static int64_t lasted(const struct trace_row *row)
{
    const int64_t dur = row_number(row, KEY_DUR, 0);
    return dur > 0 ? dur : 0;
}

/* --- values --- */

static void put_number(enum export_column column, const struct trace_row *row, enum trace_key key)
{
    if (row_has(row, key)) batch_put(column, row->number[key]);
}
static void put_word(enum export_column column, const struct trace_row *row, enum trace_key key)
{
    batch_put_text(column, row_word(row, key));
}

#define PUT_TIMES(table, of, row) \
    (batch_put(COLUMN_##table##_start_ns, (of)->base + row_number(row, KEY_TS, 0)), \
    batch_put(COLUMN_##table##_dur_ns, lasted(row)))

static void put_thread(
    const struct trace_row *row, enum export_column process, enum export_column thread)
{
    put_number(process, row, KEY_PID);
    put_number(thread, row, KEY_TID);
}

/* --- rows --- */

static void call_row(struct export *of, const struct trace_row *row, enum word level)
{
    const uint64_t thread =
        pair((uint64_t)row_number(row, KEY_PID, 0), (uint64_t)row_number(row, KEY_TID, 0));
    PUT_TIMES(CALLS, of, row);
    batch_put_text(COLUMN_CALLS_level, of->words[level]);
    put_word(COLUMN_CALLS_name, row, KEY_NAME);
    put_thread(row, COLUMN_CALLS_process, COLUMN_CALLS_thread);
    batch_put_text(COLUMN_CALLS_thread_name, numbers_get(&of->thread_names, thread, 0));
    if (row_has(row, KEY_CS_STREAM))
        batch_put(COLUMN_CALLS_device, row_number(row, KEY_CS_DEVICE, 0));
    put_number(COLUMN_CALLS_stream, row, KEY_CS_STREAM);
    put_number(COLUMN_CALLS_correlation, row, KEY_CORRELATION);
    put_word(COLUMN_CALLS_kernel, row, KEY_KERNEL);
    put_number(COLUMN_CALLS_bytes, row, KEY_BYTES);
    put_number(COLUMN_CALLS_blocked_ns, row, KEY_BLOCKED);
    put_number(COLUMN_CALLS_delay_ns, row, KEY_DELAY);
    put_number(COLUMN_CALLS_event, row, KEY_EVENT);
    put_word(COLUMN_CALLS_result, row, KEY_RESULT);
    put_number(COLUMN_CALLS_captured, row, KEY_CAPTURED);
    batch_row(TABLE_CALLS);
}

static void put_shape(const struct shape *shape)
{
    for (int i = 0; i < 3; i++) {
        batch_put((enum export_column)(COLUMN_WORK_grid_x + i), shape->grid[i]);
        batch_put((enum export_column)(COLUMN_WORK_block_x + i), shape->block[i]);
    }
    if (shape->registers >= 0) batch_put(COLUMN_WORK_registers, shape->registers);
    batch_put(COLUMN_WORK_shared_memory, shape->shared_memory);
}

static void work_row(struct export *of, const struct trace_row *row)
{
    PUT_TIMES(WORK, of, row);
    put_word(COLUMN_WORK_kind, row, KEY_CAT);
    put_word(COLUMN_WORK_name, row, KEY_NAME);
    if (is_gpu(row)) batch_put(COLUMN_WORK_device, row->gpu);
    batch_put(COLUMN_WORK_stream, row_stream(row));
    put_number(COLUMN_WORK_correlation, row, KEY_CORRELATION);
    put_number(COLUMN_WORK_bytes, row, KEY_BYTES);
    if (row->shape) put_shape(row->shape);
    put_number(COLUMN_WORK_graph, row, KEY_GRAPH);
    put_number(COLUMN_WORK_graph_node, row, KEY_GRAPH_NODE);
    put_number(COLUMN_WORK_waited_ns, row, KEY_WAITED);
    put_word(COLUMN_WORK_waited_for, row, KEY_WAITED_FOR);
    put_number(COLUMN_WORK_waited_for_stream, row, KEY_WAITED_STREAM);
    batch_row(TABLE_WORK);
    for (unsigned i = 0; i < row->id_count && row_has(row, KEY_WAIT_IDS); i++) {
        put_number(COLUMN_DEPENDENCIES_correlation, row, KEY_CORRELATION);
        batch_put(COLUMN_DEPENDENCIES_waits_for, row->ids[i]);
        batch_row(TABLE_DEPENDENCIES);
    }
}

static void wait_row(struct export *of, const struct trace_row *row)
{
    PUT_TIMES(WAITS, of, row);
    put_word(COLUMN_WAITS_kind, row, KEY_NAME);
    if (is_gpu(row)) {
        batch_put(COLUMN_WAITS_device, row->gpu);
        put_number(COLUMN_WAITS_stream, row, KEY_CS_STREAM);
    } else {
        put_thread(row, COLUMN_WAITS_process, COLUMN_WAITS_thread);
    }
    put_number(COLUMN_WAITS_on_stream, row, KEY_RECORDED_ON);
    put_number(COLUMN_WAITS_event, row, KEY_EVENT);
    batch_row(TABLE_WAITS);
}

static void loss_row(struct export *of, const struct trace_row *row)
{
    PUT_TIMES(LOSSES, of, row);
    put_word(COLUMN_LOSSES_name, row, KEY_NAME);
    put_number(COLUMN_LOSSES_calls, row, KEY_COUNT);
    put_number(COLUMN_LOSSES_gpu_work, row, KEY_GPU_WORK);
    put_word(COLUMN_LOSSES_cause, row, KEY_CAUSE);
    batch_row(TABLE_LOSSES);
}

/* --- ranges --- */

static void range_row(struct export *of, const struct trace_row *row, enum word kind)
{
    PUT_TIMES(RANGES, of, row);
    batch_put_text(COLUMN_RANGES_kind, of->words[kind]);
    put_word(COLUMN_RANGES_name, row, KEY_NAME);
    put_word(COLUMN_RANGES_domain, row, KEY_DOMAIN);
    put_thread(row, COLUMN_RANGES_process, COLUMN_RANGES_thread);
    put_word(COLUMN_RANGES_note, row, KEY_NOTE);
    batch_row(TABLE_RANGES);
}

static void span_row(const struct export *of, const struct open_span *span, int64_t end, text note)
{
    batch_put(COLUMN_RANGES_start_ns, of->base + span->begin);
    if (end != INT64_MIN) batch_put(COLUMN_RANGES_dur_ns, end - span->begin);
    batch_put_text(COLUMN_RANGES_kind, of->words[WORD_IS_SPAN]);
    batch_put_text(COLUMN_RANGES_name, span->name);
    batch_put_text(COLUMN_RANGES_domain, span->domain);
    batch_put(COLUMN_RANGES_process, span->process);
    batch_put_text(COLUMN_RANGES_note, note ? note : span->note);
    batch_row(TABLE_RANGES);
}

/* Keeps a span until its end comes, in the first free place of `spans`. */
static void span_begins(struct export *of, const struct trace_row *row)
{
    uint32_t *at = numbers_at(&of->open, row_word(row, KEY_LOCAL), NONE);
    if (*at == NONE) {
        size_t free = 0;
        while (free < of->span_count && of->spans[free].name) free++;
        if (free == of->span_count)
            of->spans =
                array_room(of->spans, of->span_count++, &of->span_capacity, sizeof *of->spans);
        *at = (uint32_t)free;
    }
    of->spans[*at] = (struct open_span){row_number(row, KEY_TS, 0), row_word(row, KEY_NAME),
        row_word(row, KEY_DOMAIN), row_word(row, KEY_NOTE), (uint32_t)row_number(row, KEY_PID, 0)};
}

static void span_ends(struct export *of, const struct trace_row *row)
{
    uint32_t *at = numbers_at(&of->open, row_word(row, KEY_LOCAL), NONE);
    if (*at == NONE) return;
    span_row(of, &of->spans[*at], row_number(row, KEY_TS, 0), row_word(row, KEY_NOTE));
    of->spans[*at].name = 0;
    *at = NONE;
}

/* --- at the file's end: streams and idle times --- */

static void stream_row(const struct export *of, const struct stream *stream)
{
    batch_put(COLUMN_STREAMS_device, of->model.run.devices[stream->device].ordinal);
    batch_put(COLUMN_STREAMS_stream, stream->lane);
    batch_put_text(COLUMN_STREAMS_name, stream->name);
    batch_put_text(COLUMN_STREAMS_origin, stream->origin_said);
    batch_put_text(COLUMN_STREAMS_flags, stream->flags);
    if (stream->priority_said)
        batch_put(COLUMN_STREAMS_priority, stream->priority),
            batch_put(COLUMN_STREAMS_requested_priority, stream->requested);
    batch_put_text(COLUMN_STREAMS_created_by, stream->created_by);
    batch_put_text(COLUMN_STREAMS_library, stream->library);
    if (stream->thread) batch_put(COLUMN_STREAMS_thread, stream->thread);
    if (stream->begin != INT64_MIN) batch_put(COLUMN_STREAMS_begin_ns, of->base + stream->begin);
    if (stream->end != INT64_MAX) batch_put(COLUMN_STREAMS_end_ns, of->base + stream->end);
    batch_row(TABLE_STREAMS);
}

static void put_words(struct export *of, enum export_column column, const char *words)
{
    batch_put_text(column, text_number(of->texts, words, strlen(words)));
}

static void idle_row(struct export *of, const struct idle *idle)
{
    const struct run *run = &of->model.run;
    batch_put(COLUMN_IDLE_start_ns, of->base + idle->begin);
    batch_put(COLUMN_IDLE_dur_ns, idle->end - idle->begin);
    batch_put(COLUMN_IDLE_device, run->devices[idle->device].ordinal);
    put_words(of, COLUMN_IDLE_cause, cause_info[idle->cause].key);
    put_words(of, COLUMN_IDLE_why, cause_info[idle->cause].title);
    if (idle->cause == CAUSE_HOST) {
        put_words(of, COLUMN_IDLE_doing, doing_word[idle->doing]);
        batch_put(COLUMN_IDLE_thread, run->threads[idle_thread(run, idle)].tid);
    }
    if (idle->call != NONE) batch_put_text(COLUMN_IDLE_in_call, run->calls[idle->call].name);
    batch_row(TABLE_IDLE);
}

static void model_rows(struct export *of)
{
    model_settle(&of->model, false);
    for (size_t i = 0; i < of->model.run.stream_count; i++)
        if (of->model.run.streams[i].lived) stream_row(of, &of->model.run.streams[i]);
    for (size_t i = 0; i < of->model.idles.count; i++) idle_row(of, &of->model.idles.rows[i]);
}

/* --- the file --- */

static void slice_row(struct export *of, const struct trace_row *row)
{
    const text cat = row_word(row, KEY_CAT), *words = of->words;
    if (!cat) return;
    if (cat == words[WORD_DRIVER]) call_row(of, row, WORD_IS_DRIVER);
    else if (cat == words[WORD_RUNTIME]) call_row(of, row, WORD_IS_RUNTIME);
    else if (cat == words[WORD_CALLBACK]) call_row(of, row, WORD_IS_CALLBACK);
    else if (cat >= words[WORD_KERNEL] && cat <= words[WORD_SPAN_OF_WORK]) work_row(of, row);
    else if (cat == words[WORD_SYNC] ||
             (cat == words[WORD_DEPENDENCY] && row_word(row, KEY_NAME) == words[WORD_WAKE_UP]))
        wait_row(of, row);
    else if (cat == words[WORD_RANGE]) range_row(of, row, WORD_IS_RANGE);
    else if (cat == words[WORD_LOSS]) loss_row(of, row);
}

/* Writes all that is left of a file. In a merged trace this happens before the next file's rows. */
static void file_ends(struct export *of)
{
    for (size_t i = 0; i < of->span_count; i++)
        if (of->spans[i].name) span_row(of, &of->spans[i], INT64_MIN, 0);
    model_rows(of);
    for (enum export_table table = 0; table < TABLE_COUNT; table++) batch_flush(table);
    of->span_count = 0;
    numbers_free(&of->open);
    of->open = (struct numbers){0};
}

/* Begins another file of a merged trace if the row is of it. The files' rows follow each other,
 * behind all rows of names. */
static void take_file(struct export *of, const struct trace_row *row)
{
    const uint32_t file = numbers_get(&of->file_of, (uint64_t)row_number(row, KEY_PID, 0), NONE);
    if (file == of->file || file == NONE) return;
    file_ends(of);
    model_begin_again(&of->model);
    of->model.run.ours = true;
    run_take_fact(&of->model.run, &(struct trace_fact){.path = "metadata.gpu_sample",
                                      .number = numbers_get(&of->sample_of, file, 0)});
    of->file = file;
    batch_merged(file);
}

static void on_row(void *self, const struct trace_row *row)
{
    struct export *of = self;
    const text cat = row_word(row, KEY_CAT);
    if (!of->begun) of->begun = true, batch_flush(TABLE_FACTS);
    if (of->merged && *text_of(of->texts, row_word(row, KEY_PH)) != 'M') take_file(of, row);
    run_take_row(&of->model.run, row);
    switch (*text_of(of->texts, row_word(row, KEY_PH))) {
    case 'X': slice_row(of, row); break;
    case 'i':
        if (cat == of->words[WORD_RANGE]) range_row(of, row, WORD_IS_MARK);
        break;
    case 'b':
        if (cat == of->words[WORD_RANGE]) span_begins(of, row);
        break;
    case 'e':
        if (cat == of->words[WORD_RANGE]) span_ends(of, row);
        break;
    case 'M':
        if (row_word(row, KEY_NAME) == of->words[WORD_THREAD_NAME] && !is_gpu(row))
            *numbers_at(&of->thread_names,
                pair((uint64_t)row_number(row, KEY_PID, 0), (uint64_t)row_number(row, KEY_TID, 0)),
                0) = row_word(row, KEY_META_NAME);
        break;
    }
}

/* Puts a fact into its table. on_row() writes the header's facts before the first row. */
static void on_fact(void *self, const struct trace_fact *fact)
{
    struct export *of = self;
    unsigned file;
    int behind = 0;
    if (!strcmp(fact->path, "baseTimeNanoseconds")) of->base = fact->whole;
    if (!fact->value && sscanf(fact->path, "metadata.merged.files.%u.%n", &file, &behind) == 1 &&
        !strcmp(fact->path + behind, "gpu_sample"))
        *numbers_at(&of->sample_of, file, 0) = (uint32_t)fact->whole;
    behind = 0;
    if (!fact->value &&
        sscanf(fact->path, "metadata.merged.files.%u.pids.%n", &file, &behind) == 1 &&
        behind) { /* parts of a process have the same pids: all count as the first part */
        uint32_t *at = numbers_at(&of->file_of, (uint64_t)fact->whole, NONE);
        if (*at == NONE) *at = file;
        of->merged = true;
    }
    run_take_fact(&of->model.run, fact);
    batch_put_text(COLUMN_FACTS_key, text_number(of->texts, fact->path, strlen(fact->path)));
    if (fact->value) batch_put_text(COLUMN_FACTS_text, fact->value);
    else batch_put_real(COLUMN_FACTS_value, fact->number);
    if (!fact->value && fact->number == (double)fact->whole)
        batch_put(COLUMN_FACTS_whole, fact->whole);
    batch_row(TABLE_FACTS);
}

static void export_free(struct export *of)
{
    numbers_free(&of->thread_names);
    numbers_free(&of->open);
    numbers_free(&of->file_of);
    numbers_free(&of->sample_of);
    free(of->spans);
    model_free(&of->model);
}

enum trace_end rows_export(const char *path, char error[256])
{
    static const char *const spelled[WORD_COUNT] = {
#define WORD_SPELLED(word, text) text,
        WORDS(WORD_SPELLED)};
    struct export of = {.file = NONE};
    const struct trace_sink sink = {.of = &of, .row = on_row, .fact = on_fact};
    model_init(&of.model);
    of.texts = &of.model.run.texts;
    for (enum word word = 0; word < WORD_COUNT; word++)
        of.words[word] = text_number(of.texts, spelled[word], strlen(spelled[word]));
    batch_begin(of.texts);
    const enum trace_end end = trace_read(path, of.texts, &sink, error);
    file_ends(&of);
    export_free(&of);
    return end;
}
