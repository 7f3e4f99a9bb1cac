/* What becomes of the trace of a process that is no more. */
#ifndef CS_MEND_H
#define CS_MEND_H

#include "tools/custream/command.h"

#include <sys/types.h>

#include "shim/base/rings.h"
#include "tools/custream/trace/value.h"

struct cJSON;

/* --- rings.c: what the process recorded and its trace has not --- */

/* The file of rings of a dead process (shim/base/rings.h). */
struct rings {
    int fd;
    char path[CS_RINGS_PATH]; /* "": it has none */
    struct cs_rings head;     /* head.unkept: threads that are not in it */
    struct record_texts {     /* texts by number; NULL: not there */
        char *bytes;
        const char **of;
    } texts;
    char *buffer, *packed; /* packed: as it stands in a .gz: a member */
    size_t used;
    off_t end; /* of the trace's events */
    uint64_t rows,
        left_out; /* records that became rows, and those that could not: by mend_make() */
};
struct rings_why {
    char text[256]; /* "": it has none, or all that they had is in the trace */
    bool gone;      /* no file of that name */
};
/* The rings of an open trace, in `memfd`, or -1: where its head says. NULL: `why` says why. */
struct rings *rings_open(int trace, int memfd, struct rings_why *why);
void rings_close(struct rings *rings);
void rings_remove(struct rings *rings); /* their file, which has served */

/* Whether there is something that the trace has not. */
bool rings_add(const struct rings *rings);

/* --- mend.c: a whole end for a torn trace --- */

/* What stands up to the last whole event stays byte for byte. Then come rows of the rings, and a
 * trailer with totals of the rows, by the code of `custream check`. */
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

/* Puts a whole file in the place of `to`, at once; `mended` NULL: a copy. False: that was said. */
bool mend_write(const char *command, const char *to, int fd, const struct mended *mended);

/* Gives the open file itself its tail, with no room for another. False: it is as before. */
bool mend_in_place(int fd, const struct mended *mended);

/* --- finish.c: the end of a file whose process is no more --- */

struct file_id {
    unsigned long long device, inode;
};
/* What the file's trailer says. `by`: how it ended, which is written into it, and a torn file gets
 * an end; NULL: it is left alone. `rings`: their memfd, or -1. NULL: the file is gone, another one
 * but the part that follows, or has no trailer. */
struct cJSON *finish_file(const char *path, struct file_id id, const char *by, int rings);

/* Whether the path leads to that file. */
bool finish_is_there(const char *path, struct file_id id);

/* The trailer of a file that is open; NULL: it has none. */
struct cJSON *finish_trailer(int fd);

/* The trailer of the part before the trace at `path`; NULL: it is not beside it. */
struct cJSON *finish_part_before(const char *path, int fd);

#endif
