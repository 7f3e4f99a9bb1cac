/* custream merge --window: which rows of a file stay: slices, lives and ranges that overlap the
 * window, moments in it, arrows with both their ends, the last value of a counter before it, and
 * names. Of a range the calls that began in it stay, with all their work. window_survey() reads the
 * file once, and keeps a bit for each row that is one of a pair. */
#ifndef CS_MERGE_WINDOW_H
#define CS_MERGE_WINDOW_H

#include "tools/custream/merge/plan.h"
#include "tools/custream/trace/numbers.h"

struct window {
    int64_t from, to; /* as the file has its times: from <= t < to */
    unsigned char
        *pairs; /* a bit for each B, E, b, e and mark of a life, in the order of the file */
    size_t pair_count, pair_capacity, pair_next;
    struct open {
        int64_t ts;
        uint64_t bit;
        uint32_t below; /* the one that it lies in, +1 */
    } *open;
    size_t open_count, open_capacity;
    uint32_t unused;         /* a place of what has ended, +1; its `below` is the next one */
    struct numbers tops;     /* by lane or span: the innermost that is open, +1 */
    struct numbers arrows;   /* by id: 1 where one end alone lies in the window */
    struct numbers counters; /* by name: the number of its last row before the window */
    struct numbers counted;  /* by that number: 1 */
    uint64_t counter_count, counter_next;
    bool is_range, called; /* called: a call was made in it */
    struct numbers calls;  /* of a range, by correlation: 1 */
    struct numbers begins; /* of a range, by lane and time: 1 where a slice begins that stays */
};

/* False: the complaint was printed. */
bool window_survey(struct window *window, const struct file *file, int64_t from, int64_t to);
/* Once for each row, in the order of the file. */
bool window_keeps(struct window *window, const struct merge_row *row);
void window_free(struct window *window);

#endif
