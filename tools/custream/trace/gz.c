#include "tools/custream/trace/gz.h"

#include <zlib.h>

#include "tools/custream/command.h"

const struct cs_inflate gz_inflate = {inflateInit2_, inflate, inflateEnd};

bool gz_last_member(const unsigned char *bytes, size_t n, struct rope *text)
{
    static char out[64 << 10];
    int status = Z_OK;
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)n};
    if (inflateInit2(&stream, GZ) != Z_OK) return false;
    while (status == Z_OK) {
        stream.next_out = (Bytef *)out;
        stream.avail_out = sizeof out;
        status = inflate(&stream, Z_NO_FLUSH);
        if (text) rope_put(text, out, sizeof out - stream.avail_out);
    }
    inflateEnd(&stream);
    return status == Z_STREAM_END && !stream.avail_in;
}

size_t gz_pack(const char *text, size_t n, size_t least, char **packed)
{
    static Bytef padding[UINT16_MAX];
    const size_t room = compressBound((uLong)n) + sizeof padding + 64;
    size_t made = 0;
    if (!(*packed = malloc(room))) out_of_memory();
    for (size_t spare = 0, tries = 0; tries < 2; tries++) {
        z_stream stream = {.next_in = (Bytef *)(uintptr_t)text,
            .avail_in = (uInt)n,
            .next_out = (Bytef *)*packed,
            .avail_out = (uInt)room};
        gz_header header = {.os = 3, .extra = padding, .extra_len = (uInt)spare};
        if (deflateInit2(&stream, 1, Z_DEFLATED, GZ, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            out_of_memory();
        if (least) deflateSetHeader(&stream, &header);
        made = deflate(&stream, Z_FINISH) == Z_STREAM_END ? room - stream.avail_out : 0;
        deflateEnd(&stream);
        if (!made || made >= least) break;
        spare = least - made < sizeof padding ? least - made : sizeof padding;
    }
    return made;
}
