/*
 * gzip members, through zlib opened at run time (RTLD_LOCAL, never NEEDED): used only where the trace's name ends in .gz.
 */
#ifndef CS_OUT_GZIP_H
#define CS_OUT_GZIP_H

#include "shim/base/compiler.h"

bool cs_gzip_init(void); /* false after one line on stderr: zlib is missing */

/* Compresses `n` bytes as one complete member that is about `spare` (at most 4,096) bytes longer than it need be, by an extra field in its header;
 * returns its size, 0 on failure. `comment`: at most 32 characters that its header shows, or NULL. cs_gzip_bound bytes and `spare` are always enough. */
size_t cs_gzip_member(unsigned char *out, size_t out_size, const void *data, size_t n, size_t spare, const char *comment);
size_t cs_gzip_bound(size_t n);

/* For base/claim.h: to know a compressed trace by its first bytes. NULL before cs_gzip_init. */
struct cs_inflate;
const struct cs_inflate *cs_gzip_inflate(void);

#endif
