/*
 * A whole end for a torn trace: what stands up to the last whole event stays byte for byte, and a tail takes the place of what is behind it. The trailer's totals are
 * what the rows add up to, by the code with which `custream check` proves them.
 */
#ifndef CS_RECOVER_MEND_H
#define CS_RECOVER_MEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cJSON;

enum mend_end {
    MEND_WHOLE,   /* nothing is to be done */
    MEND_TORN,    /* `tail` makes it whole */
    MEND_USELESS, /* `why` says why nothing can be done */
};

/* Where rows come from, in this order. The first is the torn file, which has no `rows` and is read from `fd`, with `more` in the place of its end; others add rows
 * behind its own. */
struct mend_to;
struct torn_more;
struct mend_source {
    int fd;
    const struct torn_more *more; /* NULL: nothing takes that place */
    void *of;
    void (*rows)(void *of, struct mend_to *to);
};

/* For a source. One row, without a comma: whether it keeps the rules; one that does not is left out. Of a lane: up to where slices stand on it, and whether it has a name;
 * the earliest time from `from` on at which a slice may begin that ends behind all of them. Nanoseconds. */
bool mend_put(struct mend_to *to, const char *row);
int64_t mend_lane_filled(struct mend_to *to, uint32_t pid, uint32_t tid, bool *named);
int64_t mend_lane_from(struct mend_to *to, uint32_t pid, uint32_t tid, int64_t from);

/* What is known of the process, each NULL where it is not: how it ended, the totals of the part before this one, and: */
struct mend_known {
    const char *by;
    const struct cJSON *before;
    const struct cJSON *last;  /* the trailer that the file had, where it could be read */
    const struct rings *rings; /* the second source, if it is this one: the trailer tells of it */
};

/* Who takes the bytes of a whole file. */
struct mend_put {
    void (*put)(void *of, const char *bytes, size_t n);
    void *of;
};

struct mended {
    uint64_t events, cut_bytes; /* in the file then; bytes of text that were behind the last whole one */
    off_t stands;               /* so many bytes of the file stay */
    char *tail;                 /* and these follow */
    size_t length;
    struct cJSON *trailer;
    bool packets; /* the file is in Perfetto's own format */
    char why[512];
};

/* `put`: NULL: the tail is made. Else a file in Perfetto's own format is put anew, all of it, and the tail is empty. */
enum mend_end mend_make(struct mended *mended, const struct mend_source *sources, size_t count, const struct mend_known *known, const struct mend_put *put);
void mended_free(struct mended *mended);

/* Puts a whole file in the place of `to`, which may be the trace itself: who reads that then has the old one, and nothing of the new. NULL: a copy. */
bool mend_write(const char *command, const char *to, int fd, const struct mended *mended);

/* Where there is no room for that: gives the file itself its tail. It is open for writing, and nobody else writes to it. False, with errno: it is as torn as before. */
bool mend_in_place(int fd, const struct mended *mended);

/* The header's base of times and number of the part. False: it has none. */
struct mend_head {
    char base[32];
    unsigned part; /* 0: it is no part */
};
bool mend_head(int fd, struct mend_head *head);

#endif
