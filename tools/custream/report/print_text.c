/* Prints the report for a terminal: first the findings, then the tables. */
#include "tools/custream/report/inside.h"

#include <locale.h>
enum { COLUMNS_SHOWN_MAX = 32, TEXT_COLUMNS_MIN = 8, GAP = 2 };

enum style { STYLE_HEADING, STYLE_ALARM };

static void style_put(FILE *file, const struct print *print, enum style style, const char *text)
{
    static const char *const codes[] = {"1", "1;33"};
    if (print->color) fprintf(file, "\033[%sm", codes[style]);
    text_put(file, text);
    if (print->color) fputs("\033[0m", file);
}

/* --- a table --- */

/* The columns that have something to show, and their widths. Titles may take several lines. */
struct layout {
    size_t columns[COLUMNS_SHOWN_MAX], count;
    int width[COLUMNS_SHOWN_MAX], title_lines;
};

/* Finds the part of a title on line `line`, from 0. Returns its length; 0: the title has ended. */
static int title_line(const char **title, int width, int line)
{
    const char *at = *title;
    int length = 0;
    for (;; line--) {
        for (length = 0; at[length];) {
            const int word = length + (int)strspn(at + length, " "),
                      end = word + (int)strcspn(at + word, " ");
            if (length && end > width) break;
            length = end;
        }
        if (!line || !length) break;
        at += length + (int)strspn(at + length, " ");
    }
    *title = at;
    return length;
}

static int title_lines(const char *title, int width)
{
    int lines = 0;
    for (const char *at = title; title_line(&at, width, lines); at = title) lines++;
    return lines;
}

static int longest_word(const char *title)
{
    size_t longest = 0;
    for (; *title; title += strspn(title, " ")) {
        const size_t length = strcspn(title, " ");
        if (length > longest) longest = length;
        title += length;
    }
    return (int)longest;
}

/* Returns the width of a column's widest cell; 0: all are empty. */
static int column_width(const struct table *table, size_t column)
{
    const struct column *of = &table->columns[column];
    bool empty = true;
    int width = 0;
    for (size_t row = 0; row < rows_shown(table); row++) {
        char shown[SHOWN_MAX];
        const struct cell *cell = &table->cells[row * table->column_count + column];
        const char *text = cell_show(shown, of, cell);
        const int wide = text_columns(text);
        empty &= of->unit == UNIT_TEXT ? !*text : isnan(cell->number);
        if (wide > width) width = wide;
    }
    return empty ? 0 : width;
}

static bool is_text(const struct table *table, const struct layout *layout, size_t at)
{
    return table->columns[layout->columns[at]].unit == UNIT_TEXT;
}

static int layout_total(const struct layout *layout)
{
    int total = -GAP;
    for (size_t i = 0; i < layout->count; i++) total += layout->width[i] + GAP;
    return total;
}

/* Makes the widest text column narrower, until all columns fit or none can shrink. */
static void layout_fit(struct layout *layout, const struct table *table, int columns)
{
    for (int total = layout_total(layout); total > columns; total--) {
        size_t widest = layout->count;
        for (size_t i = 0; i < layout->count; i++)
            if (is_text(table, layout, i) && layout->width[i] > TEXT_COLUMNS_MIN &&
                (widest == layout->count || layout->width[i] > layout->width[widest]))
                widest = i;
        if (widest == layout->count) return;
        layout->width[widest]--;
    }
}

