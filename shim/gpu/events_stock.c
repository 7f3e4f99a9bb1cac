/*
 * Stocks of ranges, one a context, and the GPU thread's way into contexts.
 */
#include <time.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/calls/real.h"
#include "shim/gpu/backend.h"
#include "shim/gpu/events.h"

enum { CONTEXTS = 1 << 12, WAIT_MS = 1000, HOLD_WAIT_NS = 2000000000, INSIDE_PAUSE_NS = 20000, HELD_PAUSE_NS = 200000 };

/* By the context's place in its pool. */
static struct place {
    struct cs_stock *_Atomic stock;
    _Atomic cs_ref wanted;  /* the context that somebody wants a stock for */
    _Atomic cs_ref refused; /* the context that nobody waits for any more: it has its stock, or will hardly get one */
} places[CONTEXTS];
static struct cs_stock *stocks; /* all; the GPU thread's */
static _Atomic bool any_wanted, ever_wanted;

static struct place *place_of(cs_ref context) { return &places[cs_ref_index(context) % CONTEXTS]; }

/* --- the list of free ranges --- */

static cs_u32 few(const struct cs_stock *stock) { return cs_load(&stock->made) / 4 * 3; }

struct cs_range *cs_range_take(struct cs_stock *stock)
{
    cs_u64 head = cs_load_acq(&stock->free), next;
    struct cs_range *range;
    do {
        if (!(cs_u32)head) return NULL;
        range = &stock->ranges[(cs_u32)head - 1];
        next = ((head >> 32) + 1) << 32 | cs_load(&range->next_free);
    } while (!atomic_compare_exchange_weak_explicit(&stock->free, &head, next, memory_order_acquire, memory_order_acquire));
    range->calls = 0;
    range->begin_unseen = range->end_unseen = false;
    /* The one that finds a quarter of them gone has more made, or those that have ended brought back. */
    if (atomic_fetch_sub_explicit(&stock->free_count, 1, memory_order_relaxed) == few(stock)) cs_gpu_wake();
    return range;
}

void cs_range_give(struct cs_range *range)
{
    struct cs_stock *stock = range->stock;
    cs_u64 head = cs_load(&stock->free), next;
    do {
        cs_store(&range->next_free, (cs_u32)head);
        next = ((head >> 32) + 1) << 32 | (cs_u32)(range - stock->ranges + 1);
    } while (!atomic_compare_exchange_weak_explicit(&stock->free, &head, next, memory_order_release, memory_order_relaxed));
    cs_add(&stock->free_count, 1);
}

/* --- finding a stock --- */

static struct cs_stock *stock_at(const struct place *place, cs_ref context)
{
    struct cs_stock *stock = cs_load_acq(&place->stock);
    return stock && cs_load(&stock->context) == context ? stock : NULL;
}

/* Or all that can be had. */
static bool has_events(const struct cs_stock *stock) { return cs_load_acq(&stock->made) >= CS_RANGES_FIRST || cs_load(&stock->full); }

/* Until the GPU thread has made it, or will not. Nobody asks one that is held off: it could only say that it has been asked. */
static void wait_for_stock(struct place *place, cs_ref context)
{
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    struct cs_deadline deadline = cs_deadline_in(WAIT_MS * 1000000ull, HELD_PAUSE_NS);
    while (!cs_deadline_is_over(&deadline) && cs_load_acq(&place->wanted) == context && cs_load(&cs_gpu_marking)) {
        const cs_u64 flushes = cs_gpu_flushes();
        const bool held = cs_events_held_off();
        if (held) nanosleep(&(struct timespec){0, HELD_PAUSE_NS}, NULL);
        else cs_gpu_flush((unsigned)((deadline.at - deadline.now) / 1000000) + 1);
        if (!held && cs_gpu_flushes() == flushes) return; /* there is no GPU thread any more */
    }
}

struct cs_stock *cs_stock_of(const struct cs_stream *stream)
{
    cs_ref context = cs_load_acq(&stream->context);
    if (!context) return NULL;
    struct place *place = place_of(context);
    struct cs_stock *stock = stock_at(place, context);
    if ((stock && has_events(stock)) || cs_load(&place->refused) == context) return stock;
    cs_store(&ever_wanted, true);
    cs_store_rel(&place->wanted, context);
    cs_store_rel(&any_wanted, true);
    wait_for_stock(place, context);
    cs_store(&place->refused, context);
    return stock_at(place, context);
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
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    cs_gpu_flush(WAIT_MS); /* what has ended is brought in while its events live */
    atomic_fetch_add(&holders, 1);
    struct cs_deadline deadline = cs_deadline_in(HOLD_WAIT_NS, INSIDE_PAUSE_NS);
    while (atomic_load(&inside) && !cs_deadline_is_over(&deadline)) nanosleep(&(struct timespec){0, INSIDE_PAUSE_NS}, NULL);
    return true;
}

