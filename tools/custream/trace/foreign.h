/* Turns rows of other tools' traces (Kineto, JAX, XLA, Chrome) into rows as custream has them. Rows
 * without a phase or a usable time are left out and counted. */
#ifndef CS_TRACE_FOREIGN_H
#define CS_TRACE_FOREIGN_H

#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/row.h"

struct foreign {
    struct texts *texts;
    struct numbers processes;  /* the kind of a process, by its pid: 1 a host, 2 + ordinal a GPU */
    struct numbers streams;    /* stream + 1 of an XLA lane, by process and thread */
    struct numbers categories; /* today's name of a category, by its old name */
    struct numbers work;       /* 1 for each category of GPU work, by its name */
    struct held {              /* slices of processes whose kind was not known yet */
        int64_t ts, dur;
        uint64_t process, thread;
        int64_t correlation;
        text name;
    } *held;
    size_t held_count, held_capacity, held_told;
    struct trace_left *left;
};

/* Returns which GPU a process is, or TRACE_NO_GPU. In our traces its pid tells, in other tools'
 * traces its name does: "/device:GPU:0", "GPU 0". */
uint32_t gpu_of_process(bool ours, int64_t pid, const char *called);

void foreign_begin(struct foreign *foreign, struct texts *texts, struct trace_left *left);
/* Whether the row is to be told now. False: nobody wants the row, it waits for foreign_held(), or
 * it is not understood. */
bool foreign_row(struct foreign *foreign, struct trace_row *row);
/* Makes a row of the next waiting slice, after the last foreign_row(). False: no slice is left. */
bool foreign_held(struct foreign *foreign, struct trace_row *row);
void foreign_end(struct foreign *foreign);

#endif
