#include "tools/custream/trace/wire.h"

/* Reads bytes one by one. */
static struct number slow_varint(struct message message)
{
    uint64_t value = 0;
    for (unsigned shift = 0; message.at < message.end && shift < 70; shift += 7) {
        const unsigned char byte = *message.at++;
        if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return (struct number){value, message.at};
    }
    return (struct number){0, NULL};
}

/* Takes eight bytes at once and moves their groups of seven bits together, without a branch that
 * depends on the length. */
struct number long_varint(struct message message)
{
    static const uint64_t more = 0x8080808080808080;
    uint64_t bytes;
    memcpy(&bytes, message.at, sizeof bytes); /* the machine's byte order is the format's */
    const uint64_t last = ~bytes & more;
    if (!last) return slow_varint(message);
    const unsigned char *const behind = message.at + __builtin_ctzll(last) / 8 + 1;
    bytes &= (last ^ (last - 1)) & ~more;
    bytes = (bytes & 0x007f007f007f007f) | (bytes & 0x7f007f007f007f00) >> 1;
    bytes = (bytes & 0x00003fff00003fff) | (bytes & 0x3fff00003fff0000) >> 2;
    bytes = (bytes & 0x000000000fffffff) | (bytes & 0x0fffffff00000000) >> 4;
    return (struct number){bytes, behind <= message.end ? behind : NULL};
}

bool message_is(struct message message, const char *text)
{
    return message_size(message) == strlen(text) && !memcmp(message.at, text, strlen(text));
}

void fields_read(struct message message, struct field *fields, unsigned count)
{
    struct field field;
    memset(fields, 0, count * sizeof *fields);
    while (field_next(&message, &field))
        if (field.number < count) fields[field.number] = field;
}
