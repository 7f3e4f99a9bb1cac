/*
 * PRIORITY: what becomes of the priorities that streams and launches are asked to have.
 *
 * A number is changed first (set, shift, map), then brought into the range: the policy's where it narrows it, and the device's, which the driver does by
 * itself. Programs that ask for the range are told the narrowed one. 0 stays the least priority: programs take it for granted.
 */
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/saturate.h"
#include "shim/calls/real.h"
#include "shim/policy/policies.h"

static int changed(const struct cs_priority *rule, int asked)
{
    switch (rule->kind) {
    case CS_PRIORITY_SET: return rule->value;
    case CS_PRIORITY_SHIFT: return cs_sum(asked, rule->value);
    case CS_PRIORITY_MAP:
        for (int i = 0; i < rule->mapped; i++)
            if (rule->map[i].from == asked) return rule->map[i].to;
        return asked;
    default: return asked;
    }
}

bool cs_priority_of_device(int *least, int *greatest)
{
    CS_KEEP_ERRNO;
    return cs_real.cuCtxGetStreamPriorityRange(least, greatest) == CUDA_SUCCESS;
}

bool cs_priority_change(const struct cs_priority *rule, int asked, int least, int greatest, int *given)
{
    if (rule->kind == CS_PRIORITY_CLAMP && rule->value > greatest) greatest = rule->value;
    int wanted = changed(rule, asked);
    *given = cs_clamp(wanted, greatest, least);
    return *given == wanted || !rule->strict;
}

CUresult cs_priority_create(struct cs_creation *c)
{
    int least, greatest;
    const struct cs_priority *rule = &c->policy->priority;
    if (c->priority_ruled || (rule->kind == CS_PRIORITY_KEEP && !rule->strict)) return CUDA_SUCCESS;
    if (!cs_priority_of_device(&least, &greatest)) return CUDA_SUCCESS; /* the driver will say what is wrong */
    return cs_priority_change(rule, c->priority, least, greatest, &c->priority) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void cs_steer_range(int *least, int *greatest)
{
    const struct cs_policy *policy = cs_load_acq(&cs_policy_now);
    (void)least;
    if (greatest && policy && policy->priority.kind == CS_PRIORITY_CLAMP && policy->priority.value > *greatest) *greatest = policy->priority.value;
}

bool cs_steer_attribute(struct cs_thread *thread, CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue **value, CUstreamAttrValue *copy)
{
    const struct cs_policy *policy = cs_load_acq(&cs_policy_now);
    if (!policy || attribute != CU_STREAM_ATTRIBUTE_PRIORITY || !*value) return true;
    struct cs_stream *object = cs_pool_get(&cs_streams, cs_stream_find(thread, stream, false));
    int least, greatest;
    *copy = **value;
    if (object && cs_load_acq(&object->priority_ruled)) copy->priority = cs_load(&object->priority);
    else if ((policy->priority.kind != CS_PRIORITY_KEEP || policy->priority.strict) && cs_priority_of_device(&least, &greatest)) {
        if (!cs_priority_change(&policy->priority, copy->priority, least, greatest, &copy->priority)) return false;
    }
    *value = copy;
    return true;
}

/* The launch's own priority attribute, in a copy of the attributes. */
static void change_attributes(const struct cs_policy *policy, struct cs_launch_copy *copy)
{
    int least, greatest;
    if (policy->priority.kind == CS_PRIORITY_KEEP || !cs_priority_of_device(&least, &greatest)) return;
    if (copy->config.numAttrs > CS_COUNT(copy->attributes)) {
        cs_log_once(CS_LOG_WARN, "a launch with %u attributes keeps the priority that it asks for", copy->config.numAttrs);
        return;
    }
    for (unsigned i = 0; i < copy->config.numAttrs; i++) {
        copy->attributes[i] = copy->config.attrs[i];
        if (copy->attributes[i].id != CU_LAUNCH_ATTRIBUTE_PRIORITY) continue;
        int *priority = &copy->attributes[i].value.priority;
        cs_priority_change(&policy->priority, *priority, least, greatest, priority);
    }
    copy->config.attrs = copy->attributes;
}

const CUlaunchConfig *cs_steer_config(const struct cs_steer *steer, const CUlaunchConfig *config, struct cs_launch_copy *copy)
{
    if (!config || (!steer->policy && steer->stream == config->hStream)) return config;
    copy->config = *config;
    copy->config.hStream = steer->stream;
    if (steer->policy && config->numAttrs && config->attrs) change_attributes(steer->policy, copy);
    return &copy->config;
}
