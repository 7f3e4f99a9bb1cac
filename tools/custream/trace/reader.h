/*
 * Lines of a trace, plain or gzip (zlib reads both, and several gzip members as one). One line is held at a time, whatever the file's size. A trace in
 * Perfetto's own format is read as the JSON that says the same, or by its pieces (pftrace.h).
 */
#ifndef CS_TOOLS_READER_H
#define CS_TOOLS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/trace/pftrace.h"
#include "tools/custream/trace/rope.h"
#include "tools/custream/trace/torn.h"

struct reader {
    struct torn torn;        /* the text, up to the last whole event of a file that is torn */
    struct pftrace *packets; /* where it is in Perfetto's own format */
    bool in_ns;              /* times in rows of packets are whole nanoseconds: to be set before the file is looked at */
    bool looked, pending;    /* at how it begins; what came then is the next chunk, or says that there is none */
    int first;
    bool over, broken;       /* all of the file has been read; or `error` says why not */
    struct rope text;        /* of packets, as JSON */
    bool rows, ends;         /* in it there is a row, and what stands behind the rows */
    const char *chunk;     /* what was read and not yet handed out: chunk[start..end) */
    size_t start, end;
    char *line;            /* the current line without its newline, 0-terminated; may hold further zero bytes */
    size_t length, capacity;
    uint64_t number;       /* of the current line, from 1 */
    bool newline;          /* the current line ended in one: false only for the last */
    bool cut;              /* at the end: the file goes on behind its last whole event, or its gzip stream ends too early */
    char error[160];       /* why open or next failed; no file name, no newline */
};

/* "-" is standard input, once. False, with reader->error set, when the file cannot be read at all. reader_close() is to be called in either case. */
bool reader_open(struct reader *reader, const char *path);

/* The same of an open file, which it takes over. */
bool reader_take(struct reader *reader, int fd);

/* 1: a line; 0: the end; -1: reader->error says why. */
int reader_next(struct reader *reader);

/* The same of what is there next, whatever it holds: at[0..length) until the next call. Of one reader either this or reader_next(). */
int reader_bytes(struct reader *reader, const char **at, size_t *length);
/* How far the file on the disk was read, in bytes. */
uint64_t reader_offset(const struct reader *reader);

/* Whether the file is in Perfetto's own format, by how it begins. */
bool reader_is_packets(struct reader *reader);

/* What is there next of such a file; PFTRACE_NONE: nothing any more, or reader->error says why. Instead of reader_next() and reader_bytes(). */
enum pftrace_piece reader_piece(struct reader *reader, struct pftrace_found *found);

void reader_close(struct reader *reader);

#endif
