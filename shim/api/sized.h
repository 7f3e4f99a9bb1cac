/* Structures that begin with their size. */
#ifndef CS_API_SIZED_H
#define CS_API_SIZED_H

#include "shim/api/status.h"

/* The caller's into one of ours, which has the defaults; NULL: those. CUSTREAM_NOT_SUPPORTED: it sets a field that this version does not know. */
status api_take(void *to, const void *from);
/* One of ours into the caller's, of whose size as much as there is, and 0 in the rest; _set: into one that has no size yet. */
status api_give(void *to, const void *from);
status api_set(void *to, size_t size, const void *from);
status api_size_check(const void *structure);
extern const custream_init_options_t api_init_defaults;
extern const custream_options_t api_stream_defaults;
extern const custream_event_options_t api_event_defaults;

#endif
