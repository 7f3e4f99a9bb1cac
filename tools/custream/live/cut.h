/* A span of time out of the files of processes that write on: for record -o and dump. */
#ifndef CS_LIVE_CUT_H
#define CS_LIVE_CUT_H

#include "tools/custream/command.h"

#include <sys/types.h>

#include "tools/custream/live/peer.h"

/* Of one process. */
struct extract {
    int pid;
    const char *trace;             /* as the process knows it */
    struct file_at file;           /* and which one that was */
    unsigned long long base;       /* its baseTimeNanoseconds; 0: not known */
    unsigned long long events_end; /* so many of its bytes never change; 0: none is sure */
    unsigned parts;                /* how many it keeps; 0: it has one file */
    int64_t from, until;           /* of the wall clock, in ns */
    int kept;                      /* extract_keep()'s, for a file that is another one by then */
    bool complete, apart; /* once it was taken: it has its end; where its parts are is not known */
};

/* From then on, as the process says it is now. */
struct extract extract_of(const struct peer *peer, const struct about *about, int64_t from);

enum { TRACE_ROOM = 4200 };

/* The regular file that the process calls so, by its root or its descriptor, opened by O_PATH: what
 * is no trace is never touched. -1 with errno; ESTALE: something else is at that name. `path`:
 * where it is, or would be. */
int trace_find(int pid, const char *trace, const struct file_at *file, char path[TRACE_ROOM]);

/* Whether a file can be made there; false: the complaint was printed. Leaves nothing. */
bool cut_possible(const char *command, const char *to);
/* In ns of the wall clock; begin: of the first event that was there, in the time or before. */
struct cut_reach {
    int64_t begin, from, until;
    bool apart;     /* parts of some process were not found */
    size_t missing; /* processes whose file could not be read, which was said */
};

/* Whether an open file is the process's own, by its begin. False with errno. */
bool extract_is(int fd, const struct extract *extract);
/* A copy of an ended process's file as it is now: open, without a name, beside `to`; or -1. */
int extract_keep(const struct extract *extract, const char *to);

/* All in one timeline, from the first `from` to the last `until`. False: that was said. */
bool cut_write(const char *command, const char *to, struct extract *extracts, size_t count,
    struct cut_reach *cut);
/* The whole file of a process that records no more: a copy. */
bool copy_write(const char *command, const char *to, struct extract *extract);

/* The newest file of a process and the parts that are there: open files, the newest first, the
 * caller's to free; how many, 0: the complaint was printed. With `most`, only the part before the
 * newest, and none if the newest is a plain file that is longer. extract_is() is to be asked after
 * reading. */
size_t newest_take(const char *command, struct extract *extract, off_t most, int **files);

#endif
