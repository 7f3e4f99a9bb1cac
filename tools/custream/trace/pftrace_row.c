/* Rows: an event as an object of yyjson's, like those that JSON is read to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/trace/pftrace_inside.h"

static yyjson_val *value_new(struct pf_row *row)
{
    row->values = array_room(row->values, row->count, &row->capacity, sizeof *row->values);
    return &row->values[row->count++];
}

/* Texts in the values stand in `bytes`, which moves as it grows. */
static void bytes_grow(struct pf_row *row, size_t n)
{
    const uintptr_t before = (uintptr_t)row->bytes, end = before + row->length;
    size_t room = row->room ? row->room : 1024;
    while (room < row->length + n) room *= 2;
    row->bytes = realloc(row->bytes, row->room = room);
    if (!row->bytes) out_of_memory();
    for (size_t i = 0; i < row->count; i++) {
        yyjson_val *value = &row->values[i];
        const uintptr_t at = (uintptr_t)value->uni.str;
        if ((yyjson_is_str(value) || yyjson_is_raw(value)) && at >= before && at < end)
            value->uni.str = row->bytes + (at - before);
    }
}

static const char *bytes_keep(struct pf_row *row, struct message text)
{
    const size_t n = (size_t)(text.end - text.at);
    if (row->room - row->length < n + 1) bytes_grow(row, n + 1);
    char *at = row->bytes + row->length;
    if (n) memcpy(at, text.at, n); /* an empty one may stand nowhere */
    at[n] = 0;
    row->length += n + 1;
    return at;
}

void row_text(struct pf_row *row, struct message text)
{
    const char *kept = bytes_keep(row, text);
    unsafe_yyjson_set_strn(value_new(row), kept, (size_t)(text.end - text.at));
}

void row_raw(struct pf_row *row, struct message text)
{
    const char *kept = bytes_keep(row, text);
    unsafe_yyjson_set_raw(value_new(row), kept, (size_t)(text.end - text.at));
}

void row_key(struct pf_row *row, const char *name, size_t n)
{
    unsafe_yyjson_set_strn(value_new(row), name, n);
}
void row_uint(struct pf_row *row, uint64_t number)
{
    unsafe_yyjson_set_uint(value_new(row), number);
}
void row_int(struct pf_row *row, int64_t number) { unsafe_yyjson_set_sint(value_new(row), number); }
void row_bool(struct pf_row *row, bool yes) { unsafe_yyjson_set_bool(value_new(row), yes); }
void row_null(struct pf_row *row) { unsafe_yyjson_set_null(value_new(row)); }

/* So that it is read back as the same number, and as one that need not be whole. */
void row_double(struct pf_row *row, double number)
{
    char digits[64];
    if (!__builtin_isfinite(number)) {
        const char *word = __builtin_isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity";
        row_key(row, word, strlen(word));
        return;
    }
    snprintf(digits, sizeof digits, "%.15g", number);
    if (strtod(digits, NULL) != number) snprintf(digits, sizeof digits, "%.17g", number);
    if (!strpbrk(digits, ".e")) strcat(digits, ".0");
    row_raw(
        row, (struct message){(unsigned char *)digits, (unsigned char *)digits + strlen(digits)});
}

size_t row_open(struct pf_row *row) { return value_new(row), row->count - 1; }

void row_close(struct pf_row *row, size_t opened, bool list)
{
    yyjson_val *value = &row->values[opened];
    size_t members = 0;
    for (size_t at = opened + 1; at < row->count; members++)
        at += yyjson_is_ctn(&row->values[at]) ? row->values[at].uni.ofs / sizeof *value : 1;
    unsafe_yyjson_set_tag(value, list ? YYJSON_TYPE_ARR : YYJSON_TYPE_OBJ, YYJSON_SUBTYPE_NONE,
        list ? members : members / 2);
    value->uni.ofs = (row->count - opened) * sizeof *value;
}

void row_clear(struct pf_row *row) { row->count = row->length = 0; }

void row_free(struct pf_row *row)
{
    free(row->values);
    free(row->bytes);
}
