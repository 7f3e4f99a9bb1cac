/*
 * The buffers that CUPTI fills: from a store of our own, which grows on demand to a limit and is never freed. CUPTI takes one for each thread that calls CUDA, and
 * each flush takes them back, full or not. So the first buffers are large, for a thread that launches fast; those after them are small, for a thousand threads.
 * Stacks without locks, since CUPTI asks and gives back on threads of the application: free large ones, free small ones, and the full ones that the writer
 * takes all at once.
 *
 * A buffer that nobody has had is taken by its number. Its slab is mapped by whoever needs it first: several may do so at once, one's is kept. So a thousand threads
 * that ask in the same moment get a buffer each, whatever the system takes for a mapping.
 */
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/gpu/share.h"

enum { SLAB = 2 << 20, SLABS = 128, LARGE = 64 /* slabs that are one buffer each */, PARTS = 64 /* buffers of each of the others */ };
enum { KEPT_NS = 1000000000 /* for so long the pages of a free one stay */ };
enum { SMALL = SLAB / PARTS, BUFFERS = LARGE + (SLABS - LARGE) * PARTS, PAGE = 4096 };
enum { AHEAD = 4 /* of the first that nobody has had, one is made ahead of time when no large one is free: a page of 2 MiB takes the system 0.2 ms */ };

static uint8_t *_Atomic slabs[SLABS];                      /* NULL until it is mapped, then constant */
static _Atomic cs_u32 fresh_large, fresh_small = LARGE; /* the first that nobody has had */

enum { TAKEN, FREE, CLEARED /* free, and the writer gives its pages back */ };

static struct buffer {
    size_t valid;
    _Atomic cs_u32 next;  /* in its stack: index + 1 */
    _Atomic cs_u32 state; /* FREE and CLEARED: it is in a stack of free ones, or about to be */
    cs_u64 kept;         /* since when it has been free with its pages; 0: it has none, or was made ahead of time. The writer's */
    bool ahead;          /* made ahead of time: one large page, which it keeps */
} buffers[BUFFERS];

/* index + 1 of the top in the low half, a count against ABA in the high half */
static _Atomic cs_u64 free_large, free_small, full_top;

static cs_u32 first_of(cs_u32 slab) { return slab < LARGE ? slab : LARGE + (slab - LARGE) * PARTS; }
static cs_u32 slab_of(cs_u32 index) { return index < LARGE ? index : LARGE + (index - LARGE) / PARTS; }
static cs_u32 index_of(const struct buffer *b) { return (cs_u32)(b - buffers); }
static size_t size_of(cs_u32 index) { return index < LARGE ? SLAB : SMALL; }
static _Atomic cs_u64 *free_of(cs_u32 index) { return index < LARGE ? &free_large : &free_small; }

static uint8_t *memory_of(cs_u32 index)
{
    const cs_u32 slab = slab_of(index);
    return cs_load_acq(&slabs[slab]) + (size_t)(index - first_of(slab)) * size_of(index);
}

/* BUFFERS: it is none of ours. */
static cs_u32 index_at(const uint8_t *memory)
{
    for (cs_u32 slab = 0; slab < SLABS; slab++) {
        const uint8_t *begin = cs_load(&slabs[slab]);
        if (!begin || (uintptr_t)memory - (uintptr_t)begin >= SLAB) continue;
        return first_of(slab) + (slab < LARGE ? 0 : (cs_u32)((size_t)(memory - begin) / SMALL));
    }
    return BUFFERS;
}

static _Atomic cs_u32 waiting; /* full ones that the writer has not read */

bool cs_cupti_buffers_behind(void) { return cs_load(&waiting) > BUFFERS / 4; }

static void push(_Atomic cs_u64 *top, cs_u32 index)
{
    cs_u64 before = cs_load(top), after;
    do {
        cs_store(&buffers[index].next, (cs_u32)before);
        after = ((before >> 32) + 1) << 32 | (index + 1);
    } while (!atomic_compare_exchange_weak_explicit(top, &before, after, memory_order_release, memory_order_relaxed));
}

static struct buffer *pop(_Atomic cs_u64 *top)
{
    cs_u64 before = cs_load_acq(top), after;
    do {
        if (!(cs_u32)before) return NULL;
        after = ((before >> 32) + 1) << 32 | cs_load(&buffers[(cs_u32)before - 1].next);
    } while (!atomic_compare_exchange_weak_explicit(top, &before, after, memory_order_acquire, memory_order_acquire));
    return &buffers[(cs_u32)before - 1];
}

static void give(cs_u32 index)
{
    cs_store_rel(&buffers[index].state, FREE);
    push(free_of(index), index);
}

/* One that the writer is clearing is left to it, and it gives it again (clear_kept). */
static struct buffer *take(_Atomic cs_u64 *stack)
{
    struct buffer *b = pop(stack);
    while (b && atomic_exchange_explicit(&b->state, TAKEN, memory_order_acq_rel) == CLEARED) b = pop(stack);
    return b;
}

static bool is_mapped(cs_u32 slab)
{
    static const char lost[] = "the profiler's records; work has no times";
    uint8_t *none = NULL;
    if (cs_load_acq(&slabs[slab])) return true;
    uint8_t *own = slab < AHEAD ? cs_memory_map_aligned(SLAB, lost) : cs_memory_map(SLAB, lost);
    cs_memory_not_inherited(own, SLAB);
    if (own && !atomic_compare_exchange_strong(&slabs[slab], &none, own)) cs_memory_unmap(own, SLAB);
    return cs_load_acq(&slabs[slab]);
}

