/*
 * Arrows between calls of the host: from the call that recorded an event to one that waits for it. The writer thread's alone.
 *
 * An arrow is kept for one round, so that the slice it starts from is in the file before it.
 */
#ifndef CS_TRACE_ARROW_H
#define CS_TRACE_ARROW_H

#include "shim/base/compiler.h"

void cs_arrows_begin(void); /* a new process's trace */
void cs_arrow_note(cs_u64 cause_ticks, cs_u32 from_tid, cs_u64 to_ns, cs_u32 to_tid);
void cs_arrows_round(bool all);               /* those found in the round before this one; once a round */
void cs_arrows_part_ends(cs_u64 reached_ns);  /* all of them; up to where the host's slices reach in the part */
size_t cs_arrows_waiting(void);

#endif
