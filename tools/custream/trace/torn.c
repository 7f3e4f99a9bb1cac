#define _GNU_SOURCE
#include "tools/custream/trace/torn.h"
#include "shim/base/claim.h"
#include "tools/custream/command.h"
#include "tools/custream/trace/gz.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

/* ROUNDS: how often at most the end of a changing file is read again. UNSURE: bytes of text that
 * wait for the checksum of their gzip member. */
enum {
    CHUNK = 512 << 10,
    IN = 2 * CHUNK,
    ROUNDS = 100,
    UNSURE = 2 << 20,
    HEADER_MOST = 34 << 20,
    TRAILER_MOST = 34 << 20,
    LINE_MOST = 17 << 20
};

static const char rows[] = "\"traceEvents\":[";

bool torn_open(struct torn *torn, int fd)
{
    struct stat about;
    *torn = (struct torn){.fd = fd, .in = malloc(IN), .from = lseek(fd, 0, SEEK_CUR)};
    if (fstat(fd, &about) || !S_ISREG(about.st_mode)) torn->from = -1;
    return torn->in != NULL;
}

void torn_close(struct torn *torn)
{
    if (torn->packed) inflateEnd(&torn->stream);
    if (torn->in) close(torn->fd);
    free_all(torn->in, torn->held, torn->members);
}

static int fail(struct torn *torn, const char *why)
{
    snprintf(torn->error, sizeof torn->error, "%s", why);
    return -1;
}

/* --- bytes of the file --- */

static ssize_t read_file(int fd, unsigned char *to, size_t room, off_t at)
{
    ssize_t got;
    do got = pread(fd, to, room, at);
    while (got < 0 && errno == EINTR);
    return got;
}

static ssize_t read_at(const struct torn *torn, unsigned char *to, size_t room, off_t at)
{
    const struct torn_more *more = torn->more;
    if (!more || at + (off_t)room <= more->at) return read_file(torn->fd, to, room, at);
    const size_t before = at < more->at ? (size_t)(more->at - at) : 0;
    const ssize_t got = before ? read_file(torn->fd, to, before, at) : 0;
    if (got < (ssize_t)before) return got;
    const size_t behind = (size_t)(at + got - more->at),
                 left = behind < more->length ? more->length - behind : 0,
                 n = left < room - before ? left : room - before;
    memcpy(to + got, more->bytes + behind, n);
    return got + (ssize_t)n;
}

/* Returns the file's length now. */
static off_t size_of(const struct torn *torn)
{
    struct stat about;
    if (torn->more) return torn->more->at + (off_t)torn->more->length;
    return fstat(torn->fd, &about) ? 0 : about.st_size;
}

/* Reads bytes of a regular file. A process may be writing near the file's end: bytes there are read
 * again until two readings agree. The last bytes of a full buffer are left for later. */
static ssize_t read_settled(struct torn *torn, unsigned char *to, size_t room)
{
    const off_t at = torn->from + (off_t)(torn->in_from + torn->in_end);
    const bool settled = size_of(torn) - at >= (off_t)room + TORN_BEHIND;
    ssize_t got = read_at(torn, to, room, at), before;
    if (settled) return got;
    unsigned char *again = got > 0 ? malloc(room) : NULL;
    torn->all = !got;
    for (int i = 0; again && got > 0 && (size_t)got < room && !torn->all && i < ROUNDS; i++) {
        memcpy(again, to, (size_t)(before = got));
        got = read_at(torn, to, room, at);
        torn->all = got == before && !memcmp(again, to, (size_t)got) && at + got >= size_of(torn);
    }
    free(again);
    return got == (ssize_t)room ? got - TORN_BEHIND : got;
}