/* One that nobody has had. NULL: there is none below the limit, or no memory for it. */
static struct buffer *take_fresh(_Atomic cs_u32 *fresh, cs_u32 limit)
{
    cs_u32 index = cs_load(fresh);
    while (index < limit && is_mapped(slab_of(index)))
        if (atomic_compare_exchange_weak(fresh, &index, index + 1)) return &buffers[index];
    return NULL;
}

static void make_one_ahead(void)
{
    struct buffer *b = (cs_u32)cs_load(&free_large) ? NULL : take_fresh(&fresh_large, AHEAD);
    if (!b) return;
    b->ahead = true;
    cs_memory_populate_large(memory_of(index_of(b)), SLAB);
    give(index_of(b));
}

void cs_cupti_buffers_ready(void)
{
    for (cs_u32 slab = 0; slab < AHEAD && is_mapped(slab);) slab++;
    make_one_ahead();
}

void CUPTIAPI cs_cupti_buffer_requested(uint8_t **buffer, size_t *size, size_t *most)
{
    struct buffer *b = take(&free_large);
    if (!b) b = take_fresh(&fresh_large, LARGE);
    if (!b) b = take(&free_small);
    if (!b) b = take_fresh(&fresh_small, BUFFERS);
    *buffer = b ? memory_of(index_of(b)) : NULL; /* without one CUPTI drops records, and counts them */
    *size = b ? size_of(index_of(b)) : 0;
    *most = 0;
}

void CUPTIAPI cs_cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream, (void)size;
    if (!buffer) return;
    cs_share_completed(buffer, valid);
    const cs_u32 index = index_at(buffer);
    if (index == BUFFERS) return;
    buffers[index].valid = valid;
    cs_add(&waiting, 1);
    push(&full_top, index);
}

/* The writer's: full ones in their order, those that it had no room for. */
static cs_u32 oldest, newest; /* index + 1 */

static void take_full(void)
{
    cs_u32 top = (cs_u32)atomic_exchange_explicit(&full_top, 0, memory_order_acquire), first = 0, last = top;
    while (top) { /* the stack has the newest on top: turn it over */
        cs_u32 next = cs_load(&buffers[top - 1].next);
        cs_store(&buffers[top - 1].next, first);
        first = top;
        top = next;
    }
    if (!first) return;
    if (newest) cs_store(&buffers[newest - 1].next, first);
    else oldest = first;
    newest = last;
}

static cs_u32 kept; /* how many have kept their pages */

/* CUPTI wants zeroes, and would write them on a thread of the application. What came back nearly empty, as from a short thread, keeps its first pages only, but for
 * the buffers that were made ahead of time. A fast thread fills the next one soon: what it filled keeps its pages for a while. */
static void clear(cs_u32 index, size_t valid)
{
    const size_t size = size_of(index), begin = (valid + PAGE - 1) / PAGE * PAGE;
    const bool ahead = buffers[index].ahead, spare = !ahead && begin < size / 2;
    memset(memory_of(index), 0, spare ? begin : size);
    if (spare) cs_memory_forget(memory_of(index) + begin, size - begin);
    if (ahead || spare) return;
    kept += !buffers[index].kept;
    buffers[index].kept = cs_monotonic_ns();
}

/* A free one that kept its pages long enough. It stays in its stack; who takes it meanwhile leaves it to us. */
static void clear_kept(cs_u32 index)
{
    struct buffer *b = &buffers[index];
    cs_u32 is = FREE;
    if (!atomic_compare_exchange_strong(&b->state, &is, CLEARED)) return;
    cs_memory_forget(memory_of(index), size_of(index));
    b->kept = 0;
    kept--;
    is = CLEARED;
    if (!atomic_compare_exchange_strong(&b->state, &is, FREE)) give(index);
}

/* Else the most that many threads ever had at once would stay. */
static void clear_all_kept(void)
{
    static cs_u64 last;
    const cs_u64 now = kept ? cs_monotonic_ns() : 0;
    if (!kept || now - last < KEPT_NS) return;
    last = now;
    for (cs_u32 index = 0; index < BUFFERS && kept; index++)
        if (buffers[index].kept && now - buffers[index].kept >= KEPT_NS) clear_kept(index);
}

void cs_cupti_buffers_drain(const struct cs_gpu_sink *to)
{
    _Static_assert(SLAB / sizeof(CUpti_ActivityAPI) <= CS_GPU_AT_ONCE, "a buffer has more records than the writer makes room for");
    take_full();
    while (oldest && (!to->has_room || to->has_room())) {
        struct buffer *b = &buffers[oldest - 1];
        uint8_t *memory = memory_of(index_of(b));
        CUpti_Activity *record = NULL;
        cs_u32 read = oldest;
        CUptiResult result = CUPTI_ERROR_MAX_LIMIT_REACHED; /* as at the end */
        while (b->valid && (result = cs_cupti()->cuptiActivityGetNextRecord(memory, b->valid, &record)) == CUPTI_SUCCESS) cs_cupti_record(record, to);
        if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) to->lost(1, CS_LOSS_BAD_BUFFER); /* one at least */
        clear(read - 1, b->valid);
        oldest = cs_load(&b->next);
        if (!oldest) newest = 0;
        give(read - 1);
        atomic_fetch_sub(&waiting, 1);
    }
    clear_all_kept();
    make_one_ahead();
}
