#include "shim/trace/rotate.h"

#include "shim/out/output.h"
#include "shim/trace/closing.h"
#include "shim/trace/timeline.h"
#include "shim/trace/totals.h"

/* All that belongs to the present part is in its file, with a trailer that says that another follows. */
static bool part_ends(void)
{
    cs_timeline_part_end();
    cs_totals.part_ends = true;
    cs_output_flush();
    return !cs_output_full();
}

/* The next part's head is written before it gets the name, so that no moment has half a file. */
static bool part_begins(void)
{
    if (!cs_output_part_begin()) return false;
    cs_totals_part_begin();
    cs_timeline_begin(CS_BEGIN_PART);
    cs_output_flush();
    if (cs_output_part_take(cs_totals_before())) {
        cs_closing_file(); /* at once: a kill may come before the next flush */
        return true;
    }
    cs_totals_part_undo();
    return false;
}

void cs_rotate_if_due(void)
{
    if (CS_LIKELY(!cs_output_rotates() || !cs_output_part_due(cs_timeline_pending()))) return;
    if (part_ends() && part_begins()) return;
    cs_output_flush(); /* no part follows after all, and the file is full: the trailer says what is missing from now on */
}
