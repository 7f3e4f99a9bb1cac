/*
 * DEFAULT_STREAM: which default stream handle 0 means.
 *
 * Decided once for a thread and a context, when it first uses a default stream there, so that a thread's work never changes streams halfway; by the rule
 * that matches the thread, else by the option. Where a rule asks for the library that calls, each call is asked anew. So the rule may be one of a policy that
 * another has replaced meanwhile: its number means nothing in that one.
 */
#include "shim/policy/policies.h"

enum cs_default_mode cs_default_of(struct cs_steer *steer, struct cs_thread *thread, const void *caller)
{
    const struct cs_policy *policy = steer->policy;
    bool known = cs_context_current(thread);
    steer->rule = policy->rule_count ? cs_rule_of_default(policy, thread, caller) : 0;
    steer->set = steer->rule ? &policy->rules[steer->rule - 1].set : NULL;
    enum cs_default_mode mode = steer->set ? steer->set->default_stream : CS_DEFAULT_UNDECIDED;
    if (mode == CS_DEFAULT_UNDECIDED) mode = policy->default_stream;
    if (known && !policy->asks_caller) thread->default_mode = mode, thread->default_rule = steer->rule, thread->default_set = steer->set;
    return mode;
}
