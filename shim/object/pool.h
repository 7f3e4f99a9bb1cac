/*
 * Objects in a pool, addressed by 32-bit references that are never mistaken for one another.
 *
 * A reference is a slot index and the slot's generation, so that one kept in a record or in a map cannot reach the next object in the same slot.
 * Objects are made and ended by application threads without locks. An ended object is only marked: its slot stays, for records that still speak of
 * it, until the writer thread has drained all of them and gives it back; where there is none, until a pool is full. Capacity is fixed and virtual:
 * untouched slots take no memory.
 */
#ifndef CS_OBJECT_POOL_H
#define CS_OBJECT_POOL_H

#include "shim/base/compiler.h"

typedef cs_u32 cs_ref; /* 0: none */

/* There is no writer, for good: nothing is recorded, and who needs the place of what has ended takes it. */
extern _Atomic bool cs_objects_alone;

enum { CS_REF_INDEX_BITS = 20 };
#define CS_NO_OBJECTS "stream objects; nothing is recorded or changed" /* where there is no memory for a pool or a map */

/* The head of every pooled object. */
struct cs_object {
    _Atomic cs_ref ref; /* 0 while the slot is free */
    cs_u32 generation;
    _Atomic cs_u32 next;     /* in the free list or the ended list: slot + 1; read by who loses the race for the slot, too */
    _Atomic cs_u32 ended;    /* 1 from the end of its life on */
};

struct cs_pool {
    unsigned char *base;
    size_t object_size;
    cs_u32 capacity;
    _Atomic cs_u32 high;     /* slots ever used */
    _Atomic cs_u64 free;     /* slot + 1 in the low half, a tag against ABA in the high half */
    _Atomic cs_u64 ended;    /* likewise: the objects that ended since the writer last looked */
    _Atomic cs_u64 refused;  /* objects that found no slot */
    _Atomic cs_u64 released; /* ticks of the last time that ended objects were given back: who began before may mean one of them */
};

bool cs_pool_init(struct cs_pool *pool, size_t object_size, cs_u32 capacity); /* the size is a multiple of 8 */

/* A zeroed object but for its head, or NULL when the pool is full (counted). Its reference is in force at once. Any thread. */
void *cs_pool_new(struct cs_pool *pool);

/* Ends the object's life; its memory stays valid until cs_pool_release. Once for each object. Any thread. */
void cs_pool_end(struct cs_pool *pool, struct cs_object *object);

/* The writer's side: takes the list of ended objects (slot + 1 of the first, linked by next), and later gives each slot back. */
cs_u32 cs_pool_take_ended(struct cs_pool *pool);
void cs_pool_release(struct cs_pool *pool, struct cs_object *object);

static inline struct cs_object *cs_pool_slot(const struct cs_pool *pool, cs_u32 index)
{
    return (struct cs_object *)(pool->base + (size_t)index * pool->object_size);
}

/* Its place in the pool, which is another object's in time. */
static inline cs_u32 cs_ref_index(cs_ref ref) { return ref & ((1u << CS_REF_INDEX_BITS) - 1); }

/* The object, also when it has ended, or NULL when the reference is 0 or its slot was given back. */
static inline void *cs_pool_get(const struct cs_pool *pool, cs_ref ref)
{
    cs_u32 index = cs_ref_index(ref);
    if (!ref || index >= pool->capacity) return NULL;
    struct cs_object *object = cs_pool_slot(pool, index);
    return cs_load_acq(&object->ref) == ref ? object : NULL;
}

#endif
