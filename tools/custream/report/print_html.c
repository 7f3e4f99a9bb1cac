/* Prints the report as one HTML page that needs no network, with lanes and sortable tables. */
#include "tools/custream/report/inside.h"

/* The most rows of a table on a page, and columns of any table. */
enum { ROWS_MAX = 1000, COLUMNS_MAX = 64 };

void html_put(FILE *file, const char *text)
{
    struct glyph glyph;
    while ((text = glyph_next(text, &glyph))) switch (*glyph.bytes) {
        case '&': fputs("&amp;", file); break;
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        case '"': fputs("&quot;", file); break;
        case '\'': fputs("&#39;", file); break;
        default: fwrite(glyph.bytes, 1, (size_t)glyph.length, file);
        }
}

static void element_put(FILE *file, const char *name, const char *text)
{
    if (!*text) return;
    fprintf(file, "<%s>", name);
    html_put(file, text);
    fprintf(file, "</%s>\n", name);
}

/* --- tables --- */

/* Whether no row has a value in the column, which is left out then. */
static bool is_empty(const struct table *table, size_t column)
{
    const bool text = table->columns[column].unit == UNIT_TEXT;
    for (size_t row = 0; row < table->row_count; row++) {
        const struct cell *cell = &table->cells[row * table->column_count + column];
        if (text ? cell->text && *cell->text : !isnan(cell->number)) return false;
    }
    return true;
}

static void header_put(FILE *file, const struct table *table, const bool *empty)
{
    fputs("<thead><tr>", file);
    for (size_t c = 0; c < table->column_count; c++) {
        const struct column *column = &table->columns[c];
        if (empty[c]) continue;
        fprintf(file, "<th scope=\"col\"%s><button type=\"button\">",
            column->unit == UNIT_TEXT ? "" : " class=\"n\"");
        html_put(file, column->title);
        fputs("</button></th>", file);
    }
    fputs("</tr></thead>\n", file);
}

static void cell_put(FILE *file, const struct column *column, const struct cell *cell)
{
    char shown[SHOWN_MAX], exact[SHOWN_MAX];
    if (column->unit == UNIT_TEXT) fputs("<td>", file);
    else fprintf(file, "<td class=\"n\" data-v=\"%s\">", value_exact(exact, cell->number));
    html_put(file, cell_show(shown, column, cell));
    fputs("</td>", file);
}

static void table_put(FILE *file, const struct table *table)
{
    const size_t shown = rows_shown(table),
                 all = table->row_count < ROWS_MAX ? table->row_count : ROWS_MAX;
    bool empty[COLUMNS_MAX];
    for (size_t c = 0; c < table->column_count; c++) empty[c] = is_empty(table, c);
    fprintf(file, "<section id=\"%s\">\n", table->key);
    element_put(file, "h2", table->title);
    element_put(file, "p", table->note ? table->note : "");
    fputs("<div class=\"wide\" tabindex=\"0\"><table>\n", file);
    header_put(file, table, empty);
    fputs("<tbody>\n", file);
    for (size_t row = 0; row < all; row++) {
        fputs(row < shown ? "<tr>" : "<tr hidden>", file);
        for (size_t c = 0; c < table->column_count; c++)
            if (!empty[c])
                cell_put(file, &table->columns[c], &table->cells[row * table->column_count + c]);
        fputs("</tr>\n", file);
    }
    fputs("</tbody></table></div>\n", file);
    if (shown < all)
        fprintf(file, "<p><button type=\"button\" class=\"more\">Show %zu rows more</button></p>\n",
            all - shown);
    if (all < table->row_count)
        fprintf(file, "<p>and %zu more: --csv has all</p>\n", table->row_count - all);
    fputs("</section>\n", file);
}

/* --- words --- */

static void paragraph_put(FILE *file, const char *label, const char *text)
{
    if (!*text) return;
    fprintf(file, "<dt>%s</dt><dd>", label);
    html_put(file, text);
    fputs("</dd>\n", file);
}

