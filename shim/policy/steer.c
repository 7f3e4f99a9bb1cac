#include "shim/policy/steer.h"

#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/calls/real.h"
#include "shim/policy/hooks.h"
#include "shim/policy/policies.h"

/* Which default stream the call means, and whether it takes the other form of the call, or another handle, to get there. */
CS_HOT CUstream redirect(struct cs_steer *steer, struct cs_thread *thread, CUstream stream, const struct cs_steered *how)
{
    if (stream > CU_STREAM_PER_THREAD) return stream;
    if (steer->policy->sharing.kind == CS_SHARING_SERIAL) return cs_serial_default(steer, thread, stream, how);
    const enum cs_default_mode mode = cs_default_decided(steer, thread) ? thread->default_mode : cs_default_of(steer, thread, how->caller);
    const bool is_own = stream == CU_STREAM_PER_THREAD || (!stream && how->of_sibling), shall_be_own = mode == CS_DEFAULT_PER_THREAD;
    if (mode <= CS_DEFAULT_KEEP || is_own == shall_be_own || (stream && !steer->policy->all_handles)) return stream;
    steer->redirected = true;
    if (stream || !how->has_sibling) return shall_be_own ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    steer->flip = true;
    return stream;
}

CS_HOT void begin(struct cs_steer *steer, CUstream asked, const struct cs_steered *how)
{
    *steer = (struct cs_steer){.policy = cs_load_acq(&cs_policy_now), .per_thread = how->of_sibling, .asked = asked};
}

/* What is the same for all of them, once it is known where the call goes. */
CS_HOT void before(struct cs_steer *steer, struct cs_thread *thread, const struct cs_steered *how)
{
    steer->per_thread = how->of_sibling ^ steer->flip;
    if (!steer->policy) return;
    if (steer->policy->jitter.on) cs_jitter_before(steer, thread, how);
    steer->waits = steer->policy->sharing.kind == CS_SHARING_SYNC && cs_kind_info[how->kind].implies & CS_WAITED;
}

CUstream cs_steer_stream(struct cs_steer *steer, struct cs_thread *thread, CUstream stream, const struct cs_steered *how)
{
    begin(steer, stream, how);
    steer->stream = steer->policy ? redirect(steer, thread, stream, how) : stream;
    if (steer->stream > CU_STREAM_PER_THREAD) steer->stream = cs_serial_stream(steer, thread, steer->stream, how);
    before(steer, thread, how);
    return steer->stream;
}

void cs_steer_default(struct cs_steer *steer, struct cs_thread *thread, const struct cs_steered *how)
{
    begin(steer, NULL, how);
    if (steer->policy && redirect(steer, thread, NULL, how)) {
        steer->redirected = false;
        cs_log_once(CS_LOG_WARN, "%s has no form for the other default stream; it stays where it is", cs_call_info[how->call].name);
    }
    before(steer, thread, how);
}

void cs_steer_field(struct cs_steer *steer, struct cs_thread *thread, const CUstream *stream, const struct cs_steered *how)
{
    if ((uintptr_t)stream < 4096) *steer = (struct cs_steer){.per_thread = how->of_sibling}; /* no structure: the driver will say so */
    else cs_steer_stream(steer, thread, *stream, how);
}

void cs_steer_nothing(struct cs_steer *steer) { *steer = (struct cs_steer){.no_stream = true}; }

void cs_steer_refused(struct cs_steer *steer, bool of_sibling) { *steer = (struct cs_steer){.per_thread = of_sibling}; }

/* As CUDA_LAUNCH_BLOCKING does it: what the operation itself ran into is told by the call that asked for it. Nobody's capture is to mind the wait. */
static CUresult wait_for(const struct cs_steer *steer)
{
    CS_KEEP_ERRNO;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cs_real.cuThreadExchangeStreamCaptureMode(&mode);
    CUresult result = steer->per_thread ? cs_real.cuStreamSynchronize_ptsz(steer->stream) : cs_real.cuStreamSynchronize(steer->stream);
    cs_real.cuThreadExchangeStreamCaptureMode(&mode);
    bool of_capture = result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_CAPTURED_EVENT; /* one that began meanwhile */
    return of_capture ? CUDA_SUCCESS : result;
}

