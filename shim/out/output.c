#define _GNU_SOURCE
#include "shim/out/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/base/apart.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/base/plain.h"
#include "shim/base/rings.h"
#include "shim/out/gzip.h"
#include "shim/out/part.h"
#include "shim/out/path.h"

/* SPARE: how much longer than the trailer of a flush one that tells of a gap may be. */
enum { BUFFER = CS_RINGS_BUFFER, TRAILER = 64 << 10, SPARE = 1 << 10 };

static struct output {
    int file; /* its descriptor, +1; 0: none */
    struct cs_file_id id; /* when it is known by its name (part.c) */
    cs_u32 parts; /* how many files are kept; 0: there is one */
    cs_u32 part;  /* which one this is, from 1 */
    char path[PATH_MAX];
    bool gzip, full;
    unsigned how;   /* enum cs_output_trailer, of the trailers to come */
    bool at_limit;  /* full by CUSTREAM_TRACE_MAX: a longer trailer does no harm */
    const char *full_cause;
    off_t end;      /* of the events on disk; the trailer stands behind it */
    off_t size;     /* of the file, or more than it if a write failed */
    char *buffer, *trailer, *last_trailer;
    size_t last_size; /* of the trailer on disk, as it was written */
    unsigned char *packed;
    size_t used, room; /* bytes gathered; how many to gather before a flush */
    size_t there;      /* of the buffer, `room` at most: in the rings it grows */
    off_t head;        /* end of what every part begins with */
} out, before; /* before: the part that is ending, while the next one gets its head */

static int fd_of(const struct output *o) { return o->file - 1; }

static const struct cs_output_teller *teller;

/* For other threads: a copy that is never written again. The path changes once in a while at most (part.c). */
static const char *_Atomic shown_path = "";

static void show_path(void)
{
    size_t n = strlen(out.path) + 1;
    if (!strcmp(cs_load(&shown_path), out.path)) return;
    char *copy = cs_memory_map(n, "the path of the trace, for `custream ctl`");
    if (copy) cs_store_rel(&shown_path, memcpy(copy, out.path, n));
}

static _Atomic cs_u64 events_end;
cs_u64 cs_output_events_end(void) { return cs_load(&events_end); }

static _Atomic cs_u64 shown_device, shown_inode;
void cs_output_shown_id(cs_u64 *device, cs_u64 *inode) { *device = cs_load(&shown_device), *inode = cs_load(&shown_inode); }

const char *cs_output_path(void) { return cs_load_acq(&shown_path); }

struct cs_file_id cs_output_id(void) { return out.id; }

bool cs_output_full(void) { return out.full; }
const char *cs_output_full_cause(void) { return out.full_cause; }

static bool open_failed(const char *why)
{
    static char said[PATH_MAX + 256]; /* where there are policies the writer is asked for a file again: the same answer needs no second line */
    char line[sizeof said];
    snprintf(line, sizeof line, "cannot write the trace %s (CUSTREAM_TRACE): %s; nothing is recorded", out.path, why);
    if (strcmp(line, said)) cs_log(CS_LOG_ERROR, "%s", strcpy(said, line));
    return false;
}

/* Takes over a descriptor; errno is kept where there is none. */
static bool adopt_descriptor(int fd)
{
    out.file = cs_apart_keep(fd) + 1;
    return out.file && cs_file_id_of(fd_of(&out), &out.id);
}

/* The program may change its directory. */
static void make_absolute(char path[PATH_MAX])
{
    char full[PATH_MAX];
    size_t n = strlen(path);
    if (*path == '/' || !getcwd(full, sizeof full) || strlen(full) + 1 + n >= sizeof full) return;
    strcat(full, "/");
    strcat(full, path);
    strcpy(path, full);
}

/* The trace is this file up to here, and what is in the buffer: for the rings, and for who asks. While a part gets its head, it is the part before. */
static void tell_file(void)
{
    const struct output *now = before.file ? &before : &out;
    struct cs_rings_trace trace = {.device = now->id.device, .inode = now->id.inode, .end = (cs_u64)now->end, .ended = now->full};
    cs_store(&shown_device, trace.device);
    cs_store(&shown_inode, trace.inode);
    if (before.file) trace.next_device = out.id.device, trace.next_inode = out.id.inode, trace.next_end = (cs_u64)out.end;
    cs_rings_flushed(&trace, before.file ? 0 : out.used);
}

