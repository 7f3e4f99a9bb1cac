/*
 * Whether a rule can ever do what it says. Only what is certain is refused: a rule without effect is a slip that nothing else would show.
 */
#include <stdio.h>
#include <string.h>

#include "shim/base/append.h"
#include "shim/base/glob.h"
#include "shim/calls/how_words.h"
#include "shim/policy/keys.h"
#include "shim/policy/reading.h"

static const struct call {
    const char *name;
    unsigned how; /* enum cs_how */
} calls[] = {
#define CALL(name, sibling, kind, how, ...) {#name, how},
#include "shim/calls/calls.def"
#undef CALL
};

static bool creates(const struct call *call, int green)
{
    return call->how & CS_HOW_CREATES && (green < 0 || !(call->how & CS_HOW_GREEN) == !green);
}

/* Whether a glob matches a call that makes streams; of green contexts (1), of others (0), of any (-1). */
static bool matches_creation(const char *glob, int green)
{
    for (size_t i = 0; i < CS_COUNT(calls); i++)
        if (creates(&calls[i], green) && cs_glob(glob, calls[i].name)) return true;
    return false;
}

static bool check_call(struct cs_reading *r, const struct cs_match *m, const char *path)
{
    char list[256];
    size_t n = 0;
    const int green = m->context == CS_ANY ? -1 : m->context == CS_CONTEXT_GREEN;
    if (!m->call || matches_creation(m->call, green)) return true;
    for (size_t i = 0; i < CS_COUNT(calls); i++)
        if (creates(&calls[i], green)) n = cs_append(list, sizeof list, n, "%s%s", n ? ", " : "", calls[i].name);
    return cs_reading_fail(r, path, "\"%.64s\" matches no call that makes a stream%s: %s", m->call,
                           green < 0 ? "" : green ? " in a green context" : " in such a context", list);
}

static bool is_green(const struct cs_match *m) { return m->context == CS_CONTEXT_GREEN || (m->call && !matches_creation(m->call, 0)); }

static bool same(const struct cs_rule *a, const struct cs_rule *b, const struct cs_policy_key *key)
{
    const char *p = (const char *)a + key->offset, *q = (const char *)b + key->offset;
    if (key->type > CS_KEY_TEXT) return *(const int *)p == *(const int *)q;
    const char *text = *(char *const *)p, *other = *(char *const *)q;
    return text && other ? !strcmp(text, other) : text == other;
}

static bool given(const struct cs_rule *rule, const struct cs_policy_key *key) { return !same(rule, &cs_rule_any, key); }

/* Whether each stream that `later` matches is matched by `earlier`, as far as their conditions tell that are absent or equal. An nth-th stream is one of the
 * other conditions' streams, so two counts mean the same stream only where all the others are the same too. */
static bool covers(const struct cs_rule *earlier, const struct cs_rule *later)
{
    bool all_same = true;
    if (later->match.name && !earlier->match.name && earlier->match.thread) return false; /* that one asks who makes the stream, this one who names it */
    for (const struct cs_policy_key *key = cs_match_keys; key->name; key++) {
        if (given(earlier, key) && !same(earlier, later, key)) return false;
        all_same = all_same && same(earlier, later, key);
    }
    return all_same || earlier->match.nth == CS_ANY;
}

/* A default stream is never created: what only a creation has can't be a condition for one. Nor is it one of a green context, as far as is known. */
static bool check_default_stream(struct cs_reading *r, const struct cs_rule *rule, const char *path)
{
    const struct cs_match *m = &rule->match;
    const char *key = m->call                           ? "call"
                      : m->name                         ? "name"
                      : m->nonblocking != CS_ANY        ? "nonblocking"
                      : m->priority != CS_ANY           ? "priority"
                      : m->nth != CS_ANY                ? "nth"
                      : m->context == CS_CONTEXT_GREEN  ? "context"
                                                        : NULL;
    if (rule->set.default_stream == CS_DEFAULT_UNDECIDED || !key) return true;
    if (m->context == CS_CONTEXT_GREEN && !strcmp(key, "context"))
        return cs_reading_fail(r, path, "never does anything: match.context is green, and only streams that are created are known to be of a green context");
    return cs_reading_fail(r, path, "never does anything: a default stream is not created, so match.%s never matches one", key);
}

bool cs_reading_check_rule(struct cs_reading *r, int index)
{
    const struct cs_rule *rules = r->file->rules, *rule = &rules[index];
    const struct cs_policy_key *key = cs_set_keys;
    char path[64];
#define AT(place) (snprintf(path, sizeof path, "rules[%d]%s", index, place), path)
    while (key->name && !given(rule, key)) key++;
    if (!key->name) return cs_reading_fail(r, AT(".set"), "sets nothing");
    if (!check_call(r, &rule->match, AT(".match.call"))) return false;
    if (!check_default_stream(r, rule, AT(".set.default_stream"))) return false;
    if (!rule->set.nonblocking && is_green(&rule->match))
        return cs_reading_fail(r, AT(".set.nonblocking"), "never does anything: streams in a green context are always non-blocking");
    if (rule->match.name && rule->set.nonblocking != CS_ANY)
        return cs_reading_fail(r, AT(".set.nonblocking"), "never does anything: a stream gets its name (match.name) once it has been made");
    for (int i = 0; i < index; i++)
        if (covers(&rules[i], rule)) return cs_reading_fail(r, AT(""), "never matches: rules[%d] comes before it and matches all that it would", i);
    return true;
#undef AT
}
