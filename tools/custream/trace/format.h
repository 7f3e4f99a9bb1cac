/* Tells which formats ("schemaVersion") of our traces are read, and what older formats do not say.
 * A trace made from other traces has the lowest of their formats. */
#ifndef CS_TRACE_FORMAT_H
#define CS_TRACE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/base/cut.h"
#include "shim/base/loss.h"

enum format_member {
    FORMAT_NO_ROOM,
    FORMAT_WITHOUT_CALL_IN_ALL,
    FORMAT_PER_THREAD,
    FORMAT_MEMBERS
};

/* Whether traces of the format have the member. */
bool format_says(unsigned format, enum format_member member);

/* Returns in words what the format does not say and a summary would show as 0; NULL: nothing. */
const char *format_unknown(unsigned format);

/* Tells how a range was cut, from its cs.cut and cs.note; NULL: the range has none. Older traces
 * have cs.note alone. */
enum cs_cut format_cut(const char *key, const char *note);
/* Tells why rows were lost, from cs.loss and the cause; CS_LOSSES: for another reason. Older traces
 * have the cause alone. */
enum cs_loss format_loss(const char *key, const char *cause);

/* Whether traces of the format are read; if not, `error` says so. 0: the trace names no format, and
 * counts as a trace of the oldest format. */
bool format_read(unsigned format, char *error, size_t size);

#endif
