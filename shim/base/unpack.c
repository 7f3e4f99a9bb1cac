#include "shim/base/unpack.h"

size_t cs_unpack(const struct cs_inflate *zlib, const void *packed, size_t n, char *text, size_t room)
{
    enum { GZIP_WINDOW = 15 + 16 };
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed, .avail_in = (uInt)n, .next_out = (Bytef *)text, .avail_out = (uInt)room};
    if (zlib->begin(&stream, GZIP_WINDOW, ZLIB_VERSION, (int)sizeof stream) != Z_OK) return 0;
    zlib->run(&stream, Z_SYNC_FLUSH); /* whatever it says: there may be less than a member, and what came out counts */
    zlib->end(&stream);
    return room - stream.avail_out;
}
