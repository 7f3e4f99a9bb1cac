/* Declarations that the files of mend/ share. */
#ifndef CS_MEND_INSIDE_H
#define CS_MEND_INSIDE_H

#include "tools/custream/mend/mend.h"
#include "tools/custream/trace/torn.h"

struct cs_record;
struct cs_rings_stream;

/* --- mend.c, for functions that add rows --- */

struct mend_to;
/* Adds a row if it keeps the rules of `custream check`. Returns whether it does. */
bool mend_put(struct mend_to *to, const char *row);
/* Returns the end of the lane's last slice, in ns. `named`: the lane needs no row with its name. */
int64_t mend_lane_filled(struct mend_to *to, uint32_t pid, uint32_t tid, bool *named);
/* Returns the earliest time, `from` or later, that lies inside no slice of the lane: a slice that
 * begins at that time cuts no other slice in two. */
int64_t mend_lane_from(struct mend_to *to, uint32_t pid, uint32_t tid, int64_t from);

/* --- rings.c --- */

/* Returns where the trace's events end, and unwritten events, which last until rings_close(). */
struct torn_more rings_more(struct rings *rings, int trace);
/* Adds a row for each record that is neither in the trace nor in the bytes of rings_more(). */
void rings_rows(struct rings *rings, struct mend_to *to);

/* --- record_row.c: makes a row from what a record holds --- */

/* Finds the texts in `bytes`, by their numbers. Takes over `bytes`. */
void record_texts_read(struct record_texts *texts, char *bytes, size_t size);

/* The lane of one thread, with all that is needed to make its rows from records. */
struct record_lane {
    struct mend_to *to;
    const struct record_texts *texts;
    const struct cs_rings_stream *streams;
    uint32_t pid, tid;
    char name[16];
    uint64_t ticks, ns; /* one moment on both clocks */
    double rate;        /* ns per tick */
    int64_t filled;     /* the end of the last slice */
    bool named;
};
/* Adds a row for a record. False: the record makes no row, or a row that breaks the rules. */
bool record_row(struct record_lane *lane, const struct cs_record *record);
/* Adds a row that says that `count` records are lost. */
bool record_lost(struct record_lane *lane, uint64_t count, uint64_t begin, uint64_t end);

#endif
