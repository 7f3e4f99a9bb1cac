/* Makes rows: an event as a yyjson object, and its arguments as names and values. */

#include "shim/base/json.h"
#include "tools/custream/command.h"
#include "tools/custream/trace/pftrace_inside.h"

void row_grow(struct pf_row *row)
{
    row->values = array_room(row->values, row->count, &row->capacity, sizeof *row->values);
}

/* Returns a copy of the text, in row->bytes. If row->bytes moves as it grows, the values that point
 * into it are corrected. */
static const char *bytes_keep(struct pf_row *row, struct message text)
{
    const uintptr_t before = (uintptr_t)row->bytes.at;
    const size_t length = row->bytes.length;
    rope_put(&row->bytes, (const char *)text.at, message_size(text));
    rope_put(&row->bytes, "", 1);
    for (size_t i = 0; (uintptr_t)row->bytes.at != before && i < row->count; i++) {
        yyjson_val *value = &row->values[i];
        const uintptr_t at = (uintptr_t)value->uni.str;
        if ((yyjson_is_str(value) || yyjson_is_raw(value)) && at >= before && at < before + length)
            value->uni.str = row->bytes.at + (at - before);
    }
    return row->bytes.at + length;
}

void row_text(struct pf_row *row, struct message text)
{
    const char *kept = bytes_keep(row, text);
    unsafe_yyjson_set_strn(row_value(row), kept, message_size(text));
}

void row_raw(struct pf_row *row, struct message text)
{
    const char *kept = bytes_keep(row, text);
    unsafe_yyjson_set_raw(row_value(row), kept, message_size(text));
}

/* Without p->texts, a double stays a double: the reader takes few keys that have doubles, and makes
 * the digits of these itself. */
