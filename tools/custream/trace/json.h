/* Reads a trace of any layout or format, one value at a time: an event, or a member of the object
 * around the events. */
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
    JSON_MEMBER, /* a member beside traceEvents; `name` has its name */
    JSON_END,
    JSON_CUT,    /* the file ends among its events or in its trailer; all whole values have come */
    JSON_BROKEN, /* `error` says why, in one line without the file's name */
};

struct json {
    struct reader reader;
    /* The last value, valid until the next json_next(). */
    struct yyjson_val *value; /* numbers in it are raw texts; for a row of packets see pftrace.h */
    const char *text;         /* the value's text in the file; for packets json_text() makes it */
    size_t length;
    bool has_half; /* a text in the value had half a pair of surrogates, and has U+FFFD instead */
    char name[64];
    uint64_t line; /* the value's line, from 1; in packets the number of the event */
    char error[256];
    /* The error in the text: its line (0: the file is no trace at all), a message, and whether a
     * wrong number, such as NaN, is the error. */
    uint64_t fault_line;
    const char *fault;
    bool fault_in_number;
    uint64_t rows_line, rows_end_line; /* lines of the [ and ] around the events; in packets 0 */
    uint64_t skip_to; /* set by the caller; slices that begin before this byte are passed over */
    /* set by the caller; text must be UTF-8, and rows of packets look like rows from JSON */
    bool strict;
    /* Internal: */
    const char *at, *end;        /* the rest of the chunk of text */
    const char *chunk, *newline; /* the chunk's next newline, kept by line_parse(); NULL: none */
    uint64_t chunk_from;         /* the chunk's offset in the text */
    uint64_t lines;              /* newlines before `at` */
    char why[200];               /* why the last value is no JSON, at why_at in its text */
    size_t why_at;
    bool is_begun; /* the last value may become JSON when more text comes */
    char *held;    /* the text of a value that began in an earlier chunk */
    size_t held_length, held_capacity;
    struct yyjson_doc *doc;
    char *pool;
    size_t pool_size;
    enum { JSON_BEGIN, JSON_MEMBERS, JSON_ROWS, JSON_BEHIND } where;
    bool bare;               /* the file is a list of events and nothing else */
    bool rows_seen, follows; /* follows: the list or object being read has had a value */
    bool many;               /* several events stand on one line */
    bool ours;               /* the header says that custream wrote the file */
    unsigned format;         /* the header's schemaVersion; 0: it has none */
    struct rope row;         /* in packets: what json_text() returns */
    size_t member,
        members; /* in packets: how many members of `doc` have come, and how many it has */
};

/* Opens a file. `in_ns`: times in rows of packets are whole nanoseconds. False: `error` says why.
 * Either way json_close() is to be called. */
bool json_open(struct json *json, const char *path, bool in_ns);
/* Like json_open() for an open file, which is read from its begin through a duplicate of `fd`.
 * `more` (torn.h) may be NULL. */
bool json_take(struct json *json, int fd, const struct torn_more *more);
enum json_step json_next(struct json *json);
/* Whether a null stands anywhere in the last value. */
bool json_has_null(const struct json *json);
/* Returns the text of the last value. */
const char *json_text(struct json *json, size_t *length);
void json_close(struct json *json);

#endif
