/*
 * Slices of the driver's calls, with their arguments, and of what else stands among them on a thread's lane. The writer thread's alone.
 */
#ifndef CS_TRACE_CALL_SLICE_H
#define CS_TRACE_CALL_SLICE_H

#include "shim/object/stream.h"
#include "shim/trace/event.h"
#include "shim/trace/record.h"
#include "shim/trace/thread_clock.h"

void cs_call_slices_begin(void); /* a new file */

/* A call, or a delay that a policy put before one. `correlation`: what ties it to its work; 0 none. `cpu_ns`: the thread's processor time at its begin and end,
 * each 0 where it was not read; NULL of a delay. */
void cs_call_slice(cs_u32 tid, const struct cs_record *record, const struct cs_stream *stream, cs_u64 correlation, const cs_u64 *cpu_ns, cs_u64 begin_ns,
                   cs_u64 end_ns);
void cs_callback_slice(cs_u32 tid, const struct cs_record *record, const struct cs_stream *stream, cs_u64 begin_ns, cs_u64 end_ns);
void cs_loss_slice(cs_u32 tid, cs_u64 begin_ns, cs_u64 end_ns, cs_u64 count);

/* Arguments that other slices have too. */
struct cs_draft cs_arg_result(struct cs_draft, int result);
struct cs_draft cs_arg_stream(struct cs_draft, const struct cs_stream *stream);

#endif
