#include "tools/custream/trace/value.h"

#include <math.h>
#include <stdarg.h>
#include <strings.h>
#include <yyjson.h>

#include "shim/base/json.h"
#include "tools/custream/command.h"

/* --- text --- */

char *rope_room(struct rope *text, size_t n)
{
    if (!text->at || text->capacity - text->length < n) {
        size_t capacity = text->capacity ? text->capacity : 256;
        while (capacity - text->length < n) capacity *= 2;
        text->at = realloc(text->at, capacity);
        if (!text->at) out_of_memory();
        text->capacity = capacity;
    }
    return text->at + text->length;
}

void rope_put(struct rope *text, const char *bytes, size_t n)
{
    rope_used(text, cs_put(rope_room(text, n), n ? bytes : "", n));
}

void rope_print(struct rope *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const size_t n = (size_t)vsnprintf(NULL, 0, format, args);
    vsnprintf(rope_room(text, n + 1), n + 1, format, again);
    text->length += n;
    va_end(again);
    va_end(args);
}

/* cs_put_string() stops at a zero byte: each one is put here as \u0000. */
void rope_string(struct rope *text, const char *string, size_t n)
{
    char *at = cs_put_string(rope_room(text, 6 * n + 2), string, n);
    for (size_t done = strnlen(string, n); done < n;
        done += 1 + strnlen(string + done + 1, n - done - 1)) {
        char *quote = at - 1;
        at = cs_put_string(quote + 5, string + done + 1, n - done - 1);
        memcpy(quote, "\\u0000", 6); /* over the two quotes between the pieces */
    }
    rope_used(text, at);
}

static void scalar_print(struct rope *to, yyjson_val *value)
{
    char *at;
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_RAW: return rope_put(to, value->uni.str, unsafe_yyjson_get_len(value));
    case YYJSON_TYPE_STR: return rope_string(to, value->uni.str, unsafe_yyjson_get_len(value));
    case YYJSON_TYPE_NUM:
        at = rope_room(to, 24);
        return rope_used(to, yyjson_is_uint(value) ? cs_put_uint(at, value->uni.u64)
                                                   : cs_put_int(at, value->uni.i64));
    case YYJSON_TYPE_BOOL: return rope_print(to, yyjson_is_true(value) ? "true" : "false");
    default: rope_literal(to, "null");
    }
}

/* In memory, the values inside a value follow that value. They may be nested very deep, so this
 * function does not call itself. */
void row_print(struct rope *to, yyjson_val *value)
{
    struct level {
        size_t left; /* how many values are still to come; in an object, names count too */
        bool object, follows;
    } *levels = NULL;
    size_t depth = 0, capacity = 0;
    yyjson_val *const end = value + (yyjson_is_ctn(value) ? value->uni.ofs / sizeof *value : 1);
    for (yyjson_val *at = value; at < end; at++) {
        struct level *in = depth ? &levels[depth - 1] : NULL;
        const bool name = in && in->object && in->left % 2 == 0, object = yyjson_is_obj(at);
        if (in && in->follows && (name || !in->object)) rope_literal(to, ",");
        if (in) in->follows = true, in->left--;
        if (name && yyjson_is_raw(at))
            in->left--; /* a raw name is whole members: the value behind it is skipped */
        if (yyjson_is_ctn(at)) {
            rope_print(to, object ? "{" : "[");
            array_add(levels, depth, capacity,
                (struct level){unsafe_yyjson_get_len(at) * (object ? 2 : 1), object, false});
        } else {
            scalar_print(to, at);
        }
        if (name && yyjson_is_raw(at)) at++;
        else if (name) rope_literal(to, ":");
        for (; depth && !levels[depth - 1].left; depth--)
            rope_print(to, levels[depth - 1].object ? "}" : "]");
    }
    free(levels);
}

size_t value_digits(char digits[VALUE_DIGITS], double number)
{
    snprintf(digits, VALUE_DIGITS, "%.15g", number);
    if (strtod(digits, NULL) != number) snprintf(digits, VALUE_DIGITS, "%.17g", number);
    if (!strpbrk(digits, ".e")) strcat(digits, ".0");
    return strlen(digits);
}

