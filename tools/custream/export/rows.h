/* Makes the rows of the tables from the rows of a trace. */
#ifndef CS_EXPORT_ROWS_H
#define CS_EXPORT_ROWS_H

#include "tools/custream/trace/row.h"

/* Exports the whole file in one pass. Only the model stays in memory. Returns TRACE_UNREADABLE:
 * `error` says why. */
enum trace_end rows_export(const char *path, char error[256]);

#endif
