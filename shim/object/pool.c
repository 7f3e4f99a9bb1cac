#include "shim/object/pool.h"

#include "shim/base/clock.h"
#include "shim/base/memory.h"

_Atomic bool cs_objects_alone;

bool cs_pool_init(struct cs_pool *pool, size_t object_size, cs_u32 capacity)
{
    *pool = (struct cs_pool){.object_size = object_size, .capacity = capacity, .base = cs_memory_map(object_size * capacity, CS_NO_OBJECTS)};
    return pool->base;
}

static void list_push(struct cs_pool *pool, _Atomic cs_u64 *list, struct cs_object *object)
{
    cs_u32 slot = (cs_u32)(((unsigned char *)object - pool->base) / pool->object_size);
    cs_u64 head = cs_load(list), next;
    do {
        cs_store(&object->next, (cs_u32)head);
        next = ((head >> 32) + 1) << 32 | (slot + 1);
    } while (!atomic_compare_exchange_weak_explicit(list, &head, next, memory_order_release, memory_order_relaxed));
}

static struct cs_object *free_pop(struct cs_pool *pool)
{
    cs_u64 head = cs_load_acq(&pool->free), next;
    struct cs_object *object;
    do {
        if (!(cs_u32)head) return NULL;
        object = cs_pool_slot(pool, (cs_u32)head - 1);
        next = ((head >> 32) + 1) << 32 | cs_load(&object->next);
    } while (!atomic_compare_exchange_weak_explicit(&pool->free, &head, next, memory_order_acquire, memory_order_acquire));
    return object;
}

static struct cs_object *never_used(struct cs_pool *pool)
{
    if (cs_load(&pool->high) >= pool->capacity) return NULL;
    cs_u32 slot = cs_add(&pool->high, 1);
    return slot < pool->capacity ? cs_pool_slot(pool, slot) : NULL;
}

static struct cs_object *given_back(struct cs_pool *pool)
{
    cs_u32 first = cs_pool_take_ended(pool);
    if (first) cs_store(&pool->released, cs_ticks());
    while (first) {
        struct cs_object *object = cs_pool_slot(pool, first - 1);
        first = cs_load(&object->next);
        cs_pool_release(pool, object);
    }
    return free_pop(pool);
}

void *cs_pool_new(struct cs_pool *pool)
{
    if (!pool->base) return NULL;
    struct cs_object *object = free_pop(pool);
    if (!object) object = never_used(pool);
    if (!object && cs_load(&cs_objects_alone)) object = given_back(pool);
    if (!object) {
        cs_add(&pool->refused, 1);
        return NULL;
    }
    _Atomic cs_u64 *words = (_Atomic cs_u64 *)(object + 1); /* one by one: who walks over all slots may look at them meanwhile */
    for (size_t i = 0; i < (pool->object_size - sizeof *object) / sizeof *words; i++) cs_store(&words[i], 0);
    cs_store(&object->ended, 0);
    if (!(++object->generation & 0xfff)) object->generation = 1;
    cs_u32 index = (cs_u32)(((unsigned char *)object - pool->base) / pool->object_size);
    cs_store_rel(&object->ref, (object->generation & 0xfff) << CS_REF_INDEX_BITS | index);
    return object;
}

void cs_pool_end(struct cs_pool *pool, struct cs_object *object)
{
    if (!atomic_exchange(&object->ended, 1)) list_push(pool, &pool->ended, object);
}

cs_u32 cs_pool_take_ended(struct cs_pool *pool)
{
    cs_u64 head = cs_load_acq(&pool->ended);
    while (!atomic_compare_exchange_weak_explicit(&pool->ended, &head, ((head >> 32) + 1) << 32, memory_order_acquire, memory_order_acquire)) {}
    return (cs_u32)head;
}

void cs_pool_release(struct cs_pool *pool, struct cs_object *object)
{
    cs_store_rel(&object->ref, 0);
    list_push(pool, &pool->free, object);
}
