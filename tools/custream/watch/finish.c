/*
 * A trace whose process was ended from outside has a trailer from its last flush, which says that it is not complete. Here it gets the reason.
 *
 * The trailer was written with room to spare. The new one takes its place in one write of the same size, so that the file is valid all along.
 * Where the process was ended while it wrote, the file is torn: then it gets a trailer that is counted from its rows, and a whole file takes its place.
 */
#define _GNU_SOURCE
#include "tools/custream/watch/finish.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>

#include "shim/base/append.h"
#include "shim/base/options.h"
#include "tools/custream/merge/out.h"
#include "tools/custream/recover/mend.h"
#include "tools/custream/recover/rings.h"

/* A trailer takes at most 64 KiB, packed or not. */
enum { TAIL = 128 << 10, TEXT = 1 << 20, GZIP = 15 + 16, MEMBER_LEAST = 18 };

static const char mark[] = "],\"traceName\":\"custream\"";

/* The end of a file: its last bytes from `at` on, and the trailer in them as text. */
struct tail {
    off_t at;
    size_t size; /* in the file */
    bool packed;
    char *text;  /* what is written there, unpacked; it has `mark` at `from` */
    size_t length, from;
};

/* --- finding it --- */

static bool marked(struct tail *tail)
{
    for (char *at = tail->text; (at = memmem(at, tail->length - (size_t)(at - tail->text), mark, sizeof mark - 1)); at++) tail->from = (size_t)(at - tail->text);
    return tail->from || !strncmp(tail->text, mark, sizeof mark - 1);
}

static bool tail_plain(struct tail *tail, const char *bytes, size_t n, off_t at)
{
    memcpy(tail->text, bytes, n);
    tail->text[n] = 0;
    tail->length = n;
    if (!marked(tail)) return false;
    tail->at = at + (off_t)tail->from;
    tail->size = n - tail->from;
    memmove(tail->text, tail->text + tail->from, tail->size + 1);
    tail->length = tail->size;
    tail->from = 0;
    return true;
}

/* Whether a member that goes up to the end of the file begins there. */
static bool unpacks(struct tail *tail, const char *bytes, size_t n)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)n, .next_out = (Bytef *)tail->text, .avail_out = TEXT - 1};
    if (inflateInit2(&stream, GZIP) != Z_OK) return false;
    const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && !stream.avail_in;
    tail->length = TEXT - 1 - stream.avail_out;
    tail->text[tail->length] = 0;
    inflateEnd(&stream);
    return whole;
}

static bool tail_packed(struct tail *tail, const char *bytes, size_t n, off_t at)
{
    static const char magic[] = "\x1f\x8b\x08";
    for (size_t i = n >= MEMBER_LEAST ? n - MEMBER_LEAST + 1 : 0; i-- > 0;) {
        if (memcmp(bytes + i, magic, sizeof magic - 1) || !unpacks(tail, bytes + i, n - i)) continue;
        tail->at = at + (off_t)i;
        tail->size = n - i;
        tail->packed = true;
        return marked(tail);
    }
    return false;
}

static bool tail_read(int fd, struct tail *tail, char *bytes)
{
    struct stat st;
    unsigned char head[2] = {0};
    if (fstat(fd, &st) || pread(fd, head, 2, 0) != 2) return false;
    const off_t at = st.st_size > TAIL ? st.st_size - TAIL : 0;
    const ssize_t n = pread(fd, bytes, (size_t)(st.st_size - at), at);
    if (n != st.st_size - at) return false;
    return head[0] == 0x1f && head[1] == 0x8b ? tail_packed(tail, bytes, (size_t)n, at) : tail_plain(tail, bytes, (size_t)n, at);
}

/* --- writing it anew --- */

