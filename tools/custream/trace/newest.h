/* The trace that a command takes if it is given none. */
#ifndef CS_TRACE_NEWEST_H
#define CS_TRACE_NEWEST_H

#include <stdbool.h>

/*
 * Without files: the trace in the current folder that was written last, and all parts of its run
 * that are there, in their order; one line on stderr names it. A trace is a file that has the
 * ending and the header of one of ours. Its process may still write it. False: there is none, which
 * was said.
 */
bool files_or_newest(const char *command, char ***files, int *count);

#endif
