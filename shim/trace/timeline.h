/*
 * From records and objects to events of the timeline, in the Chrome trace event format as Kineto lays it out (docs/trace.md).
 *
 * The writer thread's alone. One function a kind of event; each appends whole lines to the output, or counts what no longer fits.
 */
#ifndef CS_TRACE_TIMELINE_H
#define CS_TRACE_TIMELINE_H

#include "shim/object/event.h"
#include "shim/object/stream.h"
#include "shim/trace/record.h"

/* The head of a file and the metadata of the process: of a new trace, or of a further part of the one that is being written (trace/rotate.h). Nothing has
 * been announced in it; cs_lanes_file() tells files apart. Before that, cs_timeline_part_end writes what the part that ends still lacks: the ends of what
 * goes on in the next. */
enum cs_begin { CS_BEGIN_FILE, CS_BEGIN_PART };
void cs_timeline_begin(enum cs_begin why);
void cs_timeline_part_end(void);
size_t cs_timeline_pending(void); /* bytes that the part would get if it ended now */

/* One record of a thread's ring: the slice of the call, and what the call says of streams and causes. */
void cs_timeline_record(struct cs_thread *thread, const struct cs_record *record);

/* A stream that is over: what went through it, and the end of its life on its lane. `ended` in ticks. */
void cs_timeline_stream_end(struct cs_stream *stream, cs_u64 ended);

/* A thread that ended, or the process: its name once more if it changed, and calls lost at its end. */
void cs_timeline_thread_end(struct cs_thread *thread);

#endif