/* Lays out a table. Each word of a title may have its own line, to make room. */
static struct layout layout_make(const struct table *table, int columns)
{
    struct layout layout = {.count = 0};
    int words[COLUMNS_SHOWN_MAX];
    for (size_t c = 0; c < table->column_count && layout.count < COLUMNS_SHOWN_MAX; c++) {
        const int width = column_width(table, c), title = text_columns(table->columns[c].title),
                  word = longest_word(table->columns[c].title);
        if (!width || table->columns[c].role & COLUMN_BELOW) continue;
        layout.columns[layout.count] = c;
        words[layout.count] = width > word ? width : word;
        layout.width[layout.count++] = width > title ? width : title;
    }
    if (layout_total(&layout) > columns) memcpy(layout.width, words, sizeof layout.width);
    layout_fit(&layout, table, columns);
    for (size_t i = 0; i < layout.count; i++) {
        const int lines = title_lines(table->columns[layout.columns[i]].title, layout.width[i]);
        if (lines > layout.title_lines) layout.title_lines = lines;
    }
    return layout;
}

/* Writes a cell: texts left, numbers right. The last cell of a line has no blanks behind it. */
static void cell_put(FILE *file, const struct table *table, const struct layout *layout, size_t at,
    const char *text, bool last)
{
    const int width = layout->width[at], wide = text_columns(text),
              fill = wide < width ? width - wide : 0;
    if (at) fprintf(file, "%*s", GAP, "");
    if (!is_text(table, layout, at)) fprintf(file, "%*s", fill, "");
    const enum cut cut =
        table->columns[layout->columns[at]].role & COLUMN_CUT_END ? CUT_END : CUT_MIDDLE;
    const int put = text_put_cut(file, text, width, cut);
    if (is_text(table, layout, at) && !last) fprintf(file, "%*s", width - put, "");
}

/* Writes a line of texts, one for each column. */
static void line_put(FILE *file, const struct table *table, const struct layout *layout,
    const char *const texts[COLUMNS_SHOWN_MAX])
{
    size_t count = layout->count;
    while (count && !*texts[count - 1]) count--;
    for (size_t i = 0; i < count; i++) cell_put(file, table, layout, i, texts[i], i + 1 == count);
    fputc('\n', file);
}

/* Writes the titles. All of them end on the last line. */
static void titles_put(FILE *file, const struct table *table, const struct layout *layout)
{
    for (int line = 0; line < layout->title_lines; line++) {
        char parts[COLUMNS_SHOWN_MAX][SHOWN_MAX];
        const char *texts[COLUMNS_SHOWN_MAX];
        for (size_t i = 0; i < layout->count; i++) {
            const char *title = table->columns[layout->columns[i]].title;
            const int own = line - layout->title_lines + title_lines(title, layout->width[i]),
                      length = own < 0 ? 0 : title_line(&title, layout->width[i], own);
            snprintf(parts[i], sizeof parts[i], "%.*s", length, title);
            texts[i] = parts[i];
        }
        line_put(file, table, layout, texts);
    }
}

/* Writes the cells that have lines of their own below the row. */
static void below_put(FILE *file, const struct print *print, const struct table *table, size_t row)
{
    enum { INDENT = 5, MORE = 7 };
    for (size_t c = 0; c < table->column_count; c++) {
        const struct column *column = &table->columns[c];
        const char *text = table->cells[row * table->column_count + c].text;
        if (!(column->role & COLUMN_BELOW) || !text || !*text) continue;
        fprintf(file, "%*s%s: ", INDENT, "", column->title);
        text_put_wrapped(
            file, text, print->columns, MORE, INDENT + text_columns(column->title) + 2);
    }
}

static void row_put(FILE *file, const struct print *print, const struct table *table,
    const struct layout *layout, size_t row)
{
    char shown[COLUMNS_SHOWN_MAX][SHOWN_MAX];
    const char *texts[COLUMNS_SHOWN_MAX];
    for (size_t i = 0; i < layout->count; i++) {
        const size_t column = layout->columns[i];
        texts[i] = cell_show(
            shown[i], &table->columns[column], &table->cells[row * table->column_count + column]);
    }
    line_put(file, table, layout, texts);
    below_put(file, print, table, row);
}

void text_heading_put(FILE *file, const struct print *print, const char *heading)
{
    fputc('\n', file);
    style_put(file, print, STYLE_HEADING, heading);
    fputc('\n', file);
}