/* Reads more bytes, behind those in torn->in. Returns 1; 0: the end; -1: torn->error says why. */
static int more_bytes(struct torn *torn)
{
    ssize_t got;
    if (torn->all) return 0;
    if (torn->in_at == torn->in_end) {
        torn->in_from += torn->in_end;
        torn->in_at = torn->in_end = 0;
    } else if (torn->in_at) {
        memmove(torn->in, torn->in + torn->in_at, torn->in_end - torn->in_at);
        torn->in_from += torn->in_at;
        torn->in_end -= torn->in_at;
        torn->in_at = 0;
    }
    unsigned char *const to = torn->in + torn->in_end;
    const size_t room = IN - torn->in_end;
    if (torn->from >= 0) got = read_settled(torn, to, room);
    else {
        do got = read(torn->fd, to, room);
        while (got < 0 && errno == EINTR);
    }
    if (got < 0) return fail(torn, strerror(errno));
    torn->in_end += (size_t)got;
    return got > 0;
}

/* --- text --- */

static void room_for(struct torn *torn, size_t bytes)
{
    while (torn->length + bytes >= torn->capacity)
        torn->held = array_room(torn->held, torn->capacity, &torn->capacity, 1);
}

/* Whether wrong data is a tear: at most TORN_BEHIND bytes are left in the file, and no whole member
 * ends it. */
static bool is_torn_member(struct torn *torn)
{
    int got;
    while (torn->in_end - torn->in_at <= TORN_BEHIND && (got = more_bytes(torn)) > 0) {}
    const size_t n = torn->in_end - torn->in_at;
    if (n > TORN_BEHIND) return false;
    for (const unsigned char *at = torn->in + torn->in_at, *end = torn->in + torn->in_end;
        (at = memmem(at, (size_t)(end - at), GZ_MAGIC, 3)); at++)
        if (gz_last_member(at, (size_t)(end - at), NULL)) return false;
    return true;
}

/* Whether the member may be the trailer's, over which the next flush writes. Of our members only
 * the trailer's has an extra field in its header. If the first member has an extra field too,
 * another tool packed the file, and the field tells nothing. */
static bool is_written_over(const struct torn *torn) { return torn->spare && !torn->all_spare; }

static void member_begins(struct torn *torn)
{
    enum { FLAGS = 3, EXTRA = 4 };
    while (torn->in_end - torn->in_at <= FLAGS && more_bytes(torn) > 0) {}
    torn->spare = torn->in_end - torn->in_at > FLAGS && torn->in[torn->in_at + FLAGS] & EXTRA;
    if (!torn->member_count) torn->all_spare = torn->spare;
}

/* Unpacks more text. Returns 1; 0: no more comes; -1: torn->error says why.
 *
 * Wrong gzip data is a tear or damage. It is a tear (`early`) if the file ends inside a member, or
 * if a later member than the first has wrong data and is_written_over() or is_torn_member() is
 * true. All other wrong data is damage (`bad` without `early`).
 *
 * Bytes behind a member may be no member. If one of those two functions is true, they are the rest
 * of an old trailer, and are ignored; if not, they are damage.
 *
 * torn_next() ends the text of a torn trace behind its last whole event. At damage it fails. */
static int unpack(struct torn *torn)
{
    room_for(torn, CHUNK);
    for (;;) {
        if (torn->in_at == torn->in_end) {
            const int got = more_bytes(torn);
            if (got < 0) return -1;
            if (!got) {
                torn->early = torn->stream.total_in > 0;
                return 0;
            }
        }
        if (!torn->stream.total_in) member_begins(torn);
        torn->stream.next_in = torn->in + torn->in_at;
        torn->stream.avail_in = (uInt)(torn->in_end - torn->in_at);
        torn->stream.next_out = (Bytef *)torn->held + torn->length;
        torn->stream.avail_out = CHUNK;
        const int status = inflate(&torn->stream, Z_NO_FLUSH);
        const size_t made = CHUNK - torn->stream.avail_out;
        torn->in_at = torn->in_end - torn->stream.avail_in;
        torn->length += made;
        if (status == Z_STREAM_END) {
            array_add(torn->members, torn->member_count, torn->member_capacity,
                (struct torn_member){torn->in_from + torn->in_at, torn->text_from + torn->length});
            inflateReset(&torn->stream);
            while (torn->in_end - torn->in_at < 2 && more_bytes(torn) > 0) {}
            if (torn->in_end - torn->in_at < 2 || memcmp(torn->in + torn->in_at, GZ_MAGIC, 2)) {
                if (torn->in_end == torn->in_at || is_written_over(torn) || is_torn_member(torn))
                    return torn->ended = true, made > 0; /* ignored, as gzip does */
                snprintf(torn->error, sizeof torn->error,
                    "damaged gzip data: no member begins at byte %llu",
                    (unsigned long long)(torn->in_from + torn->in_at));
                return torn->bad = true, 0;
            }
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            snprintf(torn->error, sizeof torn->error, "damaged gzip data: %.100s",
                torn->stream.msg ? torn->stream.msg : "out of memory");
            torn->bad = true;
            /* The first member cannot be torn: it was written where nothing stood. */
            torn->early = torn->member_count && (is_written_over(torn) || is_torn_member(torn));
            return 0;
        }
        if (made) return 1;
    }
}

