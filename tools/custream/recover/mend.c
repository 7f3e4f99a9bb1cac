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
#include "tools/custream/reader.h"

enum { GZIP = 15 + 16, LEVEL = 1 };

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

static bool reader_of(struct reader *reader, int fd)
{
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    *reader = (struct reader){0};
    return own >= 0 && (!lseek(own, 0, SEEK_SET) || errno == ESPIPE) && reader_take(reader, own);
}

bool mend_head(int fd, struct mend_head *head)
{
    struct reader reader;
    char *at = NULL;
    *head = (struct mend_head){0};
    if (reader_of(&reader, fd) && reader_next(&reader) > 0) at = strstr(reader.line, "\"baseTimeNanoseconds\":");
    const bool found = at && sscanf(at, "\"baseTimeNanoseconds\":%31[0-9]", head->base) == 1;
    if (found && (at = strstr(at, ",\"part\":"))) sscanf(at, ",\"part\":%u", &head->part);
    reader_close(&reader);
    return found;
}

/* The text from one place to another. */
static bool text_between(int fd, uint64_t from, uint64_t to, struct text *text)
{
    struct reader reader;
    const char *at;
    size_t length;
    uint64_t behind = 0; /* the text read so far */
    bool good = from >= to || reader_of(&reader, fd);
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

struct mending {
    struct check check;
    struct text rows;
};

static bool row_put(void *to, const char *row)
{
    struct mending *mending = to;
    const bool good = check_event(&mending->check, mending->check.events + 1, row);
    if (good) text_add(&mending->rows, ",\n", 2), text_add(&mending->rows, row, strlen(row));
    return good;
}

static bool add_to(cJSON *object, const char *name, cJSON *item) { return item && cJSON_AddItemToObject(object, name, item); }

static cJSON *trailer_make(struct mending *mending, uint64_t cut_bytes, const struct mend_known *known)
{
    cJSON *trailer = cJSON_CreateObject(), *totals = totals_make(&mending->check, cut_bytes, known->before);
    bool good = add_to(trailer, "traceName", cJSON_CreateString("custream")) && add_to(trailer, "totals", totals);
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

static void tail_make(struct mended *mended, struct mending *mending, struct text *rest, bool packed)
{
    if (mending->rows.length) text_add(rest, mending->rows.at, mending->rows.length);
    text_add_trailer(rest, mended->trailer);
    if (packed) pack(rest);
    mended->tail = rest->at;
    mended->length = rest->length;
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

static enum mend_end make(struct mended *mended, struct mending *mending, const struct mend_source *sources, size_t count, const struct mend_known *known)
{
    struct reader reader;
    struct text rest = {0};
    if (!reader_of(&reader, sources->fd)) return useless(mended, "%s", strerror(errno));
    const enum count_end end = check_count(&mending->check, &reader);
    const struct torn_member stands = torn_stands(&reader.torn);
    const uint64_t behind = reader.torn.end;
    const bool packed = reader.torn.packed, judged = reader.torn.where;
    mended->cut_bytes = reader.torn.dropped;
    reader_close(&reader);
    if (end == COUNT_USELESS) return useless(mended, "%s", mending->check.state);
    if (end == COUNT_WHOLE) return MEND_WHOLE;
    if (end == COUNT_BROKEN)
        return useless(mended, "line %llu breaks rule %d (%.300s), and more follows it: no process that was killed leaves that", (unsigned long long)mending->check.breach.line,
                       mending->check.breach.rule, mending->check.breach.what);
    if (!judged) return useless(mended, "it ends too early, but it is not as custream writes it");
    for (size_t i = 1; i < count; i++) sources[i].rows(sources[i].of, row_put, mending);
    mended->events = mending->check.events;
    mended->stands = (off_t)stands.file;
    if (!text_between(sources->fd, stands.text, behind, &rest)) return free(rest.at), useless(mended, "it was changed while it was read");
    mended->trailer = trailer_make(mending, mended->cut_bytes, known);
    tail_make(mended, mending, &rest, packed);
    return MEND_TORN;
}

enum mend_end mend_make(struct mended *mended, const struct mend_source *sources, size_t count, const struct mend_known *known)
{
    struct mending mending = {0};
    *mended = (struct mended){0};
    check_init(&mending.check, "");
    const enum mend_end end = make(mended, &mending, sources, count, known);
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