void text_table_put(FILE *file, const struct print *print, const struct table *table)
{
    const struct layout layout = layout_make(table, print->columns);
    const size_t shown = rows_shown(table);
    text_heading_put(file, print, table->title);
    if (table->note) text_put_wrapped(file, table->note, print->columns, 0, 0);
    fputc('\n', file);
    if (print->color) fputs("\033[2m", file);
    titles_put(file, table, &layout);
    if (print->color) fputs("\033[0m", file);
    for (size_t row = 0; row < shown; row++) row_put(file, print, table, &layout, row);
    if (shown < table->row_count)
        fprintf(file, "and %zu more: --csv has all\n", table->row_count - shown);
}

/* --- words --- */

static void paragraph_put(
    FILE *file, const struct print *print, const char *label, const char *text)
{
    enum { INDENT = 7 };
    if (!*text) return;
    fprintf(file, "%*s%s", INDENT, "", label);
    text_put_wrapped(file, text, print->columns, INDENT, INDENT + text_columns(label));
}

static void findings_put(FILE *file, const struct print *print, const struct table *findings)
{
    const size_t shown = rows_shown(findings);
    text_heading_put(file, print, findings_heading(print->report));
    if (findings->note && findings->row_count)
        text_put_wrapped(file, findings->note, print->columns, 0, 0);
    for (size_t row = 0; row < shown; row++) {
        const struct finding finding = finding_at(print->report, row);
        fputc('\n', file);
        style_put(file, print, STYLE_ALARM, finding.id);
        fputs("  ", file);
        style_put(file, print, STYLE_HEADING, finding.title);
        fputc('\n', file);
        paragraph_put(file, print, "Gains: ", finding.gain);
        paragraph_put(file, print, "Where: ", finding.place);
        paragraph_put(file, print, "Seen: ", finding.evidence);
        paragraph_put(file, print, "To do: ", finding.remedy);
        paragraph_put(file, print, "More: ", finding.more);
    }
    if (shown < findings->row_count)
        fprintf(file, "\nand %zu more: --csv has all\n", findings->row_count - shown);
}

/* Writes the commands as they are typed, each with a comment if there is room for it. */
static void next_put(FILE *file, const struct print *print)
{
    const char *what;
    char *command;
    for (size_t i = 0; (command = next_command(print, i, &what)); i++) {
        if (!i) text_heading_put(file, print, "Where to look next");
        fputs("  ", file);
        text_put(file, command);
        if (text_columns(command) + text_columns(what) + 6 <= print->columns)
            fprintf(file, "  # %s", what);
        fputc('\n', file);
        free(command);
    }
}

static void all_put(FILE *file, const struct print *print)
{
    const struct table *findings = report_find(print->report, "findings");
    char line[SUMMARY_MAX];
    for (size_t i = 0; first_line(print->report, i, line); i++)
        if (*line) text_put_wrapped(file, line, print->columns, 0, 0);
    const struct table *running = report_find(print->report, "running");
    if (running && running->row_count) {
        text_heading_put(file, print, running->title);
        running_put(file, print);
    }
    if (findings) findings_put(file, print, findings);
    next_put(file, print);
    if (print->brief) return;
    for (size_t i = 0; run_line(print->report, i, line); i++) {
        if (!i) text_heading_put(file, print, "The run");
        text_put_wrapped(file, line, print->columns, 0, 0);
    }
    for (size_t t = 0; t < print->report->table_count; t++) {
        const struct table *table = &print->report->tables[t];
        if (table->row_count && !is_told(table, false)) text_table_put(file, print, table);
    }
}

void print_text(FILE *file, const struct print *print)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* wcwidth() needs this locale to know characters */
    for (int i = 0; i < print->section_count; i++) {
        const struct table *table = report_find(print->report, print->sections[i]);
        if (table) text_table_put(file, print, table);
    }
    if (!print->section_count) all_put(file, print);
}
