#include "tools/custream/trace/reader.h"
#include "tools/custream/trace/pftrace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct reader *reader, const char *why)
{
    snprintf(reader->error, sizeof reader->error, "%s", why);
    return -1;
}

bool reader_take(struct reader *reader, int fd)
{
    struct stat about;
    *reader = (struct reader){0};
    if (fd >= 0 && !fstat(fd, &about) && S_ISDIR(about.st_mode)) errno = EISDIR;
    else if (fd >= 0 && torn_open(&reader->torn, fd)) return true;
    else if (fd >= 0) errno = ENOMEM;
    fail(reader, strerror(errno));
    if (fd >= 0) close(fd);
    return false;
}

bool reader_open(struct reader *reader, const char *path)
{
    static bool input_taken;
    *reader = (struct reader){0};
    const bool is_input = !strcmp(path, "-");
    if (is_input && input_taken) {
        fail(reader, "standard input can be read once");
        return false;
    }
    input_taken |= is_input;
    int fd = is_input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    return reader_take(reader, fd);
}

/* Reads the next bytes of the file, unpacked. */
static int file_fill(struct reader *reader, const char **bytes, size_t *length)
{
    const int got = torn_next(&reader->torn, bytes, length);
    reader->cut = got <= 0 && reader->torn.cut;
    return got < 0 ? fail(reader, reader->torn.error) : got;
}

/* Whether the damage is only a tear: it is near the end of the file, and no packets follow. */
static bool packets_tear(struct reader *reader)
{
    const char *bytes;
    size_t length;
    int got = 1;
    while (pftrace_rest(reader->packets) <= TORN_BEHIND &&
           (got = file_fill(reader, &bytes, &length)) > 0)
        pftrace_feed(reader->packets, bytes, length);
    reader->over =
        !got && pftrace_rest(reader->packets) <= TORN_BEHIND && pftrace_tear(reader->packets);
    return reader->over;
}

/* Feeds more bytes. False: the file has ended, or `error` was set. A file that was cut is no error:
 * its first packets are a trace too. */
static bool packets_fill(struct reader *reader)
{
    const char *bytes;
    size_t length;
    if (pftrace_damaged(reader->packets) && packets_tear(reader))
        return pftrace_end(reader->packets), true;
    const uint64_t damaged = pftrace_damaged(reader->packets),
                   joined = pftrace_joined(reader->packets);
    if (damaged)
        snprintf(reader->error, sizeof reader->error,
            "damaged: no packet of Perfetto's format begins at byte %llu",
            (unsigned long long)damaged);
    else if (joined)
        snprintf(reader->error, sizeof reader->error,
            "another trace, or a part of one, begins at byte %llu; allowed is one in a file, and "
            "'custream merge' makes one of several",
            (unsigned long long)joined);
    if (damaged || joined) return reader->broken = true, false;
    if (reader->over) return false;
    const int got = file_fill(reader, &bytes, &length);
    if (got < 0 && !reader->cut) return reader->broken = true, false;
    reader->cut = false;
    reader->over = got <= 0;
    if (reader->over) pftrace_end(reader->packets);
    else pftrace_feed(reader->packets, bytes, length);
    return true;
}

enum pftrace_piece reader_piece(struct reader *reader, struct pftrace_found *found)
{
    enum pftrace_piece piece;
    while (!(piece = pftrace_next(reader->packets, found)) && packets_fill(reader)) continue;
    return piece;
}

bool reader_is_packets(struct reader *reader)
{
    const char *bytes = NULL;
    size_t length = 0;
    if (reader->looked) return reader->packets;
    reader->looked = true;
    const int got = file_fill(reader, &bytes, &length);
    if (got > 0 && pftrace_is(bytes, length)) {
        reader->packets = pftrace_new(!reader->in_ns);
        pftrace_feed(reader->packets, bytes, length);
    } else {
        reader->pending = true;
        reader->first = got;
        reader->chunk = bytes;
        reader->length = length;
    }
    return reader->packets;
}

int reader_bytes(struct reader *reader, const char **at, size_t *length)
{
    if (!reader->pending) return file_fill(reader, at, length);
    reader->pending = false;
    *at = reader->chunk;
    *length = reader->length;
    return reader->first;
}

uint64_t reader_offset(const struct reader *reader)
{
    return reader->torn.in_from + reader->torn.in_at;
}

void reader_close(struct reader *reader)
{
    torn_close(&reader->torn);
    pftrace_free(reader->packets);
}
