/* Between the files of mend/. */
#ifndef CS_MEND_INSIDE_H
#define CS_MEND_INSIDE_H

#include "tools/custream/mend/mend.h"
#include "tools/custream/trace/torn.h"

struct cs_record;
struct cs_rings_stream;

/* --- mend.c, for who adds rows --- */

struct mend_to;
/* One row. Whether it keeps the rules; one that does not is left out. */
bool mend_put(struct mend_to *to, const char *row);
/* Up to where slices stand on a lane, in nanoseconds, and whether it has a name. */
int64_t mend_lane_filled(struct mend_to *to, uint32_t pid, uint32_t tid, bool *named);
/* The earliest time from `from` on at which a slice may begin that ends behind all of them. */
int64_t mend_lane_from(struct mend_to *to, uint32_t pid, uint32_t tid, int64_t from);

/* --- rings.c --- */

/* Where the trace's events end, and those that were not written. Until rings_close(). */
struct torn_more rings_more(struct rings *rings, int trace);
/* A row for each record that is in none of the two. */
void rings_rows(struct rings *rings, struct mend_to *to);

/* --- record_row.c: a record as a row, as far as the record alone tells --- */

/* Texts by number; takes over `bytes`. */
void record_texts_read(struct record_texts *texts, char *bytes, size_t size);

/* A thread's rows: to whom they go, what their numbers mean, up to where the lane is filled. */
struct record_lane {
    struct mend_to *to;
    const struct record_texts *texts;
    const struct cs_rings_stream *streams;
    uint32_t pid, tid;
    char name[16];
    uint64_t ticks, ns; /* a point of the scale of times */
    double rate;
    int64_t filled;
    bool named;
};
/* False: it is no row, or none that can be told. */
bool record_row(struct record_lane *lane, const struct cs_record *record);
bool record_lost(struct record_lane *lane, uint64_t count, uint64_t begin, uint64_t end);

#endif
