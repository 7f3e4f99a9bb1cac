/* The trace of a process that goes on, which may have another root, or other mounts. */
#ifndef CS_LIVE_FIND_H
#define CS_LIVE_FIND_H

#include "tools/custream/live/peer.h"

enum { TRACE_ROOM = 4200 };

/* The regular file that the process calls so, by its root or its descriptor, opened by O_PATH: what
 * is no trace is never touched. -1 with errno; ESTALE: something else is at that name. `path`:
 * where it is, or would be. */
int trace_find(int pid, const char *trace, const struct file_at *file, char path[TRACE_ROOM]);
/* Made readable; takes the descriptor over. */
int trace_readable(int fd);
bool file_is(int fd, const struct file_at *file);

#endif
