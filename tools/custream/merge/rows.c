/* Writes the rows of the files with the merged trace's pids, times and ids. */
#include <inttypes.h>
#include <yyjson.h>

#include "tools/custream/merge/window.h"
#include "tools/custream/command.h"

struct writing {
    struct out *out;
    const struct plan *plan;
    const struct file *file;
    const struct process *process;
    struct window window;
    struct shapes shapes; /* only if the merge has a window */
    struct rope text;
    uint64_t rows;
    bool written; /* a row was written, of this file or of a file before it */
};

enum { VALUE_TEXT = 40 };

/* Whether a row names a process. The merged trace has names of its own. */
static bool is_name(const struct merge_row *row)
{
    const char *name = yyjson_get_str(row->at[ROW_NAME]);
    return row->ph == 'M' && name &&
           ONE_OF(name, "process_name", "process_labels", "process_sort_index");
}

static void time_set(yyjson_val *value, char text[VALUE_TEXT], int64_t ns)
{
    const uint64_t size = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;
    const int length = snprintf(text, VALUE_TEXT, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "",
        size / 1000, (unsigned)(size % 1000));
    unsafe_yyjson_set_raw(value, text, (size_t)length);
}

/* Returns the first time of the file that is `merged` or later in the merged trace. */
static int64_t time_before_merge(
    const struct file *file, const struct process *process, int64_t merged)
{
    if (!process->clock) return merged - process->shift;
    int64_t low = file->first - 1, high = file->last + 1;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (time_merged(process, middle) >= merged) high = middle;
        else low = middle;
    }
    return high;
}

/* Replaces an id by the merged trace's. An id that is a text becomes a number that no other process
 * has. Returns false if the id's range has no more room. */
static bool id_set(const struct writing *w, yyjson_val *id, bool correlation, char text[VALUE_TEXT])
{
    uint64_t number, merged;
    const bool natural = value_natural(id, &number);
    if (!id || yyjson_is_ctn(id) || (correlation && (!natural || !number))) return true;
    if (!natural) merged = value_hash((uint64_t)w->file->process, id) >> 12 | UINT64_C(1) << 52;
    else if (!id_merged(w->process, number, &merged)) return false;
    if (natural && !yyjson_is_str(id)) unsafe_yyjson_set_uint(id, merged);
    else unsafe_yyjson_set_strn(id, text, (size_t)snprintf(text, VALUE_TEXT, "0x%" PRIx64, merged));
    return true;
}

static bool row_write(void *of, struct json *json, char error[256])
{
    struct writing *w = of;
    char ids[3][VALUE_TEXT], times[2][VALUE_TEXT];
    struct merge_row row;
    if (w->rows++ >= w->file->rows)
        return true; /* the process still writes: plan_make() has not read this row */
    yyjson_val *value = w->plan->windowed ? shapes_tell(&w->shapes, json->value) : json->value;
    const struct group *group = row_read(&row, value) ? group_of(w->file, row.at[ROW_PID]) : NULL;
    if (!group) return snprintf(error, 256, "it was changed while it was read"), false;
    const bool kept = !w->plan->windowed || window_keeps(&w->window, &row);
    if (!kept || (!w->plan->alone && is_name(&row))) return true;
    yyjson_val *waits; /* correlations of other work of the same process */
    size_t i, count;
    uint64_t number, merged;
    bool fits = id_set(w, row.at[ROW_ID], false, ids[0]) &&
                id_set(w, row.at[ROW_BIND_ID], false, ids[1]) &&
                id_set(w, row.at[ROW_CORRELATION], true, ids[2]);
    yyjson_arr_foreach(row.at[ROW_WAIT_IDS], i, count, waits) {
        if (yyjson_is_str(waits) || !value_natural(waits, &number)) continue;
        fits = fits && id_merged(w->process, number, &merged);
        if (fits) unsafe_yyjson_set_uint(waits, merged);
    }
    if (!fits)
        return snprintf(error, 256,
                   "its ids, and those of the files before it, are more than fit a trace"),
               false;
    int64_t ts, duration;
    if (value_ns(row.at[ROW_TS], &ts)) {
        const int64_t begin = time_merged(w->process, ts);
        time_set(row.at[ROW_TS], times[0], begin);
        /* With a clock, begin and end are converted one by one, so that rows that followed each
         * other still do. */
        if (w->process->clock && value_ns(row.at[ROW_DUR], &duration))
            time_set(row.at[ROW_DUR], times[1], time_merged(w->process, ts + duration) - begin);
    }
    w->text.length = 0;
    rope_print(&w->text, w->plan->alone && !w->written ? "\n" : ",\n");
    if (row.at[ROW_PID]) unsafe_yyjson_set_uint(row.at[ROW_PID], group->merged);
    else rope_print(&w->text, "{\"pid\":%" PRIu32, group->merged);
    const size_t brace = w->text.length;
    row_print(&w->text, value);
    if (!row.at[ROW_PID]) w->text.at[brace] = ',';
    w->written = true;
    out_put(w->out, w->text.at, w->text.length);
    return !w->out->failed || (snprintf(error, 256, "not merged"), false);
}

bool rows_write(struct out *out, struct plan *plan)
{
    bool written = false;
    for (size_t i = 0; i < plan->file_count; i++) {
        const struct file *file = &plan->files[i];
        struct writing w = {.out = out,
            .plan = plan,
            .file = file,
            .process = &plan->processes[file->process],
            .written = written};
        const struct source_sink sink = {.of = &w, .row = row_write};
        char error[256];
        const int64_t from = time_before_merge(file, w.process, plan->begin + plan->window[0]);
        const int64_t to = time_before_merge(file, w.process, plan->begin + plan->window[1]);
        if (plan->windowed && !window_survey(&w.window, file, from, to)) return false;
        if (plan->range && (plan->idle = !w.window.called))
            return complained(
                "custream merge", "%s: no call of CUDA was made in the range", file->shown);
        const enum json_step end = source_read(file->path, file->skip_to, &sink, error);
        window_free(&w.window);
        shapes_free(&w.shapes);
        free(w.text.at);
        written = w.written;
        if (out->failed) return true; /* out_close() says why */
        if (end == JSON_BROKEN) return complained("custream merge", "%s: %s", file->shown, error);
        if (w.rows < file->rows)
            return complained(
                "custream merge", "%s: it was changed while it was read", file->shown);
    }
    return true;
}
