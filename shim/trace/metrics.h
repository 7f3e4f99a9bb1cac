/*
 * CUSTREAM_METRICS: what the process does, as counters in Prometheus' text format. The writer thread's alone.
 *
 *     timeline.c, gpu_work.c, gpu_count.c, totals.c   sum up what they write into the timeline anyway: struct cs_sums, struct cs_gpu_sums
 *     metrics.c, every ten seconds                    makes a text of the sums, right after a flush, so that it says what the file has
 *     out/publish.c                                   the file: replaced as a whole, and gone when the process ends
 *
 * A fixed number of series: none per kernel, stream or thread. What is not known is not there. A call pays nothing for it, and the writer some additions.
 */
#ifndef CS_TRACE_METRICS_H
#define CS_TRACE_METRICS_H

#include "shim/base/compiler.h"

bool cs_metrics_due(cs_u64 now_ns);  /* monotonic: the ten seconds are over, or it is the first time */
void cs_metrics_write(bool has_trace); /* what was recorded is in the trace */
void cs_metrics_end(void);           /* the file goes; a call of write begins it anew */
void cs_metrics_after_fork_in_child(void);

#endif
