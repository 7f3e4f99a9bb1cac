/* Finds the trace that a command reads if no file is given. */
#ifndef CS_TRACE_NEWEST_H
#define CS_TRACE_NEWEST_H

#include <stdbool.h>

/* If no files are given, takes the newest trace of ours in the current folder, with all parts of
 * its run, and names it on stderr. False: the folder has no such trace, as stderr says. */
bool files_or_newest(const char *command, char ***files, int *count);

#endif