static int more_text(struct torn *torn)
{
    int got;
    if (torn->packed) return unpack(torn);
    if (torn->in_at == torn->in_end && (got = more_bytes(torn)) <= 0)
        return !got && torn->skips ? fail(torn, "no line begins in its last bytes") : got;
    if (torn->skips) {
        const unsigned char *newline =
            memchr(torn->in + torn->in_at, '\n', torn->in_end - torn->in_at);
        torn->skips = !newline;
        torn->in_at = newline ? (size_t)(newline + 1 - torn->in) : torn->in_end;
    }
    const size_t n = torn->in_end - torn->in_at;
    room_for(torn, n);
    memcpy(torn->held + torn->length, torn->in + torn->in_at, n);
    torn->length += n;
    torn->in_at = torn->in_end;
    return 1;
}

/* --- what may go out while more may come --- */

/* Returns how many bytes of the held text are final. Of a plain file, all are. Of a gzip file,
 * those of the members with a right checksum are. Once more than UNSURE bytes are held behind these
 * members, all held bytes except the last UNSURE / 2 are final. */
static size_t sure_length(const struct torn *torn)
{
    if (!torn->packed) return torn->length;
    const uint64_t sure = torn->member_count ? torn->members[torn->member_count - 1].text : 0;
    const size_t behind = sure > torn->text_from ? (size_t)(sure - torn->text_from) : 0;
    return torn->length - behind > UNSURE ? torn->length - UNSURE / 2 : behind;
}

static bool header_ends(struct torn *torn)
{
    char *at = memmem(torn->held, torn->length, rows, sizeof rows - 1),
         *end = at ? memchr(at, '\n', torn->length - (size_t)(at - torn->held)) : NULL;
    if (end) torn->rows_from = torn->text_from + (size_t)(end - torn->held) + 1;
    torn->scanned = end ? (size_t)(end - torn->held) : 0;
    return end != NULL;
}

static void look_for_trailer(struct torn *torn)
{
    const char *at = torn->held + torn->scanned, *end = torn->held + torn->length;
    while ((at = memchr(at, '\n', (size_t)(end - at))) && at + 1 < end && at[1] != ']') at++;
    if (at && at + 1 < end) torn->trailer = torn->text_from + (size_t)(at - torn->held) + 1;
    torn->scanned = torn->length ? torn->length - 1 : 0;
}

/* Returns where the line before the line of `at` begins; 0: its begin is not held. */
static size_t line_before(const struct torn *torn, size_t at)
{
    for (int lines = 0; lines < 2; lines++) {
        const char *newline = at ? memrchr(torn->held, '\n', at) : NULL;
        if (!newline) return 0;
        at = (size_t)(newline - torn->held);
    }
    return at + 1;
}

