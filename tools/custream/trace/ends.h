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
    bool ours;               /* custream wrote it, maybe in a format that is too new */
    char rings[PATH_MAX];    /* metadata.rings: the file of the rings, or why there is none */
};
/* Reads the header. False: no baseTimeNanoseconds stands before the events. */
bool trace_head(int fd, struct trace_head *head);

/* The trailer of a custream trace. In a .pftrace it is the text of the last packet. */
struct trailer {
    struct cJSON *value; /* its members as an object */
    /* Inside: place and size in the file, of the trailer or of the gzip member that ends in it. */
    off_t at;
    size_t size;
    bool packed;        /* it stands in a gzip member */
    struct rope before; /* the text before the trailer in that member */
};
/* Reads the trailer. False: the file does not end in one. */
bool trailer_read(int fd, struct trailer *trailer);
/* Frees all but trailer->value, and returns that value. */
struct cJSON *trailer_finish(struct trailer *trailer);

/* Writes the changed trailer->value over the old trailer, in one write. A shorter text is padded to
 * the old size. */
bool trailer_replace(int fd, const struct trailer *trailer);

/* Appends the trailer as text, from the "]" on that ends the list of events. */
void trailer_print(struct rope *to, const struct cJSON *value);

#endif
