/*
 * Rules: which one a stream matches, and what it sets. The first that matches wins.
 */
#include <string.h>
#include <sys/prctl.h>

#include "shim/base/glob.h"
#include "shim/base/keep.h"
#include "shim/calls/real.h"
#include "shim/object/creator.h"
#include "shim/object/given.h"
#include "shim/policy/policies.h"

/* What rules are matched against. */
struct subject {
    struct cs_thread *thread;
    const void *caller;
    const struct cs_creation *creation; /* NULL: a default stream, which is never created */
    cs_name library;                    /* looked up at the first rule that asks */
    bool library_known;
    char thread_name[16];               /* likewise; "" not yet */
};

static bool library_matches(struct subject *s, const char *pattern)
{
    if (!s->library_known) s->library = cs_creator_of(s->caller), s->library_known = true;
    return s->library && cs_glob(pattern, cs_name_text(s->library));
}

/* By the name that the program gave it with NVTX, or the system's. */
static bool thread_matches(struct subject *s, const char *pattern)
{
    cs_name given = cs_given_thread_name(s->thread->tid);
    if (given && cs_glob(pattern, cs_name_text(given))) return true;
    if (!*s->thread_name) prctl(PR_GET_NAME, s->thread_name);
    return cs_glob(pattern, s->thread_name);
}

static bool context_matches(struct subject *s, int device, int kind)
{
    const struct cs_context *context = cs_pool_get(&cs_contexts, cs_context_current(s->thread));
    bool green = s->creation && s->creation->green;
    if (device != CS_ANY && (!context || cs_load(&context->device) != device)) return false;
    if (kind == CS_ANY) return true;
    return kind == (green ? CS_CONTEXT_GREEN : context && cs_load(&context->primary) ? CS_CONTEXT_PRIMARY : CS_CONTEXT_CREATED);
}

/* What only a stream that is being created has. */
static bool creation_matches(const struct cs_creation *c, struct cs_rule *rule)
{
    const struct cs_match *m = &rule->match;
    if (m->name) return false; /* it has none yet: tried again when it gets one */
    if (!c) return !m->call && m->priority == CS_ANY && m->nonblocking == CS_ANY && m->nth == CS_ANY;
    if (m->call && !cs_glob(m->call, cs_call_info[c->call].name)) return false;
    if (m->priority != CS_ANY && m->priority != c->priority_asked) return false;
    return m->nonblocking == CS_ANY || m->nonblocking == !!(c->flags_asked & CU_STREAM_NON_BLOCKING);
}

static bool matches(struct subject *s, struct cs_rule *rule)
{
    const struct cs_match *m = &rule->match;
    if (!creation_matches(s->creation, rule) || !context_matches(s, m->device, m->context)) return false;
    if (m->thread && !thread_matches(s, m->thread)) return false;
    if (m->library && !library_matches(s, m->library)) return false;
    return m->nth == CS_ANY || (cs_u32)m->nth == cs_add(&rule->matched, 1) + 1;
}

/* Written once: default streams ask at each call. */
static void use(struct cs_rule *rule)
{
    if (!cs_load(&rule->used)) cs_store(&rule->used, true);
}

/* Rules behind the first that matches are looked at only to count, where they ask for the n-th. */
static cs_u16 first_match(const struct cs_policy *policy, struct subject *s)
{
    CS_KEEP_ERRNO;
    cs_u16 first = 0;
    for (int i = 0; i < policy->rule_count; i++) {
        if (first && policy->rules[i].match.nth == CS_ANY) continue;
        if (matches(s, &policy->rules[i]) && !first) first = (cs_u16)(i + 1);
    }
    if (first) use(&policy->rules[first - 1]);
    return first;
}

cs_u16 cs_rule_of_default(const struct cs_policy *policy, struct cs_thread *thread, const void *caller)
{
    return first_match(policy, &(struct subject){.thread = thread, .caller = caller});
}

