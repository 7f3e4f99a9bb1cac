/* Rows of the tables of columns.def, in batches that go to standard output (docs/export.md). */
#ifndef CS_EXPORT_BATCH_H
#define CS_EXPORT_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/custream/trace/texts.h"

enum export_table {
#define TABLE(table, name) TABLE_##table,
#define COLUMN(table, name, type, says)
#include "tools/custream/export/columns.def"
#undef TABLE
#undef COLUMN
    TABLE_COUNT
};

enum export_column {
#define TABLE(table, name)
#define COLUMN(table, name, type, says) COLUMN_##table##_##name,
#include "tools/custream/export/columns.def"
#undef TABLE
#undef COLUMN
    COLUMN_COUNT
};

/* Once, before all else. The texts are the caller's, and stay. */
void batch_begin(const struct texts *texts);

/* A value of the row in hand of the column's table. Columns that get none are null. */
void batch_put(enum export_column column, int64_t value);
void batch_put_real(enum export_column column, double value);
void batch_put_text(enum export_column column, text value); /* 0: null */

/* The row in hand is whole. A full batch goes out. */
void batch_row(enum export_table table);

/* What is there goes out. */
void batch_flush(enum export_table table);

/* Of a merged trace: what comes behind is of this file of it. */
void batch_merged(uint32_t file);

/* What each table consists of, as JSON on standard output. */
void batch_schema(void);

/* False: the reader has gone, or there is no room; errno. */
bool batch_good(void);

#endif
