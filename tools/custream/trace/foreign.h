/* Rows of other tools' traces (Kineto, JAX, XLA, Chrome) as ours would be. What is not understood
 * is counted. */
#ifndef CS_TRACE_FOREIGN_H
#define CS_TRACE_FOREIGN_H

#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/row.h"

struct foreign {
    struct texts *texts;
    struct numbers processes;  /* by pid or its text: 1 a host's, 2 + ordinal a GPU's */
    struct numbers streams;    /* by thread of a process: of XLA's lanes */
    struct numbers categories; /* by text: the text of the same category today */
    struct numbers work;       /* by text: categories of GPU work */
    struct held {              /* work of a process of which nothing has been told yet */
        int64_t ts, dur;
        uint64_t process, thread;
        int64_t correlation;
        text name;
    } *held;
    size_t held_count, held_capacity, held_told;
    struct trace_left *left;
};

/* Which GPU a process is, or TRACE_NO_GPU: one of ours by its pid, another tool's by what it is
 * called, as "/device:GPU:0" and "GPU 0". */
uint32_t gpu_of_process(bool ours, int64_t pid, const char *called);

void foreign_begin(struct foreign *foreign, struct texts *texts, struct trace_left *left);
/* False: nobody wants the row, or it was held, or is not understood. */
bool foreign_row(struct foreign *foreign, struct trace_row *row);
/* What was held, one after another, once all rows have come. */
bool foreign_held(struct foreign *foreign, struct trace_row *row);
void foreign_end(struct foreign *foreign);

#endif
