/* A whole trace in one of the two formats, from either. */
#ifndef CS_CONVERT_ROWS_H
#define CS_CONVERT_ROWS_H

#include "tools/custream/merge/row.h"

enum {
    ROWS_PACKETS = 1, /* Perfetto's format. Without it, JSON */
    ROWS_WHOLE = 2,   /* each row of a trace of ours says all of it (merge/shapes.h) */
    ROWS_AS_CUT = 4,  /* JSON of a trace that is cut has no end either: `recover` may give it one */
};

/* JSON_CUT: what is before the cut is written, with an end. JSON_BROKEN: `error` says why. */
enum json_step rows_convert(const char *from, unsigned how,
    void (*put)(void *of, const char *bytes, size_t n), void *of, char error[256]);

/* The same by steps: a source_sink's functions, then others. `tail`: in place of the trace's own;
 * NULL. */
struct conversion *conversion_new(
    unsigned how, void (*put)(void *of, const char *bytes, size_t n), void *of);
bool conversion_row(void *conversion, struct json *json, char error[256]);
bool conversion_member(void *conversion, struct json *json, char error[256]);
bool conversion_put(
    struct conversion *conversion, struct yyjson_val *row, bool half, char error[256]);
void conversion_end(struct conversion *c, const struct rope *tail);
void conversion_free(struct conversion *c);

#endif
