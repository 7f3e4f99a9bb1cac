/*
 * What a report says, before anybody knows how it is printed: tables of named columns. Sections fill them (section.h), printers show them as text, JSON, CSV or
 * HTML, `--fail-if` and `custream diff` read them.
 */
#ifndef CS_MODEL_TABLE_H
#define CS_MODEL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/show.h"

/* What a column is besides, as bits. */
enum column_role {
    COLUMN_NAMES = 1,   /* of what the row tells: rows of two reports with the same names are the same thing */
    COLUMN_CUT_END = 2, /* a text that is too wide for its column is cut at its end, not in the middle */
    COLUMN_BELOW = 4,   /* where it is printed as text, it has lines of its own below the row */
};

struct column {
    const char *key, *title; /* key: for programs, kept for ever ("idle_ns"); title: for people ("idle") */
    enum unit unit;
    unsigned role;           /* enum column_role */
};

struct cell {
    const char *text; /* of UNIT_TEXT; NULL: empty */
    double number;    /* of the others; NAN: not known, printed as "-", null or nothing */
};

struct table {
    const char *key, *title;   /* "idle", "Where the GPU was idle" */
    const char *note;          /* what to know when reading it; NULL */
    const char *none;          /* its heading where it has no rows; NULL: its title */
    const struct column *columns;
    size_t column_count;
    struct cell *cells;        /* row_count * column_count */
    size_t row_count, row_capacity;
    size_t shown;              /* in text and HTML: so many rows, and a line that says how many more; 0: all */
};

struct report {
    struct table *tables;
    size_t table_count, table_capacity;
    char **owned;              /* texts that were made for it */
    size_t owned_count, owned_capacity;
};

/* A new table at the end of the report; the pointer holds until the next one. `columns` must outlive the report. */
struct table *report_table(struct report *report, const char *key, const char *title, const struct column *columns, size_t column_count);
/* A new row, empty: texts NULL, numbers NAN. Its cells stand in the order of the columns, until the next row. */
struct cell *table_row(struct table *table);
/* A text made for the report, which owns it. */
const char *report_text(struct report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
const struct table *report_find(const struct report *report, const char *key); /* NULL: no such table */
/* A cell by its column's key; "" or NAN where there is no such table (NULL), row or column. */
const char *table_text(const struct table *table, size_t row, const char *column);
double table_number(const struct table *table, size_t row, const char *column);
double table_sum(const struct table *table, const char *column); /* of the numbers that are known; NAN: no such table */
/* What a column shows of a cell: its text ("" of NULL), or value_show() of its number into `out`. */
const char *cell_show(char out[SHOWN_MAX], const struct column *column, const struct cell *cell);
size_t rows_shown(const struct table *table); /* how many rows people see */
void report_free(struct report *report);

#endif
