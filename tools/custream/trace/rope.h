/* Text that grows. */
#ifndef CS_TRACE_ROPE_H
#define CS_TRACE_ROPE_H

#include <stddef.h>

struct yyjson_val;

struct rope {
    char *at;
    size_t length, capacity;
};
char *rope_room(struct rope *text, size_t n); /* where n bytes may go; rope_used says how many did */
static inline void rope_used(struct rope *text, const char *end) { text->length = (size_t)(end - text->at); }
void rope_put(struct rope *text, const char *bytes, size_t n);
#define rope_literal(text, literal) rope_put(text, literal, sizeof(literal) - 1)

/* A row of packets (pftrace.h) as JSON, in one line. */
void row_print(struct rope *to, struct yyjson_val *value);

#endif
