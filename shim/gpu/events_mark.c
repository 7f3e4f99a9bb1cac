/*
 * Marks on the application's threads: see mark.h for the calls and events.h for the rules.
 */
#define _GNU_SOURCE
#include "shim/gpu/mark.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/base/keep.h"
#include "shim/base/memory.h"
#include "shim/calls/real.h"
#include "shim/gpu/events.h"

enum { STREAMS = 1 << 16, CALLS_MAX = 64 };

CS_READ_MOSTLY cs_u32 cs_gpu_sample = 1;
_Atomic bool cs_gpu_marking;
void (*cs_gpu_marks_change)(void);

void cs_gpu_mark(bool on)
{
    cs_store_rel(&cs_gpu_marking, on);
    if (cs_gpu_marks_change) cs_gpu_marks_change();
}

static _Atomic cs_u32 numbers = 1u << 31; /* apart from a profiler's, which count from 1, where one takes turns with us */
static struct cs_range *_Atomic done;          /* newest first */
CS_READ_MOSTLY static struct cs_range *_Atomic *open; /* by the stream's place in its pool; there before any range is */
static _Atomic cs_u32 open_count;
static _Atomic cs_u64 lost[CS_LOSSES];

bool cs_marks_begin(void)
{
    if (!open) open = cs_memory_map(STREAMS * sizeof *open, "GPU times by events");
    return open;
}

static const struct cs_mark none = {NULL, 0};

void cs_events_lost_add(enum cs_loss why, cs_u64 calls) { cs_add(&lost[why], calls); }
cs_u64 cs_events_lost_take(enum cs_loss why) { return atomic_exchange(&lost[why], 0); }

/* Whether the call returns only when its work is done. */
static bool call_waits(enum cs_call call)
{
    const enum cs_way way = cs_call_way(call);
    return cs_call_info[call].how & CS_HOW_BLOCKS && way >= CS_WAY_HtoD && way <= CS_WAY_AtoH; /* to or from the host */
}

/* --- where ranges go after a call --- */

static void finish(struct cs_range *range)
{
    struct cs_range *head = cs_load(&done);
    do range->next = head;
    while (!atomic_compare_exchange_weak_explicit(&done, &head, range, memory_order_release, memory_order_relaxed));
}

static struct cs_range *_Atomic *open_at(cs_ref stream) { return &open[cs_ref_index(stream) % STREAMS]; }

static struct cs_range *open_take(struct cs_range *_Atomic *at)
{
    struct cs_range *range = cs_load(at) ? atomic_exchange_explicit(at, NULL, memory_order_acquire) : NULL;
    if (range) atomic_fetch_sub(&open_count, 1);
    return range;
}

static void open_put(struct cs_range *range)
{
    struct cs_range *nobody = NULL;
    atomic_fetch_add(&open_count, 1);
    if (atomic_compare_exchange_strong_explicit(open_at(range->stream), &nobody, range, memory_order_release, memory_order_relaxed)) return;
    atomic_fetch_sub(&open_count, 1); /* another thread's call on the same stream came to its end first */
    finish(range);
}

void cs_marks_take_open(void)
{
    for (cs_u32 i = 0; i < STREAMS && atomic_load(&open_count); i++) {
        struct cs_range *range = open_take(&open[i]);
        if (range) finish(range);
    }
}

struct cs_range *cs_marks_take_done(void)
{
    struct cs_range *range = atomic_exchange_explicit(&done, NULL, memory_order_acquire), *list = NULL;
    while (range) {
        struct cs_range *next = range->next;
        range->next = list;
        list = range;
        range = next;
    }
    return list;
}

/* --- around a call --- */

static bool is_default(CUstream handle) { return (uintptr_t)handle <= (uintptr_t)CU_STREAM_PER_THREAD; }

/* What to hand to the driver's plain entry points. */
static CUstream plain(CUstream handle, bool per_thread) { return !handle && per_thread ? CU_STREAM_PER_THREAD : handle; }

static cs_u64 new_number(void)
{
    cs_u32 number;
    do number = cs_add(&numbers, 1) + 1;
    while (!number);
    return number;
}

static struct cs_range *range_for(const struct cs_stream *stream, cs_ref ref)
{
    struct cs_stock *stock = cs_stock_of(stream);
    struct cs_range *range = stock ? cs_range_take(stock) : NULL;
    if (range) range->stream = ref;
    else cs_events_lost_add(stock ? CS_LOSS_NO_EVENTS : CS_LOSS_NO_STOCK, 1);
    return range;
}