static void finding_put(FILE *file, const struct finding *finding)
{
    fputs("<article><h3><span class=\"id\">", file);
    html_put(file, finding->id);
    fputs("</span> ", file);
    html_put(file, finding->title);
    fputs("</h3>\n<dl>", file);
    paragraph_put(file, "Gains", finding->gain);
    paragraph_put(file, "Where", finding->place);
    paragraph_put(file, "Seen", finding->evidence);
    paragraph_put(file, "To do", finding->remedy);
    paragraph_put(file, "More", finding->more);
    fputs("</dl></article>\n", file);
}

static void findings_put(FILE *file, const struct report *report, const struct table *findings)
{
    fputs("<section id=\"findings\">\n", file);
    element_put(file, "h2", findings_heading(report));
    if (findings->note && findings->row_count) element_put(file, "p", findings->note);
    for (size_t row = 0; row < findings->row_count && row < ROWS_MAX; row++) {
        const struct finding finding = finding_at(report, row);
        if (row == rows_shown(findings))
            fprintf(
                file, "<details><summary>%zu more findings</summary>\n", findings->row_count - row);
        finding_put(file, &finding);
    }
    if (rows_shown(findings) < findings->row_count) fputs("</details>\n", file);
    fputs("</section>\n", file);
}

static void next_put(FILE *file, const struct print *print)
{
    const char *what;
    char *command;
    fputs("<section id=\"next\">\n<h2>Where to look next</h2>\n<dl>", file);
    for (size_t i = 0; (command = next_command(print, i, &what)); i++) {
        fputs("<dt><code>", file);
        html_put(file, command);
        fprintf(file, "</code></dt><dd>%s</dd>\n", what);
        free(command);
    }
    fputs("</dl></section>\n", file);
}

/* Writes when, where and how the run was recorded. */
static void facts_put(FILE *file, const struct report *report)
{
    static const char *const facts[][2] = {{"Date", "began"}, {"Host", "host"},
        {"Command line", "command_line"}, {"Settings", "settings"}, {"Recorded by", "recorded_by"}};
    const struct table *run = report_find(report, "run"), *devices = report_find(report, "devices");
    char line[SUMMARY_MAX];
    fputs("<section id=\"facts\">\n<h2>The run</h2>\n", file);
    for (size_t i = 0; run_line(report, i, line); i++) element_put(file, "p", line);
    fputs("<dl>", file);
    for (size_t i = 0; i < CS_COUNT(facts); i++) {
        const char *text = table_text(run, 0, facts[i][1]);
        paragraph_put(file, facts[i][0], *text ? text : "not recorded");
    }
    for (size_t row = 0; devices && row < devices->row_count; row++) {
        const char *name = table_text(devices, row, "name");
        snprintf(line, sizeof line, "GPU %.0f", table_number(devices, row, "device"));
        paragraph_put(file, line, *name ? name : "name not recorded");
    }
    if (!devices || !devices->row_count) paragraph_put(file, "GPU", "not recorded");
    fputs("</dl></section>\n", file);
}

static void head_put(FILE *file, const char *program)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'; script-src 'unsafe-inline'; img-src "
          "data:\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link "
          "rel=\"icon\" href=\"data:,\">\n<title>custream report: ",
        file);
    html_put(file, program);
    fprintf(file, "</title>\n<style>\n%s</style></head>\n<body>\n", page_style);
}

void print_html(FILE *file, const struct print *print)
{
    const struct report *report = print->report;
    const struct table *findings = report_find(report, "findings");
    const char *program = table_text(report_find(report, "run"), 0, "program");
    char line[SUMMARY_MAX];
    head_put(file, program);
    element_put(file, "h1", program);
    for (size_t i = 0; first_line(report, i, line); i++) element_put(file, "p", line);
    if (findings) findings_put(file, report, findings);
    next_put(file, print);
    facts_put(file, report);
    lanes_print(file, print->of);
    for (size_t t = 0; t < report->table_count; t++)
        if (report->tables[t].row_count && !is_told(&report->tables[t], true))
            table_put(file, &report->tables[t]);
    fputs("<footer><p>custream " CUSTREAM_VERSION_STRING ", from ", file);
    for (int i = 0; i < print->file_count; i++) {
        if (i) fputs(", ", file);
        html_put(file, print->files[i]);
    }
    fprintf(file, "</p></footer>\n<script>\n%s</script>\n</body></html>\n", page_script);
}
