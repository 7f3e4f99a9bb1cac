#include "shim/out/gzip.h"

#include <dlfcn.h>
#include <zlib.h>

#include "shim/base/module.h"
#include "shim/base/log.h"
#include "shim/base/realdl.h"
#include "shim/base/unpack.h"
#include "shim/base/worker.h"

#define SONAME "libz.so.1"

enum { LEVEL = 1, GZIP_WINDOW = 15 + 16 };

static __typeof__(&deflateInit2_) deflate_init;
static __typeof__(&deflate) deflate_run;
static __typeof__(&deflateReset) deflate_reset;
static __typeof__(&deflateSetHeader) deflate_set_header;
static struct cs_inflate inflate_calls;
static z_stream stream;
static bool ready;

bool cs_gzip_init(void)
{
    if (ready) return true;
    cs_loader_await();
    void *zlib = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
    if (!zlib) zlib = cs_open_beside((const void *)&cs_open_beside, SONAME);
    if (zlib) {
        deflate_init = (__typeof__(deflate_init))cs_real_dlsym(zlib, "deflateInit2_");
        deflate_run = (__typeof__(deflate_run))cs_real_dlsym(zlib, "deflate");
        deflate_reset = (__typeof__(deflate_reset))cs_real_dlsym(zlib, "deflateReset");
        deflate_set_header = (__typeof__(deflate_set_header))cs_real_dlsym(zlib, "deflateSetHeader");
        inflate_calls.begin = (__typeof__(inflate_calls.begin))cs_real_dlsym(zlib, "inflateInit2_");
        inflate_calls.run = (__typeof__(inflate_calls.run))cs_real_dlsym(zlib, "inflate");
        inflate_calls.end = (__typeof__(inflate_calls.end))cs_real_dlsym(zlib, "inflateEnd");
    }
    ready = deflate_init && deflate_run && deflate_reset && deflate_set_header && inflate_calls.begin && inflate_calls.run && inflate_calls.end &&
            deflate_init(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, (int)sizeof stream) == Z_OK;
    if (!ready) cs_log(CS_LOG_ERROR, SONAME " is missing, which a trace ending in .gz needs; nothing is recorded");
    return ready;
}

const struct cs_inflate *cs_gzip_inflate(void) { return ready ? &inflate_calls : NULL; }

size_t cs_gzip_bound(size_t n) { return n + n / 1000 + 160; }

size_t cs_gzip_member(unsigned char *out, size_t out_size, const void *data, size_t n, size_t spare, const char *comment)
{
    static Bytef padding[4096];
    gz_header header = {.os = 3, .extra = spare ? padding : NULL, .extra_len = (uInt)(spare < sizeof padding ? spare : sizeof padding)};
    header.comment = (Bytef *)(uintptr_t)comment;
    if (deflate_reset(&stream) != Z_OK || deflate_set_header(&stream, spare || comment ? &header : NULL) != Z_OK) return 0;
    stream.next_in = (Bytef *)data;
    stream.avail_in = (uInt)n;
    stream.next_out = out;
    stream.avail_out = (uInt)out_size;
    return deflate_run(&stream, Z_FINISH) == Z_STREAM_END ? out_size - stream.avail_out : 0;
}
