/*
 * How long what may hang is waited for, in the tests' programs: patience(seconds), as in
 * tests/patience.py.
 *
 * Nobody tells a program that it is slow by itself, such as under a sanitizer: so each has three
 * times as long.
 */
#ifndef CS_TESTS_PATIENCE_H
#define CS_TESTS_PATIENCE_H

#include <stdlib.h>
#include <unistd.h>

static inline unsigned patience(unsigned seconds)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    double waiting;
    if (processors < 1 || getloadavg(&waiting, 1) != 1 || waiting < (double)processors)
        return 3 * seconds;
    return (unsigned)(3 * seconds * waiting / (double)processors);
}

#endif
