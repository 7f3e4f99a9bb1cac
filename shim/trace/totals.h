/*
 * The frame of the file: header before the events, trailer behind them, and the sums that the trailer tells. The writer thread's alone.
 */
#ifndef CS_TRACE_TOTALS_H
#define CS_TRACE_TOTALS_H

#include "shim/gpu/work.h"

/* All of one file: a part has sums of its own. */
extern struct cs_totals {
    cs_u64 recorded;       /* calls that stand in the file, or are gathered for it */
    cs_u64 lost;           /* calls that the file's cs_loss slices tell of */
    cs_u64 muted;          /* calls that a rule leaves out */
    cs_u64 arrows_dropped;
    cs_u64 arrows_between_parts; /* which would have begun in an earlier part */
    struct cs_gpu_totals {
        cs_u64 count[CS_GPU_KINDS]; /* slices of work, by kind */
        cs_u64 unmatched;           /* shown without the call that made it */
        cs_u64 no_times;            /* came without a start or an end */
        cs_u64 lost;                /* that the backend dropped */
        cs_u64 missed;              /* launches whose kernels have not come, though something behind them on their streams has */
    } gpu;
    cs_u64 begin_ns, end_ns; /* of what was gathered since the last good flush */
    bool final;            /* the trailer being made is the last one */
    bool part_ends;        /* it is the last one of a part that another follows */
    bool brief;            /* it must be short: there is no room for the list of what was never destroyed */
} cs_totals;

void cs_totals_reset(void);
void cs_totals_gathered(cs_u64 begin_ns, cs_u64 end_ns); /* what the next flush brings into the file reaches from here to there, and further */
void cs_totals_told(cs_u64 *recorded, cs_u64 *lost); /* any thread: in all parts, as of the last flush */
void cs_totals_flushed(void);   /* all that was gathered is in the file */
void cs_totals_unflushed(void); /* it never will be: it belongs to the gap at the end */

/* For which the file has no more room: it is full. Calls and annotations; and pieces of GPU work. */
void cs_totals_cut(cs_u64 calls, cs_u64 begin_ns, cs_u64 end_ns);
void cs_totals_cut_work(cs_u64 works, cs_u64 begin_ns, cs_u64 end_ns);

/* Parts (trace/rotate.h). A new one begins with sums of its own; it can be undone while nothing has come to it. */
void cs_totals_part_begin(void);
void cs_totals_part_undo(void);
void cs_totals_part_deleted(cs_u64 recorded); /* one that held so much */
cs_u32 cs_totals_part(void);                  /* its number, from 1 */
cs_u64 cs_totals_before(void);                /* what the part before it recorded */

char *cs_totals_header(char *at);
char *cs_totals_trailer(char *at, size_t size);

#endif
