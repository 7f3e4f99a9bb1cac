/*
 * The first bytes of gzip data. zlib is the caller's: the library opens it at run time, the command is linked with it.
 */
#ifndef CS_BASE_UNPACK_H
#define CS_BASE_UNPACK_H

#include <zlib.h>

#include "shim/base/compiler.h"

struct cs_inflate {
    __typeof__(&inflateInit2_) begin;
    __typeof__(&inflate) run;
    __typeof__(&inflateEnd) end;
};

/* Unpacks into `text`, at most `room` bytes; how many. */
size_t cs_unpack(const struct cs_inflate *zlib, const void *packed, size_t n, char *text, size_t room);

#endif
