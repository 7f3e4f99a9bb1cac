/*
 * What `custream run` and the processes that it starts agree on.
 */
#ifndef CS_BASE_WATCH_H
#define CS_BASE_WATCH_H

/* Set by `custream run` for the processes of its run: the name of the watcher's socket, "-" where there is none. No option: nobody sets it by hand. */
#define CS_WATCH_VARIABLE "CUSTREAM_RUN"

#endif
