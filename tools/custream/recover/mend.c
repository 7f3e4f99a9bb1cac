#define _GNU_SOURCE
#include "tools/custream/recover/mend.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/custream/check.h"
#include "tools/custream/command.h"
#include "tools/custream/convert/packets.h"
#include "tools/custream/trace/pftrace.h"
#include "tools/custream/trace/reader.h"
#include "tools/custream/recover/rings.h"

enum { GZIP = 15 + 16, LEVEL = 1, LOOKED_BACK = 4096 };

/* Bytes put together. */
struct text {
    char *at;
    size_t length, capacity;
};

static void text_add(struct text *text, const char *at, size_t length)
{
    while (text->length + length >= text->capacity) text->at = array_room(text->at, text->capacity, &text->capacity, 1);
    memcpy(text->at + text->length, at, length);
    text->length += length;
}

/* --- reading --- */

static bool reader_of(struct reader *reader, const struct mend_source *source)
{
    const int own = fcntl(source->fd, F_DUPFD_CLOEXEC, 0);
    *reader = (struct reader){0};
    if (own < 0 || (lseek(own, 0, SEEK_SET) && errno != ESPIPE) || !reader_take(reader, own)) return false;
    reader->torn.more = source->more;
    return true;
}

bool mend_head(int fd, struct mend_head *head)
{
    struct reader reader;
    char *at = NULL;
    *head = (struct mend_head){0};
    if (reader_of(&reader, &(struct mend_source){.fd = fd}) && reader_next(&reader) > 0) at = strstr(reader.line, "\"baseTimeNanoseconds\":");
    const bool found = at && sscanf(at, "\"baseTimeNanoseconds\":%31[0-9]", head->base) == 1;
    if (found && (at = strstr(at, ",\"part\":"))) sscanf(at, ",\"part\":%u", &head->part);
    reader_close(&reader);
    return found;
}

/* The text from one place to another. */
static bool text_between(const struct mend_source *source, uint64_t from, uint64_t to, struct text *text)
{
    struct reader reader;
    const char *at;
    size_t length;
    uint64_t behind = 0; /* the text read so far */
    bool good = from >= to || reader_of(&reader, source);
    if (from >= to || !good) return good;
    while (behind < to && reader_bytes(&reader, &at, &length) > 0) {
        const uint64_t skipped = behind < from ? from - behind : 0, wanted = to - behind;
        if (skipped < length) text_add(text, at + skipped, (size_t)(wanted < length ? wanted : length) - (size_t)skipped);
        behind += length;
    }
    reader_close(&reader);
    return behind >= to;
}

/* --- the tail --- */

struct mend_to {
    struct check check;
    struct text rows;
};

bool mend_put(struct mend_to *mending, const char *row)
{
    const bool good = check_event(&mending->check, mending->check.events + 1, row);
    if (good) text_add(&mending->rows, ",\n", 2), text_add(&mending->rows, row, strlen(row));
    return good;
}

int64_t mend_lane_filled(struct mend_to *to, uint32_t pid, uint32_t tid, bool *named)
{
    const struct lane *lane = lane_of(&to->check, pid, tid);
    int64_t filled = 0;
    for (size_t i = 0; i < lane->count; i++)
        if (lane->slices[i].end > filled) filled = lane->slices[i].end;
    *named = lane->named || lane->first_event;
    return filled;
}

/* Only the last slices: what is open longer than so many is no call's. */
int64_t mend_lane_from(struct mend_to *to, uint32_t pid, uint32_t tid, int64_t from)
{
    const struct lane *lane = lane_of(&to->check, pid, tid);
    for (size_t i = 0; i < lane->count && i < LOOKED_BACK; i++) {
        const struct slice *slice = &lane->slices[lane->count - 1 - i];
        if (slice->ts <= from && from < slice->end) from = slice->end;
    }
    return from;
}

static bool add_to(cJSON *object, const char *name, cJSON *item) { return item && cJSON_AddItemToObject(object, name, item); }

/* What no row tells, and the trailer of the last flush did. */
static const char *const taken_over[] = {"deviceProperties", "unusedRules", "perThreadDefaultStreams"};

