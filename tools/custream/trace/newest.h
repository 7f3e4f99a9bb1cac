/* Finds the trace that a command reads if it is given none. */
#ifndef CS_TRACE_NEWEST_H
#define CS_TRACE_NEWEST_H

#include <stdbool.h>

/* If no files are given, takes the newest trace of ours in the current folder, with all parts of
 * its run, and names it on stderr. False: the folder has none, as stderr says. */
bool files_or_newest(const char *command, char ***files, int *count);

#endif
