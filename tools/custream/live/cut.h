/* Cuts a span of time out of the traces of processes that go on writing: for record -o and dump. */
#ifndef CS_LIVE_CUT_H
#define CS_LIVE_CUT_H

#include "tools/custream/command.h"

#include <sys/types.h>

#include "tools/custream/live/peer.h"

/* The span that is cut out of the trace of one process. */
struct extract {
    int pid;
    const char *trace;             /* its path, as the process names it */
    struct file_at file;           /* the device and inode of that file */
    unsigned long long base;       /* the trace's baseTimeNanoseconds; 0: not known */
    unsigned long long events_end; /* how many bytes at its begin never change; 0: not known */
    unsigned parts;                /* how many parts the process keeps; 0: the trace is one file */
    int64_t from, until;           /* the span, in ns of the wall clock */
    int kept; /* extract_keep()'s copy, for when the file cannot be read any more; 0 or -1: none */
    /* After the cut. complete: the trace has its end; apart: its parts' folder was not found. */
    bool complete, apart;
};

/* The span from `from` until now, of the trace that the process tells of in `about`. */
struct extract extract_of(const struct peer *peer, const struct about *about, int64_t from);

enum { TRACE_ROOM = 4200 };

/* Opens the regular file that the process names `trace`, by the process's root or its descriptors.
 * O_PATH does not touch a file that is no trace. Returns -1 with errno; ESTALE: another file has
 * that name. `path`: where the file is, or would be. */
int trace_find(int pid, const char *trace, const struct file_at *file, char path[TRACE_ROOM]);

/* Whether a file can be made at `to`; false: the complaint was printed. Leaves no file. */
bool cut_possible(const char *command, const char *to);
/* The span of a cut, in ns of the wall clock. begin: the first event that the files have. */
struct cut_reach {
    int64_t begin, from, until;
    bool apart;     /* the folder of some process's parts was not found */
    size_t missing; /* how many processes' files could not be read; complaints name them */
};

/* Whether an open file is the trace of the process, by its base time. False with errno. */
bool extract_is(int fd, const struct extract *extract);
/* Copies the file of an ended process as it is now. Returns the open copy, without a name, on the
 * file system of `to`; or -1. */
int extract_keep(const struct extract *extract, const char *to);

/* Writes one timeline of all traces, from the first `from` to the last `until`. False: the
 * complaint was printed. */
bool cut_write(const char *command, const char *to, struct extract *extracts, size_t count,
    struct cut_reach *cut);
/* Writes the whole trace of a process that records no more. */
bool copy_write(const char *command, const char *to, struct extract *extract);

/* Opens the newest file of a process and the parts of its trace. Returns how many; 0: the complaint
 * was printed. `files`: the newest first, the caller's to close and free. With `most`, only one
 * part is opened, the one that ended last, and none if the newest is a plain file of more than
 * `most` bytes. The caller asks extract_is() after reading: the file may be another one by then. */
size_t newest_take(const char *command, struct extract *extract, off_t most, int **files);

#endif
