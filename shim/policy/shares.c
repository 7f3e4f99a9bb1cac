/*
 * STREAMS=pool:N: N real streams of a kind stand for all that are asked for.
 *
 * A kind is a context, a priority, blocking or not, and the rule that made it so. The first N creations of a kind make real streams; from then on a creation
 * is given the one with the fewest shares, in turn where several have as few: round-robin, as long as none is destroyed. A destroy takes a share back, and the
 * stream stays for who asks next, until its context ends. So a handle that is destroyed once too often is refused as an unknown one, and the stream is not
 * destroyed under the feet of others.
 *
 * A set holds the references of a kind's streams. It hangs in its context's list, from which nothing is taken while the context lives; once that has ended the
 * set may be another's. All of it is lock-free. A reference of a stream that has ended is as good as an empty place.
 */
#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/saturate.h"
#include "shim/calls/real.h"
#include "shim/policy/policies.h"

enum { PLACES = 1024 }; /* the most that the option allows */
_Static_assert(CS_RULES < 1 << 9, "a rule fits into its bits of a kind");

struct cs_stream_set {
    _Atomic cs_ref owner; /* the context; 0: nobody's */
    _Atomic cs_u64 kind;
    struct cs_stream_set *_Atomic next; /* in the context's list */
    struct cs_stream_set *all;          /* in the list of all; constant once linked */
    _Atomic cs_u32 turn;
    _Atomic cs_ref place[PLACES];
};
static struct cs_stream_set *_Atomic all_sets; /* never given back */

static struct cs_stream *living(cs_ref ref)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    return stream && !cs_load(&stream->object.ended) ? stream : NULL;
}

/* --- sets --- */

static bool context_lives(cs_ref ref)
{
    struct cs_context *context = cs_pool_get(&cs_contexts, ref);
    return context && !cs_load(&context->object.ended);
}

static struct cs_stream_set *set_again(cs_ref owner)
{
    for (struct cs_stream_set *set = cs_load_acq(&all_sets); set; set = set->all) {
        cs_ref before = cs_load(&set->owner);
        if (!context_lives(before) && atomic_compare_exchange_strong(&set->owner, &before, owner)) return set;
    }
    return NULL;
}

static struct cs_stream_set *set_new(cs_ref owner)
{
    struct cs_stream_set *set = cs_memory_map(sizeof *set, "a pool of streams (CUSTREAM_STREAMS); streams are not shared"), *first = cs_load(&all_sets);
    if (!set) return NULL;
    cs_store(&set->owner, owner);
    do set->all = first;
    while (!atomic_compare_exchange_weak_explicit(&all_sets, &first, set, memory_order_release, memory_order_relaxed));
    return set;
}

static struct cs_stream_set *set_in(struct cs_stream_set *list, cs_u64 kind)
{
    while (list && cs_load(&list->kind) != kind) list = cs_load_acq(&list->next);
    return list;
}

static struct cs_stream_set *set_made(cs_ref owner, cs_u64 kind)
{
    struct cs_stream_set *set = set_again(owner);
    if (!set) set = set_new(owner);
    if (!set) return NULL;
    cs_store(&set->kind, kind);
    cs_store(&set->turn, 0);
    for (int i = 0; i < PLACES; i++) cs_store(&set->place[i], 0);
    return set;
}

/* One of a kind in a context's list: what has come to the list since it was looked through is looked at before another is put there. */
static struct cs_stream_set *set_of(cs_ref owner, cs_u64 kind)
{
    struct cs_context *context = cs_pool_get(&cs_contexts, owner);
    if (!context) return NULL;
    struct cs_stream_set *first = cs_load_acq(&context->sets), *found = set_in(first, kind), *set = found ? NULL : set_made(owner, kind);
    while (set) {
        cs_store(&set->next, first);
        if (atomic_compare_exchange_strong(&context->sets, &first, set)) return set;
        found = set_in(first, kind);
        if (!found) continue;
        cs_store(&set->owner, 0);
        break;
    }
    return found;
}

/* --- creations --- */

static bool captures(const struct cs_stream *stream)
{
    if (cs_load(&stream->capture_began)) return true;
    return cs_streams_capture() && cs_stream_is_capturing((CUstream)(uintptr_t)cs_load(&stream->key), false);
}

/* Of the streams that are there the one with the fewest shares, in turn where several have as few; NULL: all of them capture. */
static struct cs_stream *fewest(struct cs_stream_set *set, cs_u32 places, cs_u32 turn, cs_u32 *shares)
{
    struct cs_stream *best = NULL;
    for (cs_u32 i = 0; i < places; i++) {
        struct cs_stream *stream = living(cs_load_acq(&set->place[(turn + i) % places]));
        cs_u32 has = stream ? cs_load(&stream->shares) : 0;
        if (!stream || (best && has >= *shares) || captures(stream)) continue;
        best = stream;
        *shares = has;
    }
    return best;
}

