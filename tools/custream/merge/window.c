#include "tools/custream/merge/window.h"

#include <yyjson.h>

#include "tools/custream/command.h"

static const char NAME[] = "custream merge";

/* Whether the row is the begin or the end of something, such as a mark of a stream's life. */
static bool is_paired(const struct merge_row *row)
{
    return strchr("BEbe", row->ph) ||
           (row->ph == 'i' && yyjson_equals_str(row->at[ROW_CAT], "cs_stream") &&
               row->at[ROW_STREAM]);
}
static bool is_arrow(char ph) { return ph && strchr("stf", ph); }

/* Returns a key that is the same for rows that belong together: a pair, a counter's values, an
 * arrow. */
static uint64_t key_of(const struct merge_row *row)
{
    static const struct {
        char phases[4];
        enum row_key keys[6]; /* ends with ROW_PH, which is 0 */
    } kinds[] = {{"BE", {ROW_PID, ROW_TID}}, {"be", {ROW_PID, ROW_CAT, ROW_ID, ROW_ID2, ROW_NAME}},
        {"C", {ROW_PID, ROW_NAME, ROW_ID}}, {"stf", {ROW_CAT, ROW_ID}},
        {"i", {ROW_PID, ROW_STREAM}}};
    size_t kind = 0;
    while (!strchr(kinds[kind].phases, row->ph)) kind++;
    uint64_t key = kind;
    for (const enum row_key *at = kinds[kind].keys; *at; at++) key = value_hash(key, row->at[*at]);
    return key;
}

static bool lies_in(const struct window *window, int64_t ts)
{
    return ts >= window->from && ts < window->to;
}

/* --- pairs --- */

static void pair_begin(struct window *window, uint64_t key, int64_t ts, uint64_t pair)
{
    uint32_t *top = numbers_at(&window->tops, key, 0), place = window->unused;
    if (place) {
        window->unused = window->open[place - 1].below;
    } else {
        window->open = array_room(
            window->open, window->open_count, &window->open_capacity, sizeof *window->open);
        place = (uint32_t)++window->open_count;
    }
    window->open[place - 1] = (struct open){ts, pair, *top};
    *top = place;
}

static void pair_end(struct window *window, uint64_t key, int64_t ts, uint64_t pair)
{
    uint32_t *top = numbers_at(&window->tops, key, 0);
    if (!*top) { /* an end without a begin */
        if (lies_in(window, ts)) window->pairs[pair] = true;
        return;
    }
    const uint32_t place = *top;
    const struct open begin = window->open[place - 1];
    *top = begin.below;
    window->open[place - 1].below = window->unused;
    window->unused = place;
    if (begin.ts >= window->to || ts < window->from || (ts == window->from && ts > begin.ts))
        return;
    window->pairs[begin.pair] = true;
    window->pairs[pair] = true;
}

/* --- with --range --- */

static bool range_keeps(const struct window *window, const struct merge_row *row, int64_t ts)
{
    uint64_t correlation;
    if (yyjson_equals_str(row->at[ROW_CAT], "cs_window")) return false;
    return value_natural(row->at[ROW_CORRELATION], &correlation)
               ? numbers_get(&window->calls, correlation, 0)
               : lies_in(window, ts);
}

static uint64_t place_key(const struct merge_row *row)
{
    return value_hash(
        value_hash(value_hash(9, row->at[ROW_PID]), row->at[ROW_TID]), row->at[ROW_TS]);
}

/* Notes the calls and slices that stay, and counts their arrows. In the file a slice comes before
 * the ends of its arrows, and a call before its work. Returns false if recording was off in the
 * range. */
static bool range_row(struct window *window, const struct merge_row *row, yyjson_val *value,
    int64_t ts, char error[256])
{
    uint64_t correlation;
    int64_t duration = 0;
    if (is_arrow(row->ph) && numbers_get(&window->begins, place_key(row), 0))
        ++*numbers_at(&window->arrows, key_of(row), 0);
    if (row->ph != 'X') return true;
    const bool called = ONE_OF(yyjson_get_str(row->at[ROW_CAT]) ?: "", "cuda_driver",
                            "cuda_runtime", "cs_callback", "cs_policy") &&
                        lies_in(window, ts);
    window->called |= called;
    if (called && value_natural(row->at[ROW_CORRELATION], &correlation))
        *numbers_at(&window->calls, correlation, 0) = 1;
    if (range_keeps(window, row, ts)) *numbers_at(&window->begins, place_key(row), 0) = 1;
    value_ns(row->at[ROW_DUR], &duration);
    if (!yyjson_equals_str(row->at[ROW_CAT], "cs_window") || ts >= window->to ||
        ts + duration <= window->from)
        return true;
    const char *cause = yyjson_get_str(yyjson_ptr_get(value, "/args/cause"));
    snprintf(error, 256, "recording was off in part of it (%.200s)", cause ? cause : "");
    return false;
}

/* --- rows --- */

