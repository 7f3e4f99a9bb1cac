/*
 * What a report says, before anybody knows how it is printed: tables of named columns. Sections
 * fill them (section.h), printers show them as text, JSON, CSV or HTML, `--fail-if` and `custream
 * diff` read them.
 */
#ifndef CS_MODEL_TABLE_H
#define CS_MODEL_TABLE_H

#include <math.h>

#include "tools/custream/model/model.h"

/* What a column is besides, as bits. */
enum column_role {
    COLUMN_NAMES =
        1, /* of what the row tells: rows of two reports with the same names are the same thing */
    COLUMN_CUT_END =
        2, /* a text that is too wide for its column is cut at its end, not in the middle */
    COLUMN_BELOW = 4, /* where it is printed as text, it has lines of its own below the row */
};

struct column {
    const char *key,
        *title; /* key: for programs, kept for ever ("idle_ns"); title: for people ("idle") */
    enum unit unit;
    unsigned role; /* enum column_role */
    unsigned from; /* of rows that are tallies: the cell, CELL_TIMES and so on */
};

struct cell {
    const char *text; /* of UNIT_TEXT; NULL: empty */
    double number;    /* of the others; NAN: not known, printed as "-", null or nothing */
};

struct table {
    const char *key, *title; /* "idle", "Where the GPU was idle" */
    const char *note;        /* what to know when reading it; NULL */
    const char *none;        /* its heading where it has no rows; NULL: its title */
    const struct column *columns;
    size_t column_count;
    struct cell *cells; /* row_count * column_count */
    size_t row_count, row_capacity;
    size_t shown; /* in text and HTML: so many rows, and a line that says how many more; 0: all */
};

struct report {
    struct table *tables;
    size_t table_count, table_capacity;
    char **owned; /* texts that were made for it */
    size_t owned_count, owned_capacity;
};

/* A new table at the end of the report; the pointer holds until the next one. `columns` must
 * outlive the report. */
struct table *report_table(struct report *report, const char *key, const char *title,
    const struct column *columns, size_t column_count);
/* A new row, empty: texts NULL, numbers NAN. Its cells stand in the order of the columns, until the
 * next row. */
struct cell *table_row(struct table *table);
/* A text made for the report, which owns it. */
const char *report_text(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const struct table *report_find(
    const struct report *report, const char *key); /* NULL: no such table */
/* A cell by its column's key; "" or NAN where there is no such table (NULL), row or column. */
const char *table_text(const struct table *table, size_t row, const char *column);
double table_number(const struct table *table, size_t row, const char *column);
double table_sum(const struct table *table,
    const char *column); /* of the numbers that are known; NAN: no such table */
/* What a column shows of a cell: its text ("" of NULL), or value_show() of its number into `out`.
 */
const char *cell_show(char out[SHOWN_MAX], const struct column *column, const struct cell *cell);
size_t rows_shown(const struct table *table); /* how many rows people see */
void report_free(struct report *report);

/* --- rows while they are added up --- */

enum { TALLY_SUMS = 7 };

/* What is known of all things with one key. Times in ns. */
struct tally {
    uint64_t key;
    uint64_t times;
    int64_t total, shortest, longest;
    double sum[TALLY_SUMS]; /* the table's own: bytes, failures */
};

struct tallies {
    struct tally *rows; /* in the order in which their keys came, until tallies_sort() */
    size_t count, capacity;
    struct numbers index; /* rows by key */
};

/* The row of a key, empty if it is new. It holds until the next call. */
struct tally *tally_of(struct tallies *tallies, uint64_t key);
void tally_add(struct tally *tally, int64_t duration);
/* The longest total first. No row is looked for afterwards. */
void tallies_sort(struct tallies *tallies);
void tallies_free(struct tallies *tallies);

static inline double tally_mean(const struct tally *tally)
{
    return (double)tally->total / (double)tally->times;
}

/* Where the cells of a tally's row come from, one a column. OWN: the table sets it. SUM: sum[a];
 * RATIO: sum[a] / sum[b], where that is not 0. */
enum {
    CELL_OWN,
    CELL_TIMES,
    CELL_TOTAL,
    CELL_MEAN,
    CELL_SHORTEST,
    CELL_LONGEST,
    CELL_SUM_0,
    CELL_RATIO_0 = CELL_SUM_0 + TALLY_SUMS
};
#define CELL_SUM(a)      (CELL_SUM_0 + (a))
#define CELL_RATIO(a, b) (CELL_RATIO_0 + (a) * TALLY_SUMS + (b))
/* Rows of all tallies, the longest total first, and frees them. */
void tallies_put(struct tallies *tallies, struct table *table,
    void (*own)(const void *of, const struct tally *tally, struct cell *row), const void *of);

/* A row of a table whose columns are the array `columns`: its cells in their order. */
#define CELL(value) \
    ((struct cell){_Generic((value), char *: (value), const char *: (value), default: NULL), \
        _Generic((value), char *: NAN, const char *: NAN, default: (value))})
#define TABLE_PUT(table, columns, ...) \
    do { \
        const struct cell put[] = {__VA_ARGS__}; \
        _Static_assert(sizeof put / sizeof *put == sizeof(columns) / sizeof *(columns), \
        "a cell a column"); \
        memcpy(table_row(table), put, sizeof put); \
    } while (0)
#define TABLE_NEW(report, key, title, columns) report_table(report, key, title, columns, \
    sizeof(columns) / sizeof *(columns))

/* --- how a report calls streams, threads and work --- */

/* As the timeline shows it; "stream 13" where it has no name. */
const char *stream_label(struct report *report, const struct run *run, uint32_t stream);
/* Its name and the system's number: "python3 1191"; "thread 1191" where it has no name. */
const char *thread_label(struct report *report, const struct run *run, uint32_t thread);
/* A piece of work's name for a sentence: of a long one the middle is left out. Cells that are a
 * name alone have all of it. */
const char *work_label(struct report *report, const struct run *run, const struct work *work);

#endif
