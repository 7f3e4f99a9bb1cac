/*
 * Lives of streams in the timeline, and what goes through them. The writer thread's alone, but for the history.
 *
 * A life is two marks on one lane per GPU, "streams": a stream has a lane of its own only where work stands on it (cs_lane_stream, trace/lanes.h).
 */
#ifndef CS_TRACE_STREAM_LIFE_H
#define CS_TRACE_STREAM_LIFE_H

#include "shim/object/stream.h"
#include "shim/trace/record.h"

enum cs_stream_work {
    CS_WORK_LAUNCHES, CS_WORK_COPIES, CS_WORK_SETS, CS_WORK_RECORDS, CS_WORK_WAITS, CS_WORK_SYNCS, CS_WORK_GRAPHS, CS_WORK_OTHER, CS_WORK_KINDS
};

void cs_stream_lives_begin(bool part); /* a new file; `part`: of the same trace */
void cs_stream_lives_forget(void);     /* in the child of a fork */
void cs_stream_lives_go_on(void);      /* those that began in an earlier part; of very many, the others come when something happens on them */
void cs_stream_life_begins(struct cs_stream *stream); /* if it has not in this file; and its lane's new name, if it has changed */
void cs_stream_life_works(const struct cs_stream *stream, const struct cs_record *record);
void cs_stream_life_ended(struct cs_stream *stream, cs_u64 ended); /* ticks */
void cs_stream_lives_part_end(cs_u64 reached_ns); /* up to where the host's slices reach */
void cs_stream_lives_summed_up(void); /* before a file ends: how many streams there were, and how many had no work */
cs_u32 cs_stream_lives_shown(void);               /* how many have begun in this file and not ended */

/* Any thread: what went through it in this part, as far as the writer has read. */
void cs_stream_life_history(cs_ref stream, cs_u64 work[CS_WORK_KINDS], cs_u64 *bytes_copied);

#endif
