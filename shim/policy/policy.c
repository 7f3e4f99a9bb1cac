#include "shim/policy/policy.h"

#include <string.h>

#include "shim/base/options.h"

const struct cs_policy *_Atomic cs_policy_now;

bool cs_policy_acts(const struct cs_policy *p)
{
    return p->audit || p->default_stream > CS_DEFAULT_KEEP || p->priority.kind != CS_PRIORITY_KEEP || p->priority.strict ||
           p->sharing.kind != CS_SHARING_KEEP || p->jitter.on || p->rule_count;
}

/* What only a created stream has keeps a rule from being asked about default streams. */
static bool asks_caller(const struct cs_match *m)
{
    return m->library && !m->call && !m->name && m->nonblocking == CS_ANY && m->priority == CS_ANY && m->nth == CS_ANY;
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
    for (int i = 0; i < rule_count; i++) p->asks_caller = p->asks_caller || asks_caller(&rules[i].match);
}
