/* Values and texts as people read them, and numbers as programs do. */
#ifndef CS_REPORT_SHOW_H
#define CS_REPORT_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/custream/report/table.h"

enum { SHOWN_MAX = 40 };

/* "1.234 ms", "38.2 %", "4.0 KiB", "12,345"; "-" of NAN. Returns `out`. */
const char *value_show(char out[SHOWN_MAX], enum unit unit, double value);

/* All digits, as JSON and CSV have them; "" of what is no finite number. Returns `out`. */
const char *value_exact(char out[SHOWN_MAX], double value);

/* What a column shows of a cell: its text ("" of NULL), or value_show() of its number into `out`. */
const char *cell_show(char out[SHOWN_MAX], const struct column *column, const struct cell *cell);

/* How many rows of a table people see. */
size_t rows_shown(const struct table *table);

/* One character of a text. What no terminal and no page should get (control characters, bytes that are not UTF-8) is U+FFFD instead. */
struct glyph {
    const char *bytes;
    int length, columns; /* bytes of UTF-8; columns of a terminal */
};
const char *glyph_next(const char *at, struct glyph *glyph); /* behind it; NULL: `at` is the end */

int text_columns(const char *text);                        /* of a terminal */
void text_put(FILE *file, const char *text);               /* all of it */
enum cut { CUT_MIDDLE, CUT_END };
int text_put_cut(FILE *file, const char *text, int columns, enum cut cut); /* in so many columns, with an ellipsis there; how many it took */
/* In lines of at most `columns`, broken at blanks; all but the first begin with `indent` blanks, which count. `used`: columns of the first that are taken. */
void text_put_wrapped(FILE *file, const char *text, int columns, int indent, int used);

#endif
