/* The ranks' clocks: how far each clock is ahead of the fleet's clock, as `custream fleet --clocks`
 * writes it. merge subtracts that lead from times. The lead grows more slowly than time passes, so
 * the order of two events of a rank stays. */
#ifndef CS_MERGE_CLOCKS_H
#define CS_MERGE_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLOCK_JUMPS = 4 };

struct clock {
    uint64_t rank;
    double offset_ns, drift_ppb, at_ns, error_ns;
    struct jump {
        double at_ns, size_ns;
    } jumps[CLOCK_JUMPS];
    int jump_count;
    bool known; /* collectives relate this clock to others; false: only the wall clock does */
};

struct clocks {
    struct clock *rows;
    size_t count;
};

/* Returns false after it has printed a complaint. */
bool clocks_read(struct clocks *clocks, const char *path);
void clocks_free(struct clocks *clocks);
/* Returns the rank's clock; NULL: the file has no clock of that rank. */
const struct clock *clock_of(const struct clocks *clocks, uint64_t rank);
/* Returns by how many ns the clock is ahead when it shows `at`, in nanoseconds since the epoch. */
int64_t clock_ahead(const struct clock *clock, int64_t at);

#endif