/* Returns how many bytes of the held text may go out now; 0: more must be read first. */
static size_t ready(struct torn *torn)
{
    if (torn->flows) return torn->length;
    if (!torn->ours && torn->length < CS_TRACE_BEGIN_MOST) return 0;
    torn->ours = torn->ours || cs_trace_begins(torn->held, torn->length);
    if (torn->ours && !torn->rows_from) {
        if (!header_ends(torn) && torn->length <= HEADER_MOST) return 0;
        const off_t begin = size_of(torn) - torn->last;
        /* Leaves out what stands between the header and the last bytes. */
        if (torn->rows_from && torn->last && !torn->packed && torn->from >= 0 &&
            begin > torn->from + (off_t)(torn->in_from + torn->in_end)) {
            torn->in_from = (uint64_t)(begin - torn->from);
            torn->in_at = torn->in_end = 0;
            torn->length = (size_t)(torn->rows_from - torn->text_from);
            torn->partly = torn->skips = true;
        }
    }
    if (!torn->rows_from) return torn->flows = true, torn->length;
    if (!torn->trailer) look_for_trailer(torn);
    size_t end = sure_length(torn);
    if (torn->trailer && torn->trailer - torn->text_from < end)
        end = (size_t)(torn->trailer - torn->text_from);
    else end = end > TORN_BEHIND ? end - TORN_BEHIND : 0;
    const size_t most = torn->trailer ? TRAILER_MOST : LINE_MOST;
    end = line_before(torn, end);
    if (!end && torn->length > most) torn->flows = true, end = torn->length;
    return end;
}

/* --- the end of the file --- */

enum state { WHOLE, BEGUN, FOLLOWED, WRONG };

/* Judges the value that the text begins with, and finds its `end`. FOLLOWED: more than blanks stand
 * behind it. */
static enum state value_state(const char *text, size_t length, size_t *end)
{
    const yyjson_read_flag flags =
        YYJSON_READ_NUMBER_AS_RAW | YYJSON_READ_ALLOW_INVALID_UNICODE | YYJSON_READ_STOP_WHEN_DONE;
    yyjson_read_err error;
    yyjson_doc *doc =
        length ? yyjson_read_opts((char *)(uintptr_t)text, length, flags, NULL, &error) : NULL;
    if (!doc) return !length || error.code == YYJSON_READ_ERROR_UNEXPECTED_END ? BEGUN : WRONG;
    *end = yyjson_doc_get_read_size(doc);
    yyjson_doc_free(doc);
    size_t at = *end;
    while (at < length && memchr(" \n\t\r", text[at], 4)) at++;
    return at < length ? FOLLOWED : WHOLE;
}

static enum state trailer_state(const char *trailer, size_t length)
{
    struct rope text = {0};
    size_t end;
    rope_literal(&text, "{\"traceEvents\":[");
    rope_put(&text, trailer, length);
    const enum state state = value_state(text.at, text.length, &end);
    free(text.at);
    return state;
}

/* Whether the text ends in blanks: a flush leaves blanks behind the trailer, an editor leaves
 * none. */
static bool ends_with_blanks(const struct torn *torn)
{
    return torn->length > 3 && !memcmp(torn->held + torn->length - 3, "  \n", 3);
}

static void cut_at(struct torn *torn, size_t end, const char *where)
{
    torn->cut = true;
    torn->where = where;
    torn->dropped = torn->length - end;
    torn->end = torn->text_from + end;
    torn->length = end;
}

/* Whether the bytes behind a whole row begin another row or the trailer, or are such a beginning,
 * cut short. */
static bool goes_on(const char *behind, size_t n)
{
    static const char *const ways[] = {",\n{\"p", "\n],\"traceName\""};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!memcmp(behind, ways[i], n < strlen(ways[i]) ? n : strlen(ways[i]))) return true;
    return false;
}

/* Cuts a text without a trailer behind the last row for which goes_on() is true. */
static void judge_rows(struct torn *torn)
{
    const size_t start =
        torn->rows_from > torn->text_from ? (size_t)(torn->rows_from - torn->text_from) : 0;
    const uint64_t sure = torn->packed
                              ? torn->member_count ? torn->members[torn->member_count - 1].text : 0
                              : UINT64_MAX;
    size_t at = start, good = start, before = start;
    bool mixed = false;
    while (at < torn->length) {
        const char *line = torn->held + at, *newline = memchr(line, '\n', torn->length - at);
        const size_t length = newline ? (size_t)(newline - line) : torn->length - at;
        size_t end = 0;
        const enum state state = *line == '{' ? value_state(line, length, &end) : WRONG;
        mixed = end ? !goes_on(line + end, torn->length - at - end) : newline || state == WRONG;
        if (!end || mixed) break;
        before = good;
        good = at + end;
        at = good + 2;
        if (torn->held[good] != ',') break;
    }
    if (mixed && torn->text_from + good > sure)
        good = before; /* without a checksum the row's last bytes may be wrong */
    if (good == start && torn->rows_from < torn->text_from)
        return; /* no tear does this; the reader of the text says what is wrong */
    cut_at(torn, good,
        torn->length - good > 2 ? "it ends inside an event" : "the list of events does not end");
}

