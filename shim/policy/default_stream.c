/*
 * DEFAULT_STREAM: which default stream handle 0 means.
 *
 * Decided once for a thread and a context, when it first uses a default stream there, so that a thread's work never changes streams halfway; by the rule
 * that matches the thread, else by the option. Where a rule asks for the library that calls, each call is asked anew.
 */
#include "shim/policy/policies.h"

enum cs_default_mode cs_default_of(const struct cs_policy *policy, struct cs_thread *thread, const void *caller, cs_u16 *rule)
{
    if (!policy->asks_caller && thread->default_mode && thread->context_epoch == cs_load(&cs_context_epoch)) {
        *rule = thread->default_rule;
        return thread->default_mode;
    }
    bool known = cs_context_current(thread);
    *rule = policy->rule_count ? cs_rule_of_default(policy, thread, caller) : 0;
    enum cs_default_mode mode = *rule ? policy->rules[*rule - 1].set.default_stream : CS_DEFAULT_UNDECIDED;
    if (mode == CS_DEFAULT_UNDECIDED) mode = policy->default_stream;
    if (known && !policy->asks_caller) thread->default_mode = mode, thread->default_rule = *rule;
    return mode;
}
