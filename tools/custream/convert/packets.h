/* Rows of the JSON form as packets of Perfetto's own format. */
#ifndef CS_CONVERT_PACKETS_H
#define CS_CONVERT_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packets;
struct yyjson_val;

/* `put` gets what is written, whole packets at a time. */
struct packets *packets_new(void (*put)(void *of, const char *bytes, size_t n), void *of);
void packets_free(struct packets *p);

/* Once, before the rows: what stands before them, as text, and the wall clock at time 0. */
void packets_head(struct packets *p, const char *text, size_t n, uint64_t wall_ns);
/* `half`: a text in it had half a pair of surrogates. False: `error` says what has no place. */
bool packets_row(struct packets *p, struct yyjson_val *row, bool half, char error[256]);
/* Once, behind the rows: what stands there. */
void packets_tail(struct packets *p, const char *text, size_t n);

#endif
