/*
 * The trace file: bytes of events in, a valid JSON file on disk after every flush. The writer thread's alone.
 *
 * Events are gathered in a buffer. A flush writes them with the trailer (trace/totals.h) behind them in one system call; the next one starts where the
 * trailer stood. In a .json.gz each flush is a gzip member of events and one of the trailer. When the disk is full or CUSTREAM_TRACE_MAX is
 * reached the file keeps its last valid end, cs_output_full() turns true, and what no longer fits is counted. The trailer is written with room to
 * spare, so that one that tells of the gap fits where it stood.
 *
 * With CUSTREAM_TRACE_MAX=SIZE,rotate nothing is counted: the file ends as a whole one, and the next part begins (trace/rotate.h).
 */
#ifndef CS_TRACE_OUTPUT_H
#define CS_TRACE_OUTPUT_H

#include "shim/base/compiler.h"

enum { CS_EVENT_MAX = 32 << 10 }; /* bytes one event may take */

/* Opens the file that CUSTREAM_TRACE names. False after one line on stderr that says why not. */
bool cs_output_open(void);

/* Where the file is, "" before there is one; the text stays valid. Any thread. */
const char *cs_output_path(void);

/* Room for one event of at most CS_EVENT_MAX bytes, and what was used of it. */
char *cs_output_room(void);
void cs_output_commit(char *end);
bool cs_output_full(void);
const char *cs_output_full_cause(void); /* for the timeline */

void cs_output_flush(void);

/* Parts. Whether the present one is due to end, `pending` more bytes of events being certain to come for it. Then, when all of it is flushed: a
 * file for the next, in which nothing stands and which nobody sees; what is flushed goes there. Then it takes the place of the present one. Both return
 * false where that fails: the present one then goes on to be the file, and is full. */
bool cs_output_rotates(void);
bool cs_output_part_due(size_t pending);
bool cs_output_part_begin(void);
bool cs_output_part_take(void);
bool cs_output_roomy(void); /* the part is not filled by half: for what could be said of it but need not */
void cs_output_close(void);  /* after the last flush; a file that holds nothing is removed */
void cs_output_forget(void); /* in the child of a fork: the file is the parent's */

#endif
