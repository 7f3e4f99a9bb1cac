#include "shim/policy/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/policy/keys.h"
#include "shim/policy/settle.h"

static const char *in_environment(enum cs_option id) { return cs_option_given(id) ? cs_option_text(id) : NULL; }

static void not_applied(const char *error)
{
    cs_log(CS_LOG_WARN, "%s; the policy is not applied", error);
    cs_option_drop(CS_OPTION_POLICY); /* the trace tells which one is in force */
}

static void drop_both(const enum cs_option option[2], const char *error)
{
    const struct cs_option_info *a = &cs_option_info[option[0]], *b = &cs_option_info[option[1]];
    cs_log(CS_LOG_WARN, "%s; using %s=%s and %s=%s", error, a->env, a->preset, b->env, b->preset);
    cs_option_drop(option[0]);
    cs_option_drop(option[1]);
}

/* The file if it can be applied, else an empty one; `settled` is what is in force with it. Each round that finds something leaves less to be found. */
static void settle(struct cs_settled *settled, struct cs_policy_file *file)
{
    char error[CS_POLICY_LINE];
    struct cs_contradiction found;
    const char *given = cs_option_text(CS_OPTION_POLICY);
    bool applies = *given && cs_policy_file_read(file, given, error, sizeof error);
    if (*given && !applies) not_applied(error);
    while (cs_settle(settled, applies ? file : NULL, in_environment), cs_settled_contradicts(settled, &found, error, sizeof error)) {
        if (found.of_file) not_applied(error), cs_policy_file_finish(file), applies = false;
        else drop_both(found.option, error);
    }
}

/* --- policies that were in force --- */

static bool same_keys(const struct cs_policy_key *key, const struct cs_rule *a, const struct cs_rule *b)
{
    bool same = true;
    for (; key->name && same; key++) {
        const char *const *x = (const void *)((const char *)a + key->offset), *const *y = (const void *)((const char *)b + key->offset);
        if (key->type > CS_KEY_TEXT) same = *(const int *)x == *(const int *)y;
        else same = *x && *y ? !strcmp(*x, *y) : *x == *y;
    }
    return same;
}

/* Padding may differ: then the same policy is taken for another one, and kept a second time. */
static bool same_policy(const struct cs_policy *a, const struct cs_policy *b)
{
    bool same = a->default_stream == b->default_stream && a->audit == b->audit && a->all_handles == b->all_handles && a->rule_count == b->rule_count &&
                !memcmp(&a->priority, &b->priority, sizeof a->priority) && !memcmp(&a->sharing, &b->sharing, sizeof a->sharing) &&
                !memcmp(&a->jitter, &b->jitter, sizeof a->jitter);
    for (int i = 0; i < a->rule_count && same; i++) same = same_keys(cs_match_keys, &a->rules[i], &b->rules[i]) && same_keys(cs_set_keys, &a->rules[i], &b->rules[i]);
    return same;
}

enum { KEPT_MOST = 4 << 20 }; /* bytes; a policy file has at most a quarter of that */

/* All that were in force, and what they take: one thread at a time asks. */
static struct cs_policy *policies;
static size_t kept;

/* The one that was in force before and says the same; it counts anew. NULL: none. */
static struct cs_policy *in_force_before(const struct cs_policy *policy)
{
    struct cs_policy *p = policies;
    while (p && !same_policy(p, policy)) p = p->before;
    for (int i = 0; p && i < p->rule_count; i++) {
        cs_store(&p->rules[i].matched, 0);
        cs_store(&p->rules[i].used, false);
    }
    return p;
}

static size_t texts_of(const struct cs_rule *rule, const struct cs_policy_key *key)
{
    size_t n = 0;
    for (; key->name; key++) {
        const char *const *text = (const void *)((const char *)rule + key->offset);
        if (key->type <= CS_KEY_TEXT && *text) n += strlen(*text) + 1;
    }
    return n;
}

static size_t size_of(const struct cs_policy *policy)
{
    size_t n = sizeof *policy + (size_t)policy->rule_count * sizeof *policy->rules;
    for (int i = 0; i < policy->rule_count; i++) n += texts_of(&policy->rules[i], cs_match_keys) + texts_of(&policy->rules[i], cs_set_keys);
    return n;
}

static void now_in_force(struct cs_policy *policy, struct cs_policy_file *file)
{
    static cs_u32 count;
    file->rules = NULL, file->rule_count = 0;
    policy->number = ++count;
    policy->before = policies;
    policies = policy;
    kept += size_of(policy);
    cs_store_rel(&cs_policy_now, policy);
}

/* NULL, or why it is not in force. Where a policy changes nothing there is none. Policies are never given back, since threads that are in a call of CUDA may use
 * them for as long as it takes: so one that comes again is used again, and so many others are refused that memory has a bound. */
static const char *publish(const struct cs_settled *settled, struct cs_policy_file *file)
{
    struct cs_policy *policy = calloc(1, sizeof *policy), *again = NULL;
    if (!policy) return "no memory";
    cs_policy_make(policy, settled->value, file->rules, file->rule_count);
    const bool acts = cs_policy_reach(policy);
    const char *refused = NULL;
    if (!acts || (again = in_force_before(policy))) cs_store_rel(&cs_policy_now, again);
    else if (kept + size_of(policy) > KEPT_MOST) refused = "too many different ones were in force since the process started (4 MiB); those can be in force again";
    else return now_in_force(policy, file), NULL;
    free(policy);
    return refused;
}

void cs_policy_load(void)
{
    CS_KEEP_ERRNO;
    struct cs_policy_file file = {0};
    struct cs_settled settled;
    settle(&settled, &file);
    if (publish(&settled, &file)) cs_log(CS_LOG_ERROR, "no memory for a policy; nothing is changed");
    cs_policy_tell();
    for (int i = 0; i < CS_OPTION_COUNT; i++)
        if (file.option[i]) cs_option_give((enum cs_option)i, file.option[i]);
    cs_policy_file_finish(&file);
}

/* The environment beats a policy file, and does so all along: what would not come about is refused. */
static bool beaten(const struct cs_policy_file *file, char *error, size_t room)
{
    char key[CS_KEY_ROOM];
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        const char *outside = in_environment((enum cs_option)i);
        if (!file->option[i] || !outside || !strcmp(outside, file->option[i])) continue;
        snprintf(error, room, "%s: %s: %s=%.60s was set when the process started and beats \"%.60s\"", file->name, cs_option_key((enum cs_option)i, key),
                 cs_option_info[i].env, outside, file->option[i]);
        return true;
    }
    return false;
}

bool cs_policy_replace(const char *json, char *error, size_t room)
{
    CS_KEEP_ERRNO;
    struct cs_policy_file file;
    struct cs_settled settled;
    struct cs_contradiction found;
    if (!cs_policy_file_parse(&file, "policy", json, strlen(json), true, error, room)) return false;
    cs_settle(&settled, &file, in_environment);
    bool ok = !beaten(&file, error, room) && !cs_settled_contradicts(&settled, &found, error, room);
    const char *refused = ok ? publish(&settled, &file) : NULL;
    if (refused) ok = false, snprintf(error, room, "policy: %s", refused);
    cs_policy_file_finish(&file);
    return ok;
}