static bool survey_row(void *of, struct json *json, char error[256])
{
    struct window *window = of;
    struct merge_row row;
    int64_t ts;
    if (!row_read(&row, json->value) || !value_ns(row.at[ROW_TS], &ts))
        return true; /* a row without time */
    if (is_paired(&row)) {
        const bool begins = strchr("Bb", row.ph) || (row.ph == 'i' && row.at[ROW_ORIGIN]);
        array_add(window->pairs, window->pair_count, window->pair_capacity, false);
        (begins ? pair_begin : pair_end)(window, key_of(&row), ts, window->pair_count - 1);
    }
    if (window->is_range && !range_row(window, &row, json->value, ts, error)) return false;
    if (!window->is_range && is_arrow(row.ph) && row.ph != 't' && lies_in(window, ts))
        *numbers_at(&window->arrows, key_of(&row), 0) ^= 1;
    if (row.ph == 'C') {
        window->counter_count++;
        if (ts < window->from)
            *numbers_at(&window->counters, key_of(&row), 0) = (uint32_t)window->counter_count;
    }
    return true;
}

bool window_survey(struct window *window, const struct file *file, int64_t from, int64_t to)
{
    const struct source_sink sink = {.of = window, .row = survey_row};
    char error[256];
    *window = (struct window){.from = from, .to = to, .is_range = file->range};
    if (source_read(file->path, file->skip_to, &sink, error) == JSON_BROKEN)
        return complained("custream merge", "%s: %s", file->shown, error);
    /* Slices without an end reach into the window. */
    for (size_t slot = 0; window->tops.slots && slot <= window->tops.mask; slot++) {
        uint32_t at = window->tops.slots[slot].used ? window->tops.slots[slot].value : 0;
        for (; at; at = window->open[at - 1].below)
            if (window->open[at - 1].ts < window->to)
                window->pairs[window->open[at - 1].pair] = true;
    }
    for (size_t slot = 0; window->counters.slots && slot <= window->counters.mask; slot++)
        if (window->counters.slots[slot].used)
            *numbers_at(&window->counted, window->counters.slots[slot].value, 1) = 1;
    return true;
}

bool window_keeps(struct window *window, const struct merge_row *row)
{
    int64_t ts, duration = 0;
    if (row->ph == 'M' || !value_ns(row->at[ROW_TS], &ts)) return true;
    if (is_paired(row)) {
        const uint64_t pair = window->pair_next++;
        return pair < window->pair_count && window->pairs[pair];
    }
    if (window->is_range && is_arrow(row->ph))
        return row->ph != 't' && numbers_get(&window->arrows, key_of(row), 0) == 2;
    if (is_arrow(row->ph))
        return lies_in(window, ts) && !numbers_get(&window->arrows, key_of(row), 0);
    if (row->ph == 'C')
        return numbers_get(&window->counted, ++window->counter_next, 0) || lies_in(window, ts);
    if (window->is_range && row->ph == 'X') return range_keeps(window, row, ts);
    if (row->ph != 'X' || !value_ns(row->at[ROW_DUR], &duration) || duration <= 0)
        return lies_in(window, ts);
    return ts < window->to && ts + duration > window->from;
}

void window_free(struct window *window)
{
    free(window->pairs);
    free(window->open);
    numbers_free(&window->tops);
    numbers_free(&window->arrows);
    numbers_free(&window->counters);
    numbers_free(&window->counted);
    numbers_free(&window->calls);
    numbers_free(&window->begins);
}

/* --- the window of a plan --- */

/* Refuses a window that begins after the last event, as the timeline would be empty. A forgotten
 * unit makes such a window: 20,30 for 20ms,30ms. */
bool window_fits(const struct plan *plan)
{
    int64_t end = plan->begin;
    for (size_t i = 0; i < plan->file_count; i++) {
        const struct file *file = &plan->files[i];
        const int64_t last = time_merged(&plan->processes[file->process], file->last);
        if (file->first <= file->last && last > end) end = last;
    }
    const int64_t length = end - plan->begin;
    if (plan->window[0] <= length) return true;
    return complained(NAME,
        "--window begins at %.6f s, and all is over %.6f s after the first event",
        (double)plan->window[0] / 1e9, (double)length / 1e9);
}

bool window_of_range(struct plan *plan)
{
    const struct file *file = plan->files;
    if (file->part)
        return complained(NAME, "%s rotates: take CUSTREAM_TRACE_MAX without rotate", file->shown);
    if (file->range_crosses)
        return complained(NAME,
            "%s has a range of that name that is the process's or crosses another one, which "
            "cannot be cut out",
            file->shown);
    if (file->range_until < file->range_from)
        return complained(NAME,
            "%s does not have the range: it has another name, recording was off, or the file is "
            "full",
            file->shown);
    plan->windowed = true;
    plan->window[0] = time_merged(plan->processes, file->range_from) - plan->begin;
    plan->window[1] = time_merged(plan->processes, file->range_until) - plan->begin;
    return true;
}