void cs_gpu_hold_after_fork_in_child(void)
{
    cs_store(&ever_wanted, false);
    cs_store(&inside, false);
    cs_store(&holders, 0);
}

void cs_gpu_release(bool held)
{
    if (held) atomic_fetch_sub(&holders, 1);
}

bool cs_stock_is_alive(const struct cs_stock *stock)
{
    struct cs_context *context = cs_pool_get(&cs_contexts, cs_load(&stock->context));
    return context && !cs_load_acq(&context->object.ended) && cs_load(&context->made);
}

/* --- contexts: current on the GPU thread for as long as it takes --- */

static void relax(void)
{
    static bool relaxed;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* what we ask must not break a capture of the program's */
    if (!relaxed) relaxed = cs_real.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
}

bool cs_stock_push(const struct cs_stock *stock)
{
    if (cs_real.cuCtxPushCurrent_v2(stock->handle) != CUDA_SUCCESS) return false;
    relax();
    return true;
}

void cs_stock_pop(void)
{
    CUcontext popped;
    cs_real.cuCtxPopCurrent_v2(&popped);
}

static void grow(struct cs_stock *stock, cs_u32 to)
{
    for (cs_u32 i = cs_load(&stock->made); i < to && i < CS_RANGES && !cs_events_held_off(); i++) {
        struct cs_range *range = &stock->ranges[i];
        range->stock = stock;
        if (cs_real.cuEventCreate(&range->begin, CU_EVENT_DEFAULT) != CUDA_SUCCESS || cs_real.cuEventCreate(&range->end, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
            cs_store(&stock->full, true);
            return;
        }
        cs_store(&stock->made, i + 1);
        cs_range_give(range);
    }
}

/* --- making and giving up --- */

static struct cs_stock *blank(void)
{
    for (struct cs_stock *p = stocks; p; p = p->next)
        if (!cs_load(&p->context) && cs_load(&p->free_count) == cs_load(&p->made)) {
            cs_store(&p->free, cs_load(&p->free) >> 32 << 32);
            cs_store(&p->free_count, 0);
            cs_store(&p->made, 0);
            cs_store(&p->full, false);
            return p;
        }
    struct cs_stock *p = cs_memory_map(sizeof *p, "events; a context's work has no times");
    if (!p) return NULL;
    p->next = stocks;
    return stocks = p;
}

/* False: not now, as somebody holds the GPU thread off. */
static bool make(struct place *place, cs_ref ref)
{
    struct cs_context *context = cs_pool_get(&cs_contexts, ref);
    if (!context || cs_load_acq(&context->object.ended) || !cs_load(&context->made)) return true; /* its end would not be seen */
    struct cs_stock *stock = blank();
    if (!stock) return true;
    stock->handle = cs_load(&context->handle);
    stock->device = (cs_u32)cs_load(&context->device);
    if (cs_events_held_off()) return false;
    if (!cs_stock_push(stock)) return true;
    const bool good = cs_event_clock_open(&stock->clock);
    if (good) {
        grow(stock, CS_RANGES_FIRST);
        cs_store_rel(&stock->context, ref);
        cs_store_rel(&place->stock, stock);
        cs_event_clock_renew(&stock->clock, 0); /* before there is work, if that is soon */
    }
    cs_stock_pop();
    if (!good) cs_log(CS_LOG_INFO, "no events for a context of device %u", stock->device);
    return !good || has_events(stock);
}

static bool serve(struct place *place, cs_ref context)
{
    const struct cs_stock *stock = stock_at(place, context);
    return stock ? has_events(stock) : make(place, context);
}

static bool wants_more(const struct cs_stock *stock)
{
    const cs_u32 made = cs_load(&stock->made);
    return !cs_load(&stock->full) && made < CS_RANGES && (!has_events(stock) || cs_load(&stock->free_count) < few(stock));
}

void cs_stocks_tend(void)
{
    for (struct cs_stock *p = stocks; p; p = p->next) {
        if (!cs_load(&p->context)) continue;
        cs_u32 made = cs_load(&p->made);
        if (!cs_stock_is_alive(p)) cs_store(&p->context, 0);
        else if (wants_more(p) && cs_stock_push(p)) grow(p, made < CS_RANGES_FIRST ? CS_RANGES_FIRST : made * 2), cs_stock_pop();
    }
    if (!atomic_exchange(&any_wanted, false)) return;
    for (size_t i = 0; i < CONTEXTS; i++) {
        cs_ref wanted = cs_load_acq(&places[i].wanted);
        if (!wanted) continue;
        if (!serve(&places[i], wanted)) cs_store(&any_wanted, true); /* and whoever waits sees that it is still to come */
        else atomic_compare_exchange_strong(&places[i].wanted, &wanted, 0);
    }
}

bool cs_stocks_are_busy(void)
{
    for (struct cs_stock *p = stocks; p; p = p->next)
        if (cs_load(&p->context) && cs_load(&p->free_count) != cs_load(&p->made)) return true;
    return false;
}
