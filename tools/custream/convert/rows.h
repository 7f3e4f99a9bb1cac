/* Converts a whole trace, of either format, to one of the two formats. */
#ifndef CS_CONVERT_ROWS_H
#define CS_CONVERT_ROWS_H

#include "tools/custream/merge/row.h"

enum {
    ROWS_PACKETS = 1, /* to Perfetto's format; without this, to JSON */
    ROWS_WHOLE = 2,   /* kernels of our traces get the shape that was left out (merge/row.h) */
    ROWS_AS_CUT = 4,  /* a trace that is cut gets no end, so that `recover` may give it one */
};

/* Returns JSON_END; JSON_CUT: the trace is cut, and all before the cut is written, with an end
 * unless ROWS_AS_CUT; or JSON_BROKEN: `error` says why. */
enum json_step rows_convert(const char *from, unsigned how,
    void (*put)(void *of, const char *bytes, size_t n), void *of, char error[256]);

/* Converts a trace in steps. conversion_row() and conversion_member() fit into a source_sink.
 * `tail`: text that replaces the trace's own behind the rows; NULL: the trace's own is put. */
struct conversion *conversion_new(
    unsigned how, void (*put)(void *of, const char *bytes, size_t n), void *of);
bool conversion_row(void *conversion, struct json *json, char error[256]);
bool conversion_member(void *conversion, struct json *json, char error[256]);
bool conversion_put(
    struct conversion *conversion, struct yyjson_val *row, bool half, char error[256]);
void conversion_end(struct conversion *c, const struct rope *tail);
void conversion_free(struct conversion *c);

/* --- packets.c: rows as packets of Perfetto's own format --- */

struct packets;

/* `put` gets the bytes to write: whole packets in each call. */
struct packets *packets_new(void (*put)(void *of, const char *bytes, size_t n), void *of);
void packets_free(struct packets *p);

/* To be called once, before the rows. `text`: the JSON in front of the rows; `wall_ns`: what the
 * wall clock says at the trace's time 0. */
void packets_head(struct packets *p, const char *text, size_t n, uint64_t wall_ns);
/* `half`: a text has half a surrogate pair. False: the format has no place for what `error`
 * names. */
bool packets_row(struct packets *p, struct yyjson_val *row, bool half, char error[256]);
/* To be called once, after the rows. `text`: the JSON behind the rows. */
void packets_tail(struct packets *p, const char *text, size_t n);

#endif
