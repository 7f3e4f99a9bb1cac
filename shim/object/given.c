#include "shim/object/given.h"

#include "shim/object/map.h"

static struct cs_map categories, threads;
static _Atomic bool ready;

bool cs_given_init(void)
{
    bool ok = cs_map_init(&categories, 12) && cs_map_init(&threads, 14);
    cs_store_rel(&ready, ok);
    return ok;
}

static void give(struct cs_map *map, cs_u64 key, cs_name name)
{
    struct cs_map_slot *slot = cs_load_acq(&ready) ? cs_map_slot(map, key, name != 0) : NULL;
    if (slot) cs_store_rel(&slot->value, name);
}

static cs_name given(const struct cs_map *map, cs_u64 key) { return cs_load_acq(&ready) ? (cs_name)cs_map_get(map, key) : 0; }

/* 0, which is no key: category 0, of the domain without a name, means that there is none. */
static cs_u64 category_key(cs_name domain, cs_u32 category) { return (cs_u64)domain << 32 | category; }

void cs_given_category(cs_name domain, cs_u32 category, cs_name name) { give(&categories, category_key(domain, category), name); }
cs_name cs_given_category_name(cs_name domain, cs_u32 category) { return given(&categories, category_key(domain, category)); }

void cs_given_thread(cs_u32 tid, cs_name name) { give(&threads, tid, name); }
cs_name cs_given_thread_name(cs_u32 tid) { return given(&threads, tid); }
