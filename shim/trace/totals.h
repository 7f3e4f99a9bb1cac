/*
 * The frame of the file: header before the events, trailer behind them, and the sums that the trailer tells. The writer thread's alone.
 */
#ifndef CS_TRACE_TOTALS_H
#define CS_TRACE_TOTALS_H

#include "shim/base/compiler.h"

extern struct cs_totals {
    cs_u64 recorded;       /* calls that stand in the file, or are gathered for it */
    cs_u64 lost;           /* calls that the file's cs_loss slices tell of */
    cs_u64 arrows_dropped;
    cs_u64 begin_ns, end_ns; /* of what was gathered since the last good flush */
    bool final;            /* the trailer being made is the last one */
    bool brief;            /* it must be short: there is no room for the list of what was never destroyed */
} cs_totals;

void cs_totals_reset(void);
void cs_totals_flushed(void);   /* all that was gathered is in the file */
void cs_totals_unflushed(void); /* it never will be: it belongs to the gap at the end */
void cs_totals_cut(cs_u64 count, cs_u64 begin_ns, cs_u64 end_ns); /* calls for which the file has no more room */
char *cs_totals_header(char *at);
char *cs_totals_trailer(char *at, size_t size);

#endif
