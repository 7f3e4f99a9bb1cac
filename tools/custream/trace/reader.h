/* Reads a trace file: its bytes, unpacked, a chunk at a time; or its packets. */
#ifndef CS_TRACE_READER_H
#define CS_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/trace/pftrace.h"
#include "tools/custream/trace/torn.h"

struct reader {
    struct torn torn;        /* reads the text, of a torn file up to its last whole event */
    struct pftrace *packets; /* NULL: the file is not in Perfetto's own format */
    bool in_ns;              /* set by the caller; times in rows of packets are whole nanoseconds */
    bool looked, pending; /* looked: the first chunk was read; pending: reader_bytes() still has to
                             return it */
    int first;            /* what reading the first chunk returned */
    bool over, broken; /* over: all of the file was read; broken: reading failed, as `error` says */
    const char *chunk;
    size_t length;
    bool cut; /* once all was read: the file, or its gzip stream, ends too early; for packets always
                 false */
    char error[160]; /* no file name, no newline */
};

/* Opens a file. "-" is standard input, which can be read once. False: `error` says why. Either way
 * reader_close() is to be called. */
bool reader_open(struct reader *reader, const char *path);
/* Like reader_open() for an open file. Takes over the descriptor. */
bool reader_take(struct reader *reader, int fd);
/* Returns 1: at[0..length) are the next bytes, until the next call; 0: the end; -1: reader->error
 * says why. */
int reader_bytes(struct reader *reader, const char **at, size_t *length);
/* Returns how many bytes of the file on the disk were read. */
uint64_t reader_offset(const struct reader *reader);
/* Whether the file begins as a file in Perfetto's own format. */
bool reader_is_packets(struct reader *reader);
/* Returns the next piece of a file in Perfetto's own format; PFTRACE_NONE: the file has ended, or
 * reader->error says what is wrong. */
enum pftrace_piece reader_piece(struct reader *reader, struct pftrace_found *found);
void reader_close(struct reader *reader);

#endif
