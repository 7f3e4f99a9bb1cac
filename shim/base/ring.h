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
    cs_u64 tail_seen; /* producer's last look at tail */
    _Atomic cs_u64 head;
    /* consumer's line; read by the producer when full */
    _Alignas(CS_CACHE_LINE) _Atomic cs_u64 tail;
};

/* Producer: the next slot, or NULL when the ring is full. */
CS_HOT void *cs_ring_claim(struct cs_ring *ring)
{
    cs_u64 head = cs_load(&ring->head);
    if (CS_UNLIKELY(head - ring->tail_seen > ring->mask)) {
        ring->tail_seen = cs_load_acq(&ring->tail);
        if (head - ring->tail_seen > ring->mask) return NULL;
    }
    return ring->slots[head & ring->mask];
}

/* Producer: the claimed slot is filled. */
CS_HOT void cs_ring_publish(struct cs_ring *ring)
{
    cs_u64 head = cs_load(&ring->head) + 1;
    cs_store_rel(&ring->head, head);
}

#endif
