/*
 * A trace file as JSON of any layout, by this or another tool: one row of "traceEvents", or one other member of the whole, at a time. What is held
 * depends on the longest of them and not on the file. Blanks between tokens are left out; all else is as the file has it.
 */
#ifndef CS_MERGE_SOURCE_H
#define CS_MERGE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

enum source_end {
    SOURCE_WHOLE,
    SOURCE_CUT,    /* it ends too early; each row that was whole has been told */
    SOURCE_BROKEN, /* unreadable, no JSON, no trace, or the sink refused: `error` says why */
};

/* Texts end in a NUL that `length` does not count. False: enough, `error` was set. */
struct source_sink {
    void *of;
    bool (*row)(void *of, const char *text, size_t length, char error[256]);
    bool (*member)(void *of, const char *name, const char *value, size_t length, char error[256]); /* NULL: not wanted */
};

enum source_end source_read(const char *path, const struct source_sink *sink, char error[256]);
/* The same of a trace that is open. */
struct json;
enum source_end source_rows(struct json *json, const struct source_sink *sink, char error[256]);

#endif
