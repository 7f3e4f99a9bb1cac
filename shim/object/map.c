#include "shim/object/map.h"

#include "shim/base/memory.h"

bool cs_map_init(struct cs_map *map, unsigned log2_slots)
{
    *map = (struct cs_map){.shift = 64 - log2_slots, .mask = ((cs_u64)1 << log2_slots) - 1};
    map->slots = cs_memory_map(sizeof *map->slots << log2_slots, CS_NO_OBJECTS);
    return map->slots;
}

struct cs_map_slot *cs_map_slot(struct cs_map *map, cs_u64 key, bool insert)
{
    if (!map->slots || !key) return NULL;
    for (cs_u64 i = cs_map_start(map, key);; i = (i + 1) & map->mask) {
        cs_u64 at = cs_load(&map->slots[i].key);
        if (at == key) return &map->slots[i];
        if (at) continue;
        if (!insert) return NULL;
        if (cs_add(&map->used, 1) >= map->mask / 4 * 3) {
            atomic_fetch_sub(&map->used, 1);
            return NULL;
        }
        if (atomic_compare_exchange_strong(&map->slots[i].key, &at, key)) return &map->slots[i];
        atomic_fetch_sub(&map->used, 1); /* another thread took the slot: for this key, or the walk goes on */
        if (at == key) return &map->slots[i];
    }
}
