/* A record of a ring as a row of the trace: what the library's timeline makes of it, as far as the record alone tells. */
#ifndef CS_RECOVER_RECORD_ROW_H
#define CS_RECOVER_RECORD_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cs_record;
struct cs_rings_stream;
struct mend_to;

/* Texts by number; takes over `bytes`. */
struct record_texts {
    char *bytes;
    const char **of; /* NULL: not there */
};
void record_texts_read(struct record_texts *texts, char *bytes, size_t size);
void record_texts_free(struct record_texts *texts);

/* A thread's rows: to whom they go, what tells what their numbers mean, and up to where the lane is filled. */
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
void record_lane_begins(struct record_lane *lane);

/* False: it is no row, or none that can be told. */
bool record_row(struct record_lane *lane, const struct cs_record *record);
bool record_lost(struct record_lane *lane, uint64_t count, uint64_t begin, uint64_t end);

#endif
