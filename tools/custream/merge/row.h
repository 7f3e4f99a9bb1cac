/* One row of a trace as text: where its members stand, what they say, and the same row with other values in some of them. */
#ifndef CS_MERGE_ROW_H
#define CS_MERGE_ROW_H

#include "tools/custream/merge/piece.h"

enum row_key {
    ROW_PH, ROW_NAME, ROW_CAT, ROW_PID, ROW_TID, ROW_TS, ROW_DUR, ROW_ID, ROW_BIND_ID, ROW_ID2,
    ROW_CORRELATION, ROW_ARGS_NAME, ROW_ARGS_LABELS, ROW_STREAM, ROW_ORIGIN, ROW_WAIT_IDS, /* of args */
    ROW_KEYS
};

struct row {
    const char *text;
    size_t length;
    struct piece pieces[ROW_KEYS];
    char ph;
};

/* `text` is an object without blanks, as source.h gives it. False: a member stands twice, or there is no ph. */
bool row_read(struct row *row, const char *text, size_t length);

/* What changes: the text that a value becomes, which is the caller's where it is `longer`. At most one for each key. */
struct change {
    enum row_key key;
    const char *longer;
    char text[40];
};
/* The row with these changes, each of a key that it has; `put` gets it in pieces. */
void row_put(const struct row *row, struct change *changes, int count, void (*put)(void *of, const char *text, size_t length), void *of);

#endif
