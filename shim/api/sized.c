/*
 * Structures that begin with their size, the caller's sizeof: a program's custream.h may be older than this library, or newer.
 *
 * A structure grows at its end, past its former sizeof and never into padding, and a later field's default is 0: so what an older caller's lacks
 * has its default, and what a newer caller's has besides counts only where it is not 0.
 */
#include "shim/api/sized.h"

#include <string.h>

enum { UNIT = sizeof(size_t), MOST = 4096 /* a size beyond it was never set */ };

static status size_check(size_t size)
{
    CHECK(size >= UNIT && size <= MOST && size % UNIT == 0, CUSTREAM_INVALID_VALUE);
    return CUSTREAM_SUCCESS;
}

static size_t size_of(const void *structure) { return *(const size_t *)structure; }

status api_take(void *to, const void *from)
{
    if (!from) return CUSTREAM_SUCCESS;
    const size_t known = size_of(to), size = size_of(from), both = size < known ? size : known;
    TRY(size_check(size));
    for (size_t i = known; i < size; i++) CHECK(!((const unsigned char *)from)[i], CUSTREAM_NOT_SUPPORTED);
    memcpy((char *)to + UNIT, (const char *)from + UNIT, both - UNIT);
    return CUSTREAM_SUCCESS;
}

status api_give(void *to, const void *from)
{
    NEED(to);
    return api_set(to, size_of(to), from);
}

status api_set(void *to, size_t size, const void *from)
{
    NEED(to);
    TRY(size_check(size));
    const size_t known = size_of(from), both = size < known ? size : known;
    memcpy(to, &size, UNIT);
    memcpy((char *)to + UNIT, (const char *)from + UNIT, both - UNIT);
    memset((char *)to + both, 0, size - both);
    return CUSTREAM_SUCCESS;
}

status api_size_check(const void *structure)
{
    NEED(structure);
    return size_check(size_of(structure));
}

/* --- defaults --- */

const custream_init_options_t api_init_defaults = {.size = sizeof api_init_defaults, .make_context = 1};
const custream_options_t api_stream_defaults = {
    .size = sizeof api_stream_defaults, .device = -1, .flags = CUSTREAM_NON_BLOCKING, .band_greatest = -1,
};
const custream_event_options_t api_event_defaults = {.size = sizeof api_event_defaults, .device = -1};

CS_EXPORT status custream_init_options_init_sized(custream_init_options_t *options, size_t size) { return api_set(options, size, &api_init_defaults); }
CS_EXPORT status custream_options_init_sized(custream_options_t *options, size_t size) { return api_set(options, size, &api_stream_defaults); }
CS_EXPORT status custream_event_options_init_sized(custream_event_options_t *options, size_t size) { return api_set(options, size, &api_event_defaults); }
