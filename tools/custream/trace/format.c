#include "tools/custream/trace/format.h"

#include <limits.h>
#include <string.h>

#include "shim/base/claim.h"
#include "tools/custream/command.h"

enum { OLDEST = 1 };

static const struct {
    const char *path;
    unsigned since;
    const char *unknown; /* a phrase for what older traces lack; NULL: no summary shows that */
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

/* The texts of cs.note that mean a cut in traces without cs.cut. Other notes are ignored. */
static const struct {
    const char *note;
    enum cs_cut cut;
} older_cuts[] = {
    {"goes on in the next part", CS_CUT_GOES_ON},
    {"began in an earlier part", CS_CUT_CONTINUED},
    {"began in an earlier part, and goes on in the next", CS_CUT_CONTINUED_GOES_ON},
};

enum cs_cut format_cut(const char *key, const char *note)
{
    for (int cut = CS_CUT_NONE + 1; key && cut < CS_CUTS; cut++)
        if (!strcmp(key, cs_cut_info[cut].key)) return cut;
    for (size_t i = 0; !key && note && i < CS_COUNT(older_cuts); i++)
        if (!strcmp(note, older_cuts[i].note)) return older_cuts[i].cut;
    return CS_CUT_NONE;
}

enum cs_loss format_loss(const char *key, const char *cause)
{
    enum cs_loss loss = 0;
    while (loss < CS_LOSSES && strcmp(key ?: "", cs_loss_info[loss].key) &&
           (key || strcmp(cause ?: "", cs_loss_info[loss].text)))
        loss++;
    return loss;
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
