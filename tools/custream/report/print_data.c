/* Prints the report for programs, as JSON and as CSV (RFC 4180). */
#include "tools/custream/report/inside.h"

#include <inttypes.h>

#include "shim/base/json.h"

/* --- CSV: table after table. A line's first field is the table's key --- */

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

static void csv_table_put(FILE *file, const struct table *table)
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
        csv_table_put(file, &print->report->tables[t]);
}

/* --- JSON --- */

static void string_put(FILE *file, const char *text)
{
    const size_t length = strlen(text);
    char *quoted = malloc(6 * length + 2);
    if (!quoted) out_of_memory();
    fwrite(quoted, 1, (size_t)(cs_put_string(quoted, text, length) - quoted), file);
    free(quoted);
}

void json_tables_put(FILE *file, const struct report *report)
{
    for (size_t t = 0; t < report->table_count; t++) {
        const struct table *table = &report->tables[t];
        if (t) fputs(",\n", file);
        string_put(file, table->key);
        fputs(":[", file);
        for (size_t row = 0; row < table->row_count; row++) {
            fputs(row ? ",\n{" : "\n{", file);
            for (size_t c = 0; c < table->column_count; c++) {
                char exact[SHOWN_MAX];
                const struct cell *cell = &table->cells[row * table->column_count + c];
                if (c) fputc(',', file);
                string_put(file, table->columns[c].key);
                fputc(':', file);
                if (table->columns[c].unit == UNIT_TEXT)
                    string_put(file, cell->text ? cell->text : "");
                else
                    fputs(isfinite(cell->number) ? value_exact(exact, cell->number) : "null", file);
            }
            fputc('}', file);
        }
        fputc(']', file);
    }
}

void print_json(FILE *file, const struct print *print)
{
    fprintf(file,
        "{\"custream_report\":%d,\"tool\":\"custream " CUSTREAM_VERSION_STRING "\",\"files\":[",
        REPORT_VERSION);
    for (int i = 0; i < print->file_count; i++) {
        if (i) fputc(',', file);
        string_put(file, print->files[i]);
    }
    fprintf(file, "],\"base_ns\":%" PRId64 ",\"tables\":{\n", print->of->run.base);
    json_tables_put(file, print->report);
    fputs("}}\n", file);
}
