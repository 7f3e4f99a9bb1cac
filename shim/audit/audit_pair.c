/*
 * Pairs of operations whose order only the default stream keeps: one entry for all that were called from the same two places.
 *
 * Places are looked up when a pair is first met: at the end of the process the loader's lock may be held by a thread that waits for the writer.
 */
#include <stdio.h>
#include <string.h>

#include "shim/audit/audit_model.h"
#include "shim/base/memory.h"
#include "shim/base/place.h"
#include "shim/calls/calls.h"
#include "shim/trace/demangle.h"

enum { PAIRS = 4096, BUCKETS = 8192 };

static struct cs_audit_pair *pairs;
static struct key {
    cs_u64 site[2];
    cs_name kernel[2];
    cs_u16 call[2];
    bool host, same_memory;
} *keys;
CS_TABLE(AUDIT, pairs, PAIRS);
CS_TABLE(AUDIT, keys, PAIRS);
static cs_u16 buckets[BUCKETS]; /* index + 1; the next one where another pair has it */
static cs_u32 pair_count;
static cs_u64 untold;

void cs_audit_pairs_begin(void)
{
    memset(buckets, 0, sizeof buckets);
    pair_count = 0;
    untold = 0;
}

static cs_u32 hash_of(const struct key *key)
{
    cs_u64 hash = 0xcbf29ce484222325;
    for (int i = 0; i < 2; i++) hash = ((hash ^ key->site[i]) * 0x100000001b3 ^ key->kernel[i]) * 0x9e3779b97f4a7c15u ^ key->call[i];
    return (cs_u32)((hash ^ key->host ^ (cs_u64)key->same_memory << 1) * 0xff51afd7ed558ccdu >> 40) % BUCKETS;
}

static bool equal(const struct key *a, const struct key *b)
{
    return a->site[0] == b->site[0] && a->site[1] == b->site[1] && a->kernel[0] == b->kernel[0] && a->kernel[1] == b->kernel[1] &&
           a->call[0] == b->call[0] && a->call[1] == b->call[1] && a->host == b->host && a->same_memory == b->same_memory;
}

static void describe(struct cs_audit_side *side, const struct cs_audit_op *op)
{
    char kernel[160];
    const struct cs_audit_lane *stream = op->stream ? cs_audit_lane_at(op->stream) : NULL;
    side->call = op->call;
    side->tid = op->tid;
    side->stream = stream ? stream->number : 0;
    side->device = stream ? stream->device : 0;
    if (op->kernel) cs_demangle(cs_name_text(op->kernel), NULL, 0, kernel, sizeof kernel);
    snprintf(side->name, sizeof side->name, "%s%s%s", cs_call_info[op->call].name ?: "", op->kernel ? " " : "", op->kernel ? kernel : "");
    cs_place_text((const void *)(uintptr_t)op->site, side->place, sizeof side->place);
}

static struct cs_audit_pair *pair_new(const struct key *key, const struct cs_audit_op *first, const struct cs_audit_op *second)
{
    if (!pairs || !keys || pair_count == PAIRS) return NULL;
    struct cs_audit_pair *pair = &pairs[pair_count];
    keys[pair_count++] = *key;
    *pair = (struct cs_audit_pair){.first_ns = second->begin_ns, .same_memory = key->same_memory};
    describe(&pair->first, first);
    describe(&pair->second, second);
    return pair;
}

struct cs_audit_pair *cs_audit_pair(const struct cs_audit_op *first, const struct cs_audit_op *second, bool same_memory)
{
    struct key key = {{first->site, second->site}, {first->kernel, second->kernel}, {first->call, second->call}, !second->stream, same_memory};
    cs_u32 at = hash_of(&key);
    while (buckets[at] && !equal(&keys[buckets[at] - 1], &key)) at = (at + 1) % BUCKETS;
    struct cs_audit_pair *pair = buckets[at] ? &pairs[buckets[at] - 1] : pair_new(&key, first, second);
    if (!pair) {
        untold++;
        return NULL;
    }
    buckets[at] = (cs_u16)(pair - pairs + 1);
    pair->count++;
    return pair;
}

const struct cs_audit_pair *cs_audit_pair_at(cs_u32 i) { return i < pair_count ? &pairs[i] : NULL; }
cs_u64 cs_audit_pairs_untold(void) { return untold; }
