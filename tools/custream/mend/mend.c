#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include "shim/base/options.h"
#include "tools/custream/check/check.h"
#include "tools/custream/convert/rows.h"
#include "tools/custream/mend/inside.h"
#include "tools/custream/merge/out.h"
#include "tools/custream/trace/ends.h"
#include "tools/custream/verdict.h"
#include "tools/custream/trace/gz.h"
#include "tools/custream/trace/json.h"

/* --- rows that are added --- */

struct mend_to {
    struct check check;
    struct rope *rows;
};

bool mend_put(struct mend_to *to, const char *row)
{
    yyjson_doc *doc = yyjson_read(row, strlen(row), YYJSON_READ_NUMBER_AS_RAW);
    const bool good = check_event(&to->check, to->check.events + 1, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    if (good) rope_put(to->rows, row, strlen(row) + 1);
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

int64_t mend_lane_from(struct mend_to *to, uint32_t pid, uint32_t tid, int64_t from)
{
    enum { LOOKED_BACK = 4096 }; /* no call encloses more slices than that */
    const struct lane *lane = lane_of(&to->check, pid, tid);
    for (size_t i = 0; i < lane->count && i < LOOKED_BACK; i++) {
        const struct slice *slice = &lane->slices[lane->count - 1 - i];
        if (slice->ts <= from && from < slice->end) from = slice->end;
    }
    return from;
}

static cJSON *trailer_make(
    struct check *check, const struct mended *mended, const struct mend_known *known)
{
    /* Members that cannot be counted from rows. They are copied from the last flush's trailer. */
    static const char *const taken_over[] = {
        "deviceProperties", "unusedRules", "perThreadDefaultStreams"};
    const struct rings *rings = mended->rings;
    cJSON *trailer = cJSON_CreateObject();
    if (!trailer) out_of_memory();
    json_add(trailer, "traceName", cJSON_CreateString("custream"));
    cJSON *totals = json_add(trailer, "totals",
        totals_make(check, mended->cut_bytes, member_of(known->before, "totals"),
            member_of(known->last, "totals")));
    cJSON *recovered = cJSON_GetObjectItemCaseSensitive(totals, "recovered");
    if (rings) {
        json_add_number(recovered, "rows", (double)rings->rows);
        json_add_number(recovered, "left_out", (double)rings->left_out);
        if (rings->head.unkept) json_add_number(recovered, "threads_not_kept", rings->head.unkept);
    }
    for (size_t i = 0; i < CS_COUNT(taken_over); i++) {
        const cJSON *last = member_of(known->last, taken_over[i]);
        if (last) json_add(trailer, taken_over[i], cJSON_Duplicate(last, true));
    }
    if (known->by) json_add(totals, "ended_by", cJSON_CreateString(known->by));
    if (check->hazards && !check->merged) {
        cJSON *audit = json_add(trailer, "defaultStreamAudit", cJSON_CreateObject());
        json_add(audit, "verdict", cJSON_CreateString("not safe"));
        json_add_number(audit, "lost_orders", (double)check->hazards);
        json_add(audit, "hazards", cJSON_CreateArray());
    }
    return trailer;
}

/* --- making the end --- */

#define USELESS(mended, ...) \
    (snprintf((mended)->why, sizeof (mended)->why, __VA_ARGS__), MEND_USELESS)

/* Makes mended->tail, the bytes that follow the first mended->stands bytes of the file. False: the
 * file was changed meanwhile. */
static bool tail_make(struct mended *mended, const struct torn *torn)
{
    struct rope rest = {0};
    const struct torn_more *more = torn->more;
    mended->stands = (off_t)torn_stands(torn).file;
    if (more && mended->stands > more->at) { /* the bytes from more->at on are from the rings */
        rope_put(&mended->tail, more->bytes, (size_t)(mended->stands - more->at));
        mended->stands = more->at;
    }
    const bool good = torn_rest(torn, &rest);
    const size_t rows = mended->rows.length;
    for (const char *row = mended->rows.at; rows && row < mended->rows.at + rows;
        row += strlen(row) + 1) {
        rope_literal(&rest, ",\n");
        rope_put(&rest, row, strlen(row));
    }
    rope_literal(&rest, "\n");
    trailer_print(&rest, mended->trailer);
    char *packed = NULL;
    const size_t length = torn->packed ? gz_pack(rest.at, rest.length, 0, &packed) : rest.length;
    rope_put(&mended->tail, packed ? packed : rest.at, length);
    free(packed);
    free(rest.at);
    return good;
}

static enum mend_end make(struct mended *mended, struct mend_to *to, struct json *json, int fd,
    const struct mend_known *known)
{
    const struct torn_more more =
        mended->rings ? rings_more(mended->rings, fd) : (struct torn_more){0};
    const struct check *check = &to->check;
    if (!json_take(json, fd, mended->rings ? &more : NULL))
        return USELESS(mended, "%s", json->error);
    const struct torn *torn = &json->reader.torn;
    const enum check_end end = check_read(&to->check, json);
    mended->cut_bytes =
        torn->dropped + (json->reader.packets ? pftrace_rest(json->reader.packets) : 0);
    mended->packets = check->packets;
    if (end == CHECK_USELESS) return USELESS(mended, "%.511s", check->state);
    if (end == CHECK_WHOLE) return MEND_WHOLE;
    if (end == CHECK_BROKEN)
        return USELESS(mended,
            "line %llu breaks rule %d (%.300s), and more follows it: no process that was killed "
            "leaves that",
            (unsigned long long)check->breach.line, check->breach.rule, check->breach.what);
    if (!torn->where && !mended->packets)
        return USELESS(mended, "it ends too early, but it is not as custream writes it");
    if (mended->rings) rings_rows(mended->rings, to);
    mended->events = check->events;
    mended->trailer = trailer_make(&to->check, mended, known);
    if (mended->packets) return MEND_TORN;
    return tail_make(mended, torn) ? MEND_TORN
                                   : USELESS(mended, "it was changed while it was read");
}

enum mend_end mend_make(
    struct mended *mended, int fd, struct rings *rings, const struct mend_known *known)
{
    struct mend_to to = {.rows = &mended->rows};
    struct json json;
    *mended = (struct mended){.rings = rings};
    check_init(&to.check, "");
    const enum mend_end end = make(mended, &to, &json, fd, known);
    json_close(&json);
    check_free(&to.check);
    return end;
}

void mended_free(struct mended *mended)
{
    free(mended->rows.at);
    free(mended->tail.at);
    cJSON_Delete(mended->trailer);
}

/* --- into a new file --- */

static bool copy_bytes(struct out *out, int from, off_t end)
{
    static char bytes[256 << 10];
    ssize_t n;
    for (off_t at = 0; at < end && !out->failed; at += n) {
        n = pread(
            from, bytes, end - at < (off_t)sizeof bytes ? (size_t)(end - at) : sizeof bytes, at);
        if (n <= 0)
            return complained(out->command, "%s: %s", out->path,
                n ? strerror(errno) : "the trace was cut short while it was read");
        out_put(out, bytes, (size_t)n);
    }
    return true;
}

/* Writes a trace in Perfetto's own format as a whole new file. */
static bool put_packets(struct out *out, int fd, const struct mended *mended)
{
    const struct torn_more more =
        mended->rings ? rings_more(mended->rings, fd) : (struct torn_more){0};
    struct conversion *conversion = conversion_new(ROWS_PACKETS, out_put, out);
    struct json json;
    struct rope tail = {0};
    char error[256];
    const struct source_sink sink = {conversion, conversion_row, conversion_member};
    bool good = json_take(&json, fd, mended->rings ? &more : NULL) &&
                source_rows(&json, &sink, error) != JSON_BROKEN;
    json_close(&json);
    const size_t rows = mended->rows.length;
    for (const char *row = mended->rows.at; good && rows && row < mended->rows.at + rows;
        row += strlen(row) + 1) {
        yyjson_doc *doc = value_parse(row, strlen(row));
        good = doc && conversion_put(conversion, yyjson_doc_get_root(doc), false, error);
        yyjson_doc_free(doc);
    }
    if (!good) complain(out->command, "%s: it was changed while it was read", out->path);
    trailer_print(&tail, mended->trailer);
    conversion_end(conversion, &tail);
    conversion_free(conversion);
    free(tail.at);
    return good;
}

bool mend_write(const char *command, const char *to, int fd, const struct mended *mended)
{
    struct out out;
    struct stat about;
    const char *extension = cs_trace_extension(to);
    if (mended && mended->packets) {
        if (!extension || !cs_trace_extension_is_packets(extension))
            return complained(command,
                "%s: it is in Perfetto's own format: under a name that ends in .pftrace it "
                "can be recovered",
                to);
        return out_open(&out, command, to, OUT_OF_TEXT, NULL, 0) &&
               out_close(&out, put_packets(&out, fd, mended));
    }
    if (fstat(fd, &about) || !out_open(&out, command, to, OUT_OF_BYTES, NULL, 0)) return false;
    const bool good = copy_bytes(&out, fd, mended ? mended->stands : about.st_size);
    if (good && mended) out_put(&out, mended->tail.at, mended->tail.length);
    return out_close(&out, good);
}

/* --- in place --- */

bool mend_in_place(int fd, const struct mended *mended)
{
    struct stat about;
    const off_t end = mended->stands + (off_t)mended->tail.length;
    size_t done = 0;
    if (fstat(fd, &about)) return false;
    if (end > about.st_size &&
        posix_fallocate(fd, mended->stands,
            (off_t)mended->tail.length)) /* without room for the whole tail, nothing is written */
        return ftruncate(fd, about.st_size) && false;
    for (ssize_t n; done < mended->tail.length; done += (size_t)n) {
        n = pwrite(
            fd, mended->tail.at + done, mended->tail.length - done, mended->stands + (off_t)done);
        if (n < 0 && errno == EINTR) n = 0;
        else if (n <= 0) return false;
    }
    return !ftruncate(fd, end);
}
