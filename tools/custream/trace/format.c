#include "tools/custream/trace/format.h"

#include <limits.h>

#include "shim/base/claim.h"
#include "tools/custream/command.h"

enum { OLDEST = 1 };

static const struct {
    const char *path;
    unsigned since;
    const char *unknown; /* what older traces lack, in words; NULL: no summary speaks of it */
} members[FORMAT_MEMBERS] = {
    [FORMAT_NO_ROOM] = {"totals.no_room", 2, "what had no room in a table (unknown in format 1)"},
    [FORMAT_WITHOUT_CALL_IN_ALL] = {"totals.gpu_work_without_call_in_all_parts", 2, NULL},
    [FORMAT_PER_THREAD] = {"perThreadDefaultStreams", 2, NULL},
};

bool format_says(unsigned format, enum format_member member)
{
    return format >= members[member].since;
}

const char *format_unknown(unsigned format)
{
    for (int i = 0; i < FORMAT_MEMBERS; i++)
        if (members[i].unknown && !format_says(format, i)) return members[i].unknown;
    return NULL;
}

bool format_read(unsigned format, char *error, size_t size)
{
    if (format <= CS_TRACE_FORMAT) return true;
    char number[16] = "no number";
    if (format != UINT_MAX) snprintf(number, sizeof number, "%u", format);
    snprintf(error, size,
        "its format is %s, and custream " CUSTREAM_VERSION_STRING
        " reads formats %d to %d: a newer custream reads it",
        number, OLDEST, CS_TRACE_FORMAT);
    return false;
}