static void judge_end(struct torn *torn)
{
    const bool ours = torn->ours && (torn->rows_from || header_ends(torn));
    torn->flows = true;
    if (!ours || (torn->bad && !torn->early)) return;
    if (!torn->trailer) look_for_trailer(torn);
    if (!torn->trailer) {
        judge_rows(torn);
        return;
    }
    size_t at = (size_t)(torn->trailer - torn->text_from);
    const enum state state = trailer_state(torn->held + at, torn->length - at);
    if (state == WHOLE && !torn->early) return;
    if (state == FOLLOWED && !torn->early && !ends_with_blanks(torn))
        return; /* several texts in one file: no tear makes that */
    if (state == WRONG && !torn->early && !ends_with_blanks(torn)) return;
    const size_t least =
        torn->rows_from > torn->text_from ? (size_t)(torn->rows_from - torn->text_from) : 0;
    while (at > least && strchr(" \n\t\r", torn->held[at - 1])) at--;
    cut_at(torn, at, "it ends inside the trailer");
}

int torn_next(struct torn *torn, const char **at, size_t *length)
{
    int got = 1;
    if (torn->given) {
        memmove(torn->held, torn->held + torn->given, torn->length - torn->given);
        torn->length -= torn->given;
        torn->scanned -= torn->scanned < torn->given ? torn->scanned : torn->given;
        torn->text_from += torn->given;
        torn->given = 0;
    } else if (!torn->in_end && !torn->in_from) {
        while (torn->in_end < 2 && (got = more_bytes(torn)) > 0) {}
        if (got < 0) return -1;
        torn->packed = torn->in_end >= 2 && !memcmp(torn->in, GZ_MAGIC, 2);
        if (torn->packed && inflateInit2(&torn->stream, GZ) != Z_OK)
            return torn->packed = false, fail(torn, "out of memory");
        got = 1;
    }
    while (!(torn->given = torn->length ? ready(torn) : 0)) {
        if (!torn->ended && (got = more_text(torn)) > 0) continue;
        if (got < 0 || (torn->flows && torn->length == 0)) break;
        torn->ended = true;
        if (!torn->flows) judge_end(torn);
        if (!torn->length) break;
    }
    if (torn->given) return *at = torn->held, *length = torn->given, 1;
    if (got < 0 || (torn->bad && !torn->cut)) return -1;
    if (torn->early && !torn->cut)
        return torn->cut = true, fail(torn, "truncated: the gzip data ends too early");
    return 0;
}

struct torn_member torn_stands(const struct torn *torn)
{
    if (!torn->packed) return (struct torn_member){torn->end, torn->end};
    for (size_t i = torn->member_count; i-- > 0;)
        if (torn->members[i].text <= torn->end) return torn->members[i];
    return (struct torn_member){0, 0};
}

bool torn_rest(const struct torn *torn, struct rope *rest)
{
    const struct torn_member stands = torn_stands(torn);
    struct torn again;
    const char *at;
    uint64_t left = torn->end - stands.text;
    size_t length;
    if (!left) return true;
    const int fd = fcntl(torn->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || lseek(fd, (off_t)stands.file, SEEK_SET) < 0 || !torn_open(&again, fd))
        return false;
    for (again.more = torn->more; left && torn_next(&again, &at, &length) > 0; left -= length) {
        if (length > left) length = left;
        rope_put(rest, at, length);
    }
    torn_close(&again);
    return !left;
}
