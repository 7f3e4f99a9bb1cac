/* Unpacks and packs gzip members in memory. */
#ifndef CS_TRACE_GZ_H
#define CS_TRACE_GZ_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/base/unpack.h"
#include "tools/custream/trace/value.h"

enum { GZ = 15 + 16 }; /* windowBits of zlib for gzip */
#define GZ_MAGIC "\x1f\x8b\x08"

/* zlib's functions, for cs_claim(). */
extern const struct cs_inflate gz_inflate;

/* Whether bytes[0..n) are one whole member. Its text is appended to `text`, unless that is NULL. */
bool gz_last_member(const unsigned char *bytes, size_t n, struct rope *text);

/* Packs the text as one member. A member shorter than `least` bytes is padded, by up to 64 KiB.
 * Returns the member's length; 0: zlib failed. The caller frees `packed`. */
size_t gz_pack(const char *text, size_t n, size_t least, char **packed);

#endif
