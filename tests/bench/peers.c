/*
 * What other tracers take for a call of two events, its begin and its end: LTTng-UST, and uftrace
 * where this is compiled with -pg. See tests/bench/peers.sh.
 *
 *     peers NAME [CALLS]      prints "NAME_ns VALUE ns": the median of rounds, of a call with all
 * that stands around it
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tests/bench/peers_lttng.h"
#define BEGIN(stream) lttng_ust_tracepoint(peers, begin, stream)
#define END(result)   lttng_ust_tracepoint(peers, end, result)
#else
#define BEGIN(stream)
#define END(result)
#endif

enum { ROUNDS = 15 };

/* In place of a driver's call that does next to nothing. */
__attribute__((noinline)) static int call(void *stream)
{
    __asm__ volatile("" : : "r"(stream) : "memory");
    return 0;
}

__attribute__((no_instrument_function)) static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((no_instrument_function)) static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

__attribute__((no_instrument_function)) int main(int argc, char **argv)
{
    const long n = argc > 2 ? atol(argv[2]) : 50000;
    double took[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = now_ns();
        for (long i = 0; i < n; i++) {
            void *const stream = (void *)(i & 15);
            BEGIN(stream);
            const int result = call(stream);
            END(result);
            (void)result;
        }
        took[round] = (now_ns() - begin) / (double)n;
        nanosleep(
            &(struct timespec){.tv_nsec = 50000000}, NULL); /* its reader empties the buffers */
    }
    qsort(took, ROUNDS, sizeof *took, by_size);
    printf("%s_ns %.3f ns\n", argc > 1 ? argv[1] : "peers", took[ROUNDS / 2]);
    return 0;
}
