/* Reads protobuf's wire format: a message is a row of fields, each with a number. What runs for
 * each field of a trace is inlined, so that the field stays in registers. */
#ifndef CS_TRACE_WIRE_H
#define CS_TRACE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/base/perfetto.h"

#define WIRE_INLINE static inline __attribute__((always_inline))

/* Bytes of a message. Behind their end, WIRE_BEHIND more bytes can be read if the message has
 * fields. */
enum { WIRE_BEHIND = 8 };
struct message {
    const unsigned char *at, *end;
};
static inline struct message message_of(const char *text, size_t n)
{
    return (struct message){(const unsigned char *)text, (const unsigned char *)text + n};
}
static inline size_t message_size(struct message message)
{
    return (size_t)(message.end - message.at);
}
bool message_is(struct message message, const char *text);

struct field {
    unsigned number, wire;
    uint64_t value;         /* the number; if the field is bytes, their length */
    struct message message; /* the bytes; `at` is NULL if the field is a number */
};

/* A number, and where the bytes behind it begin; NULL: the message ends inside the number. The
 * struct is returned in registers. long_varint() gets a copy of the message, so that no address of
 * the message is passed, and the message can stay in registers too. */
struct number {
    uint64_t value;
    const unsigned char *behind;
};
/* Reads a varint that has several bytes. */
struct number long_varint(struct message message);

/* Reads a varint. Most varints of a trace have one byte. */
WIRE_INLINE bool varint_next(struct message *message, uint64_t *value)
{
    if (message->at >= message->end) return false;
    if (*message->at < 128) return *value = *message->at++, true;
    const struct number number = long_varint(*message);
    if (!number.behind) return false;
    *value = number.value;
    message->at = number.behind;
    return true;
}

WIRE_INLINE bool fixed_next(struct message *message, size_t n, uint64_t *value)
{
    if (message_size(*message) < n) return false;
    *value = 0;
    memcpy(value, message->at, n); /* the machine's byte order is the format's */
    message->at += n;
    return true;
}

/* Reads the next field. False: the message ends, or its rest is damaged. */
WIRE_INLINE bool field_next(struct message *message, struct field *field)
{
    uint64_t tag, value = 0;
    if (!varint_next(message, &tag)) return false;
    const unsigned wire = tag & 7;
    if (wire == CS_WIRE_VARINT || wire == CS_WIRE_BYTES) {
        if (!varint_next(message, &value)) return false;
    } else if (wire == CS_WIRE_64 || wire == CS_WIRE_32) {
        if (!fixed_next(message, wire == CS_WIRE_64 ? 8 : 4, &value)) return false;
    } else return false;
    *field = (struct field){.number = (unsigned)(tag >> 3), .wire = wire, .value = value};
    if (wire != CS_WIRE_BYTES) return true;
    if (value > message_size(*message)) return false;
    field->message = (struct message){message->at, message->at + value};
    message->at += value;
    return true;
}

/* Puts the last field of number n into fields[n], for each n below `count`. If the message has no
 * field n, fields[n].number is 0. */
void fields_read(struct message message, struct field *fields, unsigned count);

#endif
