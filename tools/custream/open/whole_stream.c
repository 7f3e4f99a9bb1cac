#define _GNU_SOURCE /* pipe2 */
#include "tools/custream/open/whole_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "shim/base/options.h"
#include "tools/custream/convert/rows.h"

struct whole_stream {
    int pipe;
    pid_t maker; /* 0: it has ended */
};

/* --- in the process that makes them --- */

enum { MAKER_FILE, MAKER_PIPE, MAKER_OTHERS };

static void put(void *of, const char *text, size_t length)
{
    if (length && gzwrite(of, text, (unsigned)length) != (int)length) _exit(1);
}

/* Connections of the server stay open for who is at their other end as long as anybody holds them. */
static void descriptors_leave(int file, int pipe)
{
    const int kept[] = {fcntl(file, F_DUPFD, MAKER_OTHERS), fcntl(pipe, F_DUPFD, MAKER_OTHERS)};
    dup2(kept[0], MAKER_FILE);
    dup2(kept[1], MAKER_PIPE);
#ifdef SYS_close_range
    syscall(SYS_close_range, MAKER_OTHERS, ~0U, 0);
#endif
}

static void make(int file, int pipe, const char *name)
{
    const char *extension = cs_trace_extension(name);
    char error[256], path[] = "/proc/self/fd/0"; /* opens it anew: where others of us have read to does not matter */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    descriptors_leave(file, pipe);
    gzFile out = gzdopen(MAKER_PIPE, extension && strstr(extension, ".gz") ? "wb1" : "wbT");
    if (!out) _exit(1);
    gzbuffer(out, 128 * 1024);
    const bool packets = extension && cs_trace_extension_is_packets(extension);
    const enum json_step end = rows_convert(path, (packets ? ROWS_PACKETS : 0) | ROWS_WHOLE, put, out, error);
    _exit(end == JSON_BROKEN || gzclose(out) != Z_OK);
}

/* --- in the one that reads --- */

struct whole_stream *whole_stream_open(int file, const char *name)
{
    int ends[2];
    struct whole_stream *stream = malloc(sizeof *stream);
    if (!stream || pipe2(ends, O_CLOEXEC)) return free(stream), NULL;
    fflush(NULL);
    const pid_t maker = fork();
    if (!maker) make(file, ends[1], name);
    close(ends[1]);
    *stream = (struct whole_stream){ends[0], maker > 0 ? maker : 0};
    if (maker > 0) return stream;
    whole_stream_close(stream);
    return NULL;
}

static bool maker_succeeded(struct whole_stream *stream)
{
    int status = -1;
    while (waitpid(stream->maker, &status, 0) < 0 && errno == EINTR) {}
    stream->maker = 0;
    return !status;
}

ssize_t whole_stream_read(struct whole_stream *stream, char *to, size_t most)
{
    ssize_t got;
    while ((got = read(stream->pipe, to, most)) < 0 && errno == EINTR) {}
    if (got || !stream->maker) return got;
    return maker_succeeded(stream) ? 0 : -1;
}

void whole_stream_close(struct whole_stream *stream)
{
    close(stream->pipe);
    if (stream->maker) {
        kill(stream->maker, SIGKILL); /* a child that nobody has waited for: the number is still its own */
        maker_succeeded(stream);
    }
    free(stream);
}
