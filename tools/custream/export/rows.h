/* From the rows of a trace to those of the tables. */
#ifndef CS_EXPORT_ROWS_H
#define CS_EXPORT_ROWS_H

#include "tools/custream/trace/row.h"

/* All of the file, in one pass. What is kept depends on how many different texts, threads, streams and open ranges there are, and not on the file's size. */
enum trace_end rows_export(const char *path, char error[256]);

#endif
