/* The tables of named columns that a report consists of, in no printed form yet. Sections
 * (report/section_*.c) fill them; printers show them as text, JSON, CSV or HTML; `--fail-if` and
 * `custream diff` read them. */
#ifndef CS_MODEL_TABLE_H
#define CS_MODEL_TABLE_H

#include <math.h>

#include "tools/custream/model/model.h"

/* Bits of struct column's `role`. */
enum column_role {
    COLUMN_NAMES = 1,   /* the column names what the row is about: rows of two reports with equal
                           names are about the same thing */
    COLUMN_CUT_END = 2, /* a text that is too wide is cut at its end, not in the middle */
    COLUMN_BELOW = 4,   /* in text, the cell has lines of its own below the row */
};

struct column {
    const char *key,
        *title; /* key: for programs, kept for ever ("idle_ns"); title: for people ("idle") */
    enum unit unit;
    unsigned role; /* enum column_role */
    unsigned from; /* the value that a tally gives this column: CELL_TIMES and so on */
};

struct cell {
    const char *text; /* the value in a UNIT_TEXT column; NULL: empty */
    double number; /* the value in other columns; NAN: not known, printed as "-", null or nothing */
};

struct table {
    const char *key, *title; /* "idle", "Where the GPU was idle" */
    const char *note;        /* a hint for the reader; NULL: none */
    const char *none;        /* the heading of a table without rows; NULL: `title` */
    const struct column *columns;
    size_t column_count;
    struct cell *cells; /* row_count * column_count */
    size_t row_count, row_capacity;
    size_t shown; /* rows that text and HTML show, before a line that counts the others; 0: all */
};

struct report {
    struct table *tables;
    size_t table_count, table_capacity;
    char **owned; /* texts from report_text(), which report_free() frees */
    size_t owned_count, owned_capacity;
};

/* Adds a table. The pointer holds until another is added. `columns` must outlive the report. */
struct table *report_table(struct report *report, const char *key, const char *title,
    const struct column *columns, size_t column_count);
/* Adds an empty row (NULL, NAN). Returns its cells, which hold until the next row. */
struct cell *table_row(struct table *table);
/* Returns a new text that the report owns. */
const char *report_text(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const struct table *report_find(
    const struct report *report, const char *key); /* NULL: no such table */
/* Return a cell's value by its column's key; "" or NAN: no such table (NULL), row or column. */
const char *table_text(const struct table *table, size_t row, const char *column);
double table_number(const struct table *table, size_t row, const char *column);
/* Returns the sum of a column's known numbers; NAN: no such table (NULL). */
double table_sum(const struct table *table, const char *column);
/* Returns a cell's text (NULL: ""), or its number as value_show() writes it into `out`. */
const char *cell_show(char out[SHOWN_MAX], const struct column *column, const struct cell *cell);
/* Returns how many rows text and HTML show. */
size_t rows_shown(const struct table *table);
void report_free(struct report *report);

/* --- rows while they are added up --- */

enum { TALLY_SUMS = 7 };

/* The sums of all things with one key. times: how many things; total, shortest, longest: in ns. */
struct tally {
    uint64_t key;
    uint64_t times;
    int64_t total, shortest, longest;
    double sum[TALLY_SUMS]; /* sums that each table chooses: bytes, failures, ... */
};

struct tallies {
    struct tally *rows; /* in the order of their keys' first use, until tallies_sort() */
    size_t count, capacity;
    struct numbers index; /* the index in `rows` of each key */
    struct numbers parts; /* for tally_of_parts(): a number for each sequence of parts met so far */
};

/* Returns the row of a key, and adds an empty row for a new key. The row holds until the next
 * call. */
struct tally *tally_of(struct tallies *tallies, uint64_t key);
/* Does the same for a key of several numbers. */
struct tally *tally_of_parts(struct tallies *tallies, const uint32_t *parts, size_t count);
#define TALLY_OF(tallies, ...) \
    tally_of_parts(tallies, (const uint32_t[]){__VA_ARGS__}, \
        sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
void tally_add(struct tally *tally, int64_t duration);
/* Sorts the rows, the longest total first. tally_of() must not be called afterwards. */
void tallies_sort(struct tallies *tallies);
void tallies_free(struct tallies *tallies);

static inline double tally_mean(const struct tally *tally)
{
    return (double)tally->total / (double)tally->times;
}

/* Values of struct column's `from`: where a cell of a tally's row comes from. OWN: the table sets
 * the cell. DEVICE: the device whose index is the key's upper half. NAME: the text whose number is
 * the lower half. SUM: sum[a]. RATIO: sum[a] / sum[b], NAN if sum[b] is 0. */
enum {
    CELL_OWN,
    CELL_DEVICE,
    CELL_NAME,
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
/* Fills the CELL_OWN cells of a row. */
typedef void row_own(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row);
/* Adds a row for each tally, the longest total first, and frees the tallies. */
void tallies_put(struct report *report, const struct model *of, struct tallies *tallies,
    struct table *table, row_own *own);

/* Adds a row to a table whose columns are the array `columns`: one CELL() for each. */
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

/* Returns the stream's name as the timeline shows it, or "stream 13" if it has none. */
const char *stream_label(struct report *report, const struct run *run, uint32_t stream);
/* Returns "python3 1191": the thread's name, or "thread", and the system's number. */
const char *thread_label(struct report *report, const struct run *run, uint32_t thread);
/* Returns a piece of work's name for a sentence: a long name loses its middle. */
const char *work_label(struct report *report, const struct run *run, const struct work *work);

#endif
