/* Cuts a span of time out of the traces of processes that go on writing: for record -o and dump. */
#ifndef CS_LIVE_CUT_H
#define CS_LIVE_CUT_H

#include "tools/custream/command.h"

#include <sys/types.h>

#include "tools/custream/live/peer.h"

/* The span that is cut out of the trace of one process. */
struct extract {
    int pid;
    const char *trace;       /* the trace's path, as the process names it */
    struct file_at file;     /* the device and inode of the trace */
    unsigned long long base; /* the trace's baseTimeNanoseconds; 0: not known */
    unsigned long long
        events_end;      /* how many bytes at the trace's begin never change; 0: not known */
    unsigned parts;      /* how many parts the process keeps; 0: the trace is one file */
    int64_t from, until; /* the span, in ns of the wall clock */
    int kept; /* extract_keep()'s copy, for when the file cannot be read any more; 0 or -1: none */
    /* Set by the cut. complete: the trace has its end; apart: the folder of its parts was not
     * found. */
    bool complete, apart;
};

/* Returns the span from `from` until now, of the trace that `about` names. */
struct extract extract_of(const struct peer *peer, const struct about *about, int64_t from);

enum { TRACE_ROOM = 4200 };

/* Finds the regular file that the process calls by the path in `trace`: below the process's root,
 * or among its descriptors. Returns an O_PATH descriptor: whatever has that path, opening it has no
 * effect. Returns -1 with errno; ESTALE: that path leads to another file.
 *
 * `path`: `trace` below the process's root, also if the file was found elsewhere. */
int trace_find(int pid, const char *trace, const struct file_at *file, char path[TRACE_ROOM]);

/* Whether a file can be made at `to`; false: the complaint was printed. Leaves no file. */
bool cut_possible(const char *command, const char *to);
/* The span of a cut, in ns of the wall clock. begin: when the first event of the files begins. */
struct cut_reach {
    int64_t begin, from, until;
    bool apart;     /* the folder of some process's parts was not found */
    size_t missing; /* how many processes' files could not be read; complaints name them */
};

/* Whether an open file is the trace of the process, by its base time. False with errno. */
bool extract_is(int fd, const struct extract *extract);
/* An open copy, without a name, of an ended process's file, on the file system of `to`; or -1. */
int extract_keep(const struct extract *extract, const char *to);

/* Writes one timeline, from the first `from` to the last `until`. False: it has complained. */
bool cut_write(const char *command, const char *to, struct extract *extracts, size_t count,
    struct cut_reach *cut);
/* Writes the whole trace of a process that records no more. */
bool copy_write(const char *command, const char *to, struct extract *extract);

/* Opens the newest file of a process and the parts of its trace. Returns how many; 0: the complaint
 * was printed. `files`: the newest first; the caller closes and frees them.
 *
 * With `most`, only the part that ended last is opened, and no part if the newest file is a plain
 * file of more than `most` bytes.
 *
 * After reading, the caller asks extract_is(): the newest file may be another trace by then. */
size_t newest_take(const char *command, struct extract *extract, off_t most, int **files);

#endif
