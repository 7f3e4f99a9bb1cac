/* Rows of a table while they are added up. */
#ifndef CS_MODEL_TALLY_H
#define CS_MODEL_TALLY_H

#include <string.h>

#include "tools/custream/model/table.h"
#include "tools/custream/trace/numbers.h"

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

/* A key of two numbers, and these again. */
static inline uint64_t key_of(uint32_t high, uint32_t low) { return (uint64_t)high << 32 | low; }
static inline uint32_t key_high(uint64_t key) { return (uint32_t)(key >> 32); }
static inline uint32_t key_low(uint64_t key) { return (uint32_t)key; }

static inline double tally_mean(const struct tally *tally) { return (double)tally->total / (double)tally->times; }

/* A row of a table whose columns are the array `columns`: its cells in their order. */
#define CELL_TEXT(word)     ((struct cell){.text = (word), .number = NAN})
#define CELL_NUMBER(amount) ((struct cell){.number = (double)(amount)})
#define TABLE_PUT(table, columns, ...)                                                                                                               \
    do {                                                                                                                                             \
        _Static_assert(sizeof(struct cell[]){__VA_ARGS__} / sizeof(struct cell) == sizeof(columns) / sizeof *(columns), "a cell a column");          \
        memcpy(table_row(table), (struct cell[]){__VA_ARGS__}, sizeof(struct cell[]){__VA_ARGS__});                                                  \
    } while (0)
#define TABLE_NEW(report, key, title, columns) report_table(report, key, title, columns, sizeof(columns) / sizeof *(columns))

#endif
