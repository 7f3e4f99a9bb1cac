/* Assertions of the simulated GPU's own tests: each failure prints where it is, and the program's
 * status tells. */
#ifndef FAKECUDA_CHECK_H
#define FAKECUDA_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/patience.h"

static int failures;

#define CHECK(condition) \
    do { \
        if (condition) break; \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        failures++; \
    } while (0)

/* CHECK_IS(call, expected): shows both numbers. */
#define CHECK_IS(actual, expected) \
    do { \
        long long a_ = (long long)(actual), e_ = (long long)(expected); \
        if (a_ == e_) break; \
        fprintf(stderr, "%s:%d: %s: %lld, not %lld\n", __FILE__, __LINE__, #actual, a_, e_); \
        failures++; \
    } while (0)
#define OK(call) CHECK_IS(call, 0)

static inline double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The last statement of main. A test that hangs is ended by its alarm. */
#define FINISH() return failures ? 1 : 0
static inline void begin(void) { alarm(patience(60)); }

#endif
