/*
 * Time stamps for records, and what they mean.
 *
 * cs_ticks() is the processor's constant-rate counter (TSC; cntvct on aarch64), or CLOCK_MONOTONIC in nanoseconds where the TSC is not
 * invariant. The writer thread converts ticks to nanoseconds on a piecewise linear scale: at each of its rounds it reads both clocks and bends the
 * scale, so that it stays continuous and monotone and follows CLOCK_MONOTONIC, however long the process runs.
 */
#ifndef CS_BASE_CLOCK_H
#define CS_BASE_CLOCK_H

#include <time.h>

#include "shim/base/compiler.h"

CS_HIDDEN extern bool cs_clock_is_counter; /* constant after cs_clock_init */
CS_HIDDEN extern double cs_clock_first_rate; /* nanoseconds a tick to about 1 in 1,000; constant after cs_clock_init */

static inline cs_u64 cs_monotonic_ns(void)
{
    struct timespec now = {0, 0}; /* where a filter of system calls refuses it, the clock stands still */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (cs_u64)now.tv_sec * 1000000000u + (cs_u64)now.tv_nsec;
}

/*
 * The end of a loop that waits, by the clock. A clock that stands still ends it too, after as many rounds as the wait has: nobody promises that the clock moves.
 * So a loop is `while (!cs_deadline_is_over(&deadline)) ...`, and each round takes `round_ns`, unless it is cut short. 0: it spins.
 */
struct cs_deadline {
    cs_u64 at, now, rounds, still; /* now: the clock, when it was last asked. rounds: the most in which it stands still, and how many these are by now */
};

enum { CS_SPIN_ROUNDS = 1 << 18 }; /* more than a clock stands that moves in steps, 4 ms at most */

static inline struct cs_deadline cs_deadline_from(cs_u64 now, cs_u64 wait_ns, cs_u64 round_ns)
{
    return (struct cs_deadline){now + wait_ns, now, round_ns ? wait_ns / round_ns + 4 : CS_SPIN_ROUNDS, 0};
}

static inline struct cs_deadline cs_deadline_in(cs_u64 wait_ns, cs_u64 round_ns) { return cs_deadline_from(cs_monotonic_ns(), wait_ns, round_ns); }

static inline bool cs_deadline_is_over(struct cs_deadline *deadline)
{
    const cs_u64 now = cs_monotonic_ns();
    deadline->still = now == deadline->now ? deadline->still + 1 : 0;
    deadline->now = now;
    return now >= deadline->at || deadline->still > deadline->rounds;
}

/* Only where cs_clock_is_counter. */
static inline cs_u64 cs_ticks_of_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    cs_u64 ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return cs_monotonic_ns();
#endif
}

static inline cs_u64 cs_ticks(void) { return CS_LIKELY(cs_clock_is_counter) ? cs_ticks_of_counter() : cs_monotonic_ns(); }

/* A time before that of whatever the thread does next, so that a slice begins before those that it holds. Where the counter is slow, or seen in steps (10 ns in
 * some virtual machines), that takes a wait for its next one. */
static inline cs_u64 cs_ticks_before(void)
{
    const cs_u64 now = cs_ticks();
    for (int i = 0; cs_ticks() == now && i < CS_SPIN_ROUNDS; i++) {}
    return now;
}

/* Now: what is read behind it is not read before it. The processor may take the counter later than it stands in the program. */
static inline cs_u64 cs_ticks_now(void)
{
    const cs_u64 now = cs_ticks();
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
    return now;
}

/* Decides on the counter and takes the zero point of the scale. Once, before the first record. */
void cs_clock_init(void);

/* The parent's writer may have been in the middle of the scale: it begins anew from the zero point, where it always begins. */
void cs_clock_after_fork_in_child(void);

/* One thread at a time (the writer), from here on. */
void cs_clock_sync(void);                 /* reads both clocks and extends the scale to now */

/* The stretch of the scale that was used last: from there on so many ticks. What follows each other is nearly always on one. */
CS_HIDDEN extern struct cs_clock_stretch {
    cs_u64 from, ticks, ns; /* ticks: 0: none */
    double rate;            /* ns a tick */
} cs_clock_recent;
cs_u64 cs_clock_ns_slowly(cs_u64 ticks);

/* Nanoseconds since the zero point; 0 for anything before it. */
static inline cs_u64 cs_clock_ns(cs_u64 ticks)
{
    const cs_u64 since = ticks - cs_clock_recent.from;
    if (CS_UNLIKELY(since >= cs_clock_recent.ticks)) return cs_clock_ns_slowly(ticks);
    return cs_clock_recent.ns + (cs_u64)(cs_i64)((double)(cs_i64)since * cs_clock_recent.rate); /* signed: one instruction each */
}

void cs_clock_point(cs_u64 *ticks, cs_u64 *ns, double *rate); /* the last point of the scale, and nanoseconds a tick from there on */
cs_u64 cs_clock_wall_base_ns(void);       /* CLOCK_REALTIME at the zero point */
cs_u64 cs_clock_wall_now_ns(void);       /* now, as CLOCK_REALTIME would have it if nobody had set it since. Any thread */
cs_u64 cs_clock_error_ns(void);           /* half the widest window in which both clocks were read */

#endif
