/*
 * JITTER: delays before operations, so that a wait that is missing shows as a wrong result.
 *
 * Whether the n-th operation of a stream is delayed, and how long, follows from the seed, the stream's number and n alone: streams count in the order in which
 * the program creates them, and the default streams' operations count for each thread by itself, threads in the order in which they first use one. So threads
 * that overtake each other change nothing, and a run can be repeated. All kinds of operations count, whether they are chosen or not: with fewer kinds those that
 * remain are delayed as before.
 *
 * A delay of the stream is a host function of ours in front of the operation. All that it must know fits into its argument. Nothing is put into a stream while
 * anybody captures: it would be in the graph for good.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/calls/real.h"
#include "shim/policy/policies.h"

cs_delayed_fn *_Atomic cs_steer_delayed;

/* The kind's place in cs_jitter_kinds; -1: never delayed. */
static int kind_of(const struct cs_steered *how)
{
    if (how->kind == CS_KIND_GRAPH && !cs_call_enqueues((enum cs_call)how->call)) return -1;
    return cs_kind_info[how->kind].jitter;
}

/* --- the draw --- */

static cs_u64 mixed(cs_u64 x) /* the finish of splitmix64 */
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

cs_u32 cs_jitter_draw(const struct cs_jitter *jitter, cs_u32 who, cs_u32 n, bool on_stream)
{
    const cs_u64 drawn = mixed(mixed(jitter->seed) ^ mixed((cs_u64)who << 32 | n) ^ (on_stream ? 1 : 0));
    if (drawn % 100 >= jitter->percent) return 0;
    return 1 + (cs_u32)((drawn >> 32) % jitter->us);
}

/* --- whose operation it is, and which --- */

static _Atomic cs_u32 streams, threads, others;

void cs_jitter_created(struct cs_stream *stream) { cs_store(&stream->ordinal, cs_add(&streams, 1) + 1); }

/* Odd numbers are threads', even ones streams'; those of streams that we did not see created go by their first use. */
static cs_u32 who_is(struct cs_thread *thread, struct cs_stream *stream, cs_u32 *n)
{
    if (!stream) {
        if (!thread->ordinal) thread->ordinal = cs_add(&threads, 1) + 1;
        *n = thread->default_operations++;
        return thread->ordinal << 1 | 1;
    }
    cs_u32 ordinal = cs_load(&stream->ordinal);
    if (!ordinal) {
        const cs_u32 given = (cs_add(&others, 1) + 1) | 1u << 30;
        if (atomic_compare_exchange_strong(&stream->ordinal, &ordinal, given)) ordinal = given;
    }
    *n = cs_add(&stream->operations, 1);
    return ordinal << 1;
}

/* --- delays --- */

/* By the system call itself: the function is a point where a thread may be cancelled. Shorter than the system sleeps is spun. */
static void wait_us(cs_u32 us)
{
    enum { SPUN_US = 100 };
    struct cs_deadline deadline = cs_deadline_in((cs_u64)us * 1000, 0);
    const struct timespec time = {(time_t)(deadline.at / 1000000000), (long)(deadline.at % 1000000000)};
    if (us > SPUN_US)
        while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == -1 && errno == EINTR) {}
    while (!cs_deadline_is_over(&deadline)) {}
}

static void delay(struct cs_delayed *d)
{
    CS_KEEP_ERRNO;
    d->begin = cs_ticks();
    wait_us(d->us);
    d->end = cs_ticks();
    cs_delayed_fn *tell = cs_load_acq(&cs_steer_delayed);
    if (tell) tell(d);
}

enum { US_BITS = 20, CALL_BITS = 12 };
_Static_assert(CS_CALL_COUNT < 1 << CALL_BITS && 1000000 < 1 << US_BITS && US_BITS + CALL_BITS == 32, "a delay fits into a pointer");

static void CUDA_CB on_stream(void *packed)
{
    const cs_u64 word = (uintptr_t)packed;
    delay(&(struct cs_delayed){.us = word & ((1u << US_BITS) - 1), .call = word >> US_BITS & ((1u << CALL_BITS) - 1), .stream = (cs_ref)(word >> 32), .on_stream = true});
}

/* Where the driver refuses it the operation is simply not delayed: what is wrong with the stream it will say of the operation itself. */
static void delay_stream(const struct cs_steer *steer, cs_u16 call, cs_ref ref, cs_u32 us)
{
    CS_KEEP_ERRNO;
    const bool is_legacy = steer->stream == CU_STREAM_LEGACY || (!steer->stream && !steer->per_thread);
    if (cs_streams_capture() || (!is_legacy && cs_stream_is_capturing(steer->stream, true))) return;
    void *packed = (void *)(uintptr_t)((cs_u64)ref << 32 | (cs_u64)call << US_BITS | us);
    if (steer->per_thread) cs_real.cuLaunchHostFunc_ptsz(steer->stream, on_stream, packed);
    else cs_real.cuLaunchHostFunc(steer->stream, on_stream, packed);
}

void cs_jitter_before(const struct cs_steer *steer, struct cs_thread *thread, const struct cs_steered *how)
{
    const struct cs_jitter *jitter = &steer->policy->jitter;
    const int kind = kind_of(how);
    if (kind < 0) return;
    const bool named = steer->asked > CU_STREAM_PER_THREAD;
    struct cs_stream *asked = named ? cs_pool_get(&cs_streams, cs_stream_of(thread, steer->asked, false, false, 0)) : NULL;
    if (named && !asked) return; /* not met before: the driver may not know it either */
    cs_u32 n, who = who_is(thread, asked, &n);
    if (!(jitter->kinds & 1u << kind)) return;
    cs_u32 host = jitter->host ? cs_jitter_draw(jitter, who, n, false) : 0, stream = jitter->stream ? cs_jitter_draw(jitter, who, n, true) : 0;
    if (!host && !stream) return;
    cs_ref ref = cs_stream_of(thread, steer->stream, steer->per_thread, false, 0);
    if (host) delay(&(struct cs_delayed){.us = host, .call = how->call, .stream = ref});
    if (stream) delay_stream(steer, how->call, ref, stream);
}