void row_double(const struct pftrace *p, struct pf_row *row, uint64_t bits)
{
    char digits[VALUE_DIGITS];
    double number;
    memcpy(&number, &bits, sizeof number);
    if (!__builtin_isfinite(number))
        row_word(row, __builtin_isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity");
    else if (p->texts) row_raw(row, message_of(digits, value_digits(digits, number)));
    else unsafe_yyjson_set_real(row_value(row), number);
}

/* While an object or a list is open, its own value holds the row->inner of what is around it. */
size_t row_open(struct pf_row *row)
{
    row_value(row)->uni.u64 = row->inner;
    row->inner = 0;
    return row->count - 1;
}

void row_close(struct pf_row *row, size_t opened, bool list)
{
    yyjson_val *value = &row->values[opened];
    const size_t inside = row->count - opened - 1, members = inside - row->inner;
    row->inner = value->uni.u64 + inside;
    unsafe_yyjson_set_tag(value, list ? YYJSON_TYPE_ARR : YYJSON_TYPE_OBJ, YYJSON_SUBTYPE_NONE,
        list ? members : members / 2);
    value->uni.ofs = (inside + 1) * sizeof *value;
}

void row_free(struct pf_row *row)
{
    if (!row) return;
    free(row->values);
    free(row->bytes.at);
    free(row);
}

/* --- descriptors (google.protobuf's descriptor.proto) --- */

/* Reads a descriptor file, whose message has the names of arguments and whose enum has words. A
 * file may have only some of these, and further files the others. */
static void file_read(struct pftrace *p, struct message file)
{
    enum {
        PACKAGE = 2,
        MESSAGE = 4,
        ENUM = 5,
        NAME = 1,
        WORD_NUMBER = 2,
        NUMBER = 3,
        LABEL = 4,
        TYPE = 5
    };
    struct field field, part, in[TYPE + 1];
    fields_read(file, in, TYPE + 1);
    if (!message_is(in[PACKAGE].message, "custream")) return;
    while (field_next(&file, &field)) {
        while ((field.number == MESSAGE || field.number == ENUM) &&
               field_next(&field.message, &part)) {
            if (part.number != 2 || !part.message.at) continue;
            fields_read(part.message, in, TYPE + 1);
            const text name = told_number(p, in[NAME].message);
            if (field.number == ENUM) numbers_at(&p->words, in[WORD_NUMBER].value, name);
            else {
                struct argument *argument =
                    record_of(&p->fields, in[NUMBER].value, sizeof *argument);
                if (!argument->name)
                    *argument =
                        (struct argument){name, (unsigned)in[TYPE].value, in[LABEL].value == 3};
            }
        }
    }
}

void extension_read(struct pftrace *p, struct message message)
{
    struct field field, part;
    while (field_next(&message, &field))
        while (field.number == 1 && field_next(&field.message, &part))
            if (part.number == 1) file_read(p, part.message);
}

/* --- arguments: fields of a message that the file itself describes --- */

static void number_put(const struct pftrace *p, struct pf_row *to, unsigned type, uint64_t value)
{
    switch (type) {
    case CS_PF_FIELD_SINT: row_int(to, (int64_t)(value >> 1) ^ -(int64_t)(value & 1)); break;
    case CS_PF_FIELD_DOUBLE: row_double(p, to, value); break;
    case CS_PF_FIELD_BOOL: row_bool(to, value); break;
    case CS_PF_FIELD_ENUM: row_staying(to, told(p, numbers_get(&p->words, value, 0))); break;
    default: row_uint(to, value); break;
    }
}

void args_field(struct pftrace *p, struct pf_row *to, struct message args)
{
    struct field field;
    while (field_next(&args, &field)) {
        const struct argument *argument = record_of(&p->fields, field.number, sizeof *argument);
        if (!argument->name) continue;
        row_staying(to, told(p, argument->name));
        if (!field.message.at) number_put(p, to, argument->type, field.value);
        else if (argument->list) {
            const size_t opened = row_open(to);
            while (varint_next(&field.message, &field.value))
                number_put(p, to, argument->type, field.value);
            row_close(to, opened, true);
        } else row_text(to, field.message);
    }
}

/* --- DebugAnnotations --- */

static void note_value(const struct pftrace *p, const struct sequence *sequence, struct pf_row *to,
    struct message note, unsigned depth);

/* Adds a dictionary or a list, as `kind` says: the note's fields of this kind are its elements. */
static void members_put(const struct pftrace *p, const struct sequence *sequence, struct pf_row *to,
    struct message note, unsigned kind, unsigned depth)
{
    struct field field;
    const size_t opened = row_open(to);
    while (field_next(&note, &field))
        if (field.number == kind && field.message.at)
            (kind == CS_PF_NOTE_DICT ? args_note : note_value)(
                p, sequence, to, field.message, depth + 1);
    row_close(to, opened, kind != CS_PF_NOTE_DICT);
}

/* Adds the value that a field of the note has. False: the field has none. */
static bool note_field(const struct pftrace *p, const struct sequence *sequence, struct pf_row *to,
    struct message note, const struct field *field, unsigned depth)
{
    enum { DEPTH_MAX = 50 };
    char hex[24];
    if (depth >= DEPTH_MAX) return false;
    switch (field->number) {
    case CS_PF_NOTE_BOOL: return row_bool(to, field->value), true;
    case CS_PF_NOTE_UINT: return row_uint(to, field->value), true;
    case CS_PF_NOTE_INT: return row_int(to, (int64_t)field->value), true;
    case CS_PF_NOTE_DOUBLE: return row_double(p, to, field->value), true;
    case CS_PF_NOTE_STRING: return row_text(to, field->message), true;
    case CS_PF_NOTE_STRING_IID:
        row_staying(to, interned(p, sequence, CS_PF_INTERNED_STRING, field->value));
        return true;
    case CS_PF_NOTE_POINTER: /* without the quotes that cs_put_hex() adds */
        row_text(to, message_of(hex + 1, (size_t)(cs_put_hex(hex, field->value) - hex) - 2));
        return true;
    case CS_PF_NOTE_JSON: return row_raw(to, field->message), true;
    case CS_PF_NOTE_DICT:
    case CS_PF_NOTE_ARRAY: return members_put(p, sequence, to, note, field->number, depth), true;
    default: return false;
    }
}

/* Adds the first value that the note has. */
static void note_value(const struct pftrace *p, const struct sequence *sequence, struct pf_row *to,
    struct message note, unsigned depth)
{
    struct message all = note;
    struct field field;
    while (field_next(&all, &field))
        if (note_field(p, sequence, to, note, &field, depth)) return;
    row_null(to);
}

/* Adds the note's name, which may stand behind its value, and its value. */
void args_note(const struct pftrace *p, const struct sequence *sequence, struct pf_row *to,
    struct message note, unsigned depth)
{
    struct message all = note, name = {0};
    struct field field;
    const size_t at = to->count;
    uint64_t number = 0;
    bool said = false, valued = false;
    row_null(to);
    while (field_next(&all, &field)) {
        if (field.number == CS_PF_NOTE_NAME_IID) number = field.value;
        else if (field.number == CS_PF_NOTE_NAME) said = true, name = field.message;
        else if (!valued) valued = note_field(p, sequence, to, note, &field, depth);
    }
    if (!valued) row_null(to);
    if (said) row_text(to, name);
    else row_staying(to, interned(p, sequence, CS_PF_INTERNED_KEY, number));
    to->values[at] = to->values[--to->count];
}
