#define _GNU_SOURCE /* vasprintf */
#include "tools/custream/model/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"

struct table *report_table(struct report *report, const char *key, const char *title, const struct column *columns, size_t column_count)
{
    report->tables = array_room(report->tables, report->table_count, &report->table_capacity, sizeof *report->tables);
    struct table *table = &report->tables[report->table_count++];
    *table = (struct table){.key = key, .title = title, .columns = columns, .column_count = column_count};
    return table;
}

struct cell *table_row(struct table *table)
{
    table->cells = array_room(table->cells, table->row_count, &table->row_capacity, table->column_count * sizeof *table->cells);
    struct cell *row = &table->cells[table->row_count++ * table->column_count];
    for (size_t c = 0; c < table->column_count; c++) row[c] = (struct cell){NULL, NAN};
    return row;
}

const char *report_text(struct report *report, const char *format, ...)
{
    char *made;
    va_list args;
    report->owned = array_room(report->owned, report->owned_count, &report->owned_capacity, sizeof *report->owned);
    va_start(args, format);
    if (vasprintf(&made, format, args) < 0) out_of_memory();
    va_end(args);
    return report->owned[report->owned_count++] = made;
}

const struct table *report_find(const struct report *report, const char *key)
{
    for (size_t t = 0; t < report->table_count; t++)
        if (!strcmp(report->tables[t].key, key)) return &report->tables[t];
    return NULL;
}

static const struct cell *cell_find(const struct table *table, size_t row, const char *column)
{
    if (!table || row >= table->row_count) return NULL;
    for (size_t c = 0; c < table->column_count; c++)
        if (!strcmp(table->columns[c].key, column)) return &table->cells[row * table->column_count + c];
    return NULL;
}

const char *table_text(const struct table *table, size_t row, const char *column)
{
    const struct cell *cell = cell_find(table, row, column);
    return cell && cell->text ? cell->text : "";
}

double table_number(const struct table *table, size_t row, const char *column)
{
    const struct cell *cell = cell_find(table, row, column);
    return cell ? cell->number : NAN;
}

double table_sum(const struct table *table, const char *column)
{
    double sum = table ? 0 : NAN;
    for (size_t row = 0; table && row < table->row_count; row++) {
        const double one = table_number(table, row, column);
        if (!isnan(one)) sum += one;
    }
    return sum;
}

const char *cell_show(char out[SHOWN_MAX], const struct column *column, const struct cell *cell)
{
    if (column->unit != UNIT_TEXT) return value_show(out, column->unit, cell->number);
    return cell->text ? cell->text : "";
}

size_t rows_shown(const struct table *table)
{
    return table->shown && table->shown < table->row_count ? table->shown : table->row_count;
}

void report_free(struct report *report)
{
    for (size_t t = 0; t < report->table_count; t++) free(report->tables[t].cells);
    for (size_t i = 0; i < report->owned_count; i++) free(report->owned[i]);
    free(report->tables);
    free(report->owned);
    *report = (struct report){0};
}
