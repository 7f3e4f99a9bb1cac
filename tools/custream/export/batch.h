/* Gathers rows of the tables of columns.def, and writes them in batches (docs/export.md). */
#ifndef CS_EXPORT_BATCH_H
#define CS_EXPORT_BATCH_H

#include "tools/custream/trace/row.h"

enum export_table {
#define TABLE(table, name) TABLE_##table,
#define COLUMN(...)
#include "tools/custream/export/columns.def"
#undef TABLE
#undef COLUMN
    TABLE_COUNT
};

/* The columns of a table begin with TABLE_..._BEGIN. */
enum export_column {
#define TABLE(table, name) TABLE_##table##_BEGIN, TABLE_##table##_LESS = TABLE_##table##_BEGIN - 1,
#define COLUMN(table, name, ...) COLUMN_##table##_##name,
#include "tools/custream/export/columns.def"
#undef TABLE
#undef COLUMN
    COLUMN_COUNT
};

/* To be called once, before all else. `texts` stays the caller's and has to outlive the batches. */
void batch_begin(const struct texts *texts);

/* Puts a value into the current row of the column's table. A column without a value is null. */
void batch_put(enum export_column column, int64_t value);
void batch_put_real(enum export_column column, double value);
void batch_put_text(enum export_column column, text value); /* a value of 0 puts null */

/* Puts the row's values whose columns have a key in columns.def. `base`: added to times. */
void batch_take(enum export_table table, const struct trace_row *row, int64_t base);

/* Ends the current row of the table. Writes the batch if it is full. */
void batch_row(enum export_table table);

/* Writes the rows that are gathered, as a batch. */
void batch_flush(enum export_table table);

/* Writes a line that says: the batches that follow are of this file of a merged trace. */
void batch_merged(uint32_t file);

/* Prints the columns and types of all tables as JSON to standard output. */
void batch_schema(void);

/* Whether all of the output was written; false: errno says why not. */
bool batch_good(void);

#endif
