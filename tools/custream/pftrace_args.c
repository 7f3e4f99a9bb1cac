/* Arguments: fields of a message whose descriptors the file brings along, and DebugAnnotations. Each is put as "key":value, with a comma behind it. */
#include <stdlib.h>

#include "tools/custream/command.h"
#include "tools/custream/pftrace_inside.h"

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
        if (field.number == 2) ours = field.message.end - field.message.at == sizeof package - 1 && !memcmp(field.message.at, package, sizeof package - 1);
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
        while (field.number == 1 && field.wire == CS_WIRE_BYTES && field_next(&field.message, &part))
            if (part.number == 1 && part.wire == CS_WIRE_BYTES) file_read(p, part.message);
}

/* --- fields --- */

static void number_put(struct pftrace *p, struct rope *to, unsigned type, uint64_t value)
{
    const struct field field = {.value = value};
    switch (type) {
    case CS_PF_FIELD_SINT: rope_int(to, (int64_t)(value >> 1) ^ -(int64_t)(value & 1)); break;
    case CS_PF_FIELD_DOUBLE: rope_double(to, field_double(&field)); break;
    case CS_PF_FIELD_BOOL: rope_print(to, value ? "true" : "false"); break;
    case CS_PF_FIELD_ENUM: rope_quoted(to, string_message(map_get(&p->words, value))); break;
    default: rope_uint(to, value); break;
    }
}

static void list_put(struct pftrace *p, struct rope *to, unsigned type, struct message list)
{
    uint64_t value;
    rope_literal(to, "[");
    for (bool first = true; varint_next(&list, &value); first = false) {
        if (!first) rope_literal(to, ",");
        number_put(p, to, type, value);
    }
    rope_literal(to, "]");
}

void args_field(struct pftrace *p, struct rope *to, struct message args)
{
    struct field field;
    while (field_next(&args, &field)) {
        const struct argument *argument = map_get(&p->fields, field.number);
        if (!argument) continue;
        rope_quoted(to, string_message(argument->name));
        rope_literal(to, ":");
        if (field.wire != CS_WIRE_BYTES) number_put(p, to, argument->type, field.value);
        else if (argument->list) list_put(p, to, argument->type, field.message);
        else rope_quoted(to, field.message);
        rope_literal(to, ",");
    }
}

/* --- DebugAnnotations --- */

static void note_put(struct pftrace *p, const struct sequence *sequence, struct rope *to, struct message note, unsigned depth);
static void value_put(struct pftrace *p, const struct sequence *sequence, struct rope *to, struct message note, unsigned depth);

static void comma_goes(struct rope *to)
{
    if (to->length && to->at[to->length - 1] == ',') to->length--;
}

/* A dictionary or a list: all fields of that kind. */
static void members_put(struct pftrace *p, const struct sequence *sequence, struct rope *to, struct message note, unsigned kind, unsigned depth)
{
    struct field field;
    rope_put(to, kind == CS_PF_NOTE_DICT ? "{" : "[", 1);
    while (field_next(&note, &field)) {
        if (field.number != kind || field.wire != CS_WIRE_BYTES) continue;
        if (kind == CS_PF_NOTE_DICT) {
            note_put(p, sequence, to, field.message, depth + 1);
        } else {
            value_put(p, sequence, to, field.message, depth + 1);
            rope_literal(to, ",");
        }
    }
    comma_goes(to);
    rope_put(to, kind == CS_PF_NOTE_DICT ? "}" : "]", 1);
}

static void value_put(struct pftrace *p, const struct sequence *sequence, struct rope *to, struct message note, unsigned depth)
{
    enum { DEPTH_MAX = 50 };
    struct message all = note;
    struct field field;
    while (depth < DEPTH_MAX && field_next(&all, &field)) {
        switch (field.number) {
        case CS_PF_NOTE_BOOL: number_put(p, to, CS_PF_FIELD_BOOL, field.value); return;
        case CS_PF_NOTE_UINT: rope_uint(to, field.value); return;
        case CS_PF_NOTE_INT: rope_int(to, (int64_t)field.value); return;
        case CS_PF_NOTE_DOUBLE: rope_double(to, field_double(&field)); return;
        case CS_PF_NOTE_STRING: rope_quoted(to, field.message); return;
        case CS_PF_NOTE_STRING_IID: rope_quoted(to, string_message(map_get(&sequence->texts[TEXT_STRING], field.value))); return;
        case CS_PF_NOTE_POINTER: rope_used(to, cs_put_hex(rope_room(to, 24), field.value)); return;
        case CS_PF_NOTE_JSON: rope_put(to, (const char *)field.message.at, (size_t)(field.message.end - field.message.at)); return;
        case CS_PF_NOTE_DICT:
        case CS_PF_NOTE_ARRAY: members_put(p, sequence, to, note, field.number, depth); return;
        default: break;
        }
    }
    rope_literal(to, "null");
}

static void note_put(struct pftrace *p, const struct sequence *sequence, struct rope *to, struct message note, unsigned depth)
{
    struct message all = note, name = {0};
    struct field field;
    while (field_next(&all, &field))
        if (field.number == CS_PF_NOTE_NAME_IID) name = string_message(map_get(&sequence->texts[TEXT_KEY], field.value));
        else if (field.number == CS_PF_NOTE_NAME) name = field.message;
    rope_quoted(to, name);
    rope_literal(to, ":");
    value_put(p, sequence, to, note, depth);
    rope_literal(to, ",");
}

void args_note(struct pftrace *p, const struct sequence *sequence, struct rope *to, struct message note) { note_put(p, sequence, to, note, 0); }
