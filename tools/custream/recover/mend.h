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

/* Where rows come from, in this order. The first is the torn file, which has no `rows` and is read from `fd`; others add rows behind its own. `put` takes one row,
 * without a comma, and says whether it keeps the rules; one that does not is left out. */
struct mend_source {
    int fd;
    void *of;
    void (*rows)(void *of, bool (*put)(void *to, const char *row), void *to);
};

/* What is known of the process, each NULL where it is not: how it ended, and the totals of the part before this one. */
struct mend_known {
    const char *by;
    const struct cJSON *before;
};

struct mended {
    uint64_t events, cut_bytes; /* in the file then; bytes of text that were behind the last whole one */
    off_t stands;               /* so many bytes of the file stay */
    char *tail;                 /* and these follow */
    size_t length;
    struct cJSON *trailer;
    char why[512];
};

enum mend_end mend_make(struct mended *mended, const struct mend_source *sources, size_t count, const struct mend_known *known);
void mended_free(struct mended *mended);

/* Gives the file itself its tail. It is open for writing, and nobody else writes to it. False, with errno: it is as torn as before. */
bool mend_in_place(int fd, const struct mended *mended);

/* The header's base of times and number of the part. False: it has none. */
struct mend_head {
    char base[32];
    unsigned part; /* 0: it is no part */
};
bool mend_head(int fd, struct mend_head *head);

#endif
