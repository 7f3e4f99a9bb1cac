/* The text of a trace file, plain or gzip, up to its last whole event. A process that is killed
 * while it writes tears its file: then the rest of the old trailer, or nothing, follows new events.
 * Of a file that is written meanwhile it is the text at one moment. Only files that begin as
 * custream's are judged. What is held depends on the longest line. */
#ifndef CS_TOOLS_TORN_H
#define CS_TOOLS_TORN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <zlib.h>

#include "tools/custream/trace/value.h"

enum {
    TORN_BEHIND = 128 << 10
}; /* bytes: more than an old trailer, or the rest of it, which takes at most 65 KiB */

/* Bytes that stand in the place of those of the file from `at` on. */
struct torn_more {
    off_t at;
    const char *bytes;
    size_t length;
};

struct torn {
    int fd;
    const struct torn_more
        *more;          /* NULL: none. Of a regular file; set before the first torn_next() */
    off_t last;         /* of a longer plain file, only the header and so many last bytes; 0: all */
    bool partly, skips; /* that is so; the begin of that line has not come */
    off_t from;         /* where it begins in a regular file; -1: it is none */
    bool all;           /* its end has been read */
    bool packed, ours, flows, ended; /* flows: nothing more is judged */
    bool early, bad;                 /* the last gzip member is cut, or is damaged */
    bool spare, all_spare;           /* the member, or also the first, has room in its header */
    z_stream stream;
    unsigned char *in; /* of the file, from in_from on: in[in_at..in_end) is still to be unpacked */
    size_t in_at, in_end;
    uint64_t in_from;
    char *held; /* text that has not gone out, but for the first `given` bytes */
    size_t length, capacity, given, scanned;
    uint64_t text_from, rows_from; /* where in the text held[0] and the first row stand */
    uint64_t trailer;              /* and the trailer; 0: it has not been met */
    struct torn_member {
        uint64_t file, text; /* where a whole member ended: in the file, and in its text */
    } *members;
    size_t member_count, member_capacity;
    bool cut;              /* the text that goes out ends before the file does */
    const char *where;     /* "it ends inside an event"; NULL: the file was not judged */
    uint64_t end, dropped; /* where the text ends then; bytes of text behind that */
    char error[160];
};

/* Takes over the descriptor. False: no memory. */
bool torn_open(struct torn *torn, int fd);
void torn_close(struct torn *torn);

/* 1: at[0..length) is the next text, until the next call; 0: the end; -1: torn->error says why. */
int torn_next(struct torn *torn, const char **at, size_t *length);

/* How much of the file stands: of a packed one, whole members. */
struct torn_member torn_stands(const struct torn *torn);
/* The text from there to the end of the last whole event. False: the file has changed. */
bool torn_rest(const struct torn *torn, struct rope *rest);

#endif