static cJSON *trailer_make(struct mend_to *mending, uint64_t cut_bytes, const struct mend_known *known)
{
    cJSON *trailer = cJSON_CreateObject(), *totals = totals_make(&mending->check, cut_bytes, known->before, cJSON_GetObjectItemCaseSensitive(known->last, "totals"));
    bool good = add_to(trailer, "traceName", cJSON_CreateString("custream")) && add_to(trailer, "totals", totals);
    cJSON *recovered = cJSON_GetObjectItemCaseSensitive(totals, "recovered");
    if (known->rings)
        good = good && cJSON_AddNumberToObject(recovered, "rows", (double)rings_row_count(known->rings)) &&
               cJSON_AddNumberToObject(recovered, "left_out", (double)rings_left_out(known->rings));
    if (known->rings && rings_threads_not_kept(known->rings))
        good = good && cJSON_AddNumberToObject(recovered, "threads_not_kept", (double)rings_threads_not_kept(known->rings));
    for (size_t i = 0; i < sizeof taken_over / sizeof *taken_over; i++) {
        const cJSON *last = cJSON_GetObjectItemCaseSensitive(known->last, taken_over[i]);
        good = good && (!last || add_to(trailer, taken_over[i], cJSON_Duplicate(last, true)));
    }
    if (known->by) good = good && cJSON_AddStringToObject(totals, "ended_by", known->by);
    if (mending->check.hazards && !mending->check.merged) {
        cJSON *audit = cJSON_AddObjectToObject(trailer, "defaultStreamAudit");
        good = good && cJSON_AddStringToObject(audit, "verdict", "not safe") && cJSON_AddNumberToObject(audit, "lost_orders", (double)mending->check.hazards) &&
               cJSON_AddArrayToObject(audit, "hazards");
    }
    if (!good) out_of_memory();
    return trailer;
}

static void text_add_trailer(struct text *text, const cJSON *trailer)
{
    char *json = cJSON_PrintUnformatted(trailer);
    if (!json) out_of_memory();
    text_add(text, "\n],", 3);
    text_add(text, json + 1, strlen(json) - 1);
    text_add(text, "\n", 1);
    cJSON_free(json);
}

/* One gzip member of it. */
static void pack(struct text *text)
{
    z_stream stream = {.next_in = (Bytef *)text->at, .avail_in = (uInt)text->length};
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK) out_of_memory();
    const size_t room = deflateBound(&stream, text->length);
    char *packed = malloc(room);
    if (!packed) out_of_memory();
    stream.next_out = (Bytef *)packed;
    stream.avail_out = (uInt)room;
    deflate(&stream, Z_FINISH);
    free(text->at);
    *text = (struct text){packed, room - stream.avail_out, room};
    deflateEnd(&stream);
}

static void tail_make(struct mended *mended, struct mend_to *mending, struct text *more, struct text *rest, bool packed)
{
    if (mending->rows.length) text_add(rest, mending->rows.at, mending->rows.length);
    text_add_trailer(rest, mended->trailer);
    if (packed) pack(rest);
    text_add(more, rest->at, rest->length);
    free(rest->at);
    mended->tail = more->at;
    mended->length = more->length;
}

static enum mend_end useless(struct mended *mended, const char *format, ...) __attribute__((format(printf, 2, 3)));
static enum mend_end useless(struct mended *mended, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(mended->why, sizeof mended->why, format, args);
    va_end(args);
    return MEND_USELESS;
}

/* --- Perfetto's own format: put anew --- */

static void packets_put_row(struct packets *packets, char *row, size_t length, uint64_t *unfit)
{
    char error[256];
    while (length && (row[length - 1] == ',' || row[length - 1] == '\n')) length--;
    row[length] = 0;
    if (length && !packets_row(packets, row, length, error)) ++*unfit;
}

/* The rows as the file has them. False: it has changed since it was counted. */
static bool packets_copy(struct packets *packets, const struct mend_source *source, uint64_t *unfit)
{
    static const char rows[] = "\"traceEvents\":[";
    struct reader reader;
    struct text head = {0};
    bool begun = false;
    const char *base = NULL;
    if (!reader_of(&reader, source)) return false;
    while (reader_next(&reader) > 0) {
        if (begun && *reader.line == ']') break;
        if (begun) {
            packets_put_row(packets, reader.line, reader.length, unfit);
            continue;
        }
        begun = reader.length >= sizeof rows - 1 && !strcmp(reader.line + reader.length - (sizeof rows - 1), rows);
        text_add(&head, reader.line, begun ? reader.length - (sizeof rows - 1) : reader.length);
        if (!begun) text_add(&head, "\n", 1);
        if (!begun) continue;
        text_add(&head, "", 1);
        base = strstr(head.at, "\"baseTimeNanoseconds\":");
        packets_head(packets, head.at, head.length - 1, base ? strtoull(base + 22, NULL, 10) : 0);
    }
    reader_close(&reader);
    free(head.at);
    return begun;
}

