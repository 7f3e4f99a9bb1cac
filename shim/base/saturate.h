/* Arithmetic on numbers that come from a program or a policy: what does not fit becomes the nearest that does. */
#ifndef CS_BASE_SATURATE_H
#define CS_BASE_SATURATE_H

#include <limits.h>

static inline int cs_sum(int a, int b)
{
    int sum;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return a < 0 ? INT_MIN : INT_MAX;
}

static inline int cs_clamp(int value, int least, int most) { return value < least ? least : value > most ? most : value; }

#endif
