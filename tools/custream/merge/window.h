/* custream merge --window: decides which rows of a file stay. These are slices, streams' lives and
 * ranges that overlap the window, instants in it, arrows with both ends in it, the last value of
 * each counter before it, and names. With --range, the calls that began in the range stay, with all
 * their work.
 *
 * window_survey() reads the file once and notes each row that is one of a pair. */
#ifndef CS_MERGE_WINDOW_H
#define CS_MERGE_WINDOW_H

#include "tools/custream/merge/plan.h"
#include "tools/custream/trace/numbers.h"

struct window {
    int64_t from, to; /* in the file's times: from <= t < to lies in the window */
    /* for each row B, E, b or e and each mark of a life, in the file's order: the row stays */
    bool *pairs;
    size_t pair_count, pair_capacity, pair_next;
    struct open {
        int64_t ts;
        uint64_t pair;
        uint32_t below; /* the place of the slice around this one, + 1 */
    } *open;
    size_t open_count, open_capacity;
    uint32_t unused;     /* a free place in `open`, + 1; its `below` is the next free place, + 1 */
    struct numbers tops; /* by key_of(): the place of the innermost slice that is open, + 1 */
    /* by key_of(): 1 if only one end of the arrow lies in the window, 0 if both ends or none do.
     * For a range: how many ends of the arrow are at slices that stay */
    struct numbers arrows;
    /* by key_of(): the number of the counter's last row before the window */
    struct numbers counters;
    struct numbers counted; /* the numbers that `counters` has, each with the value 1 */
    uint64_t counter_count, counter_next;
    bool is_range, called; /* called: a call began in the range */
    struct numbers calls;  /* for a range: the correlations of calls that began in it, each 1 */
    struct numbers begins; /* for a range, by lane and time: 1 if a slice that stays begins then */
};

/* Returns false, after a complaint, if the window begins after the last event. */
bool window_fits(const struct plan *plan);
/* Sets the plan's window to the times of its range. Returns false after a complaint. */
bool window_of_range(struct plan *plan);
/* Reads the file once. Returns false after it has printed a complaint. */
bool window_survey(struct window *window, const struct file *file, int64_t from, int64_t to);
/* Whether the row stays. To be called once for each row, in the order of the file. */
bool window_keeps(struct window *window, const struct merge_row *row);
void window_free(struct window *window);

#endif
