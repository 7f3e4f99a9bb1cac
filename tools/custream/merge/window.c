#include "tools/custream/merge/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/convert/value.h"
#include "tools/custream/merge/source.h"
#include "tools/custream/show.h"

/* The two marks of a stream's life: its begin says where the stream comes from. */
static bool is_life(const struct row *row) { return row->ph == 'i' && piece_is(row->pieces[ROW_CAT], "cs_stream") && row->pieces[ROW_STREAM].at; }
static bool is_paired(const struct row *row) { return strchr("BEbe", row->ph) || is_life(row); }
static bool begins(const struct row *row) { return row->ph == 'B' || row->ph == 'b' || (row->ph == 'i' && row->pieces[ROW_ORIGIN].at); }
static bool is_arrow(char ph) { return ph && strchr("stf", ph); }

/* What a pair has in common: the lane, the span's category and id, or the stream. */
static uint64_t pair_key(const struct row *row)
{
    if (row->ph == 'i') return piece_hash(piece_hash(4, row->pieces[ROW_PID]), row->pieces[ROW_STREAM]);
    const bool lane = row->ph == 'B' || row->ph == 'E';
    uint64_t key = piece_hash(piece_hash(lane, row->pieces[ROW_PID]), lane ? row->pieces[ROW_TID] : row->pieces[ROW_CAT]);
    return lane ? key : piece_hash(piece_hash(piece_hash(key, row->pieces[ROW_ID]), row->pieces[ROW_ID2]), row->pieces[ROW_NAME]);
}

static uint64_t counter_key(const struct row *row)
{
    return piece_hash(piece_hash(piece_hash(2, row->pieces[ROW_PID]), row->pieces[ROW_NAME]), row->pieces[ROW_ID]);
}

static uint64_t arrow_key(const struct row *row)
{
    return piece_hash(piece_hash(3, row->pieces[ROW_CAT]), row->pieces[ROW_ID]);
}

static bool lies_in(const struct window *window, int64_t ts) { return ts >= window->from && ts < window->to; }

/* --- pairs --- */

static void pair_set(struct window *window, uint64_t bit) { window->pairs[bit / 8] |= (unsigned char)(1u << bit % 8); }

static uint64_t pair_add(struct window *window)
{
    const uint64_t bit = window->pair_count++;
    if (bit % 8 == 0) {
        window->pairs = array_room(window->pairs, bit / 8, &window->pair_capacity, 1);
        window->pairs[bit / 8] = 0;
    }
    return bit;
}

static void pair_begin(struct window *window, uint64_t key, int64_t ts, uint64_t bit)
{
    uint32_t *top = numbers_at(&window->tops, key, 0), place = window->unused;
    if (place) {
        window->unused = window->open[place - 1].below;
    } else {
        window->open = array_room(window->open, window->open_count, &window->open_capacity, sizeof *window->open);
        place = (uint32_t)++window->open_count;
    }
    window->open[place - 1] = (struct open){ts, bit, *top};
    *top = place;
}

static void pair_end(struct window *window, uint64_t key, int64_t ts, uint64_t bit)
{
    uint32_t *top = numbers_at(&window->tops, key, 0);
    if (!*top) { /* it has no begin */
        if (lies_in(window, ts)) pair_set(window, bit);
        return;
    }
    const uint32_t place = *top;
    const struct open begin = window->open[place - 1];
    *top = begin.below;
    window->open[place - 1].below = window->unused;
    window->unused = place;
    if (begin.ts >= window->to || ts < window->from || (ts == window->from && ts > begin.ts)) return;
    pair_set(window, begin.bit);
    pair_set(window, bit);
}

static void survey_pair(struct window *window, const struct row *row, int64_t ts)
{
    const uint64_t bit = pair_add(window);
    if (begins(row)) pair_begin(window, pair_key(row), ts, bit);
    else pair_end(window, pair_key(row), ts, bit);
}

/* What is still open has no end: it goes on. */
static void pairs_left(struct window *window)
{
    for (size_t slot = 0; window->tops.slots && slot <= window->tops.mask; slot++) {
        uint32_t at = window->tops.slots[slot].used ? window->tops.slots[slot].value : 0;
        for (; at; at = window->open[at - 1].below)
            if (window->open[at - 1].ts < window->to) pair_set(window, window->open[at - 1].bit);
    }
}

/* --- of a range --- */

