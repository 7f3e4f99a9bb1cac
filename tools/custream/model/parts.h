/* What the parts of a run say together: of it as a whole, also where not all of them are among the files. */
#ifndef CS_MODEL_PARTS_H
#define CS_MODEL_PARTS_H

#include "tools/custream/model/run.h"

/* Whether every part is there, from the first to the newest one of them. Also of a run in one file. */
bool parts_all(const struct run *run);

/* What was lost in the parts that are there, and in all up to the newest of them. The parts do not say what was lost in a later one. */
struct lost parts_lost(const struct run *run);
struct lost parts_lost_in_all(const struct run *run);
bool parts_continue(const struct run *run);

/* GPU work that has no times. */
struct untimed {
    double without_times, launches; /* the sums of the parts: work that came in a later part is in them */
    double all;                     /* both, without that work, of all parts up to the newest one */
    bool said;                      /* `all` is from what the parts say of all parts */
    bool at_most;                   /* and some of it may have come since */
};
struct untimed parts_untimed(const struct run *run);

#endif