CUresult cs_rules_create(struct cs_creation *c)
{
    if (!c->policy->rule_count) return CUDA_SUCCESS;
    c->rule = first_match(c->policy, &(struct subject){.thread = c->thread, .caller = c->caller, .creation = c});
    if (!c->rule) return CUDA_SUCCESS;
    const struct cs_change *set = &c->policy->rules[c->rule - 1].set;
    if (set->priority != CS_ANY) c->priority = set->priority, c->priority_ruled = true;
    if (set->nonblocking == 1) c->flags |= CU_STREAM_NON_BLOCKING;
    if (set->nonblocking == 0 && !c->green) c->flags &= ~(unsigned)CU_STREAM_NON_BLOCKING;
    return CUDA_SUCCESS;
}

/* Of a stream that exists: what it was made with, and where. The thread is the one that names it. */
static bool named_matches(struct cs_thread *thread, const struct cs_stream *stream, cs_name name, struct cs_rule *rule)
{
    const struct cs_match *m = &rule->match;
    struct subject s = {.thread = thread};
    if (!m->name || !cs_glob(m->name, cs_name_text(name))) return false;
    if (m->library && !(stream->library && cs_glob(m->library, cs_name_text(stream->library)))) return false;
    if (m->call && !cs_glob(m->call, cs_call_info[stream->call].name)) return false;
    if (m->device != CS_ANY && m->device != stream->device) return false;
    if (m->priority != CS_ANY && m->priority != stream->priority_asked) return false;
    if (m->nonblocking != CS_ANY && m->nonblocking != !!(stream->flags_asked & CU_STREAM_NON_BLOCKING)) return false;
    const struct cs_context *context = cs_pool_get(&cs_contexts, cs_load(&stream->context));
    enum cs_context_kind kind = stream->green ? CS_CONTEXT_GREEN : context && cs_load(&context->primary) ? CS_CONTEXT_PRIMARY : CS_CONTEXT_CREATED;
    if (m->context != CS_ANY && m->context != (int)kind) return false;
    if (m->thread && !(thread && thread_matches(&s, m->thread))) return false;
    return m->nth == CS_ANY || (cs_u32)m->nth == cs_add(&rule->matched, 1) + 1;
}

/* Not while it captures, which may have begun on another stream: the attribute would be the graph's. */
static void set_priority(CUstream handle, struct cs_stream *stream, int priority)
{
    CUstreamAttrValue value = {.priority = priority};
    if (cs_stream_is_capturing(handle, false) || cs_real.cuStreamSetAttribute(handle, CU_STREAM_ATTRIBUTE_PRIORITY, &value) != CUDA_SUCCESS) return;
    cs_stream_ask_priority(stream, handle);
    cs_store(&stream->steered, true);
    cs_store_rel(&stream->priority_ruled, true);
}

/* The rule's number comes last: the writer, which may show the stream meanwhile, finds with it what the rule has set. One of several threads does it. */
static void use_named(CUstream handle, struct cs_stream *stream, const struct cs_policy *policy, int i)
{
    const struct cs_change *set = &policy->rules[i].set;
    if (atomic_exchange(&stream->rule_found, true)) return;
    use(&policy->rules[i]);
    if (set->priority != CS_ANY) set_priority(handle, stream, set->priority);
    if (set->record == 0) cs_store(&stream->muted, true);
    if (set->name) cs_store_rel(&stream->name, cs_name_add(set->name));
    cs_store_rel(&stream->rule, (cs_u16)(i + 1));
}

void cs_steer_named(struct cs_thread *thread, CUstream handle, cs_name name)
{
    CS_KEEP_ERRNO;
    const struct cs_policy *policy = cs_load_acq(&cs_policy_now);
    if (!policy || handle <= CU_STREAM_PER_THREAD || !name) return;
    struct cs_stream *stream = cs_pool_get(&cs_streams, cs_stream_find(thread, handle, false));
    for (int i = 0; stream && !cs_load(&stream->rule) && i < policy->rule_count; i++) {
        if (!named_matches(thread, stream, name, &policy->rules[i])) continue;
        use_named(handle, stream, policy, i);
        return;
    }
}
