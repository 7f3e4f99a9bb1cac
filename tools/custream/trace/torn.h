/* Reads the text of a trace file, plain or gzip, up to its last whole event. A process that is
 * killed while it writes tears its file: the rest of the old trailer, or nothing, then follows the
 * new events. The text of a file that is being written is that of one moment. Only files that begin
 * as custream's are judged. The memory that this takes depends on the longest line. */
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
}; /* bytes: more than an old trailer takes, which is at most 65 KiB */

/* Bytes that replace all of the file from `at` on. */
struct torn_more {
    off_t at;
    const char *bytes;
    size_t length;
};

struct torn {
    int fd;
    const struct torn_more
        *more;  /* NULL: none. For a regular file only; to be set before the first torn_next() */
    off_t last; /* so many last bytes of a longer plain file are read, and its header; 0: all */
    bool partly, skips; /* partly: `last` left bytes out; skips: no newline has come since */
    off_t from; /* offset in a regular file where reading began; -1: it is no regular file */
    bool all;   /* the file's end was read */
    bool packed, ours, flows, ended; /* ended: no more text comes; flows: text goes out unjudged */
    bool early, bad; /* early: the last gzip member ends too early (cut, or torn by a write); bad:
                        its data is wrong; bad without early: damage, not a tear */
    bool spare,
        all_spare; /* spare: the gzip member has room in its header; all_spare: the first one too */
    z_stream stream;
    unsigned char
        *in; /* bytes of the file, from in_from on; in[in_at..in_end) are still to be unpacked */
    size_t in_at, in_end;
    uint64_t in_from;
    char *held; /* text: the first `given` bytes went out last, the others have to wait */
    size_t length, capacity, given, scanned;
    uint64_t text_from,
        rows_from;    /* offsets in the text: of held[0]; of the first row, 0: not met */
    uint64_t trailer; /* offset in the text of the trailer; 0: not met */
    struct torn_member {
        uint64_t file, text; /* where a whole gzip member ends: in the file, and in the text */
    } *members;
    size_t member_count, member_capacity;
    bool cut;              /* the text that goes out ends before the file's text does */
    const char *where;     /* "it ends inside an event"; NULL: nothing was dropped */
    uint64_t end, dropped; /* if `where`: where the text ends, and the bytes dropped behind */
    char error[160];
};

/* Begins to read a file, and takes over the descriptor. False: no memory. */
bool torn_open(struct torn *torn, int fd);
void torn_close(struct torn *torn);

/* Returns 1: at[0..length) is the next text, until the next call; 0: the end; -1: torn->error says
 * why. */
int torn_next(struct torn *torn, const char **at, size_t *length);

/* Returns how much of a torn file can stay: all up to its last whole event, or, of a packed one,
 * the whole gzip members before that place. */
struct torn_member torn_stands(const struct torn *torn);
/* Appends the text from torn_stands() to the end of the last whole event. False: the file has
 * changed. */
bool torn_rest(const struct torn *torn, struct rope *rest);

#endif