static enum mend_end put_packets(struct mended *mended, struct mend_to *mending, const struct mend_source *sources, const struct mend_known *known, const struct mend_put *put)
{
    struct packets *packets = packets_new(put->put, put->of);
    uint64_t unfit = 0;
    struct text end = {0};
    const bool good = packets_copy(packets, sources, &unfit);
    for (char *row = mending->rows.length ? mending->rows.at : NULL, *next; row; row = next) {
        next = memchr(row, '\n', (size_t)(mending->rows.at + mending->rows.length - row));
        packets_put_row(packets, row, next ? (size_t)(next - row) : (size_t)(mending->rows.at + mending->rows.length - row), &unfit);
        if (next) next++;
    }
    mended->trailer = trailer_make(mending, mended->cut_bytes, known);
    text_add_trailer(&end, mended->trailer);
    packets_tail(packets, end.at + 1, end.length - 1);
    packets_free(packets);
    free(end.at);
    return good && !unfit ? MEND_TORN : useless(mended, "it was changed while it was read");
}

static enum mend_end make(struct mended *mended, struct mend_to *mending, const struct mend_source *sources, size_t count, const struct mend_known *known, const struct mend_put *put)
{
    struct reader reader;
    struct text more = {0}, rest = {0};
    if (!reader_of(&reader, sources)) return useless(mended, "%s", strerror(errno));
    const enum count_end end = check_count(&mending->check, &reader);
    const struct torn_member stands = torn_stands(&reader.torn);
    const uint64_t behind = reader.torn.end;
    const bool packed = reader.torn.packed, judged = reader.torn.where;
    mended->cut_bytes = reader.torn.dropped + (reader.packets ? pftrace_rest(reader.packets) : 0);
    reader_close(&reader);
    if (end == COUNT_USELESS) return useless(mended, "%s", mending->check.state);
    if (end == COUNT_WHOLE) return MEND_WHOLE;
    if (end == COUNT_BROKEN)
        return useless(mended, "line %llu breaks rule %d (%.300s), and more follows it: no process that was killed leaves that", (unsigned long long)mending->check.breach.line,
                       mending->check.breach.rule, mending->check.breach.what);
    mended->packets = mending->check.packets;
    if (!judged && !mended->packets) return useless(mended, "it ends too early, but it is not as custream writes it");
    if (mended->packets && !put) return useless(mended, "it is in Perfetto's own format, which is read as it is");
    for (size_t i = 1; i < count; i++) sources[i].rows(sources[i].of, mending);
    mended->events = mending->check.events;
    if (mended->packets) return put_packets(mended, mending, sources, known, put);
    mended->stands = (off_t)stands.file;
    if (sources->more && mended->stands > sources->more->at) { /* what stands there and not in the file goes into it with the rest, in one write */
        text_add(&more, sources->more->bytes, (size_t)(mended->stands - sources->more->at));
        mended->stands = sources->more->at;
    }
    if (!text_between(sources, stands.text, behind, &rest)) return free(more.at), free(rest.at), useless(mended, "it was changed while it was read");
    mended->trailer = trailer_make(mending, mended->cut_bytes, known);
    tail_make(mended, mending, &more, &rest, packed);
    return MEND_TORN;
}

enum mend_end mend_make(struct mended *mended, const struct mend_source *sources, size_t count, const struct mend_known *known, const struct mend_put *put)
{
    struct mend_to mending = {0};
    *mended = (struct mended){0};
    check_init(&mending.check, "");
    const enum mend_end end = make(mended, &mending, sources, count, known, put);
    check_free(&mending.check);
    free(mending.rows.at);
    return end;
}

void mended_free(struct mended *mended)
{
    free(mended->tail);
    cJSON_Delete(mended->trailer);
}

/* --- in place --- */

bool mend_in_place(int fd, const struct mended *mended)
{
    struct stat about;
    const off_t end = mended->stands + (off_t)mended->length;
    size_t done = 0;
    if (fstat(fd, &about)) return false;
    if (end > about.st_size && (errno = posix_fallocate(fd, mended->stands, (off_t)mended->length))) { /* with no room for all of it, nothing is touched */
        const int error = errno;
        if (ftruncate(fd, about.st_size)) {}
        return errno = error, false;
    }
    for (ssize_t n; done < mended->length; done += (size_t)n) {
        n = pwrite(fd, mended->tail + done, mended->length - done, mended->stands + (off_t)done);
        if (n < 0 && errno == EINTR) n = 0;
        else if (n <= 0) return false;
    }
    return !ftruncate(fd, end);
}
