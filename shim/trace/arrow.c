#include "shim/trace/arrow.h"

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/trace/annotation.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"
#include "shim/trace/thread_row.h"
#include "shim/trace/totals.h"

static cs_u64 next_flow;
static cs_u64 parted_ns; /* up to which the host's slices reached in the part of the trace before: those from then on are in the present one */

/* Arrows that have been found: they are kept for one round, so that the slice they start from is in the file before them. */
enum { ARROWS = 1 << 20 };
static struct arrow {
    cs_u64 from_ns, to_ns;
    cs_u32 from_tid, to_tid;
} *arrows_now, *arrows_before, *arrows[2]; /* found in this round; found in the one before: they take turns */
static size_t arrow_count[2];
CS_TABLE(TRACE, arrows_now, ARROWS);
CS_TABLE(TRACE, arrows_before, ARROWS);
static unsigned arrow_now;

void cs_arrows_begin(void)
{
    next_flow = CS_FLOW_CAUSE;
    arrow_count[0] = arrow_count[1] = 0;
    arrows[0] = arrows_now;
    arrows[1] = arrows_before;
    parted_ns = 0;
}

void cs_arrow_note(cs_u64 cause_ticks, cs_u32 from_tid, cs_u64 to_ns, cs_u32 to_tid)
{
    if (arrow_count[arrow_now] == ARROWS) {
        cs_totals.arrows_dropped++;
        return;
    }
    cs_u64 from_ns = cs_clock_ns(cause_ticks);
    arrows[arrow_now][arrow_count[arrow_now]++] = (struct arrow){from_ns, to_ns < from_ns ? from_ns : to_ns, from_tid, to_tid};
}

/* Where the slice that an arrow starts from begins; 0: it is in another part. `part_ends`: that of an arrow of the last rounds may still be on its way,
 * into the next one. A part's first call gives way to the ranges that go on. */
static cs_u64 start_here(const struct arrow *a, bool part_ends)
{
    if (!part_ends && (!parted_ns || a->from_ns >= parted_ns + CS_RANGES_OPEN)) return a->from_ns;
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) {
        if (t->tid != a->from_tid || cs_load(&t->state) == CS_THREAD_FREE) continue;
        const struct cs_thread_row *row = cs_thread_row(t);
        if (a->from_ns < row->part_since_ns || a->from_ns >= row->last_end_ns) return 0;
        return a->from_ns > row->part_first_ns ? a->from_ns : row->part_first_ns;
    }
    return a->from_ns >= parted_ns ? a->from_ns : 0;
}

static void arrows_write(unsigned which, bool part_ends)
{
    for (size_t i = 0; i < arrow_count[which] && !cs_output_full(); i++) {
        const struct arrow *a = &arrows[which][i];
        cs_u64 from_ns = start_here(a, part_ends);
        if (!from_ns) {
            cs_totals.arrows_between_parts++;
            continue;
        }
        cs_commit(cs_arrow(cs_draft(), "cs_dep", next_flow++, cs_host_lane(a->from_tid), from_ns, cs_host_lane(a->to_tid), a->to_ns));
    }
    arrow_count[which] = 0;
}

void cs_arrows_round(bool all)
{
    arrows_write(!arrow_now, false);
    if (all) arrows_write(arrow_now, false);
    arrow_now = !arrow_now;
}

size_t cs_arrows_waiting(void) { return arrow_count[0] + arrow_count[1]; }

void cs_arrows_part_ends(cs_u64 reached_ns)
{
    arrows_write(!arrow_now, true);
    arrows_write(arrow_now, true);
    parted_ns = reached_ns;
}
