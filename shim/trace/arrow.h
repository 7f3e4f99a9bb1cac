/*
 * Arrows between calls of the host: from the call that recorded an event to one that waits for it. The writer thread's alone.
 *
 * The slice that an arrow starts from is in the file: who finds a record has found it in its thread's ring, and ends later (trace/merge.h).
 */
#ifndef CS_TRACE_ARROW_H
#define CS_TRACE_ARROW_H

#include "shim/base/compiler.h"

void cs_arrows_begin(void); /* a new process's trace */
void cs_arrow_write(cs_u64 cause_ticks, cs_u32 from_tid, cs_u64 to_ns, cs_u32 to_tid);
void cs_arrows_part_ends(cs_u64 reached_ns); /* up to where the host's slices reach in the part */

#endif
