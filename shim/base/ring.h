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
    unsigned char (*next)[CS_SLOT]; /* the slot of head */
    unsigned char (*stop)[CS_SLOT]; /* next may rise to here before the producer looks at tail again: the end of the slots, or of the room it knows of */
    _Atomic cs_u64 head;
    unsigned char (*slots)[CS_SLOT];
    cs_u64 mask; /* slots - 1; the count is a power of two */
    _Atomic cs_u64 limit; /* slots from here on have no memory yet (base/rings.h); 0: all have */
    /* consumer's line; read by the producer when full */
    _Alignas(CS_CACHE_LINE) _Atomic cs_u64 tail;
    bool own; /* some of the slots are memory of the process alone, though the others are a file's */
    _Atomic cs_u64 told; /* records up to here need not be told again, should the process die; the consumer's alone, and ahead of tail */
};

/* Memory for more slots, all the same whence. Producer: up to which slot there is some now. Consumer: for what a busy thread needs soon; whether that is all
 * that it will do for the ring. */
CS_COLD cs_u64 cs_ring_grow(struct cs_ring *ring);
bool cs_ring_populate(struct cs_ring *ring);

/* The consumer's core read the lines last: so many ahead, each is asked for to be here when its turn comes. Past the last slot that is a wasted hint. */
enum { CS_RING_AHEAD = 16 };

/* Producer: whether there is a next slot, as far as the last look at the tail tells; and that slot. */
CS_HOT bool cs_ring_has_room(const struct cs_ring *ring) { return ring->next != ring->stop; }
CS_HOT void *cs_ring_next(struct cs_ring *ring)
{
    cs_prefetch_to_write(ring->next[CS_RING_AHEAD]);
    return ring->next;
}
CS_HOT void *cs_ring_claim_fast(struct cs_ring *ring) { return CS_LIKELY(cs_ring_has_room(ring)) ? cs_ring_next(ring) : NULL; }

/* Producer: the next claim looks at the tail. */
static inline void cs_ring_look_again(struct cs_ring *ring) { ring->stop = ring->next; }

/* Producer: the next slot, or NULL when the ring is full. A handler of the program's may fork in here: in the child the ring is zeros. */
static inline void *cs_ring_claim(struct cs_ring *ring)
{
    unsigned char(*const slots)[CS_SLOT] = ring->slots;
    const cs_u64 head = cs_load(&ring->head), size = ring->mask + 1, at = head & ring->mask, room = cs_load_acq(&ring->tail) + size - head;
    cs_u64 limit = cs_load_acq(&ring->limit) ?: size;
    while (CS_UNLIKELY(at >= limit) && size) {
        const cs_u64 more = cs_ring_grow(ring);
        if (more == limit) break;
        limit = more;
    }
    if (CS_UNLIKELY(!slots)) return NULL;
    const cs_u64 most = limit > at ? limit - at : 0;
    ring->next = slots + at;
    ring->stop = ring->next + (room < most ? room : most);
    return cs_ring_claim_fast(ring);
}

/* Producer: there is no memory for the next slot, and there may never be. */
static inline bool cs_ring_is_stuck(const struct cs_ring *ring)
{
    const cs_u64 limit = cs_load(&ring->limit);
    return limit && (cs_load(&ring->head) & ring->mask) >= limit;
}

/* Producer: the claimed slot is filled. */
CS_HOT void cs_ring_publish(struct cs_ring *ring)
{
    ring->next++;
    cs_store_rel(&ring->head, cs_load(&ring->head) + 1);
}

#endif
