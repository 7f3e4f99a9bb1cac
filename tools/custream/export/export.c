/* custream export: makes tables of the rows of traces; Python's pyarrow writes them as Parquet. */
#include <errno.h>
#include <getopt.h>

#include "tools/custream/command.h"
#include "tools/custream/export/batch.h"
#include "tools/custream/lanes.h"
#include "tools/custream/model/model.h"
#include "tools/custream/module.h"

static const char NAME[] = "custream export";

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

struct export
{
    struct model model; /* the model of the current file; all tables use its texts */
    struct texts *texts;
    text words[WORD_COUNT];
    bool begun; /* the first row has come */
    int64_t base;
    struct numbers thread_names; /* names of threads, by process and thread */
    struct numbers file_of;      /* for a merged trace: the number of the file in it, by pid */
    struct numbers sample_of; /* by the number of the file: one in how many calls has GPU times */
    uint32_t file; /* the number of the current file; NONE: no merged trace, or no row yet */
    bool merged;
};

static bool is_gpu(const struct trace_row *row) { return row->gpu != TRACE_NO_GPU; }
static uint64_t thread_of(const struct trace_row *row)
{
    return key_of((uint32_t)row_number(row, KEY_PID, 0), (uint32_t)row_number(row, KEY_TID, 0));
}

static void put_number(enum export_column column, const struct trace_row *row, enum trace_key key)
{
    if (row_has(row, key)) batch_put(column, row->number[key]);
}

static void row_end(struct export *of, enum export_table table, const struct trace_row *row)
{
    batch_take(table, row, of->base);
    batch_row(table);
}

/* --- rows --- */

static void call_row(struct export *of, const struct trace_row *row, enum word level)
{
    batch_put_text(COLUMN_CALLS_level, of->words[level]);
    batch_put_text(COLUMN_CALLS_thread_name, numbers_get(&of->thread_names, thread_of(row), 0));
    if (row_has(row, KEY_CS_STREAM))
        batch_put(COLUMN_CALLS_device, row_number(row, KEY_CS_DEVICE, 0));
    row_end(of, TABLE_CALLS, row);
}

static void work_row(struct export *of, const struct trace_row *row)
{
    if (is_gpu(row)) batch_put(COLUMN_WORK_device, row->gpu);
    batch_put(COLUMN_WORK_stream, row_stream(row));
    const struct shape *shape = row->shape;
    for (enum export_column i = 0; shape && i < 3; i++) {
        batch_put(COLUMN_WORK_grid_x + i, shape->grid[i]);
        batch_put(COLUMN_WORK_block_x + i, shape->block[i]);
    }
    if (shape && shape->registers >= 0) batch_put(COLUMN_WORK_registers, shape->registers);
    if (shape) batch_put(COLUMN_WORK_shared_memory, shape->shared_memory);
    row_end(of, TABLE_WORK, row);
    for (unsigned i = 0; i < row->id_count && row_has(row, KEY_WAIT_IDS); i++) {
        batch_put(COLUMN_DEPENDENCIES_waits_for, row->ids[i]);
        row_end(of, TABLE_DEPENDENCIES, row);
    }
}

static void range_row(struct export *of, const struct trace_row *row, enum word kind)
{
    batch_put_text(COLUMN_RANGES_kind, of->words[kind]);
    row_end(of, TABLE_RANGES, row);
}

/* Puts a range of the process. `end`: the row of its end; NULL: the file has none. */
static void span_row(struct export *of, const struct range *span, const struct trace_row *end)
{
    batch_put(COLUMN_RANGES_start_ns, of->base + span->begin);
    if (end) batch_put(COLUMN_RANGES_dur_ns, span->end - span->begin);
    batch_put_text(COLUMN_RANGES_kind, of->words[WORD_IS_SPAN]);
    batch_put_text(COLUMN_RANGES_name, span->name);
    batch_put_text(COLUMN_RANGES_domain, span->domain);
    batch_put(COLUMN_RANGES_process, span->process);
    batch_put_text(
        COLUMN_RANGES_note, end && row_word(end, KEY_NOTE) ? row_word(end, KEY_NOTE) : span->note);
    batch_row(TABLE_RANGES);
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
             (cat == words[WORD_DEPENDENCY] && row_word(row, KEY_NAME) == words[WORD_WAKE_UP])) {
        if (is_gpu(row)) {
            batch_put(COLUMN_WAITS_device, row->gpu);
            put_number(COLUMN_WAITS_stream, row, KEY_CS_STREAM);
        } else {
            put_number(COLUMN_WAITS_process, row, KEY_PID);
            put_number(COLUMN_WAITS_thread, row, KEY_TID);
        }
        row_end(of, TABLE_WAITS, row);
    } else if (cat == words[WORD_RANGE]) range_row(of, row, WORD_IS_RANGE);
    else if (cat == words[WORD_LOSS]) row_end(of, TABLE_LOSSES, row);
}

/* Writes all that is left of a file. In a merged trace this happens before the next file's rows. */
static void file_ends(struct export *of)
{
    const struct run *run = &of->model.run;
    for (size_t i = 0; i < run->range_count; i++)
        if (run->ranges[i].end == INT64_MAX) span_row(of, &run->ranges[i], NULL);
    model_settle(&of->model);
    for (size_t i = 0; i < run->stream_count; i++)
        if (run->streams[i].lived) stream_row(of, &run->streams[i]);
    for (size_t i = 0; i < of->model.idles.count; i++) idle_row(of, &of->model.idles.rows[i]);
    for (enum export_table table = 0; table < TABLE_COUNT; table++) batch_flush(table);
}

/* If the row is of another file of a merged trace, begins that file. A file's rows are together. */
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
    const uint32_t span = run_open_range(&of->model.run, row);
    run_take_row(&of->model.run, row);
    switch (*text_of(of->texts, row_word(row, KEY_PH))) {
    case 'X': slice_row(of, row); break;
    case 'i':
        if (cat == of->words[WORD_RANGE]) range_row(of, row, WORD_IS_MARK);
        break;
    case 'e':
        if (span != NONE) span_row(of, &of->model.run.ranges[span], row);
        break;
    case 'M':
        if (row_word(row, KEY_NAME) == of->words[WORD_THREAD_NAME] && !is_gpu(row))
            *numbers_at(&of->thread_names, thread_of(row), 0) = row_word(row, KEY_META_NAME);
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

/* Exports the whole file in one pass. Only the model stays in memory. */
static enum trace_end rows_export(const char *path, char error[256])
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
    numbers_free(&of.thread_names);
    numbers_free(&of.file_of);
    numbers_free(&of.sample_of);
    model_free(&of.model);
    return end;
}

/* --- the command --- */

int command_export(int argc, char **argv)
{
    const cJSON *options = module_options(argc, argv);
    const char *folder = cJSON_GetStringValue(cJSON_GetObjectItem(options, "parquet"));
    if (cJSON_HasObjectItem(options, "schema")) return batch_schema(), STATUS_OK;
    if (optind == argc) return complain(NAME, "which trace? 'custream help export' says more");
    if (cJSON_HasObjectItem(options, "batches")) {
        char error[256];
        if (argc - optind > 1) return complain(NAME, "--batches: of one trace at a time");
        const enum trace_end end = rows_export(argv[optind], error);
        if (!batch_good()) return complain(NAME, "standard output: %s", strerror(errno));
        return end == TRACE_UNREADABLE ? complain(NAME, "%s: %s", argv[optind], error) : STATUS_OK;
    }
    if (!folder || !*folder) return complain(NAME, "--parquet=DIR: where the tables go is missing");
    return module_run(NAME, "export", options, argv + optind);
}
