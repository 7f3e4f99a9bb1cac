/*
 * With CUSTREAM_FAKE_ERRNO each call of the simulated driver changes errno, whatever it answers:
 * what it leaves there follows from what it found, and from its name. So a program can tell that
 * its own call, and no other, has changed errno since. A call and its _ptds or _ptsz sibling leave
 * the same number.
 */
#ifndef FAKECUDA_LEFT_H
#define FAKECUDA_LEFT_H

#include <string.h>

static inline int fake_left_in_errno(int found, const char *symbol)
{
    const char *sibling = strstr(symbol, "_pt");
    unsigned number = (unsigned)found;

    for (const char *p = symbol; *p && p != sibling; p++) number = number * 31 + (unsigned char)*p;
    return 1000 + (int)(number % 100000000);
}

#endif
