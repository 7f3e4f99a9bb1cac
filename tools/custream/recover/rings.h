/* The file of rings of a dead process (shim/base/rings.h): what it recorded and its trace has not. */
#ifndef CS_RECOVER_RINGS_H
#define CS_RECOVER_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/trace/torn.h"

struct rings;
struct mend_to;

/* That of the trace which is open there. `memfd`: the file itself, -1: where the head of the trace says. NULL: there is none, it is another trace's, its process lives,
 * or it is damaged; then `why` says so. */
struct rings_why {
    char text[256]; /* "": it has none, or all that they had is in the trace */
    bool gone;      /* no file of that name */
};
struct rings *rings_open(int trace, int memfd, struct rings_why *why);
void rings_close(struct rings *rings);
void rings_remove(struct rings *rings); /* its file, which has served */

/* Whether there is something that the trace has not. */
bool rings_add(const struct rings *rings);

/* Where the events of the trace end, and those that were not written, as they would stand there. Until rings_close(). */
struct torn_more rings_more(struct rings *rings, int trace);

/* A row for each record that is in none of the two: mend_source.rows. */
void rings_rows(void *rings, struct mend_to *to);
uint64_t rings_row_count(const struct rings *rings), rings_left_out(const struct rings *rings); /* after that */
unsigned rings_threads_not_kept(const struct rings *rings);

#endif
