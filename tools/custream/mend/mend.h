/* Finishes the trace of a process that has ended. */
#ifndef CS_MEND_H
#define CS_MEND_H

#include "tools/custream/command.h"

#include <sys/types.h>

#include "shim/base/rings.h"
#include "tools/custream/trace/value.h"

struct cJSON;

/* --- rings.c: what the process recorded and did not write into its trace --- */

/* The file of rings of a dead process (shim/base/rings.h). */
struct rings {
    int fd;
    char path[CS_RINGS_PATH]; /* "": the rings are a memfd, which has no path */
    struct cs_rings head;     /* head.unkept: how many threads have no ring in the file */
    struct record_texts {     /* of[number]: a text; NULL: not there */
        char *bytes;
        const char **of;
    } texts;
    /* buffer: events that were not written; packed: these events, compressed to a gzip member. */
    char *buffer, *packed;
    size_t used;             /* bytes of the buffer */
    off_t end;               /* where the trace's events end */
    uint64_t rows, left_out; /* rows: records of which mend_make() made rows; left_out: records of
                                which no row could be made */
};
struct rings_why {
    char text[256]; /* "": the trace has no rings, or has all that they have */
    bool gone;      /* the file that the trace's head names is gone */
};
/* Opens a trace's rings: in `memfd`, or if that is -1 in the file that the trace's head names.
 * NULL: `why` says why. */
struct rings *rings_open(int trace, int memfd, struct rings_why *why);
void rings_close(struct rings *rings);
void rings_remove(struct rings *rings); /* removes the file of the rings */

/* Whether the rings have something that the trace does not have. */
bool rings_add(const struct rings *rings);

/* --- mend.c: a whole end for a torn trace --- */

/* The file stays byte for byte up to its last whole event. Rows from the rings follow, and a
 * trailer with the totals of all rows, which the code of `custream check` counts. */
enum mend_end {
    MEND_WHOLE,   /* the trace is whole: nothing is to be done */
    MEND_TORN,    /* mend_write() or mend_in_place() makes the trace whole */
    MEND_USELESS, /* `why` says why nothing can be done */
};
/* Facts about the process; NULL: not known. */
struct mend_known {
    const char *by;             /* what ended the process, such as "SIGKILL" */
    const struct cJSON *before; /* the trailer of the part before this one */
    const struct cJSON *last;   /* the trailer that the file had */
};
struct mended {
    /* events: how many the mended file has; cut_bytes: text behind the last whole event. */
    uint64_t events, cut_bytes;
    struct cJSON *trailer;
    bool packets; /* the file is in Perfetto's own format */
    char why[512];
    /* Internal: */
    struct rings *rings;
    off_t stands;     /* how many bytes of the file stay */
    struct rope rows; /* rows to add, each with its NUL */
    struct rope tail; /* the bytes that follow; not used for packets */
};
/* Reads the trace `fd` and makes its end. mend_write() or mend_in_place() puts it into a file. */
enum mend_end mend_make(
    struct mended *mended, int fd, struct rings *rings, const struct mend_known *known);
void mended_free(struct mended *mended);

/* Replaces the file `to` by the mended file, in one step. If `mended` is NULL, replaces it by a
 * copy of `fd`. False: the complaint was printed. */
bool mend_write(const char *command, const char *to, int fd, const struct mended *mended);

/* Writes the tail into the open file itself, so no room for a second file is needed. False: writing
 * failed; if there was no room for the whole tail, the file is as before. */
bool mend_in_place(int fd, const struct mended *mended);

/* --- finish.c: the end of a file whose process has ended --- */

struct file_id {
    unsigned long long device, inode;
};
/* Returns the trailer of the file at `path`, which has to be the file `id` or the part that follows
 * it; NULL: the file is another one, is gone, or has no trailer. `rings`: the memfd of the rings,
 * or -1.
 *
 * `by`: what ended the process. With `by`, the trailer gets it and a torn file gets an end. Without
 * `by` the file is not changed. */
struct cJSON *finish_file(const char *path, struct file_id id, const char *by, int rings);

/* Whether the path leads to the file `id`. */
bool finish_is_there(const char *path, struct file_id id);

/* Returns the trailer of an open file; NULL: it has none. */
struct cJSON *finish_trailer(int fd);

/* Returns the trailer of the part before the trace at `path`; NULL: no such part is beside the
 * trace. */
struct cJSON *finish_part_before(const char *path, int fd);

#endif
