#include "shim/trace/arrow.h"

#include "shim/base/clock.h"
#include "shim/trace/annotation.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"
#include "shim/trace/thread_row.h"
#include "shim/trace/totals.h"

static cs_u64 next_flow;
static cs_u64 parted_ns; /* up to which the host's slices reached in the part of the trace before: those from then on are in the present one */

void cs_arrows_begin(void)
{
    next_flow = CS_FLOW_CAUSE;
    parted_ns = 0;
}

/* Where the slice that an arrow starts from begins; 0: it is in another part. A part's first call gives way to the ranges that go on. */
static cs_u64 start_here(cs_u64 from_ns, cs_u32 from_tid)
{
    if (!parted_ns || from_ns >= parted_ns + CS_RANGES_OPEN) return from_ns;
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) {
        if (t->tid != from_tid || cs_load(&t->state) == CS_THREAD_FREE) continue;
        const struct cs_thread_row *row = cs_thread_row(t);
        if (from_ns < row->part_since_ns || from_ns >= row->last_end_ns) return 0;
        return from_ns > row->part_first_ns ? from_ns : row->part_first_ns;
    }
    return from_ns >= parted_ns ? from_ns : 0;
}

void cs_arrow_write(cs_u64 cause_ticks, cs_u32 from_tid, cs_u64 to_ns, cs_u32 to_tid)
{
    if (cs_output_full()) return;
    const cs_u64 called_ns = cs_clock_ns(cause_ticks), from_ns = start_here(called_ns, from_tid);
    if (from_ns) cs_commit(cs_arrow(cs_draft(), "cs_dep", next_flow++, cs_host_lane(from_tid), from_ns, cs_host_lane(to_tid), to_ns < called_ns ? called_ns : to_ns));
    else cs_totals.arrows_between_parts++;
}

void cs_arrows_part_ends(cs_u64 reached_ns) { parted_ns = reached_ns; }
