/* Rows of the files, each with its pid, time and ids as the merged trace has them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/merge/shapes.h"
#include "tools/custream/merge/source.h"
#include "tools/custream/merge/window.h"
#include "tools/custream/merge/write.h"
#include "tools/custream/show.h"

struct writing {
    struct out *out;
    const struct plan *plan;
    const struct file *file;
    const struct process *process;
    struct window window;
    struct shapes shapes; /* with a window */
    char *list;
    size_t list_capacity;
    uint64_t rows;
    bool written; /* a row of some file */
};

static bool is_replaced(const struct plan *plan, const struct row *row)
{
    const struct piece name = row->pieces[ROW_NAME];
    if (plan->alone) return false;
    return row->ph == 'M' && (piece_is(name, "process_name") || piece_is(name, "process_labels") || piece_is(name, "process_sort_index"));
}

static void change_time(struct change *change, enum row_key key, int64_t ns)
{
    const uint64_t size = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;
    *change = (struct change){.key = key};
    snprintf(change->text, sizeof change->text, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", size / 1000, (unsigned)(size % 1000));
}

/* By another clock what follows another row still follows it, and does not overlap it by a nanosecond: so the end is told anew as the begin is. */
static int change_times(struct change *changes, const struct row *row, const struct process *process)
{
    int64_t ts, duration;
    if (!piece_ns(row->pieces[ROW_TS], &ts)) return 0;
    change_time(&changes[0], ROW_TS, time_merged(process, ts));
    if (!process->clock || !row->pieces[ROW_DUR].at || !piece_ns(row->pieces[ROW_DUR], &duration)) return 1;
    change_time(&changes[1], ROW_DUR, time_merged(process, ts + duration) - time_merged(process, ts));
    return 2;
}

/* The first time in the file that is no earlier than this one in the merged trace. */
static int64_t time_before_merge(const struct file *file, const struct process *process, int64_t merged)
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

/* False: there is no more room for its number. A text that is no number becomes one: nothing else makes it different from that of another file. */
static bool change_id(struct change *changes, int *count, const struct row *row, enum row_key key, const struct process *process, uint64_t place)
{
    const struct piece id = row->pieces[key];
    uint64_t number, merged;
    if (!id.at) return true;
    struct change *change = &changes[*count];
    const bool natural = piece_natural(id, &number);
    *change = (struct change){.key = key};
    if (key == ROW_CORRELATION && (!natural || !number)) return true; /* none */
    if (!natural) merged = piece_hash(place, id) >> 12 | UINT64_C(1) << 52;
    else if (!id_merged(process, number, &merged)) return false;
    snprintf(change->text, sizeof change->text, *id.at == '"' || !natural ? "\"0x%" PRIx64 "\"" : "%" PRIu64, merged);
    ++*count;
    return true;
}

/* The correlations of the work that it waited for: its own process's. */
static bool change_waits(struct writing *w, struct change *changes, int *count, const struct row *row)
{
    struct piece waits = row->pieces[ROW_WAIT_IDS];
    uint64_t number, merged;
    size_t length = 0;
    while (piece_next(&waits, &number)) {
        if (!id_merged(w->process, number, &merged)) return false;
        while (length + 24 > w->list_capacity) w->list = array_room(w->list, w->list_capacity, &w->list_capacity, 1);
        length += (size_t)sprintf(w->list + length, "%c%" PRIu64, length ? ',' : '[', merged);
    }
    if (length) sprintf(w->list + length, "]");
    if (length && waits.length == 1) changes[(*count)++] = (struct change){.key = ROW_WAIT_IDS, .longer = w->list}; /* all of it are numbers */
    return true;
}

static bool row_write(void *of, const char *text, size_t length, char error[256])
{
    static const char too_many[] = "its ids, and those of the files before it, are more than fit a trace";
    struct writing *w = of;
    struct change changes[ROW_KEYS];
    struct row row;
    int count = 0;
    if (w->rows++ >= w->file->rows) return true; /* the process still writes: the plan knows nothing of these */
    if (w->plan->windowed) shapes_tell(&w->shapes, &text, &length);
    const struct group *group = row_read(&row, text, length) ? group_of(w->file, row.pieces[ROW_PID]) : NULL;
    if (!group) return snprintf(error, 256, "it was changed while it was read"), false;
    const bool kept = !w->plan->windowed || window_keeps(&w->window, &row);
    if (!kept || is_replaced(w->plan, &row)) return true;
    if (row.pieces[ROW_PID].at) {
        changes[count] = (struct change){.key = ROW_PID};
        snprintf(changes[count++].text, sizeof changes->text, "%" PRIu32, group->merged);
    }
    count += change_times(&changes[count], &row, w->process);
    for (enum row_key key = ROW_ID; key <= ROW_CORRELATION; key++)
        if (key != ROW_ID2 && !change_id(changes, &count, &row, key, w->process, (uint64_t)w->file->process))
            return snprintf(error, 256, "%s", too_many), false;
    if (!change_waits(w, changes, &count, &row)) return snprintf(error, 256, "%s", too_many), false;
    out_text(w->out, w->plan->alone && !w->written ? "\n" : ",\n");
    w->written = true;
    if (!row.pieces[ROW_PID].at) {
        out_print(w->out, "{\"pid\":%" PRIu32 ",", group->merged);
        row.text++, row.length--;
    }
    row_put(&row, changes, count, out_put, w->out);
    return !w->out->failed || (snprintf(error, 256, "not merged"), false);
}

bool rows_write(struct out *out, struct plan *plan)
{
    bool written = false;
    for (size_t i = 0; i < plan->file_count; i++) {
        const struct file *file = &plan->files[i];
        struct writing w = {.out = out, .plan = plan, .file = file, .process = &plan->processes[file->process], .written = written};
        const struct source_sink sink = {.of = &w, .row = row_write};
        char error[256];
        const int64_t from = time_before_merge(file, w.process, plan->begin + plan->window[0]), to = time_before_merge(file, w.process, plan->begin + plan->window[1]);
        if (plan->windowed && !window_survey(&w.window, file, from, to)) return false;
        if (plan->range && (plan->idle = !w.window.called)) return complain("custream merge", "%s: no call of CUDA was made in the range", file->shown), false;
        const enum source_end end = source_read(file->path, &sink, error);
        window_free(&w.window);
        shapes_free(&w.shapes);
        free(w.list);
        written = w.written;
        if (out->failed) return true; /* out_close() says why */
        if (end == SOURCE_BROKEN) return complain("custream merge", "%s: %s", file->shown, error), false;
        if (w.rows < file->rows) return complain("custream merge", "%s: it was changed while it was read", file->shown), false;
    }
    return true;
}
