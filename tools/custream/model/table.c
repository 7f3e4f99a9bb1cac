#define _GNU_SOURCE /* vasprintf */
#include "tools/custream/model/table.h"

#include <math.h>
#include <stdarg.h>

struct table *report_table(struct report *report, const char *key, const char *title,
    const struct column *columns, size_t column_count)
{
    array_add(report->tables, report->table_count, report->table_capacity,
        (struct table){
            .key = key, .title = title, .columns = columns, .column_count = column_count});
    return &report->tables[report->table_count - 1];
}

struct cell *table_row(struct table *table)
{
    table->cells = array_room(table->cells, table->row_count, &table->row_capacity,
        table->column_count * sizeof *table->cells);
    struct cell *row = &table->cells[table->row_count++ * table->column_count];
    for (size_t c = 0; c < table->column_count; c++) row[c] = (struct cell){NULL, NAN};
    return row;
}

const char *report_text(struct report *report, const char *format, ...)
{
    char *made;
    va_list args;
    va_start(args, format);
    if (vasprintf(&made, format, args) < 0) out_of_memory();
    va_end(args);
    return array_add(report->owned, report->owned_count, report->owned_capacity, made);
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
        if (!strcmp(table->columns[c].key, column))
            return &table->cells[row * table->column_count + c];
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

/* --- rows while they are added up --- */

struct tally *tally_of(struct tallies *tallies, uint64_t key)
{
    const uint32_t at = *numbers_at(&tallies->index, key, (uint32_t)tallies->count);
    if (at == tallies->count)
        array_add(tallies->rows, tallies->count, tallies->capacity, (struct tally){.key = key});
    return &tallies->rows[at];
}

struct tally *tally_of_parts(struct tallies *tallies, const uint32_t *parts, size_t count)
{
    uint32_t key = 0;
    for (size_t i = 0; i < count; i++)
        key =
            *numbers_at(&tallies->parts, key_of(key, parts[i]), (uint32_t)tallies->parts.count + 1);
    return tally_of(tallies, key);
}

void tally_add(struct tally *tally, int64_t duration)
{
    if (!tally->times || duration < tally->shortest) tally->shortest = duration;
    if (duration > tally->longest) tally->longest = duration;
    if (__builtin_add_overflow(tally->total, duration, &tally->total))
        tally->total = INT64_MAX; /* only a damaged file has times of centuries */
    tally->times++;
}

/* Equal totals are in the order of their keys, so that the same file makes the same table. */
COMPARES(longer_first, struct tally, ORDER(b->total, a->total) ?: ORDER(a->key, b->key))

void tallies_sort(struct tallies *tallies)
{
    if (tallies->count) qsort(tallies->rows, tallies->count, sizeof *tallies->rows, longer_first);
}

static double tally_number(const struct tally *tally, unsigned from)
{
    switch (from) {
    case CELL_OWN: return NAN;
    case CELL_TIMES: return (double)tally->times;
    case CELL_TOTAL: return (double)tally->total;
    case CELL_MEAN: return tally_mean(tally);
    case CELL_SHORTEST: return (double)tally->shortest;
    case CELL_LONGEST: return (double)tally->longest;
    }
    if (from < CELL_RATIO_0) return tally->sum[from - CELL_SUM_0];
    const double by = tally->sum[(from - CELL_RATIO_0) % TALLY_SUMS];
    return by > 0 ? tally->sum[(from - CELL_RATIO_0) / TALLY_SUMS] / by : NAN;
}

void tallies_put(struct report *report, const struct model *of, struct tallies *tallies,
    struct table *table, row_own *own)
{
    tallies_sort(tallies);
    for (size_t i = 0; i < tallies->count; i++) {
        const struct tally *tally = &tallies->rows[i];
        struct cell *row = table_row(table);
        for (size_t c = 0; c < table->column_count; c++) {
            const unsigned from = table->columns[c].from;
            if (from == CELL_DEVICE) row[c].number = of->run.devices[key_high(tally->key)].ordinal;
            else if (from == CELL_NAME) row[c].text = text_in(&of->run, key_low(tally->key));
            else row[c].number = tally_number(tally, from);
        }
        if (own) own(report, of, tally, row);
    }
    tallies_free(tallies);
}

void tallies_free(struct tallies *tallies)
{
    free(tallies->rows);
    numbers_free(&tallies->index);
    numbers_free(&tallies->parts);
    *tallies = (struct tallies){0};
}

/* --- names --- */

/* Limits of a name in bytes: a name with a template's arguments can have thousands. */
enum { NAME_MOST = 96, NAME_HEAD = 64, NAME_TAIL = 24 };

const char *stream_label(struct report *report, const struct run *run, uint32_t stream)
{
    const struct stream *s = &run->streams[stream];
    return s->name ? text_in(run, s->name) : report_text(report, "stream %u", s->lane);
}

const char *thread_label(struct report *report, const struct run *run, uint32_t thread)
{
    const struct thread *t = &run->threads[thread];
    return report_text(report, "%s %u", t->name ? text_in(run, t->name) : "thread", t->tid);
}

/* Returns `at`, or the next place where no UTF-8 character is cut. */
static const char *whole_characters(const char *at)
{
    while ((*at & 0xc0) == 0x80) at++;
    return at;
}

const char *work_label(struct report *report, const struct run *run, const struct work *work)
{
    const char *name = text_in(run, work->name);
    const size_t length = strlen(name);
    if (length <= NAME_MOST) return name;
    const char *head = whole_characters(name + NAME_HEAD),
               *tail = whole_characters(name + length - NAME_TAIL);
    return report_text(report, "%.*s…%s", (int)(head - name), name, tail);
}
