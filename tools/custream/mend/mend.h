/*
 * What becomes of the trace of a process that is no more: for `custream recover`, for the watcher,
 * and for whoever takes a copy of it.
 */
#ifndef CS_MEND_H
#define CS_MEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/custream/trace/value.h"

struct cJSON;

/* --- rings.c: what the process recorded and its trace has not --- */

/* The file of rings of a dead process (shim/base/rings.h). */
struct rings;
struct rings_why {
    char text[256]; /* "": it has none, or all that they had is in the trace */
    bool gone;      /* no file of that name */
};
/* The rings of the trace which is open there. `memfd`: their file itself; -1: it is where the head
 * of the trace says. NULL: there is none, it is another trace's, its process lives, or it is
 * damaged; then `why` says so. */
struct rings *rings_open(int trace, int memfd, struct rings_why *why);
void rings_close(struct rings *rings);
void rings_remove(struct rings *rings); /* their file, which has served */

/* Whether there is something that the trace has not. */
bool rings_add(const struct rings *rings);
/* Records that became rows, and those that could not: after mend_make(). */
uint64_t rings_row_count(const struct rings *rings), rings_left_out(const struct rings *rings);
unsigned rings_threads_not_kept(const struct rings *rings);

/* --- mend.c: a whole end for a torn trace --- */

/* What stands up to the last whole event stays byte for byte. Then come rows of the rings, and a
 * trailer: its totals are what the rows add up to, by the code with which `custream check` proves
 * them. */
enum mend_end {
    MEND_WHOLE,   /* nothing is to be done */
    MEND_TORN,    /* mend_write() or mend_in_place() makes it whole */
    MEND_USELESS, /* `why` says why nothing can be done */
};
/* What is known of the process, each NULL where it is not. */
struct mend_known {
    const char *by;             /* how it ended */
    const struct cJSON *before; /* the trailer of the part before this one */
    const struct cJSON *last;   /* the trailer that the file had */
};
struct mended {
    uint64_t events,
        cut_bytes; /* in the file then; bytes of text that were behind the last whole event */
    struct cJSON *trailer;
    bool packets; /* the file is in Perfetto's own format */
    char why[512];
    /* Inside. */
    struct rings *rings;
    off_t stands;     /* so many bytes of the file stay */
    struct rope rows; /* texts of rows, each with its NUL */
    struct rope tail; /* follows; of packets: the text of the trailer */
};
enum mend_end mend_make(
    struct mended *mended, int fd, struct rings *rings, const struct mend_known *known);
void mended_free(struct mended *mended);

/* Puts a whole file in the place of `to`, which may be the trace itself: who reads that then has
 * the old one, and nothing of the new. `mended` NULL: a copy. False: the complaint was printed. */
bool mend_write(const char *command, const char *to, int fd, const struct mended *mended);

/* Where there is no room for that: gives the file itself its tail. It is open for writing, and
 * nobody else writes to it. False: it is as torn as before. */
bool mend_in_place(int fd, const struct mended *mended);

/* --- finish.c: the end of a file whose process is no more --- */

struct file_id {
    unsigned long long device, inode;
};
/* What the file's trailer says. `by`: if the trace is not complete that is written into it first,
 * and a file that is torn gets a whole end; NULL: it is left as it is. `rings`: its memfd of rings,
 * -1: it has none. NULL: the file is not there, is another one by now (the part that follows is
 * not), or has no trailer. */
struct cJSON *finish_file(const char *path, struct file_id id, const char *by, int rings);

/* Whether the path leads to that file. */
bool finish_is_there(const char *path, struct file_id id);

/* The trailer of a file that is open; NULL: it has none. */
struct cJSON *finish_trailer(int fd);

/* The trailer of the part before the trace at `path`, if that part stands beside it; NULL where it
 * does not. */
struct cJSON *finish_part_before(const char *path, int fd);

#endif
