/*
 * A span of time out of the files of processes that go on: what custream record -o and dump write.
 * Files are taken as they are at one moment, while their processes write.
 */
#ifndef CS_LIVE_CUT_H
#define CS_LIVE_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/custream/live/find.h"

/* Of one process. */
struct extract {
    int pid;
    const char *trace;             /* as the process knows it */
    struct file_at file;           /* and which one that was */
    unsigned long long base;       /* its baseTimeNanoseconds; 0: not known */
    unsigned long long events_end; /* so many of its bytes never change; 0: none is sure */
    unsigned parts;                /* how many it keeps; 0: it has one file */
    int64_t from, until;           /* of the wall clock, in ns */
    int kept; /* what extract_keep() made: taken where the file is another one by then; 0: nothing
               */
    bool complete, apart; /* once it was taken: it has its end; where its parts are is not known */
};

/* Whether a file can be made there; false: the complaint was printed. Leaves nothing. */
bool cut_possible(const char *command, const char *to);
/* What came of it: ns of the wall clock; begin: of the first event that was there, in the time or
 * before it. */
struct cut_reach {
    int64_t begin, from, until;
    bool apart;     /* parts of some process were not found */
    size_t missing; /* processes whose file could not be read, which has been said; the others' are
                       there */
};

/* Whether an open file is the process's own, whatever its name: by what it begins with. False with
 * errno, also where it is no trace. */
bool extract_is(int fd, const struct extract *extract);
/* A copy as it is now, of a process that has ended: whoever is started under the same name takes
 * the file over. An open file without a name in the folder of `to`; -1: there is none. */
int extract_keep(const struct extract *extract, const char *to);

/* All of them in one timeline (docs/merge.md), from the first `from` to the last `until`. False:
 * the complaint was printed. */
bool cut_write(const char *command, const char *to, struct extract *extracts, size_t count,
    struct cut_reach *cut);
/* The whole file of a process that records no more: a copy. */
bool copy_write(const char *command, const char *to, struct extract *extract);

/* The newest file of a process, and of parts all that are there: open files, the newest first, in
 * memory that the caller frees; how many. 0: the complaint was printed. With `most`, of parts only
 * the one before the newest, and none if the newest is a plain file that is longer: who wants so
 * many bytes has them there. They are no copies: extract_is() is to be asked once more when they
 * were read. */
size_t newest_take(const char *command, struct extract *extract, off_t most, int **files);

#endif