char *value_json(yyjson_val *value)
{
    struct rope text = {0};
    row_print(&text, value);
    rope_put(&text, "", 1);
    return text.at;
}

yyjson_doc *value_parse(const char *text, size_t length)
{
    return yyjson_read(text, length, YYJSON_READ_NUMBER_AS_RAW | YYJSON_READ_ALLOW_INVALID_UNICODE);
}

yyjson_doc *value_copy(yyjson_val *value)
{
    struct rope text = {0};
    row_print(&text, value);
    yyjson_doc *doc = value_parse(text.at, text.length);
    if (!doc) out_of_memory();
    free(text.at);
    return doc;
}

/* --- what values say --- */

/* Returns the text of a raw number or of a string; "" for all else. */
static const char *text_of_value(yyjson_val *value, size_t *length)
{
    const bool text = yyjson_is_raw(value) || yyjson_is_str(value);
    *length = text ? unsafe_yyjson_get_len(value) : 0;
    return text ? value->uni.str : "";
}

bool value_ns(yyjson_val *value, int64_t *ns)
{
    enum { DIGITS = 16 }; /* the digits of TIME_MAX in microseconds */
    size_t length;
    int64_t whole = 0;
    int decimals = 0;
    const char *const text = text_of_value(value, &length), *const end = text + length, *at = text;
    const bool negative = *at == '-';
    if (!negative && (*at < '0' || *at > '9')) return false;
    for (at += negative; *at >= '0' && *at <= '9' && at - text < DIGITS + negative; at++)
        whole = whole * 10 + (*at - '0');
    if (whole > TIME_MAX / 1000) return false;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            if (decimals < 3) whole = whole * 10 + (*at - '0'), decimals++;
    for (; decimals < 3; decimals++) whole *= 10;
    *ns = negative ? -whole : whole;
    if (at == end) return true;
    char *stop;
    const double us = strtod(text, &stop); /* an exponent, or too many digits */
    if (stop != end || !(fabs(us) * 1000 <= (double)TIME_MAX)) return false;
    *ns = llrint(us * 1000);
    return true;
}

bool value_natural(yyjson_val *value, uint64_t *number)
{
    /* custream check has this limit for numbers that are no times */
    static const uint64_t exact = UINT64_C(1) << 53;
    size_t length;
    const char *at = text_of_value(value, &length);
    const bool hex = yyjson_is_str(value) && !strncasecmp(at, "0x", 2);
    if (yyjson_is_int(value)) *number = yyjson_get_uint(value);
    else {
        at += hex ? 2 : 0;
        length -= hex ? 2 : 0;
        if (!length || length > 16 ||
            strspn(at, hex ? "0123456789abcdefABCDEF" : "0123456789") != length)
            return false;
        *number = strtoull(at, NULL, hex ? 16 : 10);
    }
    return *number < exact;
}

static uint64_t mix(uint64_t hash, const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)at[i]) * 0x100000001b3;
    return hash;
}

/* In memory the values inside a list or object follow it. */
uint64_t value_hash(uint64_t before, yyjson_val *value)
{
    uint64_t hash = before ^ 0xcbf29ce484222325;
    const size_t count = !value ? 0 : yyjson_is_ctn(value) ? value->uni.ofs / sizeof *value : 1;
    for (yyjson_val *one = value; one < value + count; one++) {
        size_t length;
        const char *text = text_of_value(one, &length), *const quote =
                                                            yyjson_is_str(one) ? "\"" : "";
        hash = mix(mix(mix(hash, quote, strlen(quote)), text, length), quote, strlen(quote));
        if (yyjson_is_num(one)) hash = mix(hash, (const char *)&one->uni.u64, sizeof one->uni.u64);
    }
    return (hash ^ 0xff) * 0x100000001b3;
}

size_t value_list(yyjson_val *list, uint32_t numbers[VALUE_LIST])
{
    enum { LARGEST = 999999999 };
    yyjson_val *below;
    size_t i, count;
    if (yyjson_arr_size(list) > VALUE_LIST) return 0;
    yyjson_arr_foreach(list, i, count, below) {
        uint64_t number;
        if (yyjson_is_str(below) || !value_natural(below, &number) || number > LARGEST) return 0;
        numbers[i] = (uint32_t)number;
    }
    return count;
}
