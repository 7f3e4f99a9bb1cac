/* Formats ("schemaVersion") of our traces: which are read, and what an older one leaves unknown. A
 * trace that is made of others has the lowest of theirs. */
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

/* False: not read; `error` says so. A trace without a number has the oldest. */
bool format_read(unsigned format, char *error, size_t size);

#endif
