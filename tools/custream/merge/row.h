/* One row of a trace as text: where its members stand, what they say, and the same row with other values in some of them. */
#ifndef CS_MERGE_ROW_H
#define CS_MERGE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum row_key {
    ROW_PH, ROW_NAME, ROW_CAT, ROW_PID, ROW_TID, ROW_TS, ROW_DUR, ROW_ID, ROW_BIND_ID, ROW_ID2,
    ROW_CORRELATION, ROW_ARGS_NAME, ROW_ARGS_LABELS, ROW_STREAM, ROW_ORIGIN, ROW_WAIT_IDS, /* of args */
    ROW_KEYS
};

/* A value's text, quotes included; at: NULL: there is none. */
struct piece {
    const char *at;
    size_t length;
};

struct row {
    const char *text;
    size_t length;
    struct piece pieces[ROW_KEYS];
    char ph;
};

/* `text` is an object without blanks, as source.h gives it. False: a member stands twice, or there is no ph. */
bool row_read(struct row *row, const char *text, size_t length);

bool piece_is(struct piece piece, const char *text); /* a string, with that between its quotes */
bool piece_named(struct piece name, const char *text); /* the name of a member */
uint64_t piece_hash(uint64_t before, struct piece piece);
/* Nanoseconds, of microseconds; false: no number, or more than 104 days. */
bool piece_ns(struct piece piece, int64_t *ns);
/* A natural number, below 2^53; as a string too, if it is one by its digits, with or without 0x. */
bool piece_natural(struct piece piece, uint64_t *number);

/* The next number of a list of such, which becomes what is behind it. False: there is no more, or something else stands there. */
bool piece_next(struct piece *list, uint64_t *number);

/* Members of an object of the same kind of text: calls `found` for each, its name without quotes. */
void members_each(const char *text, void (*found)(void *of, struct piece name, struct piece value), void *of);
/* The value at members[0], members[1]...; up to NULL. */
struct piece member_at(const char *text, const char *const *path);

/* What changes: the text that a value becomes, which is the caller's where it is `longer`. At most one for each key. */
struct change {
    enum row_key key;
    const char *longer;
    char text[40];
};
/* The row with these changes, each of a key that it has; `put` gets it in pieces. */
void row_put(const struct row *row, struct change *changes, int count, void (*put)(void *of, const char *text, size_t length), void *of);

#endif