static bool share(struct cs_creation *c)
{
    const cs_u32 places = (cs_u32)c->policy->sharing.pool, turn = cs_add(&c->set->turn, 1);
    struct cs_stream *stream;
    cs_u32 shares = 0;
    do stream = fewest(c->set, places, turn, &shares);
    while (stream && !atomic_compare_exchange_strong(&stream->shares, &shares, shares + 1));
    if (!stream) return false;
    cs_u32 most = cs_load(&stream->shares_most);
    while (shares >= most && !atomic_compare_exchange_weak(&stream->shares_most, &most, shares + 1)) {}
    c->shared = cs_load(&stream->object.ref);
    c->handle = (CUstream)(uintptr_t)cs_load(&stream->key);
    return true;
}

static bool has_room(const struct cs_stream_set *set, cs_u32 places)
{
    for (cs_u32 i = 0; i < places; i++)
        if (!living(cs_load_acq(&set->place[i]))) return true;
    return false;
}

/* What the driver will make of a priority, so that all that come to the same share. */
static int given_priority(int priority)
{
    int least, greatest;
    if (!cs_priority_of_device(&least, &greatest)) return priority;
    return cs_clamp(priority, greatest, least);
}

CUresult cs_shares_create(struct cs_creation *c)
{
    if (c->policy->sharing.kind != CS_SHARING_POOL) return CUDA_SUCCESS;
    if (c->green || c->flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CUDA_SUCCESS; /* a green context's are its own; of the others the driver will say what is wrong */
    cs_ref context = cs_context_current(c->thread);
    if (!context) return CUDA_SUCCESS;
    const cs_u64 rule = c->rule ? (cs_u64)(c->policy->number & 0x3fff) << 9 | c->rule : 0;
    c->set = set_of(context, (cs_u64)1 << 63 | rule << 40 | (cs_u64)c->flags << 32 | (cs_u32)given_priority(c->priority));
    if (!c->set || has_room(c->set, (cs_u32)c->policy->sharing.pool) || share(c)) return CUDA_SUCCESS;
    c->set = NULL; /* all of them capture: one outside of the pool is made */
    cs_log_once(CS_LOG_WARN, "all streams of the pool (CUSTREAM_STREAMS) are being captured: one more is made");
    return CUDA_SUCCESS;
}

static bool put(struct cs_creation *c, struct cs_stream *stream, cs_ref ref)
{
    cs_store(&stream->shares, 1);
    cs_store(&stream->shares_most, 1);
    for (cs_u32 i = 0; i < (cs_u32)c->policy->sharing.pool; i++) {
        cs_ref before = cs_load_acq(&c->set->place[i]);
        if (living(before)) continue;
        stream->share_place = (cs_u16)(i + 1);
        if (atomic_compare_exchange_strong(&c->set->place[i], &before, ref)) return true;
    }
    stream->share_place = 0;
    return false;
}

/* Several threads at once may have found room. Who comes last gives his stream back and shares, so that there are N and no more. */
void cs_shares_made(struct cs_creation *c, CUstream *out)
{
    CS_KEEP_ERRNO;
    c->made = cs_creation_object(c, *out, cs_ticks());
    struct cs_stream *stream = cs_pool_get(&cs_streams, c->made);
    if (!stream || put(c, stream, c->made) || !share(c)) return;
    cs_ref dying = cs_stream_destroying(c->thread, *out, false);
    cs_stream_destroyed(dying, cs_real.cuStreamDestroy_v2(*out) == CUDA_SUCCESS, cs_ticks());
    *out = c->handle;
}

/* --- what becomes of them --- */

bool cs_shares_destroys(CUstream handle, CUresult *answer)
{
    struct cs_stream *stream = living(cs_stream_find(NULL, handle, false));
    if (!stream || !stream->share_place) return false;
    *answer = CUDA_SUCCESS;
    cs_u32 shares = cs_load(&stream->shares);
    while (shares) {
        if (!atomic_compare_exchange_weak(&stream->shares, &shares, shares - 1)) continue;
        return shares > 1 || !captures(stream); /* the last of one that captures goes, and its capture with it, as without the pool */
    }
    *answer = CUDA_ERROR_INVALID_HANDLE;
    return true;
}

cs_u32 cs_shares_captures(CUstream handle)
{
    struct cs_stream *stream = living(cs_stream_find(NULL, handle, false));
    const cs_u32 shares = stream && stream->share_place ? cs_load(&stream->shares) : 0;
    if (shares > 1)
        cs_log_once(CS_LOG_WARN, "a stream that the program has created %u times (CUSTREAM_STREAMS=pool) is being captured: work on any of them goes into that graph",
                    shares);
    return shares;
}
