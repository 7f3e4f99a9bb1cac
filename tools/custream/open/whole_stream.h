/*
 * The bytes of a trace with each slice saying all of it (merge/whole.h), made while they are read, by a process of its own: nothing of the trace is held. A packed
 * trace stays packed.
 */
#ifndef CS_OPEN_WHOLE_STREAM_H
#define CS_OPEN_WHOLE_STREAM_H

#include <stddef.h>
#include <sys/types.h>

struct whole_stream;

/* Of the open file, whose name says its format. NULL: errno says why not. */
struct whole_stream *whole_stream_open(int file, const char *name);
/* The next bytes; 0: the end; -1: they cannot be made or read. */
ssize_t whole_stream_read(struct whole_stream *stream, char *to, size_t most);
/* Also before the end. */
void whole_stream_close(struct whole_stream *stream);

#endif
