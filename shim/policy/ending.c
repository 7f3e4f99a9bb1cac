/*
 * What is said of the policy at the end, and in the trace: rules that were used for no stream, most often a slip in a name; and that default streams were
 * made per-thread ones, which may be wrong without a word from CUDA.
 */
#include <string.h>

#include "shim/base/json.h"
#include "shim/base/log.h"
#include "shim/base/verdict.h"
#include "shim/base/watch.h"
#include "shim/policy/keys.h"
#include "shim/policy/load.h"
#include "shim/policy/policies.h"
#include "shim/trace/totals.h"

enum { SHOWN = 400, ROW = 6 * SHOWN + 64 };

/* Of the words of a choice, the first stands for `least`. */
static size_t put_word(char text[SHOWN], size_t n, const struct cs_policy_key *key, int value)
{
    const char *word = key->words;
    for (int i = key->least; i < value && strchr(word, '|'); i++) word = strchr(word, '|') + 1;
    return cs_verdict_put(text, SHOWN, n, "%.*s", (int)strcspn(word, "|"), word);
}

/* `library "libnccl*", nonblocking true`: its conditions, as a policy file has them. */
static void shown_match(const struct cs_rule *rule, char text[SHOWN])
{
    size_t n = 0;
    *text = 0;
    for (const struct cs_policy_key *key = cs_match_keys; key->name; key++) {
        const char *at = (const char *)rule + key->offset, *separator = n ? ", " : "";
        if (key->type <= CS_KEY_TEXT) {
            const char *value = *(char *const *)at;
            if (value) n = cs_verdict_put(text, SHOWN, n, "%s%s \"%s\"", separator, key->name, value);
            continue;
        }
        const int value = *(const int *)at;
        if (value == CS_ANY) continue;
        if (key->type == CS_KEY_TRUTH) n = cs_verdict_put(text, SHOWN, n, "%s%s %s", separator, key->name, value ? "true" : "false");
        else if (key->type == CS_KEY_CHOICE) n = put_word(text, cs_verdict_put(text, SHOWN, n, "%s%s ", separator, key->name), key, value);
        else n = cs_verdict_put(text, SHOWN, n, "%s%s %d", separator, key->name, value);
    }
}

/* From `at` on, the next one that was not used; -1: there is none. */
static int next_unused(const struct cs_policy *policy, int at)
{
    while (policy && at < policy->rule_count && cs_load(&policy->rules[at].used)) at++;
    return policy && at < policy->rule_count ? at : -1;
}

static bool makes_per_thread(const struct cs_policy *policy)
{
    if (!policy) return false;
    for (int i = 0; i < policy->rule_count; i++)
        if (policy->rules[i].set.default_stream == CS_DEFAULT_PER_THREAD && cs_load(&policy->rules[i].used)) return true;
    return policy->default_stream == CS_DEFAULT_PER_THREAD;
}

/* Now, or at an earlier question: `custream ctl` may have changed it. */
static bool has_made_per_thread(void)
{
    static _Atomic bool ever;
    if (makes_per_thread(cs_load_acq(&cs_policy_now))) cs_store(&ever, true);
    return cs_load(&ever);
}

static char *put(char *at, size_t room)
{
    const struct cs_policy *policy = cs_load_acq(&cs_policy_now);
    const char *end = at + room;
    char match[SHOWN];
    const int first = next_unused(policy, 0);
    for (int i = first; i >= 0 && end - at > ROW; i = next_unused(policy, i + 1)) {
        shown_match(&policy->rules[i], match);
        at = cs_put_text(at, i == first ? ",\n\"unusedRules\":[{\"rule\":" : ",{\"rule\":");
        at = cs_put_int(at, i);
        at = cs_put_literal(at, ",\"match\":");
        at = cs_put_string(at, match, SHOWN);
        *at++ = '}';
        if (next_unused(policy, i + 1) < 0 || end - at <= ROW) *at++ = ']';
    }
    if (has_made_per_thread()) at = cs_put_literal(at, ",\n\"perThreadDefaultStreams\":true");
    return at;
}

void cs_policy_tell(void) { cs_totals_add = put; }

void cs_policy_say(void)
{
    const struct cs_policy *policy = cs_load_acq(&cs_policy_now);
    char match[SHOWN];
    for (int i = next_unused(policy, 0); i >= 0; i = next_unused(policy, i + 1)) {
        shown_match(&policy->rules[i], match);
        cs_log_report("policy", CS_UNUSED_RULE, i, match);
    }
    if (has_made_per_thread()) cs_log_report("per-thread default streams", CS_NOT_AUDITED);
}
