/* Reads the header and the trailer of an open trace, and replaces the trailer. No event is read.
 * The offset of the descriptor may move. */
#ifndef CS_TRACE_ENDS_H
#define CS_TRACE_ENDS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tools/custream/trace/value.h"

struct cJSON;

struct trace_head {
    unsigned long long base; /* baseTimeNanoseconds, the same in all parts of one process */
    unsigned part;           /* 0: the trace is no part */
    bool ours;               /* custream wrote the trace, maybe in a format that is too new */
    char rings[PATH_MAX];    /* metadata.rings: the file of the rings, or why there is none */
};
/* Reads the header. False: no baseTimeNanoseconds stands before the events. */
bool trace_head(int fd, struct trace_head *head);

/* The trailer of a custream trace. In a .pftrace it is the text of the last packet. */
struct trailer {
    struct cJSON *value; /* the trailer's members as an object */
    /* Internal: place and size in the file, of the trailer or of the gzip member that ends with
     * it. */
    off_t at;
    size_t size;
    bool packed;        /* the trailer stands in a gzip member */
    struct rope before; /* if packed: the member's text before the trailer */
};
/* Reads the trailer. False: the file does not end in a trailer. */
bool trailer_read(int fd, struct trailer *trailer);
/* Frees the trailer except for trailer->value, which it returns. */
struct cJSON *trailer_finish(struct trailer *trailer);

/* Writes the changed trailer->value over the old trailer, in one write. A shorter text is padded to
 * the old size. */
bool trailer_replace(int fd, const struct trailer *trailer);

/* Appends the trailer as text, from the "]" on that ends the list of events. */
void trailer_print(struct rope *to, const struct cJSON *value);

#endif
