/* Members of gzip, in memory. */
#ifndef CS_TRACE_GZ_H
#define CS_TRACE_GZ_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/base/unpack.h"
#include "tools/custream/trace/value.h"

enum { GZ = 15 + 16 }; /* windowBits of zlib for gzip */
#define GZ_MAGIC "\x1f\x8b\x08"

/* zlib, as base/claim.h wants it. */
extern const struct cs_inflate gz_inflate;

/* Whether a member begins there and ends with the bytes. Its text goes behind `text`, or NULL. */
bool gz_last_member(const unsigned char *bytes, size_t n, struct rope *text);

/* The text as one member, of `least` bytes or more. 0: no such member. */
size_t gz_pack(const char *text, size_t n, size_t least, char **packed);

#endif