/* As long as what stood there: padding in the header makes up for the rest. */
static size_t pack(const struct tail *tail, char *to, size_t room)
{
    static Bytef padding[UINT16_MAX];
    size_t n = 0;
    for (size_t spare = 0, tries = 0; tries < 2; tries++) {
        z_stream stream = {.next_in = (Bytef *)tail->text, .avail_in = (uInt)tail->length, .next_out = (Bytef *)to, .avail_out = (uInt)room};
        gz_header header = {.os = 3, .extra = padding, .extra_len = (uInt)spare};
        if (deflateInit2(&stream, 1, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
        deflateSetHeader(&stream, &header);
        n = deflate(&stream, Z_FINISH) == Z_STREAM_END ? room - stream.avail_out : 0;
        deflateEnd(&stream);
        if (!n || n >= tail->size) break;
        spare = tail->size - n;
    }
    return n;
}

static size_t spread(const struct tail *tail, char *to)
{
    size_t n = tail->length;
    memcpy(to, tail->text, n);
    while (n && strchr(" \n", to[n - 1])) n--;
    for (; n + 1 < tail->size; n++) to[n] = ' ';
    to[n++] = '\n';
    return n;
}

static bool tail_write(int fd, const struct tail *tail, char *to, size_t room)
{
    const size_t n = tail->packed ? pack(tail, to, room) : spread(tail, to);
    if (!n || pwrite(fd, to, n, tail->at) != (ssize_t)n) return false;
    return n >= tail->size || !ftruncate(fd, tail->at + (off_t)n);
}

/* Behind `"complete":false` of the totals. */
static bool say_by(struct tail *tail, const char *by, bool all)
{
    static const char totals[] = "\"totals\":{", complete[] = "\"complete\":false";
    char member[256], *at = tail->text + tail->from, *found = NULL;
    for (char *next = at; (next = strstr(next, totals)); next++) found = next;
    at = found ? strstr(found, complete) : NULL;
    if (!at) return false;
    at += sizeof complete - 1;
    const size_t n = cs_append(member, sizeof member, 0, ",\"ended_by\":\"%s\"%s", by, all ? ",\"recovered\":{\"cut_bytes\":0,\"rows\":0,\"left_out\":0}" : "");
    memmove(at + n, at, strlen(at) + 1);
    memcpy(at, member, n);
    tail->length += n;
    return true;
}

/* --- a file --- */

static cJSON *parse(const struct tail *tail)
{
    static const char before[] = "{\"traceEvents\":[";
    char *text = NULL;
    cJSON *trailer = NULL;
    if (asprintf(&text, "%s%s", before, tail->text + tail->from) >= 0) trailer = cJSON_ParseWithOpts(text, NULL, true);
    free(text);
    return trailer;
}

static bool is_incomplete(const cJSON *trailer)
{
    const cJSON *totals = cJSON_GetObjectItemCaseSensitive(trailer, "totals");
    return cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(totals, "complete")) && !cJSON_GetObjectItemCaseSensitive(totals, "ended_by");
}

/* In Perfetto's own format the whole file is written anew, beside the old one. */
static bool mend_packets(const char *path, const struct mend_source *sources, struct mended *mended, const struct mend_known *known)
{
    struct out out;
    const struct mend_put put = {out_put, &out};
    *mended = (struct mended){0};
    if (!out_open_as_is("custream", &out, path, NULL, 0)) return false;
    const bool good = mend_make(mended, sources, 2, known, &put) == MEND_TORN;
    return out_close(&out, good) && good;
}

/* A file of its own takes the trace's place, if there is room for one. */
static bool put_anew(const char *path, int fd, const struct mended *mended)
{
    struct statvfs about;
    return !statvfs(path, &about) && (uint64_t)about.f_bavail * about.f_frsize > (uint64_t)mended->stands + mended->length && mend_write("custream", path, fd, mended);
}

static cJSON *mend(const char *path, int fd, const char *by, struct rings *rings, const cJSON *last)
{
    const struct torn_more more = rings ? rings_more(rings, fd) : (struct torn_more){0};
    const struct mend_source sources[] = {{.fd = fd, .more = rings ? &more : NULL}, {.of = rings, .rows = rings_rows}};
    const char *extension = cs_trace_extension(path);
    struct mended mended = {0};
    cJSON *trailer = NULL, *before = finish_part_before(path, fd);
    const struct mend_known known = {.by = by, .before = cJSON_GetObjectItemCaseSensitive(before, "totals"), .rings = rings, .last = last};
    bool good;
    if (rings && extension && cs_trace_extension_is_packets(extension)) good = mend_packets(path, sources, &mended, &known);
    else good = mend_make(&mended, sources, rings ? 2 : 1, &known, NULL) == MEND_TORN && (put_anew(path, fd, &mended) || mend_in_place(fd, &mended));
    if (good) {
        trailer = mended.trailer;
        mended.trailer = NULL;
        if (rings) rings_remove(rings);
    }
    mended_free(&mended);
    cJSON_Delete(before);
    return trailer;
}

/* The rings of a process that was ended, if they add something. Else `all`: the trace has all calls. */
static struct rings *rings_of(int fd, int memfd, bool *all)
{
    struct rings_why why;
    struct rings *rings = rings_open(fd, memfd, &why);
    if (rings && rings_add(rings)) return rings;
    *all = rings && !rings_add(rings) && !rings_threads_not_kept(rings);
    if (rings && !rings_add(rings)) rings_remove(rings);
    rings_close(rings);
    return NULL;
}

static cJSON *finish_open(const char *path, int fd, const char *by, int memfd, char *bytes, struct tail *tail)
{
    bool all = false;
    cJSON *last = by ? finish_trailer(fd) : NULL;
    struct rings *rings = by ? rings_of(fd, memfd, &all) : NULL;
    cJSON *mended = rings ? mend(path, fd, by, rings, last) : NULL;
    rings_close(rings);
    cJSON_Delete(last);
    if (mended) return mended;
    cJSON *trailer = tail_read(fd, tail, bytes) ? parse(tail) : NULL;
    if (!trailer && by) return mend(path, fd, by, NULL, NULL);
    if (!trailer || !by || !is_incomplete(trailer) || !say_by(tail, by, all) || !tail_write(fd, tail, bytes, TEXT)) return trailer;
    cJSON_Delete(trailer);
    return parse(tail);
}

static bool is_regular(int fd, struct stat *st) { return !fstat(fd, st) && S_ISREG(st->st_mode); }

static bool is_file(int fd, struct file_id id)
{
    struct stat st;
    return is_regular(fd, &st) && st.st_dev == id.device && st.st_ino == id.inode;
}

/* "trace.6.json" of "trace.json", which is part 7: open for reading; -1: there is none. */
static int part_before(const char *path, int fd)
{
    char name[PATH_MAX + 32];
    struct mend_head own, its;
    struct stat st;
    const char *ending = cs_trace_extension(path);
    const size_t length = strlen(path), extension = ending ? strlen(ending) : 0;
    if (!extension || !is_regular(fd, &st) || !mend_head(fd, &own) || own.part < 2) return -1;
    if ((size_t)snprintf(name, sizeof name, "%.*s.%u%s", (int)(length - extension), path, own.part - 1, path + length - extension) >= sizeof name) return -1;
    const int part = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (part >= 0 && is_regular(part, &st) && mend_head(part, &its) && its.part == own.part - 1 && !strcmp(its.base, own.base)) return part;
    if (part >= 0) close(part);
    return -1;
}

/* A process gives a new part the trace's name, and then tells of it. If it ends in between, what it told of last is the part before. */
static bool follows(const char *path, int fd, struct file_id id)
{
    const int part = part_before(path, fd);
    const bool is = part >= 0 && is_file(part, id);
    if (part >= 0) close(part);
    return is;
}

/* It is the file that the process wrote, and nobody else writes to it now. */
static bool is_still(const char *path, int fd, struct file_id id, bool writes)
{
    return (is_file(fd, id) || follows(path, fd, id)) && (!writes || !flock(fd, LOCK_EX | LOCK_NB));
}

bool finish_is_there(const char *path, struct file_id id)
{
    struct stat st;
    return !lstat(path, &st) && st.st_dev == id.device && st.st_ino == id.inode;
}

cJSON *finish_trailer(int fd)
{
    struct tail tail = {.text = malloc(TEXT)};
    char *bytes = malloc(TEXT);
    cJSON *trailer = tail.text && bytes && tail_read(fd, &tail, bytes) ? parse(&tail) : NULL;
    free(tail.text);
    free(bytes);
    return trailer;
}

cJSON *finish_file(const char *path, struct file_id id, const char *by, int rings)
{
    cJSON *trailer = NULL;
    struct tail tail = {.text = malloc(TEXT)};
    char *bytes = malloc(TEXT);
    const int fd = open(path, (by ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && tail.text && bytes && is_still(path, fd, id, by)) trailer = finish_open(path, fd, by, rings, bytes, &tail);
    if (fd >= 0) close(fd);
    free(tail.text);
    free(bytes);
    return trailer;
}

struct cJSON *finish_part_before(const char *path, int fd)
{
    const int part = part_before(path, fd);
    cJSON *trailer = part >= 0 ? finish_trailer(part) : NULL;
    if (part >= 0) close(part);
    return trailer;
}
