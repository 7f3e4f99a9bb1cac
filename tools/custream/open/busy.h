/* The busiest streams of a trace, by name; and whether its slices say all of it. */
#ifndef CS_OPEN_BUSY_H
#define CS_OPEN_BUSY_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/texts.h"

struct busy_lane {
    text name;   /* 0: its row has not come yet */
    double busy; /* ns of GPU work; pieces that ran at once count twice */
};

struct busy {
    struct texts texts;
    struct busy_lane *lanes;
    size_t count, capacity;
    struct numbers index; /* lanes by pid and tid; of each file anew */
    bool cut;             /* a file ends in the middle */
    bool ours, says;      /* says: a kernel has said how it was launched */
    bool leaves_out;      /* one of a file does */
};

void busy_init(struct busy *busy);
/* A file's lanes into the others. False: error says why it is no trace. */
bool busy_read(struct busy *busy, const char *path, char error[256]);
/* The busiest first, each name once: names[0..returned). They live as long as `busy`. */
size_t busy_names(struct busy *busy, const char **names, size_t most);
void busy_free(struct busy *busy);

#endif
