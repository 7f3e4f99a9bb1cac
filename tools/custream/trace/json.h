/* A trace of any layout or format, one value at a time: an event, or another member of the whole.
 */
#ifndef CS_TRACE_JSON_H
#define CS_TRACE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/trace/reader.h"
#include "tools/custream/trace/value.h"

struct yyjson_val;
struct yyjson_doc;

enum json_step {
    JSON_ROW,    /* an element of traceEvents */
    JSON_MEMBER, /* another member of the whole; its name in `name` */
    JSON_END,
    JSON_CUT,    /* the file ends among its events; all whole values have come */
    JSON_BROKEN, /* `error` says why, in one line without the file's name */
};

struct json {
    struct reader reader;
    /* The value that came last, until the next call. */
    struct yyjson_val
        *value;       /* numbers in it are raw texts; of a row of packets, as pftrace.h has it */
    const char *text; /* as the file has it; of a row of packets json_text() makes it */
    size_t length;
    char name[64];
    uint64_t line; /* of the value, from 1; of packets, the event's number */
    char error[256];
    /* What is no JSON: the line (0: no trace at all), why, and whether by a number. */
    uint64_t fault_line;
    const char *fault;
    bool fault_in_number;
    uint64_t rows_line, rows_end_line; /* of [ and ] around the events; of packets 0 */
    uint64_t skip_to; /* to be set first: text is UTF-8, packets' rows are as JSON has them */
    bool strict;      /* to be set first: text is UTF-8, packets' rows are as JSON has them */
    /* Inside. */
    const char *at, *end; /* what is left of a chunk of the file: at[0..end) */
    const char *chunk,
        *newline;        /* newline: the first at or behind `at` in the chunk; NULL: it has none */
    uint64_t chunk_from; /* where in the text the chunk begins */
    uint64_t lines;      /* before `at` */
    char why[200];       /* the last value was no JSON, at why_at of its text */
    size_t why_at;
    bool is_begun; /* but may become some */
    char *held;    /* a value that began in an earlier chunk */
    size_t held_length, held_capacity;
    struct yyjson_doc *doc;
    char *pool;
    size_t pool_size;
    enum { JSON_BEGIN, JSON_MEMBERS, JSON_ROWS, JSON_BEHIND } where;
    bool bare;               /* the whole is a list of events */
    bool rows_seen, follows; /* follows: a value stands before in this list or object */
    bool many;               /* events share lines */
    bool ours;               /* its header says that custream wrote it */
    unsigned format;         /* and its schemaVersion; 0: it says none */
    struct rope row;         /* of packets: json_text() */
    size_t member,
        members; /* of packets: which of those that `doc` has came last, and how many it has */
};

/* `in_ns`: packets have whole nanoseconds. False: `error` says why. json_close() in either case. */
bool json_open(struct json *json, const char *path, bool in_ns);
/* The same of an open file, from its begin. `more` may be NULL. */
bool json_take(struct json *json, int fd, const struct torn_more *more);
enum json_step json_next(struct json *json);
/* Whether a null stands anywhere in the value that came last. */
bool json_has_null(const struct json *json);
/* The text of the value that came last. */
const char *json_text(struct json *json, size_t *length);
void json_close(struct json *json);

#endif