static bool is_call(const struct row *row)
{
    static const char *const calls[] = {"cuda_driver", "cuda_runtime", "cs_callback", "cs_policy"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (piece_is(row->pieces[ROW_CAT], calls[i])) return true;
    return false;
}

static bool range_keeps(const struct window *window, const struct row *row, int64_t ts)
{
    uint64_t correlation;
    if (piece_is(row->pieces[ROW_CAT], "cs_window")) return false;
    return piece_natural(row->pieces[ROW_CORRELATION], &correlation) ? numbers_get(&window->calls, correlation, 0) : lies_in(window, ts);
}

static uint64_t place_key(const struct row *row)
{
    return piece_hash(piece_hash(piece_hash(5, row->pieces[ROW_PID]), row->pieces[ROW_TID]), row->pieces[ROW_TS]);
}

/* A slice comes before the ends of its arrows, and a call before its work. */
static bool range_row(struct window *window, const struct row *row, int64_t ts, char error[256])
{
    uint64_t correlation;
    int64_t duration = 0;
    if (is_arrow(row->ph) && numbers_get(&window->begins, place_key(row), 0)) ++*numbers_at(&window->arrows, arrow_key(row), 0);
    if (row->ph != 'X') return true;
    const bool called = is_call(row) && lies_in(window, ts);
    window->called |= called;
    if (called && piece_natural(row->pieces[ROW_CORRELATION], &correlation)) *numbers_at(&window->calls, correlation, 0) = 1;
    if (range_keeps(window, row, ts)) *numbers_at(&window->begins, place_key(row), 0) = 1;
    piece_ns(row->pieces[ROW_DUR], &duration);
    if (!piece_is(row->pieces[ROW_CAT], "cs_window") || ts >= window->to || ts + duration <= window->from) return true;
    struct unquoted cause = unquote(member_at(row->text, (const char *const[]){"args", "cause", NULL}));
    snprintf(error, 256, "recording was off in part of it (%.*s)", (int)(cause.length < 200 ? cause.length : 200), cause.at);
    unquoted_free(&cause);
    return false;
}

/* --- rows --- */

static bool survey_row(void *of, const char *text, size_t length, char error[256])
{
    struct window *window = of;
    struct row row;
    int64_t ts;
    if (!row_read(&row, text, length) || !piece_ns(row.pieces[ROW_TS], &ts)) return true; /* a row without time */
    if (is_paired(&row)) survey_pair(window, &row, ts);
    if (window->is_range && !range_row(window, &row, ts, error)) return false;
    if (!window->is_range && is_arrow(row.ph) && row.ph != 't' && lies_in(window, ts)) *numbers_at(&window->arrows, arrow_key(&row), 0) ^= 1;
    if (row.ph == 'C') {
        window->counter_count++;
        if (ts < window->from) *numbers_at(&window->counters, counter_key(&row), 0) = (uint32_t)window->counter_count;
    }
    return true;
}

bool window_survey(struct window *window, const struct file *file, int64_t from, int64_t to)
{
    const struct source_sink sink = {.of = window, .row = survey_row};
    char error[256];
    *window = (struct window){.from = from, .to = to, .is_range = file->range};
    if (source_read(file->path, &sink, error) == SOURCE_BROKEN) return complain("custream merge", "%s: %s", file->shown, error), false;
    pairs_left(window);
    for (size_t slot = 0; window->counters.slots && slot <= window->counters.mask; slot++)
        if (window->counters.slots[slot].used) *numbers_at(&window->counted, window->counters.slots[slot].value, 1) = 1;
    return true;
}

bool window_keeps(struct window *window, const struct row *row)
{
    int64_t ts, duration = 0;
    if (row->ph == 'M' || !piece_ns(row->pieces[ROW_TS], &ts)) return true;
    if (is_paired(row)) {
        const uint64_t bit = window->pair_next++;
        return bit < window->pair_count && window->pairs[bit / 8] >> bit % 8 & 1;
    }
    if (window->is_range && is_arrow(row->ph)) return row->ph != 't' && numbers_get(&window->arrows, arrow_key(row), 0) == 2;
    if (is_arrow(row->ph)) return lies_in(window, ts) && !numbers_get(&window->arrows, arrow_key(row), 0);
    if (row->ph == 'C') return numbers_get(&window->counted, ++window->counter_next, 0) || lies_in(window, ts);
    if (window->is_range && row->ph == 'X') return range_keeps(window, row, ts);
    if (row->ph != 'X' || !piece_ns(row->pieces[ROW_DUR], &duration) || duration <= 0) return lies_in(window, ts);
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
