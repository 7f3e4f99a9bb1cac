/* Finds escapes \uXXXX in the text of a JSON string, or of a whole value. */
#ifndef CS_TRACE_ESCAPE_H
#define CS_TRACE_ESCAPE_H

#include <stdbool.h>

struct escape {
    const char *at, *end; /* the text behind the escape found last */
    unsigned unit;        /* that escape's UTF-16 unit; ESCAPE_PAIR: it is a pair of surrogates */
};
#define ESCAPE_PAIR 0x10000u

/* Finds the next escape. False: there is no more. */
bool escape_next(struct escape *escape);
static inline bool escape_is_half(const struct escape *escape)
{
    return escape->unit >= 0xd800 && escape->unit < 0xe000;
}

#endif
