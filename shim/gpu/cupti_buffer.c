/*
 * The buffers that CUPTI fills: from a pool of our own, which grows on demand to a limit and is never freed. Two stacks without locks, since CUPTI asks and
 * gives back on threads of the application: the free ones, and the full ones that the writer takes all at once.
 */
#include <string.h>

#include "shim/base/memory.h"
#include "shim/gpu/share.h"

enum { SIZE = 2 << 20, BUFFERS = 128, AHEAD = 4 };

static struct buffer {
    uint8_t *_Atomic memory; /* NULL until it is made, then constant */
    size_t valid;
    _Atomic cs_u32 next; /* in its stack: index + 1 */
} buffers[BUFFERS];
static _Atomic cs_u32 made;

/* index + 1 of the top in the low half, a count against ABA in the high half */
static _Atomic cs_u64 free_top, full_top;

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

static struct buffer *make(void)
{
    if (cs_load(&made) >= BUFFERS) return NULL;
    cs_u32 index = cs_add(&made, 1);
    if (index >= BUFFERS) {
        atomic_fetch_sub(&made, 1);
        return NULL;
    }
    cs_store(&buffers[index].memory, cs_memory_map(SIZE, "the profiler's records; work has no times"));
    return cs_load(&buffers[index].memory) ? &buffers[index] : NULL;
}

void cs_cupti_buffers_ready(void)
{
    for (int i = 0; i < AHEAD && cs_load(&made) < AHEAD; i++) {
        struct buffer *b = make();
        if (!b) return;
        cs_memory_populate(cs_load(&b->memory), SIZE);
        push(&free_top, (cs_u32)(b - buffers));
    }
}

void CUPTIAPI cs_cupti_buffer_requested(uint8_t **buffer, size_t *size, size_t *most)
{
    struct buffer *b = pop(&free_top);
    if (!b) b = make();
    *buffer = b ? cs_load(&b->memory) : NULL; /* without one CUPTI drops records, and counts them */
    *size = b ? SIZE : 0;
    *most = 0;
}

void CUPTIAPI cs_cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream, (void)size;
    if (buffer) cs_share_completed(buffer, valid);
    for (cs_u32 i = 0; i < BUFFERS; i++) {
        if (!buffer || cs_load(&buffers[i].memory) != buffer) continue;
        buffers[i].valid = valid;
        push(&full_top, i);
        return;
    }
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

void cs_cupti_buffers_drain(const struct cs_gpu_sink *to)
{
    _Static_assert(SIZE / sizeof(CUpti_ActivityAPI) <= CS_GPU_AT_ONCE, "a buffer has more records than the writer makes room for");
    take_full();
    while (oldest && (!to->has_room || to->has_room())) {
        struct buffer *b = &buffers[oldest - 1];
        uint8_t *memory = cs_load(&b->memory);
        CUpti_Activity *record = NULL;
        cs_u32 read = oldest;
        while (b->valid && cs_cupti.cuptiActivityGetNextRecord(memory, b->valid, &record) == CUPTI_SUCCESS) cs_cupti_record(record, to);
        memset(memory, 0, SIZE); /* CUPTI wants zeroes, and would write them on a thread of the application */
        oldest = cs_load(&b->next);
        if (!oldest) newest = 0;
        push(&free_top, read - 1);
    }
}
