/* Values of a trace as yyjson has them. JSON's numbers are raw texts; packets' are whole, or raw.
 */
#ifndef CS_TRACE_VALUE_H
#define CS_TRACE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yyjson_doc;
struct yyjson_val;

/* Text that grows. */
struct rope {
    char *at;
    size_t length, capacity;
};
char *rope_room(
    struct rope *text, size_t n); /* where n bytes may go; rope_used says how many did */
static inline void rope_used(struct rope *text, const char *end)
{
    text->length = (size_t)(end - text->at);
}
void rope_put(struct rope *text, const char *bytes, size_t n);
#define rope_literal(text, literal) rope_put(text, literal, sizeof(literal) - 1)
void rope_print(struct rope *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rope_string(struct rope *text, const char *string, size_t n); /* as JSON */

/* The value as JSON in one line, without blanks. A raw name is whole members (pftrace.h). */
void row_print(struct rope *to, struct yyjson_val *value);
/* The same as a text, to be freed; and as a copy, to be freed by yyjson_doc_free(). */
char *value_json(struct yyjson_val *value);
struct yyjson_doc *value_copy(struct yyjson_val *value);
/* What a text says; NULL: it is no JSON. */
struct yyjson_doc *value_parse(const char *text, size_t length);

/* The longest time, in nanoseconds: 73 years, since some tools count from 1970. */
#define TIME_MAX INT64_C(2300000000000000000)
/* Nanoseconds, of microseconds as a number or a text, digit by digit: a double is too short. False:
 * no number, or more than TIME_MAX. */
bool value_ns(struct yyjson_val *value, int64_t *ns);
/* A natural number below 2^53; as a text too, if it is one by its digits, with or without 0x. */
bool value_natural(struct yyjson_val *value, uint64_t *number);
uint64_t value_hash(uint64_t before, struct yyjson_val *value); /* NULL: as of an empty text */

#endif
