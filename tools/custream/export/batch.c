#include "tools/custream/export/batch.h"

#include <errno.h>

#include "shim/base/append.h"
#include "tools/custream/command.h"

enum { ROWS = 1 << 17 };
enum type { TYPE_TIME, TYPE_NS, TYPE_WHOLE, TYPE_SMALL, TYPE_REAL, TYPE_TEXT };

enum { KEY_OWN = TRACE_KEY_COUNT };

static const struct {
    enum export_table table;
    enum type type;
    unsigned key; /* enum trace_key, or KEY_OWN */
    const char *name;
} columns[COLUMN_COUNT] = {
#define TABLE(...)
#define COLUMN(table, name, type, key, says) {TABLE_##table, TYPE_##type, KEY_##key, #name},
#include "tools/custream/export/columns.def"
#undef TABLE
#undef COLUMN
};

static const struct {
    const char *name;
    enum export_column begin; /* its columns end where the next table's begin */
} tables[TABLE_COUNT + 1] = {
#define TABLE(table, name) {#name, TABLE_##table##_BEGIN},
#define COLUMN(...)
#include "tools/custream/export/columns.def"
#undef TABLE
#undef COLUMN
    {NULL, COLUMN_COUNT}};

static const char *const types[] = {[TYPE_TIME] = "time",
    [TYPE_NS] = "ns",
    [TYPE_WHOLE] = "whole",
    [TYPE_SMALL] = "small",
    [TYPE_REAL] = "real",
    [TYPE_TEXT] = "text"};

/* The values of one column in a batch. A text's value is its place in `listed`, from 0. */
static struct gathered {
    union {
        int64_t *whole;
        int32_t *small;
        double *real;
    } values;
    uint8_t *there;   /* one bit for each row: 1 if the row has a value */
    text *listed;     /* for the type TEXT: each text of the batch once */
    uint32_t *places; /* by a text's number: its place in `listed`, + 1 */
    size_t list_count, list_capacity, place_capacity;
} gathered[COLUMN_COUNT];

static uint32_t rows[TABLE_COUNT];
static const struct texts *known;
static int failed;

static bool is_small(enum export_column column)
{
    return columns[column].type == TYPE_SMALL || columns[column].type == TYPE_TEXT;
}

static size_t value_size(enum export_column column)
{
    return is_small(column) ? sizeof(int32_t) : sizeof(int64_t);
}

void batch_begin(const struct texts *texts)
{
    known = texts;
    for (enum export_column c = 0; c < COLUMN_COUNT; c++) {
        gathered[c].there = array_zeros(ROWS / 8, 1);
        gathered[c].values.whole = array_zeros(ROWS, value_size(c));
    }
}

static uint32_t take_row(enum export_column column)
{
    const uint32_t row = rows[columns[column].table];
    gathered[column].there[row / 8] |= (uint8_t)(1 << row % 8);
    return row;
}

void batch_put(enum export_column column, int64_t value)
{
    const uint32_t row = take_row(column);
    if (is_small(column)) gathered[column].values.small[row] = (int32_t)value;
    else gathered[column].values.whole[row] = value;
}

void batch_put_real(enum export_column column, double value)
{
    gathered[column].values.real[take_row(column)] = value;
}

void batch_put_text(enum export_column column, text value)
{
    struct gathered *g = &gathered[column];
    if (!value) return;
    if (value >= g->place_capacity) {
        const size_t before = g->place_capacity;
        g->place_capacity = value + 1 > 2 * before ? value + 1 : 2 * before;
        g->places = realloc(g->places, g->place_capacity * sizeof *g->places);
        if (!g->places) out_of_memory();
        memset(g->places + before, 0, (g->place_capacity - before) * sizeof *g->places);
    }
    if (!g->places[value]) {
        array_add(g->listed, g->list_count, g->list_capacity, value);
        g->places[value] = (uint32_t)g->list_count;
    }
    g->values.small[take_row(column)] = (int32_t)g->places[value] - 1;
}

void batch_take(enum export_table table, const struct trace_row *row, int64_t base)
{
    for (enum export_column c = tables[table].begin; c < tables[table + 1].begin; c++) {
        if (columns[c].key == KEY_OWN) continue;
        const enum trace_key key = columns[c].key;
        const int64_t number = row_number(row, key, 0);
        if (key == KEY_TS) batch_put(c, base + number);
        else if (key == KEY_DUR) batch_put(c, number > 0 ? number : 0);
        else if (columns[c].type == TYPE_TEXT) batch_put_text(c, row_word(row, key));
        else if (row_has(row, key)) batch_put(c, number);
    }
}

/* --- out --- */

static void put(const void *at, size_t bytes)
{
    if (!failed && fwrite(at, 1, bytes, stdout) != bytes) failed = errno ? errno : EIO;
}

static void put_list(const struct gathered *g)
{
    uint32_t end = 0;
    put(&end, sizeof end);
    for (size_t i = 0; i < g->list_count; i++)
        end += (uint32_t)text_length(known, g->listed[i]), put(&end, sizeof end);
    for (size_t i = 0; i < g->list_count; i++)
        put(text_of(known, g->listed[i]), text_length(known, g->listed[i]));
}

static void put_head(enum export_table table)
{
    char line[4096];
    size_t n = cs_append(line, sizeof line, 0, "{\"table\":\"%s\",\"rows\":%u,\"columns\":[",
        tables[table].name, rows[table]);
    for (enum export_column c = tables[table].begin; c < tables[table + 1].begin; c++) {
        size_t bytes = 0;
        for (size_t i = 0; i < gathered[c].list_count; i++)
            bytes += text_length(known, gathered[c].listed[i]);
        n = cs_append(line, sizeof line, n, "%s[\"%s\",\"%s\",%zu,%zu]",
            c > tables[table].begin ? "," : "", columns[c].name, types[columns[c].type],
            gathered[c].list_count, bytes);
    }
    n = cs_append(line, sizeof line, n, "]}\n");
    put(line, n);
}

static void put_column(enum export_column column, uint32_t count)
{
    struct gathered *g = &gathered[column];
    const size_t bits = (count + 7) / 8;
    put(g->there, bits);
    put(g->values.whole, count * value_size(column));
    if (columns[column].type == TYPE_TEXT) put_list(g);
    memset(g->there, 0, bits);
    for (size_t i = 0; i < g->list_count; i++) g->places[g->listed[i]] = 0;
    g->list_count = 0;
}

void batch_flush(enum export_table table)
{
    if (!rows[table]) return;
    put_head(table);
    for (enum export_column c = tables[table].begin; c < tables[table + 1].begin; c++)
        put_column(c, rows[table]);
    rows[table] = 0;
}

void batch_row(enum export_table table)
{
    if (++rows[table] == ROWS) batch_flush(table);
}

void batch_merged(uint32_t file)
{
    char line[32];
    put(line, (size_t)snprintf(line, sizeof line, "{\"merged\":%u}\n", file));
}

void batch_schema(void)
{
    printf("{\"version\":%d,\"tables\":{", EXPORT_VERSION);
    for (enum export_table t = 0; t < TABLE_COUNT; t++) {
        printf("%s\"%s\":{", t ? "," : "", tables[t].name);
        for (enum export_column c = tables[t].begin; c < tables[t + 1].begin; c++)
            printf("%s\"%s\":\"%s\"", c > tables[t].begin ? "," : "", columns[c].name,
                types[columns[c].type]);
        printf("}");
    }
    printf("}}\n");
}

bool batch_good(void)
{
    if (fflush(stdout) && !failed) failed = errno;
    errno = failed;
    return !failed;
}
