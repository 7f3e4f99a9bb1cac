/* Shows values and texts to people, and numbers to programs. */
#ifndef CS_TOOLS_SHOW_H
#define CS_TOOLS_SHOW_H

#include <stdbool.h>
#include <stdio.h>

/* The unit of a column's numbers. JSON and CSV have the unit in the key: "idle_ns". */
enum unit {
    UNIT_TEXT,
    UNIT_COUNT,
    UNIT_NS,
    UNIT_BYTES,
    UNIT_SHARE,        /* 0 to 1; shown in percent */
    UNIT_GBPS,         /* 1e9 bytes a second */
    UNIT_CHANGE_NS,    /* the difference of two times; shown with its sign */
    UNIT_CHANGE_SHARE, /* such a difference as a share of the earlier value */
};

enum { SHOWN_MAX = 40 };

/* Shows a value: "1.234 ms", "38.2 %", "4.0 KiB", "12,345"; "-" for NAN. Returns `out`. */
const char *value_show(char out[SHOWN_MAX], enum unit unit, double value);
/* Shows a value in a text that lasts until the caller's block ends. */
#define SHOWN(unit, value) value_show((char[SHOWN_MAX]){0}, unit, (double)(value))

/* Writes all digits, as JSON and CSV have them; "": the value is not finite. Returns `out`. */
const char *value_exact(char out[SHOWN_MAX], double value);

/* Returns the "s" of a plural; "" for a count of 1. */
static inline const char *plural(double count) { return count == 1 ? "" : "s"; }

/* A text to append to: `at` is its end, and `left` is the room behind that. What does not fit is
 * cut off. */
struct line {
    char *at;
    size_t left;
};
void line_add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A character to show: U+FFFD for a control character or a byte that is not UTF-8. */
struct glyph {
    const char *bytes;
    int length, columns; /* bytes of UTF-8; columns of a terminal */
};
/* Reads the character at `at`. Returns the text behind it; NULL: `at` is the end. */
const char *glyph_next(const char *at, struct glyph *glyph);

/* Replaces control characters: a name from a file must not begin a new line. */
void text_clean(char *text);
bool text_ends(const char *text, const char *ending);
/* Whether a text is one of those that follow. */
bool text_is_one_of(const char *text, const char *const *those, size_t count);
#define ONE_OF(text, ...) text_is_one_of(text, (const char *const[]){__VA_ARGS__}, \
    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
int text_columns(const char *text); /* how many columns of a terminal the text takes */
void text_put(FILE *file, const char *text);
enum cut { CUT_MIDDLE, CUT_END };
/* Prints a text in at most `columns`, with an ellipsis at the cut. Returns how many it took. */
int text_put_cut(FILE *file, const char *text, int columns, enum cut cut);
/* Prints a text wrapped to `columns`. In the first line `used` columns are taken already; each
 * further line is indented by `indent`. */
void text_put_wrapped(FILE *file, const char *text, int columns, int indent, int used);

/* Returns the width of standard output: its terminal's columns, else COLUMNS, else 100. */
int columns_of_terminal(void);

/* Prints a line on stderr. Returns STATUS_UNUSABLE. */
int complain(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define complained(...) (!complain(__VA_ARGS__)) /* does the same, and is false */

#endif
