/* A trace file's bytes, unpacked, a chunk at a time; or its packets. */
#ifndef CS_TRACE_READER_H
#define CS_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/trace/pftrace.h"
#include "tools/custream/trace/torn.h"

struct reader {
    struct torn torn;        /* the text, up to the last whole event of a file that is torn */
    struct pftrace *packets; /* where it is in Perfetto's own format */
    bool in_ns; /* times of packets are whole nanoseconds: to be set before the file is looked at */
    bool looked,
        pending; /* at how it begins; that chunk, or its end (`first`), is still to be handed out */
    int first;
    bool over, broken; /* all of the file has been read; or `error` says why not */
    const char *chunk;
    size_t length;
    bool cut;        /* at the end: the file, or its gzip stream, was cut */
    char error[160]; /* no file name, no newline */
};

/* "-" is standard input, once. False: `error` says why. reader_close() in either case. */
bool reader_open(struct reader *reader, const char *path);
/* The same of an open file, which it takes over. */
bool reader_take(struct reader *reader, int fd);
/* 1: the next bytes, at[0..length) until the next call; 0: the end; -1: reader->error says why. */
int reader_bytes(struct reader *reader, const char **at, size_t *length);
/* How far the file on the disk was read, in bytes. */
uint64_t reader_offset(const struct reader *reader);
/* Whether the file is in Perfetto's own format, by how it begins. */
bool reader_is_packets(struct reader *reader);
/* What is next in such a file; PFTRACE_NONE: nothing any more, or reader->error says why. */
enum pftrace_piece reader_piece(struct reader *reader, struct pftrace_found *found);
void reader_close(struct reader *reader);

#endif
