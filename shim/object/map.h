/*
 * From a CUDA handle to our reference, read and written without locks.
 *
 * Open addressing with linear probing over a fixed, virtual table. A handle once seen keeps its slot for the life of the process, because the driver
 * hands the same addresses out again; only the value changes, so readers never meet a moved key. A value is a reference with a mark that says that
 * its object is being destroyed or is gone: a late call on a dead handle still finds which object it meant.
 */
#ifndef CS_OBJECT_MAP_H
#define CS_OBJECT_MAP_H

#include "shim/object/pool.h"

#define CS_MAP_DEAD ((cs_u64)1 << 32)

struct cs_map {
    struct cs_map_slot {
        _Atomic cs_u64 key;   /* 0: never used */
        _Atomic cs_u64 value; /* reference, CS_MAP_DEAD */
    } *slots;
    unsigned shift; /* 64 - log2(slots) */
    cs_u64 mask;    /* slots - 1 */
    _Atomic cs_u64 used; /* keys; at most three quarters of the slots, so that every walk meets an empty one */
};

bool cs_map_init(struct cs_map *map, unsigned log2_slots);

/* The slot of a key; made if `insert`, else NULL when the key was never seen. NULL when the table is full. Any thread. */
struct cs_map_slot *cs_map_slot(struct cs_map *map, cs_u64 key, bool insert);

/* Where a key's walk starts. Handles lie in rows with equal gaps: the plain multiplication by the golden ratio sends rows of some gaps to the same
 * places (3.1 steps a look-up at 0x3d0); folded first, no gap from 0x10 to 0x4000000 takes more than 1.1 with 10,000 of them. */
CS_HOT cs_u64 cs_map_hash(cs_u64 key) { return (key ^ key >> 17) * 0xff51afd7ed558ccdu; }
CS_HOT cs_u64 cs_map_start(const struct cs_map *map, cs_u64 key) { return cs_map_hash(key) >> map->shift; }

/* The value under a key if it is where its walk starts, else 0. Keys are not 0. The size is an argument, so that it is a constant where calls are recorded. */
CS_HOT cs_u64 cs_map_glance(const struct cs_map *map, unsigned log2_slots, cs_u64 key)
{
    const struct cs_map_slot *slot = &map->slots[cs_map_hash(key) >> (64 - log2_slots)];
    return CS_LIKELY(cs_load(&slot->key) == key) ? cs_load_acq(&slot->value) : 0;
}

/* The value under a key, 0 if none. The table has been made. */
CS_HOT cs_u64 cs_map_get(const struct cs_map *map, cs_u64 key)
{
    for (cs_u64 i = cs_map_start(map, key);; i = (i + 1) & map->mask) {
        cs_u64 at = cs_load(&map->slots[i].key);
        if (CS_LIKELY(at == key)) return cs_load_acq(&map->slots[i].value);
        if (!at) return 0;
    }
}

#endif
