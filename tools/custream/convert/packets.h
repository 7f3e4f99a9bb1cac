/* Converts rows of the JSON form to packets of Perfetto's own format. */
#ifndef CS_CONVERT_PACKETS_H
#define CS_CONVERT_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packets;
struct yyjson_val;

/* `put` gets the bytes to write: whole packets in each call. */
struct packets *packets_new(void (*put)(void *of, const char *bytes, size_t n), void *of);
void packets_free(struct packets *p);

/* To be called once, before the rows. `text`: the JSON in front of the rows; `wall_ns`: what the
 * wall clock says at the trace's time 0. */
void packets_head(struct packets *p, const char *text, size_t n, uint64_t wall_ns);
/* `half`: a text has half a surrogate pair. False: the format has no place for what `error`
 * names. */
bool packets_row(struct packets *p, struct yyjson_val *row, bool half, char error[256]);
/* To be called once, after the rows. `text`: the JSON behind the rows. */
void packets_tail(struct packets *p, const char *text, size_t n);

#endif
