/* How far the clocks of ranks are ahead of the fleet's, as `custream fleet --clocks` writes it.
 * What is subtracted grows by less than the time does, so what came first stays first. */
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
    bool known; /* collectives relate it to others; otherwise the wall clock serves */
};

struct clocks {
    struct clock *rows;
    size_t count;
};

/* False: the complaint was printed. */
bool clocks_read(struct clocks *clocks, const char *path);
void clocks_free(struct clocks *clocks);
const struct clock *clock_of(const struct clocks *clocks, uint64_t rank);
/* At a moment of its own, nanoseconds since the epoch. */
int64_t clock_ahead(const struct clock *clock, int64_t at);

#endif
