/*
 * Pools of ranges, one a context, and the GPU thread's way into contexts.
 */
#include <time.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/calls/real.h"
#include "shim/gpu/backend.h"
#include "shim/gpu/events.h"

enum { CONTEXTS = 1 << 12, WAIT_MS = 1000, HOLD_WAIT_NS = 2000000000 };

/* By the context's place in its own pool. */
static struct place {
    struct cs_event_pool *_Atomic pool;
    _Atomic cs_ref wanted;  /* the context that somebody wants a pool for */
    _Atomic cs_ref refused; /* the context that nobody waits for any more: it has its pool, or will hardly get one */
} places[CONTEXTS];
static struct cs_event_pool *pools; /* all; the GPU thread's */
static _Atomic bool any_wanted, ever_wanted;

static struct place *place_of(cs_ref context) { return &places[(context & ((1u << CS_REF_INDEX_BITS) - 1)) % CONTEXTS]; }

/* --- the list of free ranges --- */

static cs_u32 few(const struct cs_event_pool *pool) { return cs_load(&pool->made) / 4 * 3; }

struct cs_range *cs_range_take(struct cs_event_pool *pool)
{
    cs_u64 head = cs_load_acq(&pool->free), next;
    struct cs_range *range;
    do {
        if (!(cs_u32)head) return NULL;
        range = &pool->ranges[(cs_u32)head - 1];
        next = ((head >> 32) + 1) << 32 | cs_load(&range->next_free);
    } while (!atomic_compare_exchange_weak_explicit(&pool->free, &head, next, memory_order_acquire, memory_order_acquire));
    range->calls = 0;
    range->begin_unseen = range->end_unseen = false;
    /* The one that finds a quarter of them gone has more made, or those that have ended brought back. */
    if (atomic_fetch_sub_explicit(&pool->free_count, 1, memory_order_relaxed) == few(pool)) cs_gpu_wake();
    return range;
}

void cs_range_give(struct cs_range *range)
{
    struct cs_event_pool *pool = range->pool;
    cs_u64 head = cs_load(&pool->free), next;
    do {
        cs_store(&range->next_free, (cs_u32)head);
        next = ((head >> 32) + 1) << 32 | (cs_u32)(range - pool->ranges + 1);
    } while (!atomic_compare_exchange_weak_explicit(&pool->free, &head, next, memory_order_release, memory_order_relaxed));
    cs_add(&pool->free_count, 1);
}

/* --- finding a pool --- */

static struct cs_event_pool *pool_at(const struct place *place, cs_ref context)
{
    struct cs_event_pool *pool = cs_load_acq(&place->pool);
    return pool && cs_load(&pool->context) == context ? pool : NULL;
}

struct cs_event_pool *cs_event_pool_of(const struct cs_stream *stream)
{
    cs_ref context = cs_load_acq(&stream->context);
    struct place *place = place_of(context);
    struct cs_event_pool *pool = pool_at(place, context);
    if (pool || !context || cs_load(&place->refused) == context) return pool;
    cs_store(&ever_wanted, true);
    cs_store_rel(&place->wanted, context);
    cs_store_rel(&any_wanted, true);
    cs_gpu_flush(WAIT_MS);
    cs_store(&place->refused, context);
    return pool_at(place, context);
}

/* --- the GPU thread and those who hold it off --- */

static _Atomic cs_u32 holders;
static _Atomic bool inside; /* the GPU thread is in CUDA, or may be */

/* Sequentially consistent, on both sides: of the two that write their word and then read the other's, one sees the other. */
bool cs_events_enter(void)
{
    atomic_store(&inside, true);
    if (!atomic_load(&holders)) return true;
    atomic_store(&inside, false);
    return false;
}

void cs_events_leave(void) { atomic_store(&inside, false); }
bool cs_events_held_off(void) { return cs_load(&holders); }

bool cs_gpu_hold(void)
{
    if (!cs_load(&ever_wanted)) return false; /* marking or not: what was marked before may be under way */
    CS_KEEP_UNCANCELLED;
    cs_gpu_flush(WAIT_MS); /* what has ended is brought in while its events live */
    atomic_fetch_add(&holders, 1);
    cs_u64 until = cs_monotonic_ns() + HOLD_WAIT_NS;
    while (atomic_load(&inside) && cs_monotonic_ns() < until) nanosleep(&(struct timespec){0, 20000}, NULL);
    return true;
}

