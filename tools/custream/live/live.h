/* Declarations that `custream ps`, `record`, `dump` and `hang` share. */
#ifndef CS_LIVE_H
#define CS_LIVE_H

#include "tools/custream/live/peer.h"
#include "tools/custream/mend/mend.h"

/* --- listener.c: processes that listen, with what they say of themselves. --- */

struct listener {
    struct peer peer; /* connected only while the process is asked */
    /* answers: the process took the last request and, if its answer was read, answered. If the
     * process was asked and `answers` is false, peer.error says why. */
    bool asked, answers;
    bool named; /* a complaint has named the process */
    struct about about;
    char command[96]; /* "python3.11 train.py": executable, first argument */
};

struct listeners {
    struct listener **each; /* in the order of their pids, if listeners_find() has found them */
    size_t count, capacity;
    size_t left_out; /* how many further listening processes could not be asked */
};

/* Finds and asks all processes that listen. Says how many could not be asked. */
void listeners_find(const char *command, struct listeners *listeners);
/* Sends a request at once to all processes, except those that were asked before and did not answer.
 * Each process has `patience_ms` to take the request and to answer. */
void listeners_ask(
    const char *command, struct listeners *listeners, const char *request, int patience_ms);
/* Leaves a process out, and prints why (peer.error), but only once for each process. */
void listener_leave(const char *command, struct listener *listener);
/* Has the processes flush their files, and asks them for `about`. A process that does not answer or
 * has no file is left out. A process whose calls hang answers too: its answering thread makes no
 * call of CUDA. `none` completes the complaint "process N has recorded nothing, so ...". */
void listeners_bring_up_to_date(const char *command, struct listeners *listeners, const char *none);
void listeners_free(struct listeners *listeners);

/* --- which processes are meant: -p PID, --all, --rank=N, --program=NAME --- */

enum { PIDS_MAX = 1024 };

struct choice {
    int pids[PIDS_MAX];
    size_t pid_count;
    bool all, yes;
    int rank; /* if has_rank */
    bool has_rank;
    const char *program;
    const char *to; /* -o; NULL: not given */
    int64_t time;   /* --duration or --last, in ns */
    bool json, whole;
};

/* Reads a command's options and calls `act` with the processes that are meant, none of them
 * connected. Returns what `act` returns. `more` ends the text "a process is named by -p PID". */
int choice_run(const char *command, struct choice *choice, const char *more, int argc, char **argv,
    int (*act)(const struct choice *, struct listeners *));

/* --- cut.c: cuts a span of time out of the traces of processes that go on writing: for record -o
 * and dump. --- */

/* The span that is cut out of the trace of one process. */
struct extract {
    int pid;
    const char *trace;             /* the trace's path, as the process names it */
    struct file_id file;           /* the device and inode of the trace */
    unsigned long long base;       /* the trace's baseTimeNanoseconds; 0: not known */
    unsigned long long events_end; /* how many first bytes never change; 0: not known */
    unsigned parts;                /* how many parts the process keeps; 0: the trace is one file */
    int64_t from, until;           /* the span, in ns of the wall clock */
    int kept; /* extract_keep()'s copy, for when the file cannot be read any more; 0 or -1: none */
    /* Set by the cut. complete: the trailer says that the trace is complete; apart: the folder of
     * the trace's parts was not found. */
    bool complete, apart;
};

/* Returns the span from `from` until now, of the trace that `about` names. */
struct extract extract_of(const struct peer *peer, const struct about *about, int64_t from);

enum { TRACE_ROOM = 4200 };

/* Finds the regular file that the process calls `trace`: below the process's root, at the same path
 * below this command's root, or among the process's descriptors. Returns an O_PATH descriptor, as
 * opening one has no effect, whatever the path leads to. Returns -1 with errno; ESTALE: `trace`
 * leads to another file.
 *
 * `path`: `trace` below the process's root, also if the file was found elsewhere. */
int trace_find(int pid, const char *trace, const struct file_id *file, char path[TRACE_ROOM]);

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
/* Returns an open copy of an ended process's file, without a name, on the file system of `to`; or
 * -1. */
int extract_keep(const struct extract *extract, const char *to);

/* Writes one timeline of all extracts, from their earliest `from` to their latest `until`. False: a
 * complaint was printed. */
bool cut_write(const char *command, const char *to, struct extract *extracts, size_t count,
    struct cut_reach *cut);
/* Writes the whole trace of a process that records no more. */
bool copy_write(const char *command, const char *to, struct extract *extract);

/* Opens the newest file of a process and the parts of its trace. Returns how many files; 0: the
 * complaint was printed. `files`: the newest first; the caller closes and frees them.
 *
 * With `most`, only the part that ended last is opened beside the newest file, and no part if the
 * newest file is plain JSON of more than `most` bytes.
 *
 * After reading, the caller asks extract_is(): the newest file may be another trace by then. */
size_t newest_take(const char *command, struct extract *extract, off_t most, int **files);

#endif
