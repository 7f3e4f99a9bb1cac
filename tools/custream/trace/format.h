/*
 * Formats of our traces: which the command reads, and what an older one does not say. That is
 * unknown there, and not 0. A trace has its number as "schemaVersion"; docs/trace.md says when it
 * is raised. One that is made of others has the lowest of theirs.
 */
#ifndef CS_TRACE_FORMAT_H
#define CS_TRACE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

enum format_member {
    FORMAT_NO_ROOM,
    FORMAT_WITHOUT_CALL_IN_ALL,
    FORMAT_PER_THREAD,
    FORMAT_MEMBERS
};

/* Whether traces of that format say it. */
bool format_says(unsigned format, enum format_member member);

/* What the reader of a summary would take for 0, in words; NULL: nothing. */
const char *format_unknown(unsigned format);

/* False: this command does not read that format; `error` says so. A trace without a number has the
 * oldest. */
bool format_read(unsigned format, char *error, size_t size);

#endif