bool cs_output_open(const struct cs_output_teller *who)
{
    static const char no_trace[] = "the trace, which begins late or not at all";
    const bool off = cs_option_is(CS_OPTION_TRACE, "off"); /* and yet asked for, while the process runs (process/ctl.c) */
    const char *pattern = off ? cs_option_info[CS_OPTION_TRACE].preset : cs_option_text(CS_OPTION_TRACE);
    size_t n = strlen(pattern);
    teller = who;
    out.gzip = n > 3 && !strcmp(pattern + n - 3, ".gz");
    if (out.gzip && !cs_gzip_init()) return false;
    int fd = cs_path_open(pattern, out.path, sizeof out.path);
    if (!adopt_descriptor(fd)) return open_failed(fd < 0 ? cs_path_why() : cs_plain_error(errno));
    make_absolute(out.path);
    show_path();
    if (!out.buffer) out.buffer = cs_rings_buffer();
    if (!out.buffer) out.buffer = cs_memory_map(BUFFER, no_trace);
    if (!out.trailer) out.trailer = cs_memory_map(3 * TRAILER, no_trace);
    if (out.gzip && !out.packed) out.packed = cs_memory_map(cs_gzip_bound(BUFFER) + cs_gzip_bound(TRAILER), no_trace);
    if (!out.buffer || !out.trailer || (out.gzip && !out.packed)) return false;
    out.last_trailer = out.trailer + TRAILER;
    out.used = out.last_size = 0;
    out.end = out.size = out.head = 0;
    out.full = out.at_limit = false;
    out.how = 0;
    out.part = 1;
    cs_rings_path(out.path);
    tell_file();
    out.parts = cs_option_parts(CS_OPTION_TRACE_MAX);
    if (out.parts && !cs_parts_begin(out.path)) out.parts = 0; /* it will end there, then */
    before.file = 0;
    cs_u64 part = cs_option_size(CS_OPTION_TRACE_MAX) / 8; /* near the limit, what one flush too many would lose is little */
    out.room = (part < BUFFER ? (size_t)part : BUFFER) + CS_EVENT_MAX;
    if (out.room > BUFFER) out.room = BUFFER;
    out.there = 0;
    return true;
}