/* This call has been marked, or would have been. Where in the next N the thread marks one: the same each time that a program runs with the same threads. */
static void sampled(struct cs_thread *thread)
{
    if (!cs_gpu_samples()) return;
    cs_u32 mixed = (++thread->sample_turns ^ thread->index << 20) * 0x9e3779b1u;
    mixed = (mixed ^ mixed >> 15) * 0x85ebca77u;
    const cs_u32 before = thread->sample_place;
    thread->sample_place = (cs_u32)((cs_u64)(mixed ^ mixed >> 13) * cs_gpu_sample >> 32);
    thread->unmarked = (int)(cs_gpu_sample - 1 - before + thread->sample_place);
}

struct cs_mark cs_mark_before(struct cs_thread *thread, CUstream handle, bool per_thread)
{
    CS_KEEP_ERRNO;
    cs_ref ref = cs_stream_find(thread, handle, per_thread);
    if (!ref && is_default(handle)) ref = cs_stream_of(thread, handle, per_thread, false, 0);
    struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    if (!stream && cs_gpu_samples()) return none; /* the next call on it will do: without a begin it would last as long as all before it */
    if (!stream) return is_default(handle) ? none : (struct cs_mark){NULL, new_number()}; /* one that we have not met; the driver may know it */
    sampled(thread);
    if (cs_stream_is_capturing(handle, per_thread)) return none;
    CUstream at = plain(handle, per_thread);
    struct cs_range *range = open_take(open_at(ref));
    if (range && range->stream == ref && range->calls < CALLS_MAX && cs_ranges_are_few(range->stock))
        return (struct cs_mark){range, range->number | CS_MARK_JOINS};
    if (range) finish(range);
    range = range_for(stream, ref);
    if (!range) return none;
    if (cs_real.cuEventRecord(range->begin, at) != CUDA_SUCCESS) {
        cs_range_give(range);
        cs_events_lost_add(CS_LOSS_REFUSED, 1);
        return none;
    }
    range->number = (cs_u32)new_number();
    return (struct cs_mark){range, range->number};
}

/* The kernel copies the handle and says so where there is none: a bad pointer does no harm, and the driver answers the call. */
struct cs_mark cs_mark_before_at(struct cs_thread *thread, const CUstream *handle, bool per_thread)
{
    CS_KEEP_ERRNO;
    CUstream found;
    struct iovec to = {&found, sizeof found}, from = {(void *)(uintptr_t)handle, sizeof found};
    static _Atomic pid_t self;
    if (!cs_load(&self)) cs_store(&self, getpid()); /* marks end with a fork */
    if (process_vm_readv(cs_load(&self), &to, 1, &from, 1, 0) != sizeof found) return cs_gpu_samples() ? none : (struct cs_mark){NULL, new_number()};
    return cs_mark_before(thread, found, per_thread);
}

/* A call whose stream was not known before it. */
static struct cs_range *range_late(const struct cs_marked_call *call, cs_u64 number)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, call->stream);
    if (!stream || cs_stream_is_capturing(call->handle, call->per_thread)) return NULL;
    struct cs_range *range = range_for(stream, call->stream);
    if (!range) return NULL;
    range->begin_unseen = true;
    range->number = (cs_u32)number;
    return range;
}

/* The call did nothing, or what stands behind it can't be told. */
static void take_back(struct cs_range *range)
{
    if (range->calls) finish(range);
    else cs_range_give(range);
}

void cs_mark_after(struct cs_mark mark, const struct cs_marked_call *call)
{
    CS_KEEP_ERRNO;
    struct cs_range *range = mark.range;
    if (!range && call->done) range = range_late(call, mark.number);
    if (!range) return;
    if (!call->done || call->stream != range->stream) {
        take_back(range);
        return;
    }
    if (call_waits((enum cs_call)call->call)) {
        range->end_unseen = true;
    } else if (cs_real.cuEventRecord(range->end, plain(call->handle, call->per_thread)) != CUDA_SUCCESS) {
        cs_events_lost_add(CS_LOSS_REFUSED, 1);
        take_back(range);
        return;
    }
    if (!range->calls++) {
        range->first = call->begin;
        range->call = call->call;
        memcpy(range->value, call->value, sizeof range->value);
    }
    range->last = call->end;
    const bool stays = !cs_gpu_samples() && !range->end_unseen && range->calls < CALLS_MAX; /* between two samples there is work that is not marked */
    if (stays && cs_ranges_are_few(range->stock)) open_put(range);
    else finish(range);
}
