/*
 * The audit's lanes: streams as they would be with per-thread default streams, by a key that says which stream of the program each is.
 *
 * A lane is given to another stream only when all are taken, and then one whose stream is gone and of which no step is on its way. Its old numbers in
 * the clocks do no harm: operations are numbered through, so a later stream's are all higher.
 */
#include <string.h>

#include "shim/audit/audit_model.h"
#include "shim/object/stream.h"

enum { BUCKETS = 2048 };

static struct cs_audit_lane lanes[CS_AUDIT_LANES];
static cs_u16 chain[CS_AUDIT_LANES], buckets[BUCKETS]; /* by key; chain: the next one under the same hash */
static cs_u32 lanes_high;

static struct context {
    cs_u64 key;
    cs_u16 first, legacy; /* lanes */
} contexts[CS_AUDIT_CONTEXTS];
static cs_u16 contexts_high;

void cs_audit_lanes_begin(void)
{
    memset(lanes, 0, sizeof lanes);
    memset(buckets, 0, sizeof buckets);
    memset(contexts, 0, sizeof contexts);
    lanes_high = contexts_high = 1; /* 0 is none */
}

struct cs_audit_lane *cs_audit_lane_at(cs_u16 lane) { return &lanes[lane]; }
cs_u16 cs_audit_lanes_of(cs_u16 context) { return contexts[context].first; }
cs_u16 cs_audit_legacy_of(cs_u16 context) { return contexts[context].legacy; }
cs_u32 cs_audit_lanes_high(void) { return lanes_high; }

static cs_u16 *bucket_of(const cs_u64 key[2])
{
    return &buckets[(key[0] * 0x9e3779b97f4a7c15u ^ key[1] * 0xff51afd7ed558ccdu) >> 32 & (BUCKETS - 1)];
}

/* --- streams that are gone --- */

static bool object_gone(struct cs_pool *pool, cs_ref ref)
{
    struct cs_object *object = cs_pool_get(pool, ref);
    return !object || cs_load(&object->ended);
}

static bool thread_gone(cs_u64 who)
{
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next)
        if (t->tid == (cs_u32)who && t->index == who >> 32) return cs_load(&t->state) != CS_THREAD_LIVE;
    return true;
}

static bool lane_gone(const struct cs_audit_lane *lane)
{
    if (lane->pending) return false;
    if (lane->kind == CS_AUDIT_CREATED) return object_gone(&cs_streams, (cs_ref)lane->key[0]);
    if (lane->kind == CS_AUDIT_THREAD && thread_gone(lane->key[1])) return true;
    return object_gone(&cs_contexts, (cs_ref)contexts[lane->context].key);
}

static void unlink_lane(cs_u16 lane)
{
    struct context *context = &contexts[lanes[lane].context];
    cs_u16 *at = bucket_of(lanes[lane].key);
    while (*at != lane) at = &chain[*at];
    *at = chain[lane];
    for (at = &context->first; *at != lane;) at = &lanes[*at].next;
    *at = lanes[lane].next;
    if (context->legacy == lane) context->legacy = 0;
    lanes[lane] = (struct cs_audit_lane){0};
}

static cs_u16 lane_new(void)
{
    static cs_u32 last;
    if (lanes_high < CS_AUDIT_LANES) return (cs_u16)lanes_high++;
    for (cs_u32 i = 0; i < CS_AUDIT_LANES; i++) {
        cs_u16 lane = (cs_u16)(++last % CS_AUDIT_LANES);
        if (!lane) continue;
        if (lanes[lane].context && !lane_gone(&lanes[lane])) continue;
        if (lanes[lane].context) unlink_lane(lane);
        return lane;
    }
    return 0;
}

static bool context_gone(cs_u16 context)
{
    if (!object_gone(&cs_contexts, (cs_ref)contexts[context].key)) return false;
    for (cs_u16 lane = contexts[context].first; lane; lane = lanes[lane].next)
        if (!lane_gone(&lanes[lane])) return false;
    while (contexts[context].first) unlink_lane(contexts[context].first);
    return true;
}

/* --- finding --- */

cs_u16 cs_audit_context(cs_u64 key)
{
    static cs_u16 last = 1;
    if (contexts[last].key == key) return last;
    for (cs_u16 i = 1; i < contexts_high; i++)
        if (contexts[i].key == key) return last = i;
    cs_u16 made = contexts_high < CS_AUDIT_CONTEXTS ? contexts_high++ : 0;
    for (cs_u16 i = 1; i < CS_AUDIT_CONTEXTS && !made; i++)
        if (context_gone(i)) made = i;
    if (made) contexts[made] = (struct context){.key = key}, last = made;
    return made;
}

cs_u16 cs_audit_lane(const struct cs_audit_lane *what)
{
    cs_u16 *bucket = bucket_of(what->key), lane;
    for (lane = *bucket; lane; lane = chain[lane])
        if (lanes[lane].key[0] == what->key[0] && lanes[lane].key[1] == what->key[1]) return lane;
    if (!what->context || !(lane = lane_new())) return 0;
    struct context *context = &contexts[what->context];
    lanes[lane] = *what;
    lanes[lane].next = context->first;
    context->first = lane;
    if (what->kind == CS_AUDIT_LEGACY) context->legacy = lane;
    chain[lane] = *bucket;
    *bucket = lane;
    cs_audit_model_lane(lane);
    return lane;
}
