/* What took longer in one range than in others of its name. */
#ifndef CS_REPORT_STEP_DIFFERENCE_H
#define CS_REPORT_STEP_DIFFERENCE_H

#include "tools/custream/model/idle.h"
#include "tools/custream/model/table.h"

struct step_reader {
    const struct run *run;
    const struct idles *idles;
    size_t *device_idles; /* by device: its first row in idles; behind the last device's, where they end */
};

struct step_reader step_reader_make(const struct run *run, const struct idles *idles);
void step_reader_free(struct step_reader *reader);

/*
 * The kernel, copy, call or cause of idle time that took the most more in ranges[slowest] than on average in the `count` ranges, all of one thread; NULL if nothing
 * did, or the range took hardly longer than the others. A call that waits is named only where nothing else makes up for half of what the range took more.
 */
const char *step_difference(const struct step_reader *reader, struct report *report, const uint32_t *ranges, uint32_t count, uint32_t slowest);

#endif
