/* The trace of a process that goes on, as it is reached from here: the process may have another
 * root, or other mounts under the same one. */
#ifndef CS_LIVE_FIND_H
#define CS_LIVE_FIND_H

#include "tools/custream/live/peer.h"

enum { TRACE_ROOM = 4200 };

/* The regular file that the process calls so, and no other one: reached through the process, and
 * where it is not at that name any more, by the process's own descriptor. Opened by O_PATH, so that
 * what is no trace is never touched. -1 with errno; ESTALE: something else is at that name. `path`:
 * where it and its parts are, or would be. */
int trace_find(int pid, const char *trace, const struct file_at *file, char path[TRACE_ROOM]);
/* Made readable; takes the descriptor over. */
int trace_readable(int fd);
bool file_is(int fd, const struct file_at *file);

#endif
