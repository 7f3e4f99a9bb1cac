/*
 * CUSTREAM_TRACE_MAX=SIZE,rotate: when the file has grown to that size it ends, whole and readable by itself, and the next part of the trace begins.
 *
 * Asked between records, where nothing is half written: by the writer, its only caller. What goes on (lives of streams, ranges of the program) ends in the
 * one part and begins again in the next; an arrow whose start is in an earlier part is counted instead (totals.arrows_between_parts). All parts have one
 * time base, and numbers of arrows are never used twice, so that several can be read together.
 */
#ifndef CS_TRACE_ROTATE_H
#define CS_TRACE_ROTATE_H

void cs_rotate_if_due(void);

#endif
