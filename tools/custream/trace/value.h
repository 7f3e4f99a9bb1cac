/* Values of a trace, as yyjson keeps them. Numbers from JSON are raw texts; numbers from packets
 * are integers or raw texts. */
#ifndef CS_TRACE_VALUE_H
#define CS_TRACE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yyjson_doc;
struct yyjson_val;

/* A text that grows. */
struct rope {
    char *at;
    size_t length, capacity;
};
/* Returns where up to n bytes may be written. rope_used() then says where they end. */
char *rope_room(struct rope *text, size_t n);
static inline void rope_used(struct rope *text, const char *end)
{
    text->length = (size_t)(end - text->at);
}
void rope_put(struct rope *text, const char *bytes, size_t n);
#define rope_literal(text, literal) rope_put(text, literal, sizeof(literal) - 1)
void rope_print(struct rope *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends a string as JSON. */
void rope_string(struct rope *text, const char *string, size_t n);

/* Appends the value as JSON in one line without blanks. A raw name holds whole members, as
 * pftrace.h says. */
void row_print(struct rope *to, struct yyjson_val *value);
/* Writes a finite number with digits that are read back as the same number, and a zero byte. A
 * whole number gets ".0". Returns how many bytes the digits have. */
enum { VALUE_DIGITS = 64 };
size_t value_digits(char digits[VALUE_DIGITS], double number);
/* Returns the value as JSON, to be freed. */
char *value_json(struct yyjson_val *value);
/* Returns a copy of the value, to be freed by yyjson_doc_free(). */
struct yyjson_doc *value_copy(struct yyjson_val *value);
/* Parses a text; NULL: it is no JSON. */
struct yyjson_doc *value_parse(const char *text, size_t length);

/* The longest time, in nanoseconds: 73 years, since some tools count from 1970. */
#define TIME_MAX INT64_C(2300000000000000000)
/* Turns microseconds, a number or a text, into nanoseconds. Reads digit by digit, as a double has
 * too few digits. False: the value is no number, or more than TIME_MAX. */
bool value_ns(struct yyjson_val *value, int64_t *ns);
/* Reads a natural number below 2^53 from a number, or from a text that consists of decimal digits,
 * or of 0x and hexadecimal digits. False: the value is neither, or the number is larger. */
bool value_natural(struct yyjson_val *value, uint64_t *number);
/* Returns a hash of `before` and of the value. NULL: no value. */
uint64_t value_hash(uint64_t before, struct yyjson_val *value);

/* Reads a list of up to 16 numbers of up to nine digits. Returns how many numbers; 0: the value is
 * no such list. */
enum { VALUE_LIST = 16 };
size_t value_list(struct yyjson_val *list, uint32_t numbers[VALUE_LIST]);

#endif