void cs_gpu_release(bool held)
{
    if (held) atomic_fetch_sub(&holders, 1);
}

bool cs_event_pool_is_alive(const struct cs_event_pool *pool)
{
    struct cs_context *context = cs_pool_get(&cs_contexts, cs_load(&pool->context));
    return context && !cs_load_acq(&context->object.ended) && cs_load(&context->made);
}

/* --- contexts: current on the GPU thread for as long as it takes --- */

static void relax(void)
{
    static bool relaxed;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* what we ask must not break a capture of the program's */
    if (!relaxed) relaxed = cs_real.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
}

bool cs_event_pool_push(const struct cs_event_pool *pool)
{
    if (cs_real.cuCtxPushCurrent_v2(pool->handle) != CUDA_SUCCESS) return false;
    relax();
    return true;
}

void cs_event_pool_pop(void)
{
    CUcontext popped;
    cs_real.cuCtxPopCurrent_v2(&popped);
}

static void grow(struct cs_event_pool *pool, cs_u32 to)
{
    for (cs_u32 i = cs_load(&pool->made); i < to && i < CS_RANGES && !cs_events_held_off(); i++) {
        struct cs_range *range = &pool->ranges[i];
        range->pool = pool;
        if (cs_real.cuEventCreate(&range->begin, CU_EVENT_DEFAULT) != CUDA_SUCCESS || cs_real.cuEventCreate(&range->end, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
            pool->full = true;
            return;
        }
        cs_store(&pool->made, i + 1);
        cs_range_give(range);
    }
}

/* --- making and giving up --- */

static struct cs_event_pool *blank(void)
{
    for (struct cs_event_pool *p = pools; p; p = p->next)
        if (!cs_load(&p->context) && cs_load(&p->free_count) == cs_load(&p->made)) {
            cs_store(&p->free, cs_load(&p->free) >> 32 << 32);
            cs_store(&p->free_count, 0);
            cs_store(&p->made, 0);
            p->full = false;
            return p;
        }
    struct cs_event_pool *p = cs_memory_map(sizeof *p, "events; a context's work has no times");
    if (!p) return NULL;
    p->next = pools;
    return pools = p;
}

static void make(struct place *place, cs_ref ref)
{
    struct cs_context *context = cs_pool_get(&cs_contexts, ref);
    if (!context || cs_load_acq(&context->object.ended) || !cs_load(&context->made)) return; /* its end would not be seen */
    struct cs_event_pool *pool = blank();
    if (!pool) return;
    pool->handle = cs_load(&context->handle);
    pool->device = (cs_u32)cs_load(&context->device);
    if (!cs_event_pool_push(pool)) return;
    bool good = cs_event_clock_open(&pool->clock) && cs_event_clock_renew(&pool->clock);
    if (good) grow(pool, CS_RANGES_FIRST);
    cs_event_pool_pop();
    if (!good) cs_log(CS_LOG_INFO, "no events for a context of device %u", pool->device);
    if (!good) return;
    cs_store_rel(&pool->context, ref);
    cs_store_rel(&place->pool, pool);
}

void cs_event_pools_tend(void)
{
    for (struct cs_event_pool *p = pools; p; p = p->next) {
        if (!cs_load(&p->context)) continue;
        cs_u32 made = cs_load(&p->made);
        if (!cs_event_pool_is_alive(p)) cs_store(&p->context, 0);
        else if (!p->full && made < CS_RANGES && cs_load(&p->free_count) < few(p) && cs_event_pool_push(p)) grow(p, made * 2), cs_event_pool_pop();
    }
    if (!atomic_exchange(&any_wanted, false)) return;
    for (size_t i = 0; i < CONTEXTS; i++) {
        cs_ref wanted = atomic_exchange(&places[i].wanted, 0);
        if (wanted && !pool_at(&places[i], wanted)) make(&places[i], wanted);
    }
}

bool cs_event_pools_are_busy(void)
{
    for (struct cs_event_pool *p = pools; p; p = p->next)
        if (cs_load(&p->context) && cs_load(&p->free_count) != cs_load(&p->made)) return true;
    return false;
}