CUresult cs_steer_done(struct cs_steer *steer, CUresult result)
{
    steer->accepted = result == CUDA_SUCCESS;
    if (steer->carrier) cs_serial_done(steer);
    return steer->waits && steer->accepted && !cs_streams_capture() ? wait_for(steer) : result;
}

/* What a rule says of a default stream. The legacy one is everybody's: the rule is the thread's, and only its own calls are left out. */
static bool default_rule(const struct cs_steer *steer, struct cs_stream *stream)
{
    const struct cs_change *set = steer->set;
    if (cs_load(&stream->origin) == CS_STREAM_PER_THREAD && !cs_load(&stream->rule)) {
        cs_store(&stream->rule, steer->rule);
        if (set->record == 0) cs_store(&stream->muted, true);
    }
    if (set->name && !cs_load(&stream->name)) cs_store_rel(&stream->name, cs_name_add(set->name));
    return set->record == 0;
}

bool cs_steer_mutes(const struct cs_steer *steer, cs_ref ref)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    if (!stream || steer->no_stream) return false;
    if (steer->redirected && !cs_load(&stream->redirected)) cs_store(&stream->redirected, true);
    return steer->rule ? default_rule(steer, stream) : cs_load(&stream->muted);
}

/* --- creations --- */

static CUresult create(const struct cs_creation *c, CUstream *out)
{
    if (c->green) return cs_real.cuGreenCtxStreamCreate(out, c->green, c->flags, c->priority);
    if (c->priority == c->priority_asked && c->call == CS_CALL_cuStreamCreate) return cs_real.cuStreamCreate(out, c->flags);
    return cs_real.cuStreamCreateWithPriority(out, c->flags, c->priority);
}

void cs_steer_creation(struct cs_creation *c, struct cs_thread *thread, cs_u16 call, const void *caller, unsigned flags, int priority, CUgreenCtx green,
                       struct cs_hooked *hook)
{
    *c = (struct cs_creation){.policy = cs_load_acq(&cs_policy_now), .hook = hook, .thread = thread, .caller = caller, .call = call, .green = green};
    c->flags = c->flags_asked = flags;
    c->priority = c->priority_asked = priority;
}

CUresult cs_steer_create(struct cs_creation *c, CUstream *out)
{
    static cs_creation_fn *const chain[] = {
#define LINK(function) function,
        CS_CREATION_CHAIN(LINK)
#undef LINK
    };
    CUresult denied = cs_hooks_create(c);
    if (denied != CUDA_SUCCESS) return denied;
    for (size_t i = 0; c->policy && out && i < CS_COUNT(chain); i++) {
        CUresult refused = chain[i](c);
        if (refused != CUDA_SUCCESS) return refused;
    }
    if (c->shared) return *out = c->handle, CUDA_SUCCESS;
    CUresult result = create(c, out);
    if (c->set && result == CUDA_SUCCESS) cs_shares_made(c, out);
    return result;
}

cs_ref cs_steer_created(struct cs_creation *c, CUstream stream, cs_u64 end)
{
    return c->set ? c->shared ?: c->made : cs_creation_object(c, stream, end);
}

cs_ref cs_creation_object(struct cs_creation *c, CUstream stream, cs_u64 ticks)
{
    CS_KEEP_ERRNO;
    cs_ref ref = cs_stream_created(c->thread, stream, c->flags, c->priority_asked, c->call, c->caller, ticks);
    struct cs_stream *object = cs_pool_get(&cs_streams, ref);
    if (!object) return ref;
    object->flags_asked = c->flags_asked;
    const bool steered = c->flags != c->flags_asked || c->priority != c->priority_asked;
    cs_store(&object->steered, steered);
    cs_store(&object->rule, c->rule);
    cs_store(&object->priority_ruled, c->priority_ruled);
    if (steered) cs_stream_ask_priority(object, stream);
    if (c->rule) {
        const struct cs_change *set = &c->policy->rules[c->rule - 1].set;
        if (set->name) cs_store(&object->name, cs_name_add(set->name));
        if (set->record == 0) cs_store(&object->muted, true);
    }
    cs_jitter_created(object);
    cs_serial_created(c, object);
    return ref;
}

bool cs_steer_destroys_share(CUstream stream, CUresult *answer) { return stream > CU_STREAM_PER_THREAD && cs_shares_destroys(stream, answer); }

cs_u32 cs_steer_captures(CUstream stream) { return stream > CU_STREAM_PER_THREAD ? cs_shares_captures(stream) : 0; }