/* Pieces at the end of the events, whatever pwritev makes of them, and the file ends there. errno tells why not. */
static bool write_at_end(const void *events, size_t n, const void *trailer, size_t m)
{
    struct iovec pieces[2] = {{(void *)events, n}, {(void *)trailer, m}};
    off_t at = out.end;
    while (pieces[0].iov_len + pieces[1].iov_len) {
        ssize_t done = pwritev(fd_of(&out), pieces, 2, at);
        if (done < 0 || at + done > out.size) out.size = done < 0 ? INT64_MAX : at + done;
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
    bool shorter = at < out.size;
    out.size = at;
    return !shorter || ftruncate(fd_of(&out), at) == 0;
}

static const char not_packed[] = "zlib refused to pack it";

/* The trailer as it goes to disk, `spare` bytes longer than it need be; into `to`. Its size; 0: it could not be packed. */
static size_t make_trailer(void *to, size_t spare)
{
    size_t n = (size_t)(teller->trailer(out.trailer, TRAILER - SPARE, out.how) - out.trailer);
    if (out.gzip) {
        teller->sealed(out.trailer + n);
        return cs_gzip_member(to, cs_gzip_bound(n) + spare, out.trailer, n, spare, NULL);
    }
    memset(out.trailer + n, ' ', spare);
    out.trailer[n - 1] = ' ';
    out.trailer[n + spare - 1] = '\n';
    teller->sealed(out.trailer + n + spare);
    if (to != out.trailer) memcpy(to, out.trailer, n + spare);
    return n + spare;
}

/* Nothing more goes into the file. A trailer that tells of what is missing takes the place of the last one, in the space that the file already has; where
 * even that fails the last one is put back. */
static void stop(const char *cause)
{
    out.full = true;
    out.full_cause = cause;
    out.used = 0;
    tell_file();
    teller->unflushed();
}

static void mend(void)
{
    void *to = out.gzip ? (void *)out.packed : out.trailer;
    size_t n = make_trailer(to, 0);
    if (!out.at_limit && out.last_size && n > out.last_size) out.how |= CS_TRAILER_BRIEF, n = make_trailer(to, 0);
    if (n && write_at_end(NULL, 0, to, n)) return;
    if (!out.last_size || !write_at_end(NULL, 0, out.last_trailer, out.last_size))
        cs_log_once(CS_LOG_ERROR, "the trace %s is not complete: %s", out.path, n ? cs_plain_error(errno) : not_packed);
}

/* Another process may have changed the file's length. What it put behind the end is taken off with the next write. Where it took something
 * away, the trace would have a hole; a part with one is only a part. */
static bool was_cut(void)
{
    struct stat st;
    if (fstat(fd_of(&out), &st)) return false;
    if (st.st_size > out.size) out.size = st.st_size;
    return !out.parts && st.st_size < out.end;
}

void cs_output_flush(void)
{
    if (!out.file) return;
    if (!out.full && was_cut()) {
        cs_log(CS_LOG_ERROR, "somebody has cut the trace %s short; it ends here", out.path);
        stop("somebody has cut the trace short");
        out.last_size = 0;
    }
    if (out.full) {
        if (out.last_size) mend();
        return;
    }
    const void *events = out.buffer;
    void *tail = out.trailer;
    size_t n = out.used;
    bool packed = true;
    if (out.gzip) {
        char comment[32];
        cs_part_comment(comment, out.part);
        const bool any = n;
        n = n ? cs_gzip_member(out.packed, cs_gzip_bound(n), out.buffer, n, 0, out.parts && !out.end ? comment : NULL) : 0;
        packed = n || !any;
        events = out.packed, tail = out.packed + n;
    }
    size_t m = packed ? make_trailer(tail, out.how & CS_TRAILER_LAST ? 0 : SPARE) : 0;
    if (!out.parts && (cs_u64)out.end + n > cs_option_size(CS_OPTION_TRACE_MAX)) {
        cs_log(CS_LOG_WARN, "the trace %s reached CUSTREAM_TRACE_MAX=%s and ends here", out.path, cs_option_text(CS_OPTION_TRACE_MAX));
        stop("its size limit (CUSTREAM_TRACE_MAX)");
        out.at_limit = true;
        mend();
    } else if (!m || !write_at_end(events, n, tail, m)) {
        cs_log(CS_LOG_ERROR, "cannot write on to the trace %s: %s; it ends here", out.path, m ? cs_plain_error(errno) : not_packed);
        stop("the trace could not be written any further");
        if (out.end) mend();
        else if (ftruncate(fd_of(&out), 0)) {} /* not even the head: nothing is better than half of it */
    } else {
        out.end += (off_t)n;
        cs_store(&events_end, (cs_u64)out.end);
        out.used = 0;
        tell_file();
        memcpy(out.last_trailer, tail, m);
        out.last_size = m;
        teller->flushed();
    }
}

/* --- parts --- */

/* About how far the part will reach when what is gathered has been flushed. */
static cs_u64 reach(size_t more)
{
    cs_u64 n = out.used + more;
    return (cs_u64)out.end + (out.gzip ? n / 8 : n); /* packed it takes a tenth, or less */
}

bool cs_output_rotates(void) { return out.parts && !out.full; }

bool cs_output_part_due(size_t pending)
{
    cs_u64 most = cs_option_size(CS_OPTION_TRACE_MAX) - TRAILER / 2; /* a part ends with the ends of what goes on, and a trailer */
    if (most < 2 * (cs_u64)out.head) most = 2 * (cs_u64)out.head;    /* a head that fills it would leave no room for anything else */
    return reach(pending) > most;
}

cs_u32 cs_output_part(void) { return out.part; }
bool cs_output_roomy(void) { return reach(0) < cs_option_size(CS_OPTION_TRACE_MAX) / 2; }

static bool back_to_the_old_part(void)
{
    cs_log(CS_LOG_ERROR, "cannot begin the next part of the trace %s: %s; it ends here", out.path, cs_plain_error(errno));
    cs_part_drop(fd_of(&out));
    out = before;
    before.file = 0;
    stop("the next part of the trace could not be written");
    return false;
}

bool cs_output_part_begin(void)
{
    char *free_trailer = out.last_trailer == out.trailer + TRAILER ? out.trailer + 2 * TRAILER : out.trailer + TRAILER;
    before = out;
    out.file = 0;
    int fd = cs_part_create();
    if (!adopt_descriptor(fd)) return back_to_the_old_part();
    out.last_trailer = free_trailer;
    out.end = out.size = out.head = 0;
    out.used = out.last_size = 0;
    out.part++;
    return true;
}

bool cs_output_part_take(cs_u64 recorded)
{
    if (out.full) { /* its head could not be written */
        cs_part_drop(fd_of(&out));
        const char *cause = out.full_cause;
        out = before;
        before.file = 0;
        stop(cause);
        return false;
    }
    if (!cs_part_swap(fd_of(&out), before.id, before.part, recorded)) return back_to_the_old_part();
    memcpy(out.path, cs_parts_path(), sizeof out.path);
    show_path();
    out.head = out.end;
    close(fd_of(&before));
    before.file = 0;
    tell_file();
    cs_parts_trim(out.parts, teller->part_deleted);
    return true;
}

static void make_room(size_t to)
{
    if (to <= out.room) out.there = cs_rings_has(out.buffer) ? cs_rings_buffer_grow(to) : BUFFER;
    if (out.there > out.room) out.there = out.room;
    if (out.there < to) cs_output_flush();
}

char *cs_output_room(void)
{
    if (out.used + CS_EVENT_MAX > out.there) make_room(out.used + CS_EVENT_MAX);
    return out.buffer + out.used;
}

static void commit(char *end, bool tells)
{
    out.used = (size_t)(end - out.buffer);
    if (!before.file) cs_rings_fill(out.used, tells);
}

void cs_output_commit(char *end) { commit(end, false); }
void cs_output_commit_told(char *end) { commit(end, true); }

void cs_output_close(void)
{
    struct stat st;
    if (!out.file) return;
    const bool known = cs_file_id_of(fd_of(&out), &out.id); /* once more: that may be what failed */
    if (known && !lstat(out.path, &st) && st.st_dev == out.id.device && st.st_ino == out.id.inode && !st.st_size) unlink(out.path); /* it may be another's by now */
    close(fd_of(&out));
    out.file = 0;
}

void cs_output_finish(void)
{
    out.how |= CS_TRAILER_LAST;
    cs_output_flush();
    cs_output_close();
}

void cs_output_forget(void)
{
    out.file = before.file = 0; /* numbers in the table of the parent's writer, which the child has not got */
    out.used = 0;
    if (cs_rings_has(out.buffer)) out.buffer = NULL;
    cs_store(&shown_path, "");
}
