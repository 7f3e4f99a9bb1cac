/* From the rows of a trace to those of the tables. */
#ifndef CS_EXPORT_ROWS_H
#define CS_EXPORT_ROWS_H

#include "tools/custream/trace/row.h"

/* All of the file, in one pass. What is kept is the model. */
enum trace_end rows_export(const char *path, char error[256]);

#endif
