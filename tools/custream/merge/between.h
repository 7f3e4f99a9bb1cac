/* What custream merge does, for other commands: traces of one process or several, cut to a time of the wall clock. */
#ifndef CS_MERGE_BETWEEN_H
#define CS_MERGE_BETWEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct refusal;

/* `shown`: what the files are called; `begin_ns`: when the first event in them was. `refusals`: one for each file, empty: those of a process that is not what it seems do
 * not keep the others from being merged. False: the complaint was printed, or all were refused. */
bool merge_between(const char *to, char **files, char **shown, size_t count, int64_t from_ns, int64_t until_ns, int64_t *begin_ns, struct refusal *refusals);

#endif
