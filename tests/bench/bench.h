/* What the benchmarks share: a clock, medians, and lines of the form `name value unit`. Ratios come
 * from rounds interleaved in one process. */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

static inline void line(const char *name, double value, const char *unit)
{
    printf("%s %.*f %s\n", name, value >= 1000 ? 0 : value >= 100 ? 1 : 3, value, unit);
    fflush(stdout);
}

#endif
