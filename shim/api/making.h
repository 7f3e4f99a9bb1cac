/* Making streams. */
#ifndef CS_API_MAKING_H
#define CS_API_MAKING_H

#include "shim/api/stream.h"

status api_stream_make(custream_t *out, enum api_stream_kind kind, int device, unsigned flags, int requested, int priority, const char *name);

#endif
