/*
 * With CUSTREAM_FAKE_ERRNO each call of the simulated driver leaves a number in errno, whatever it answers. So a program can tell which call of the driver
 * was the last one whose errno it sees. A call and its _ptds or _ptsz sibling leave the same number.
 */
#ifndef FAKECUDA_LEFT_H
#define FAKECUDA_LEFT_H

#include <string.h>

static inline int fake_left_in_errno(const char *symbol) {
    const char *sibling = strstr(symbol, "_pt");
    unsigned number = 0;

    for (const char *p = symbol; *p && p != sibling; p++) number = number * 31 + (unsigned char)*p;
    return 1000 + (int)(number % 100000000);
}

#endif
