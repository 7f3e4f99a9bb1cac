/* The trace that a command takes if it is given none. */
#ifndef CS_TRACE_NEWEST_H
#define CS_TRACE_NEWEST_H

#include <stdbool.h>

/* Without files: the newest trace of ours in the current folder, with all parts of its run; stderr
 * names it. False: there is none, which was said. */
bool files_or_newest(const char *command, char ***files, int *count);

#endif
