/* Reads the text of a trace file, plain or gzip, up to its last whole event. A process that is
 * killed while it writes tears its file: the rest of the old trailer, or nothing, then follows the
 * new events.
 *
 * A file that is being written is read as it was at one moment. The text of a file that does not
 * begin as custream's is passed on whole, unjudged. Longer lines take more memory. */
#ifndef CS_TOOLS_TORN_H
#define CS_TOOLS_TORN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <zlib.h>

#include "tools/custream/trace/value.h"

/* How many bytes at the end of a file may be the rest of an old trailer, or may still change under
 * a writer. An old trailer takes at most 65 KiB. */
enum { TORN_BEHIND = 128 << 10 };

/* Bytes that stand for the file's own bytes from `at` to its end. */
struct torn_more {
    off_t at;
    const char *bytes;
    size_t length;
};

struct torn {
    int fd;
    const struct torn_more *more; /* set by the caller before the first torn_next(), for a regular
                                     file only; NULL: none */
    off_t last; /* read only the header and this many last bytes of a plain file; 0: read all */
    /* partly: `last` left bytes out; skips: text is dropped up to the next newline */
    bool partly, skips;
    off_t from; /* where in a regular file reading began; -1: the file is not regular */
    bool all;   /* the file's end was read */
    bool packed, ours, flows, ended; /* ended: no more text comes; flows: text goes out unjudged */
    /* early: the gzip data breaks off, in a member that was cut or over which a write was going on.
     * bad: the gzip data is wrong; with `early` that is such a tear, without `early` it is
     * damage. */
    bool early, bad;
    /* spare: the header of the newest gzip member has an extra field, which of our members only the
     * trailer's has. all_spare: the first member's header has an extra field too, so `spare` tells
     * nothing. */
    bool spare, all_spare;
    z_stream stream;
    /* bytes of the file, from in_from on; in[in_at..in_end) are still to be unpacked */
    unsigned char *in;
    size_t in_at, in_end;
    uint64_t in_from;
    /* text: torn_next() returned the first `given` bytes last, the others have to wait */
    char *held;
    size_t length, capacity, given, scanned;
    /* Offsets in the text. text_from: of held[0]; rows_from: of the first row, 0 if the header's
     * end was not met yet. */
    uint64_t text_from, rows_from;
    uint64_t trailer; /* the trailer's offset in the text; 0 if not met yet */
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

/* Returns how much of a torn file can stay. A plain file stays up to the end of its last whole
 * event, a packed file up to the last gzip member that ends before that. */
struct torn_member torn_stands(const struct torn *torn);
/* Appends the text from torn_stands() to the end of the last whole event. False: the file has
 * changed. */
bool torn_rest(const struct torn *torn, struct rope *rest);

#endif
