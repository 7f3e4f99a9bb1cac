#define _GNU_SOURCE
#include "shim/trace/output.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/trace/gzip.h"
#include "shim/trace/path.h"

enum { BUFFER = 2 << 20, TRAILER = 64 << 10 };

static struct {
    int fd;
    char path[PATH_MAX];
    bool gzip, full;
    const char *full_cause;
    off_t end; /* of the events on disk; the trailer stands behind it */
    char *buffer, *trailer;
    unsigned char *packed;
    size_t used;
    cs_trailer_fn *make_trailer;
} out = {.fd = -1};

const char *cs_output_path(void) { return out.path; }
bool cs_output_full(void) { return out.full; }
const char *cs_output_full_cause(void) { return out.full_cause; }

static bool open_failed(void)
{
    const int error = errno; /* of the open; stat has its own */
    struct stat st;
    const char *why = !stat(out.path, &st) && S_ISDIR(st.st_mode) ? "it is a directory" : strerror(error);
    cs_log(CS_LOG_ERROR, "cannot write the trace %s (CUSTREAM_TRACE): %s; nothing is recorded", out.path, why);
    return false;
}

bool cs_output_open(void)
{
    const char *pattern = cs_option_text(CS_OPTION_TRACE);
    size_t n = strlen(pattern);
    out.gzip = n > 3 && !strcmp(pattern + n - 3, ".gz");
    if (out.gzip && !cs_gzip_init()) return false;
    out.fd = cs_path_open(pattern, out.path, sizeof out.path);
    if (out.fd < 0) return open_failed();
    if (!out.buffer) out.buffer = cs_memory_map(BUFFER);
    if (!out.trailer) out.trailer = cs_memory_map(TRAILER);
    if (out.gzip && !out.packed) out.packed = cs_memory_map(cs_gzip_bound(BUFFER) + cs_gzip_bound(TRAILER));
    out.used = 0;
    out.end = 0;
    out.full = false;
    return out.buffer && out.trailer && (out.packed || !out.gzip);
}

/* Both pieces at the end of the events, whatever write(2) makes of them. errno tells why not. */
static bool write_at_end(const void *events, size_t n, const void *trailer, size_t m)
{
    struct iovec pieces[2] = {{(void *)events, n}, {(void *)trailer, m}};
    off_t at = out.end;
    while (pieces[0].iov_len + pieces[1].iov_len) {
        ssize_t done = pwritev(out.fd, pieces, 2, at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        for (int i = 0; i < 2; i++) {
            size_t k = (size_t)done < pieces[i].iov_len ? (size_t)done : pieces[i].iov_len;
            pieces[i].iov_base = (char *)pieces[i].iov_base + k;
            pieces[i].iov_len -= k;
            done -= (ssize_t)k;
        }
    }
    return ftruncate(out.fd, at) == 0;
}

static void stop(const char *cause)
{
    out.full = true;
    out.full_cause = cause;
    out.used = 0;
}

/* The trailer again behind the last good end, on blocks that the file already has. */
static void mend(void)
{
    char *end = out.make_trailer(out.trailer, TRAILER);
    size_t n = (size_t)(end - out.trailer);
    const void *bytes = out.trailer;
    if (out.gzip) n = cs_gzip_member(out.packed, cs_gzip_bound(n), out.trailer, n), bytes = out.packed;
    if (ftruncate(out.fd, out.end)) return;
    if (!write_at_end(NULL, 0, bytes, n)) cs_log_once(CS_LOG_ERROR, "the trace %s is not complete: %s", out.path, strerror(errno));
}

void cs_output_flush(cs_trailer_fn *trailer)
{
    out.make_trailer = trailer;
    if (out.fd < 0) return;
    if (out.full) {
        mend();
        return;
    }
    char *end = trailer(out.trailer, TRAILER);
    const void *events = out.buffer, *tail = out.trailer;
    size_t n = out.used, m = (size_t)(end - out.trailer);
    if (out.gzip) {
        size_t k = n ? cs_gzip_member(out.packed, cs_gzip_bound(n), events, n) : 0;
        m = cs_gzip_member(out.packed + k, cs_gzip_bound(m), tail, m);
        events = out.packed, tail = out.packed + k, n = k;
    }
    if ((cs_u64)out.end + n > cs_option_size(CS_OPTION_TRACE_MAX)) {
        cs_log(CS_LOG_WARN, "the trace %s reached CUSTREAM_TRACE_MAX=%s and ends here", out.path, cs_option_text(CS_OPTION_TRACE_MAX));
        stop("trace size limit reached (CUSTREAM_TRACE_MAX)");
        mend();
    } else if (!write_at_end(events, n, tail, m)) {
        cs_log(CS_LOG_ERROR, "cannot write on to the trace %s: %s; it ends here", out.path, strerror(errno));
        stop("the trace could not be written any further");
        mend();
    } else {
        out.end += (off_t)n;
        out.used = 0;
    }
}

char *cs_output_room(void)
{
    if (out.used + CS_EVENT_MAX > BUFFER) cs_output_flush(out.make_trailer);
    return out.buffer + out.used;
}

void cs_output_commit(char *end) { out.used = (size_t)(end - out.buffer); }

void cs_output_close(void)
{
    if (out.fd >= 0) close(out.fd);
    out.fd = -1;
}

void cs_output_forget(void)
{
    cs_output_close(); /* the parent's lock stays: it belongs to the open file, which the parent still holds */
    out.used = 0;
}
