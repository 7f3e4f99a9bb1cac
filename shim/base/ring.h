/*
 * A ring of 64-byte slots between one producer and one consumer, without locks.
 *
 * The producer claims a slot, fills it and publishes it; the consumer reads up to the published head and moves the tail. Each side's
 * variables lie on cache lines of their own; the producer looks at the consumer's tail only when its last look says that the ring is full.
 */
#ifndef CS_BASE_RING_H
#define CS_BASE_RING_H

#include "shim/base/compiler.h"

enum { CS_SLOT = 64 };

struct cs_ring {
    /* producer's line; head is also read by the consumer */
    unsigned char (*slots)[CS_SLOT];
    cs_u64 mask;      /* slots - 1; the count is a power of two */
    cs_u64 limit;     /* head may rise to here before the producer looks at tail again */
    _Atomic cs_u64 head;
    /* consumer's line; read by the producer when full */
    _Alignas(CS_CACHE_LINE) _Atomic cs_u64 tail;
};

/* The consumer's core read the lines last: so many ahead, each is asked for to be here when its turn comes. */
enum { CS_RING_AHEAD = 16 };

/* Producer: the next slot as far as the last look at the tail tells, else NULL. */
CS_HOT void *cs_ring_claim_fast(struct cs_ring *ring)
{
    cs_u64 head = cs_load(&ring->head);
    if (CS_UNLIKELY(head == ring->limit)) return NULL;
    cs_prefetch_to_write(ring->slots[(head + CS_RING_AHEAD) & ring->mask]);
    return ring->slots[head & ring->mask];
}

/* Producer: the next slot, or NULL when the ring is full. */
static inline void *cs_ring_claim(struct cs_ring *ring)
{
    ring->limit = cs_load_acq(&ring->tail) + ring->mask + 1;
    return cs_ring_claim_fast(ring);
}

/* Producer: the claimed slot is filled. */
CS_HOT void cs_ring_publish(struct cs_ring *ring)
{
    cs_u64 head = cs_load(&ring->head) + 1;
    cs_store_rel(&ring->head, head);
}

#endif
