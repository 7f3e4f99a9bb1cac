/* Values and texts as people read them, and numbers as programs do. */
#ifndef CS_TOOLS_SHOW_H
#define CS_TOOLS_SHOW_H

#include <stdbool.h>
#include <stdio.h>

/* What a column's numbers are. JSON and CSV have the unit in the key: "idle_ns". */
enum unit {
    UNIT_TEXT,
    UNIT_COUNT,
    UNIT_NS,
    UNIT_BYTES,
    UNIT_SHARE,        /* 0 to 1; people read percent */
    UNIT_GBPS,         /* 1e9 bytes a second */
    UNIT_CHANGE_NS,    /* how much two values differ: people see its sign */
    UNIT_CHANGE_SHARE, /* likewise, of the earlier value */
};

enum { SHOWN_MAX = 40 };

/* "1.234 ms", "38.2 %", "4.0 KiB", "12,345"; "-" of NAN. Returns `out`. */
const char *value_show(char out[SHOWN_MAX], enum unit unit, double value);
/* Likewise, as a text that lasts until its block ends. */
#define SHOWN(unit, value) value_show((char[SHOWN_MAX]){0}, unit, (double)(value))

/* All digits, as JSON and CSV have them; "" of what is no finite number. Returns `out`. */
const char *value_exact(char out[SHOWN_MAX], double value);

/* "s" behind the word for what there are so many of, but one. */
static inline const char *plural(double count) { return count == 1 ? "" : "s"; }

/* A text that grows, and is cut where its room ends. */
struct line {
    char *at;
    size_t left;
};
void line_add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One character. Control characters and bytes that are not UTF-8 are U+FFFD instead. */
struct glyph {
    const char *bytes;
    int length, columns; /* bytes of UTF-8; columns of a terminal */
};
const char *glyph_next(const char *at, struct glyph *glyph); /* behind it; NULL: `at` is the end */

int text_columns(const char *text);          /* of a terminal */
void text_put(FILE *file, const char *text); /* all of it */
enum cut { CUT_MIDDLE, CUT_END };
int text_put_cut(FILE *file, const char *text, int columns,
    enum cut cut); /* in so many columns, with an ellipsis there; how many it took */
/* In lines of `columns`; all but the first are indented, and in that `used` are taken. */
void text_put_wrapped(FILE *file, const char *text, int columns, int indent, int used);

/* How wide standard output is: its terminal's columns, else COLUMNS, else 100. */
int columns_of_terminal(void);

/* One line on stderr; returns STATUS_UNUSABLE. */
int complain(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define complained(...) (!complain(__VA_ARGS__)) /* likewise; false */

#endif
