#include "shim/policy/policy.h"

#include <string.h>

#include "shim/base/options.h"

const struct cs_policy *_Atomic cs_policy_now;

/* What only a created stream has keeps a rule from being asked about default streams. */
static bool asks_of_default(const struct cs_match *m)
{
    return !m->call && !m->name && m->nonblocking == CS_ANY && m->priority == CS_ANY && m->nth == CS_ANY;
}

static unsigned rule_reach(const struct cs_rule *rule)
{
    return CS_REACH_OBJECTS | (asks_of_default(&rule->match) ? CS_REACH_DEFAULTS : 0) | (rule->set.record == 0 ? CS_REACH_CALLS : 0);
}

unsigned cs_policy_reach(const struct cs_policy *p)
{
    unsigned reach = 0;
    if (!p) return 0;
    if (p->priority.kind != CS_PRIORITY_KEEP || p->priority.strict || p->sharing.kind != CS_SHARING_KEEP) reach |= CS_REACH_OBJECTS;
    if (p->default_stream > CS_DEFAULT_KEEP) reach |= CS_REACH_OBJECTS | CS_REACH_DEFAULTS;
    if (p->audit || p->jitter.on || p->sharing.kind == CS_SHARING_SERIAL || p->sharing.kind == CS_SHARING_SYNC) reach |= CS_REACH_OBJECTS | CS_REACH_CALLS;
    for (int i = 0; i < p->rule_count; i++) reach |= rule_reach(&p->rules[i]);
    return reach;
}

void cs_policy_make(struct cs_policy *p, const char *const *value, struct cs_rule *rules, int rule_count)
{
    const char *mode = value[CS_OPTION_DEFAULT_STREAM];
    *p = (struct cs_policy){.rules = rules, .rule_count = rule_count};
    p->default_stream = !strcmp(mode, "per-thread") ? CS_DEFAULT_PER_THREAD : !strcmp(mode, "legacy") ? CS_DEFAULT_LEGACY : CS_DEFAULT_KEEP;
    p->audit = !strcmp(mode, "audit");
    p->all_handles = !strcmp(value[CS_OPTION_DEFAULT_HANDLES], "all");
    cs_priority_read(value[CS_OPTION_PRIORITY], &p->priority);
    cs_sharing_read(value[CS_OPTION_STREAMS], &p->sharing);
    cs_jitter_read(value[CS_OPTION_JITTER], &p->jitter);
    for (int i = 0; i < rule_count; i++) p->asks_caller = p->asks_caller || (rules[i].match.library && asks_of_default(&rules[i].match));
}
