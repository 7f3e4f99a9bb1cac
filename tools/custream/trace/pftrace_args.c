/* Arguments: fields of a message whose descriptors the file brings along, and DebugAnnotations.
 * Each is put as "key":value, with a comma behind it. */
#include <stdlib.h>

#include "tools/custream/command.h"
#include "tools/custream/trace/pftrace_inside.h"

#include "shim/base/json.h"

/* --- descriptors (google.protobuf's descriptor.proto) --- */

static void field_read(struct pftrace *p, struct message message)
{
    struct field field;
    struct argument read = {0};
    struct message name = {0};
    uint64_t number = 0;
    while (field_next(&message, &field)) {
        if (field.number == 1) name = field.message;
        if (field.number == 3) number = field.value;
        if (field.number == 4) read.list = field.value == 3;
        if (field.number == 5) read.type = (unsigned)field.value;
    }
    void **place = map_put(&p->fields, number);
    if (*place) return;
    struct argument *argument = *place = malloc(sizeof *argument);
    if (!argument) out_of_memory();
    read.name = string_new(name);
    *argument = read;
}

static void word_read(struct pftrace *p, struct message message)
{
    struct field field;
    struct message name = {0};
    uint64_t number = 0;
    while (field_next(&message, &field))
        if (field.number == 1) name = field.message;
        else if (field.number == 2) number = field.value;
    void **place = map_put(&p->words, number);
    if (!*place) *place = string_new(name);
}

/* A file has one message and one enum, or a piece of one. */
static void file_read(struct pftrace *p, struct message file)
{
    static const char package[] = "custream";
    struct field field, part;
    struct message search = file;
    bool ours = false;
    while (field_next(&search, &field))
        if (field.number == 2)
            ours = field.message.end - field.message.at == sizeof package - 1 &&
                   !memcmp(field.message.at, package, sizeof package - 1);
    while (ours && field_next(&file, &field)) {
        if ((field.number != 4 && field.number != 5) || field.wire != CS_WIRE_BYTES) continue;
        while (field_next(&field.message, &part)) {
            if (part.number != 2 || part.wire != CS_WIRE_BYTES) continue;
            if (field.number == 4) field_read(p, part.message);
            else word_read(p, part.message);
        }
    }
}

void extension_read(struct pftrace *p, struct message message)
{
    struct field field, part;
    while (field_next(&message, &field))
        while (
            field.number == 1 && field.wire == CS_WIRE_BYTES && field_next(&field.message, &part))
            if (part.number == 1 && part.wire == CS_WIRE_BYTES) file_read(p, part.message);
}

/* --- fields --- */

static void number_put(struct pftrace *p, struct pf_row *to, unsigned type, uint64_t value)
{
    switch (type) {
    case CS_PF_FIELD_SINT: row_int(to, (int64_t)(value >> 1) ^ -(int64_t)(value & 1)); break;
    case CS_PF_FIELD_DOUBLE: row_double(to, field_double(&(struct field){.value = value})); break;
    case CS_PF_FIELD_BOOL: row_bool(to, value); break;
    case CS_PF_FIELD_ENUM: row_text(to, string_message(map_get(&p->words, value))); break;
    default: row_uint(to, value); break;
    }
}

static void list_put(struct pftrace *p, struct pf_row *to, unsigned type, struct message list)
{
    const size_t opened = row_open(to);
    for (uint64_t value; varint_next(&list, &value);) number_put(p, to, type, value);
    row_close(to, opened, true);
}

void args_field(struct pftrace *p, struct pf_row *to, struct message args)
{
    struct field field;
    while (field_next(&args, &field)) {
        const struct argument *argument = map_get(&p->fields, field.number);
        if (!argument) continue;
        row_key(to, argument->name->text, argument->name->length);
        if (field.wire != CS_WIRE_BYTES) number_put(p, to, argument->type, field.value);
        else if (argument->list) list_put(p, to, argument->type, field.message);
        else row_text(to, field.message);
    }
}

/* --- DebugAnnotations --- */

static void note_put(
    const struct sequence *sequence, struct pf_row *to, struct message note, unsigned depth);
static void value_put(
    const struct sequence *sequence, struct pf_row *to, struct message note, unsigned depth);

/* A dictionary or a list: all fields of that kind. */
static void members_put(const struct sequence *sequence, struct pf_row *to, struct message note,
    unsigned kind, unsigned depth)
{
    struct field field;
    const size_t opened = row_open(to);
    while (field_next(&note, &field))
        if (field.number == kind && field.wire == CS_WIRE_BYTES)
            (kind == CS_PF_NOTE_DICT ? note_put : value_put)(
                sequence, to, field.message, depth + 1);
    row_close(to, opened, kind != CS_PF_NOTE_DICT);
}

static void value_put(
    const struct sequence *sequence, struct pf_row *to, struct message note, unsigned depth)
{
    enum { DEPTH_MAX = 50 };
    struct message all = note;
    struct field field;
    char hex[24];
    while (depth < DEPTH_MAX && field_next(&all, &field)) {
        switch (field.number) {
        case CS_PF_NOTE_BOOL: row_bool(to, field.value); return;
        case CS_PF_NOTE_UINT: row_uint(to, field.value); return;
        case CS_PF_NOTE_INT: row_int(to, (int64_t)field.value); return;
        case CS_PF_NOTE_DOUBLE: row_double(to, field_double(&field)); return;
        case CS_PF_NOTE_STRING: row_text(to, field.message); return;
        case CS_PF_NOTE_STRING_IID:
            row_text(to, string_message(map_get(&sequence->texts[TEXT_STRING], field.value)));
            return;
        case CS_PF_NOTE_POINTER:
            row_text(to, (struct message){(unsigned char *)hex + 1,
                             (unsigned char *)cs_put_hex(hex, field.value) - 1});
            return; /* without quotes */
        case CS_PF_NOTE_JSON: row_raw(to, field.message); return;
        case CS_PF_NOTE_DICT:
        case CS_PF_NOTE_ARRAY: members_put(sequence, to, note, field.number, depth); return;
        default: break;
        }
    }
    row_null(to);
}

static void note_put(
    const struct sequence *sequence, struct pf_row *to, struct message note, unsigned depth)
{
    struct message all = note, name = {0};
    struct field field;
    while (field_next(&all, &field))
        if (field.number == CS_PF_NOTE_NAME_IID)
            name = string_message(map_get(&sequence->texts[TEXT_KEY], field.value));
        else if (field.number == CS_PF_NOTE_NAME) name = field.message;
    row_text(to, name);
    value_put(sequence, to, note, depth);
}

void args_note(const struct sequence *sequence, struct pf_row *to, struct message note)
{
    note_put(sequence, to, note, 0);
}
