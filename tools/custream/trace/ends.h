/* The two ends of a trace that is open, whose offset may change. Its events are not read. */
#ifndef CS_TRACE_ENDS_H
#define CS_TRACE_ENDS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tools/custream/trace/value.h"

struct cJSON;

struct trace_head {
    unsigned long long base; /* baseTimeNanoseconds: parts of one process have the same */
    unsigned part;           /* 0: it is no part */
    bool ours;               /* also of a format that is too new */
    char rings[PATH_MAX];    /* metadata.rings: their file, or why there is none */
};
/* False: it is no trace that begins with a base. */
bool trace_head(int fd, struct trace_head *head);

/* The trailer of a custream trace. In a .pftrace it is the text of the last packet. */
struct trailer {
    struct cJSON *value; /* without the events */
    /* Inside: where it stands in the file, and the text in front of it in its gzip member. */
    off_t at;
    size_t size;
    bool packed;
    struct rope before;
};
/* False: the file does not end in one. */
bool trailer_read(int fd, struct trailer *trailer);
/* Frees all but the value, and returns that. */
struct cJSON *trailer_finish(struct trailer *trailer);

/* Puts `value`, which has changed, in place of the old one: one write of the same size. */
bool trailer_replace(int fd, const struct trailer *trailer);

/* Its text from "]" on. */
void trailer_print(struct rope *to, const struct cJSON *value);

#endif
