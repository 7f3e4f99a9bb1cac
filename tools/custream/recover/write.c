/* A mended trace as a file of its own. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/custream/merge/out.h"
#include "tools/custream/recover/mend.h"
#include "tools/custream/show.h"

static bool copy_bytes(const char *command, int from, struct out *out, off_t end)
{
    enum { STEP = 256 << 10 };
    static char bytes[STEP];
    for (off_t at = 0; at < end && !out->failed;) {
        const ssize_t n = pread(from, bytes, end - at < STEP ? (size_t)(end - at) : STEP, at);
        if (n <= 0) return complain(command, "%s: %s", out->path, n ? strerror(errno) : "the trace was cut short while it was read"), false;
        out_put(out, bytes, (size_t)n);
        at += n;
    }
    return true;
}

bool mend_write(const char *command, const char *to, int fd, const struct mended *mended)
{
    struct out out;
    struct stat about;
    if (fstat(fd, &about) || !out_open_raw(&out, command, to)) return false;
    const bool good = copy_bytes(command, fd, &out, mended ? mended->stands : about.st_size);
    if (good && mended) out_put(&out, mended->tail, mended->length);
    return out_close(&out, good);
}
