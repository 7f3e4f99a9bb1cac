/* Values in the text of a row, as they stand there. */
#ifndef CS_MERGE_PIECE_H
#define CS_MERGE_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value's text, quotes included; at: NULL: there is none. */
struct piece {
    const char *at;
    size_t length;
};

bool piece_is(struct piece piece, const char *text); /* a string, with that between its quotes */
bool piece_named(struct piece name, const char *text); /* the name of a member */
uint64_t piece_hash(uint64_t before, struct piece piece);
/* The longest time, in nanoseconds: 73 years, since some tools count from 1970. A number of JSON holds them to the nanosecond up to 104 days only (2^53), so times are read digit by digit. */
#define TIME_MAX INT64_C(2300000000000000000)
/* Nanoseconds, of microseconds; false: no number, or more than TIME_MAX. */
bool piece_ns(struct piece piece, int64_t *ns);
/* A natural number, below 2^53; as a string too, if it is one by its digits, with or without 0x. */
bool piece_natural(struct piece piece, uint64_t *number);

/* The next number of a list of such, which becomes what is behind it. False: there is no more, or something else stands there. */
bool piece_next(struct piece *list, uint64_t *number);

/* Members of an object of the same kind of text: calls `found` for each, its name without quotes. */
void members_each(const char *text, void (*found)(void *of, struct piece name, struct piece value), void *of);
/* The value at members[0], members[1]...; up to NULL. */
struct piece member_at(const char *text, const char *const *path);

#endif
