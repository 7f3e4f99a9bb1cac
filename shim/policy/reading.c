#include "shim/policy/reading.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/append.h"
#include "shim/base/json.h"

/* Of the text what has room, in whole characters, with '?' for what could move a terminal's cursor; false if that is not all of it. */
static bool put_line(char *out, size_t room, const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    size_t n = 0;
    while (p < end) {
        int length = cs_utf8_length(p, end);
        bool control = *p < ' ' || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0);
        if (n + (size_t)length + 1 >= room) break;
        if (length && !control) n = (size_t)(cs_put(out + n, (const char *)p, (size_t)length) - out);
        else out[n++] = '?';
        p += length ? length : 1;
    }
    out[n] = 0;
    return p == end;
}

bool cs_reading_fail(struct cs_reading *r, const char *path, const char *format, ...)
{
    char text[2 * CS_POLICY_LINE];
    const size_t n = cs_append(text, sizeof text, 0, "%.300s: %s%s", r->name, path, *path ? ": " : "");
    va_list args;
    va_start(args, format);
    cs_append_list(text, sizeof text, n, format, args);
    va_end(args);
    put_line(r->error, r->room, text);
    return false;
}

/* A text as it would be typed, but for escapes, and cut where it is long. */
static const char *show(const cJSON *value, char out[CS_SHOWN_ROOM])
{
    char text[CS_SHOWN_ROOM - 8];
    double n = value->valuedouble;
    switch (value->type & 0xff) {
    case cJSON_String:
        snprintf(out, CS_SHOWN_ROOM, put_line(text, sizeof text, value->valuestring) ? "\"%s\"" : "\"%s...\"", text);
        break;
    case cJSON_Number: snprintf(out, CS_SHOWN_ROOM, n > -1e15 && n < 1e15 && n == (double)(cs_i64)n ? "%.0f" : "%g", n); break;
    case cJSON_True: return "true";
    case cJSON_False: return "false";
    case cJSON_NULL: return "null";
    case cJSON_Array: return "a list";
    default: return "an object";
    }
    return out;
}

bool cs_reading_refuse(struct cs_reading *r, const char *path, const cJSON *value, const char *allowed)
{
    char shown[CS_SHOWN_ROOM];
    return cs_reading_fail(r, path, "%s is not valid: allowed is %s", show(value, shown), allowed);
}

bool cs_reading_number(const cJSON *value, int least, int most, int *out)
{
    double n = value->valuedouble;
    if ((value->type & 0xff) != cJSON_Number || n < least || n > most || n != (int)n) return false;
    *out = (int)n;
    return true;
}

/* The key that was meant, or all that there are. */
static bool unknown(struct cs_reading *r, const char *path, const char *key, const char *const *keys)
{
    size_t best = SIZE_MAX, length = strnlen(key, 64);
    const char *meant = NULL;
    char list[CS_POLICY_LINE / 2];
    size_t n = 0;
    for (int i = 0; keys[i]; i++) {
        size_t edits = cs_edits(key, length, keys[i], strlen(keys[i]));
        if (edits < best) best = edits, meant = keys[i];
        n = cs_append(list, sizeof list, n, "%s%s", i ? ", " : "", keys[i]);
    }
    if (best <= 3 && 2 * best < length) return cs_reading_fail(r, path, "no such key; did you mean %s?", meant);
    return cs_reading_fail(r, path, "no such key; there are %s", list);
}

static void join(char out[CS_PATH_ROOM], const char *path, const char *key)
{
    char shown[64];
    bool whole = put_line(shown, sizeof shown, *key ? key : "\"\"");
    snprintf(out, CS_PATH_ROOM, "%s%s%s%s", path, *path ? "." : "", shown, whole ? "" : "...");
}

bool cs_reading_object(struct cs_reading *r, const cJSON *object, const char *path, const char *const *keys, cs_take_fn *take, void *out)
{
    cs_u64 seen = 0;
    if ((object->type & 0xff) != cJSON_Object) return cs_reading_refuse(r, path, object, "an object");
    for (const cJSON *member = object->child; member; member = member->next) {
        char member_path[CS_PATH_ROOM];
        int key = 0;
        join(member_path, path, member->string);
        while (keys[key] && strcmp(keys[key], member->string)) key++;
        if (!keys[key]) return unknown(r, member_path, member->string, keys);
        if (seen >> key & 1) return cs_reading_fail(r, member_path, "stands there twice");
        seen |= (cs_u64)1 << key;
        if (!take(r, member, member_path, key, out)) return false;
    }
    return true;
}
