/* Text that is put together piece by piece in a room of a fixed size. What has no room is cut, and the sum never leaves the room. */
#ifndef CS_BASE_APPEND_H
#define CS_BASE_APPEND_H

#include <stdarg.h>
#include <stdio.h>

#include "shim/base/compiler.h"

/* Puts it at `at`, and returns where the next piece goes: at the end that the text has then, `size` - 1 at most. */
CS_PRINTF(4, 0) static inline size_t cs_append_list(char *to, size_t size, size_t at, const char *format, va_list rest)
{
    const int n = at < size ? vsnprintf(to + at, size - at, format, rest) : 0;
    return n < 0 || at >= size ? at : (size_t)n < size - at ? at + (size_t)n : size - 1;
}

CS_PRINTF(4, 5) static inline size_t cs_append(char *to, size_t size, size_t at, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    at = cs_append_list(to, size, at, format, rest);
    va_end(rest);
    return at;
}

#endif
