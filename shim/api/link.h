/*
 * What the preload library knows and the API cannot ask CUDA. In libcustream.so, which is the API on its own, all of it is "nothing" (alone/link.c).
 */
#ifndef CS_API_LINK_H
#define CS_API_LINK_H

#include "custream.h"
#include "shim/base/compiler.h"

/* The recorder's object of a live stream, of a live event; 0: none. */
cs_u64 api_link_stream(void *handle);
cs_u64 api_link_event(void *handle);
/* That stream or event has ended: somebody destroyed it, or its context. Whatever has its handle now is another one. */
bool api_link_stream_ended(cs_u64 link);
bool api_link_event_ended(cs_u64 link);
/* The priority that its maker asked for. False: not known. */
bool api_link_requested(void *handle, cs_u64 link, int *priority);
void api_link_named(void *handle, const char *name);
/* False: nothing is known. The size is set. */
bool api_link_history(void *handle, cs_u64 link, custream_history_t *history);

/* Hooks: the number of a new one, 0: none is free; false: there is none of that number, or it has gone. */
custream_status_t api_link_hook(custream_hook_kind_t kind, custream_hook_fn *function, void *arg, cs_u32 *number);
bool api_link_unhook(cs_u32 number, bool *running);
bool api_link_in_hook(void);
void api_link_stays(bool stays); /* while so, hooks do not change the streams of this thread's calls */

/* Annotations, and recording. */
int api_link_push(const char *text); /* negative: there is no room */
int api_link_pop(void);              /* negative: there was none */
void api_link_mark(const char *text);
custream_status_t api_link_record(bool on);
custream_status_t api_link_flush(void);

#endif
