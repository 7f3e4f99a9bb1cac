/*
 * The frame of the file: header before the events, trailer behind them, and the sums that the trailer tells. The writer thread's alone.
 */
#ifndef CS_TRACE_TOTALS_H
#define CS_TRACE_TOTALS_H

#include "shim/base/compiler.h"

extern struct cs_totals {
    cs_u64 recorded;       /* calls that stand in the file */
    cs_u64 lost;           /* calls that do not, all causes */
    cs_u64 arrows_dropped;
    bool final;            /* the trailer being made is the last one */
} cs_totals;

void cs_totals_reset(void);
void cs_totals_cut(cs_u64 count, cs_u64 begin_ns, cs_u64 end_ns); /* calls for which the file has no more room */
char *cs_totals_header(char *at);
char *cs_totals_trailer(char *at, size_t size);

#endif
