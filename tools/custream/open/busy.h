/* Finds traces' busiest streams by name, and whether kernels leave out how they were launched. */
#ifndef CS_OPEN_BUSY_H
#define CS_OPEN_BUSY_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/texts.h"

struct busy_lane {
    text name;   /* 0: the row with the name has not come yet */
    double busy; /* ns of GPU work, all pieces summed, even if they ran at the same time */
};

struct busy {
    struct texts texts;
    struct busy_lane *lanes;
    size_t count, capacity;
    struct numbers index; /* the lane's place in `lanes`, by pid and tid; emptied for each file */
    bool cut;             /* a file ends in the middle */
    bool ours, says; /* ours: custream wrote the current file; says: a kernel in it had its shape */
    bool leaves_out; /* a kernel of some file left out its shape (merge/shapes.h) */
};

void busy_init(struct busy *busy);
/* Adds the lanes of a file. Returns false if it is no trace: error says why. */
bool busy_read(struct busy *busy, const char *path, char error[256]);
/* Puts up to `most` names, each once, the busiest first. Returns how many. The names live as long
 * as `busy`. */
size_t busy_names(struct busy *busy, const char **names, size_t most);
void busy_free(struct busy *busy);

#endif
