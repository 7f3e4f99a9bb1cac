/* The report as CSV (RFC 4180), table after table. A line's first field is the table's key. */
#include "tools/custream/report/inside.h"

#include "shim/base/json.h"

/* Writes a field. Bytes that are not UTF-8 are replaced, as in JSON. */
static void field_put(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
    const char *quote = text[strcspn(text, ",\"\r\n")] ? "\"" : "";
    fputs(quote, file);
    while (at < end) {
        const int length = cs_utf8_length(at, end);
        if (*at == '"') fputc('"', file);
        if (length) fwrite(at, 1, (size_t)length, file);
        else fputs("\xef\xbf\xbd", file);
        at += length ? length : 1;
    }
    fputs(quote, file);
}

static void table_put(FILE *file, const struct table *table)
{
    fputs("table", file);
    for (size_t c = 0; c < table->column_count; c++) {
        fputc(',', file);
        field_put(file, table->columns[c].key);
    }
    fputs("\r\n", file);
    for (size_t row = 0; row < table->row_count; row++) {
        field_put(file, table->key);
        for (size_t c = 0; c < table->column_count; c++) {
            char exact[SHOWN_MAX];
            const struct cell *cell = &table->cells[row * table->column_count + c];
            fputc(',', file);
            if (table->columns[c].unit != UNIT_TEXT) fputs(value_exact(exact, cell->number), file);
            else if (cell->text) field_put(file, cell->text);
        }
        fputs("\r\n", file);
    }
}

void print_csv(FILE *file, const struct print *print)
{
    for (size_t t = 0; t < print->report->table_count; t++)
        table_put(file, &print->report->tables[t]);
}
