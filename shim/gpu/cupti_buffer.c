/*
 * The buffers that CUPTI fills: from a store of our own, which grows on demand to a limit and is never freed. CUPTI takes one for each thread that calls CUDA, and
 * each flush takes them back, full or not. So the first buffers are large, for a thread that launches fast; those after them are small, for a thousand threads.
 * Stacks without locks, since CUPTI asks and gives back on threads of the application: free large ones, free small ones, and the full ones that the writer
 * takes all at once.
 */
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/gpu/share.h"

enum { SLAB = 2 << 20, SLABS = 128, LARGE = 64 /* slabs that are one buffer each */, PARTS = 64 /* buffers of each of the others */ };
enum { KEPT_NS = 1000000000 /* for so long the pages of a free one stay */ };
enum { SMALL = SLAB / PARTS, BUFFERS = LARGE + (SLABS - LARGE) * PARTS, AHEAD = 4, PAGE = 4096 };

static uint8_t *_Atomic slabs[SLABS]; /* NULL until it is made, then constant */
static _Atomic cs_u32 made;           /* slabs */

static struct buffer {
    size_t valid;
    _Atomic cs_u32 next; /* in its stack: index + 1 */
    cs_u64 kept;         /* since when it has been free with its pages; 0: it has none, or is one of those made ahead of time. The writer's */
} buffers[BUFFERS];

/* index + 1 of the top in the low half, a count against ABA in the high half */
static _Atomic cs_u64 free_large, free_small, full_top;

static cs_u32 first_of(cs_u32 slab) { return slab < LARGE ? slab : LARGE + (slab - LARGE) * PARTS; }
static cs_u32 index_of(const struct buffer *b) { return (cs_u32)(b - buffers); }
static size_t size_of(cs_u32 index) { return index < LARGE ? SLAB : SMALL; }
static _Atomic cs_u64 *free_of(cs_u32 index) { return index < LARGE ? &free_large : &free_small; }

static uint8_t *memory_of(cs_u32 index)
{
    if (index < LARGE) return cs_load(&slabs[index]);
    return cs_load(&slabs[LARGE + (index - LARGE) / PARTS]) + (size_t)((index - LARGE) % PARTS) * SMALL;
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

/* The first buffer of a new slab; the others are free. NULL at the limit, or without memory. */
static struct buffer *make(cs_u32 limit)
{
    if (cs_load(&made) >= limit) return NULL;
    cs_u32 slab = cs_add(&made, 1);
    if (slab >= SLABS) {
        atomic_fetch_sub(&made, 1);
        return NULL;
    }
    cs_store_rel(&slabs[slab], cs_memory_map(SLAB, "the profiler's records; work has no times"));
    if (!cs_load(&slabs[slab])) return NULL;
    for (cs_u32 other = first_of(slab) + 1; other < first_of(slab + 1); other++) push(&free_small, other);
    return &buffers[first_of(slab)];
}

void cs_cupti_buffers_ready(void)
{
    for (int i = 0; i < AHEAD && cs_load(&made) < AHEAD; i++) {
        struct buffer *b = make(LARGE);
        if (!b) return;
        cs_memory_populate(memory_of(index_of(b)), SLAB);
        push(&free_large, index_of(b));
    }
}

void CUPTIAPI cs_cupti_buffer_requested(uint8_t **buffer, size_t *size, size_t *most)
{
    struct buffer *b = pop(&free_large);
    if (!b) b = make(LARGE);
    if (!b) b = pop(&free_small);
    if (!b) b = make(SLABS);
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
    const bool spare = index >= AHEAD && begin < size / 2;
    memset(memory_of(index), 0, spare ? begin : size);
    if (spare) cs_memory_forget(memory_of(index) + begin, size - begin);
    if (index < AHEAD || spare) return;
    kept += !buffers[index].kept;
    buffers[index].kept = cs_monotonic_ns();
}

/* The stack is as it was afterwards. Who asks for a buffer meanwhile may be given a new one. */
static void shrink(_Atomic cs_u64 *stack, cs_u64 now)
{
    cs_u32 taken = 0;
    for (struct buffer *b; (b = pop(stack)); taken = index_of(b) + 1) {
        cs_store(&b->next, taken);
        if (!b->kept || now - b->kept < KEPT_NS) continue;
        cs_memory_forget(memory_of(index_of(b)), size_of(index_of(b)));
        b->kept = 0;
        kept--;
    }
    while (taken) {
        const cs_u32 index = taken - 1;
        taken = cs_load(&buffers[index].next);
        push(stack, index);
    }
}

/* Else the most that many threads ever had at once would stay. */
static void shrink_all(void)
{
    static cs_u64 last;
    const cs_u64 now = kept ? cs_monotonic_ns() : 0;
    if (!kept || now - last < KEPT_NS) return;
    last = now;
    shrink(&free_large, now);
    shrink(&free_small, now);
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
        while (b->valid && (result = cs_cupti.cuptiActivityGetNextRecord(memory, b->valid, &record)) == CUPTI_SUCCESS) cs_cupti_record(record, to);
        if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) to->lost(1, "CUPTI could not read a buffer of its own"); /* one at least */
        clear(read - 1, b->valid);
        oldest = cs_load(&b->next);
        if (!oldest) newest = 0;
        push(free_of(read - 1), read - 1);
        atomic_fetch_sub(&waiting, 1);
    }
    shrink_all();
}
