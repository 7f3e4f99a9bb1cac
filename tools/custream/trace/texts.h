/* Texts by number: each different text is kept once. 0 is no text. */
#ifndef CS_REPORT_TEXTS_H
#define CS_REPORT_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tools/custream/trace/numbers.h"

typedef uint32_t text;

struct texts {
    char **blocks; /* texts, each behind its length; they never move */
    size_t block_count, block_capacity, block_left;
    char *block_next;
    const char **by_number;
    size_t count, capacity;
    struct numbers numbers; /* by the text's hash, or the next key that no other text has */
};

void texts_init(struct texts *texts);
void texts_free(struct texts *texts);
/* Returns the text's number. A new text gets a new number. */
text text_number(struct texts *texts, const char *at, size_t length);
text text_find(const struct texts *texts, const char *word); /* 0: the text is not kept */
/* Returns the text that has the number; "" for 0. */
static inline const char *text_of(const struct texts *texts, text number)
{
    return number < texts->count ? texts->by_number[number] : "";
}
/* Reads the length of a text that is kept, which stands before it. */
static inline uint32_t text_kept_length(const char *kept)
{
    uint32_t length;
    memcpy(&length, kept - sizeof length, sizeof length);
    return length;
}
static inline size_t text_length(const struct texts *texts, text number)
{
    return number && number < texts->count ? text_kept_length(texts->by_number[number]) : 0;
}
/* Like text_number(), but faster if `guess` is the number of the text. */
static inline text text_number_or(struct texts *texts, text guess, const char *at, size_t length)
{
    const char *kept = texts->by_number[guess];
    return guess && text_kept_length(kept) == length && !memcmp(kept, at, length)
               ? guess
               : text_number(texts, at, length);
}

/* Returns a number made of the first and the last four bytes. If there are up to eight bytes, all
 * are in the number. */
static inline uint64_t text_few(const char *at, size_t length)
{
    const unsigned char *byte = (const unsigned char *)at;
    uint32_t first, last;
    if (length < 4)
        return length ? (uint64_t)byte[0] << 16 | (uint64_t)byte[length / 2] << 8 | byte[length - 1]
                      : 0;
    memcpy(&first, at, 4);
    memcpy(&last, at + length - 4, 4);
    return (uint64_t)first << 32 | last;
}

#endif
