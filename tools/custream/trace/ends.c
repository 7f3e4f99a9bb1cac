#define _GNU_SOURCE
#include "tools/custream/trace/ends.h"

#include <cjson/cJSON.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include "shim/base/claim.h"
#include "tools/custream/command.h"
#include "tools/custream/trace/gz.h"
#include "tools/custream/trace/json.h"

/* TAIL: how many bytes at the file's end are searched for the trailer, which takes at most 64 KiB,
 * packed or not. MEMBER_LEAST: bytes of the shortest gzip member. */
enum { TAIL = 128 << 10, MEMBER_LEAST = 18 };

/* --- before the events --- */

bool trace_head(int fd, struct trace_head *head)
{
    struct json json;
    bool found = false;
    enum json_step step = JSON_BROKEN;
    *head = (struct trace_head){0};
    for (bool open = json_take(&json, fd, NULL);
        open && (step = json_next(&json)) == JSON_MEMBER && !json.rows_seen;) {
        const char *rings = yyjson_get_str(yyjson_obj_get(json.value, "rings"));
        const bool is_number = yyjson_is_raw(json.value);
        if (is_number && !strcmp(json.name, "baseTimeNanoseconds"))
            found = true, head->base = strtoull(yyjson_get_raw(json.value), NULL, 10);
        if (is_number && !strcmp(json.name, "part"))
            head->part = (unsigned)strtoul(yyjson_get_raw(json.value), NULL, 10);
        if (rings && !strcmp(json.name, "metadata"))
            snprintf(head->rings, sizeof head->rings, "%s", rings);
    }
    const bool too_new = json.format > CS_TRACE_FORMAT;
    head->ours = json.ours && (step != JSON_BROKEN || too_new);
    json_close(&json);
    return found;
}

/* --- behind the events --- */

/* Parses the trailer, which begins at the last mark in the text. False: the text has no trailer. */
static bool trailer_parse(struct trailer *trailer, const char *text, size_t length)
{
    static const char mark[] = "],\"traceName\":\"custream\"";
    const char *found = NULL;
    for (const char *at = text;
        (at = memmem(at, length - (size_t)(at - text), mark, sizeof mark - 1)); at++)
        found = at;
    if (!found) return false;
    char *object = strndup(found + 1, length - (size_t)(found + 1 - text));
    if (!object) out_of_memory();
    *object = '{';
    trailer->value = cJSON_ParseWithOpts(object, NULL, true);
    free(object);
    rope_put(&trailer->before, text, (size_t)(found - text));
    return trailer->value;
}

static bool packed_read(struct trailer *trailer, const unsigned char *bytes, size_t n, off_t at)
{
    struct rope text = {0};
    bool found = false;
    for (size_t i = n >= MEMBER_LEAST ? n - MEMBER_LEAST + 1 : 0; i-- > 0 && !found;
        text.length = 0) {
        if (memcmp(bytes + i, GZ_MAGIC, 3) || !gz_last_member(bytes + i, n - i, &text)) continue;
        found = true;
        trailer_parse(trailer, text.at, text.length);
        trailer->packed = true;
        trailer->at = at + (off_t)i;
        trailer->size = n - i;
    }
    free(text.at);
    return trailer->value;
}

bool trailer_read(int fd, struct trailer *trailer)
{
    static unsigned char bytes[TAIL];
    struct stat about;
    unsigned char head[2] = {0};
    *trailer = (struct trailer){0};
    if (fstat(fd, &about) || pread(fd, head, 2, 0) != 2) return false;
    const off_t at = about.st_size > TAIL ? about.st_size - TAIL : 0;
    const size_t n = (size_t)(about.st_size - at);
    if (pread(fd, bytes, n, at) != (ssize_t)n) return false;
    if (!memcmp(head, GZ_MAGIC, 2)) packed_read(trailer, bytes, n, at);
    else if (trailer_parse(trailer, (const char *)bytes, n)) {
        trailer->at = at + (off_t)trailer->before.length;
        trailer->size = n - trailer->before.length;
        trailer->before.length = 0;
    }
    return trailer->value;
}

cJSON *trailer_finish(struct trailer *trailer)
{
    free(trailer->before.at);
    return trailer->value;
}

void trailer_print(struct rope *to, const cJSON *value)
{
    char *json = cJSON_PrintUnformatted(value);
    if (!json) out_of_memory();
    rope_literal(to, "],");
    rope_put(to, json + 1, strlen(json) - 1);
    rope_literal(to, "\n");
    cJSON_free(json);
}

bool trailer_replace(int fd, const struct trailer *trailer)
{
    struct rope text = {0};
    char *packed = NULL;
    rope_put(&text, trailer->before.at, trailer->before.length);
    trailer_print(&text, trailer->value);
    if (!trailer->packed) {
        for (text.length--; text.length + 1 < trailer->size;) rope_literal(&text, " ");
        rope_literal(&text, "\n");
    }
    const size_t length =
        trailer->packed ? gz_pack(text.at, text.length, trailer->size, &packed) : text.length;
    const bool good =
        length && pwrite(fd, packed ? packed : text.at, length, trailer->at) == (ssize_t)length;
    free(text.at);
    free(packed);
    return good && (length >= trailer->size || !ftruncate(fd, trailer->at + (off_t)length));
}
