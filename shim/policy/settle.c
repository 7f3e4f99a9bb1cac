#include "shim/policy/settle.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/settings.h"
#include "shim/policy/keys.h"
#include "shim/policy/reading.h"

void cs_settle(struct cs_settled *settled, const struct cs_policy_file *file, const char *(*environment)(enum cs_option))
{
    settled->file = file;
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        const char *outside = environment((enum cs_option)i), *inside = file ? file->option[i] : NULL;
        settled->value[i] = outside ? outside : inside ? inside : cs_option_info[i].preset;
        settled->source[i] = outside ? CS_FROM_ENVIRONMENT : inside ? CS_FROM_FILE : CS_FROM_DEFAULT;
    }
}

/* What is looked for contradictions, and where what was found goes. */
struct looking {
    const struct cs_settled *settled;
    struct cs_contradiction *found;
    struct cs_reading reading;
};

static bool is(const struct looking *l, enum cs_option id, const char *value) { return !strcmp(l->settled->value[id], value); }

enum { OPTION_ROOM = 128 };

static const char *named(const struct looking *l, enum cs_option id, char text[OPTION_ROOM])
{
    char key[CS_KEY_ROOM];
    enum cs_source source = l->settled->source[id];
    bool inside = source == CS_FROM_FILE || (source == CS_FROM_DEFAULT && l->found->of_file);
    if (inside) snprintf(text, OPTION_ROOM, "%s \"%.60s\"", cs_option_key(id, key), l->settled->value[id]);
    else snprintf(text, OPTION_ROOM, "%s=%.60s", cs_option_info[id].env, l->settled->value[id]);
    return text;
}

/* A rule sets `key` to what an option does not let it. */
static bool rule_contradicts(struct looking *l, int rule, const char *key, enum cs_option id, const char *why)
{
    char path[64], name[OPTION_ROOM];
    l->found->of_file = true;
    snprintf(path, sizeof path, "rules[%d].set.%s", rule, key);
    return !cs_reading_fail(&l->reading, path, "contradicts %s: %s", named(l, id, name), why);
}

static bool options_contradict(struct looking *l, enum cs_option a, enum cs_option b, const char *why)
{
    char name[OPTION_ROOM], other[OPTION_ROOM], key[CS_KEY_ROOM];
    const enum cs_source *source = l->settled->source;
    l->found->of_file = source[a] == CS_FROM_FILE || source[b] == CS_FROM_FILE;
    l->found->option[0] = a;
    l->found->option[1] = b;
    if (!l->found->of_file)
        return snprintf(l->reading.error, l->reading.room, "%s contradicts %s: %s", named(l, a, name), named(l, b, other), why) > 0;
    enum cs_option inside = source[a] == CS_FROM_FILE ? a : b;
    return !cs_reading_fail(&l->reading, cs_option_key(inside, key), "\"%.60s\" contradicts %s: %s", l->settled->value[inside],
                            named(l, inside == a ? b : a, name), why);
}

static bool rules_contradict(struct looking *l)
{
    const struct cs_policy_file *file = l->settled->file;
    struct cs_priority priority = {0};
    bool audit = is(l, CS_OPTION_DEFAULT_STREAM, "audit"), serial = is(l, CS_OPTION_STREAMS, "serial");
    bool clamps = cs_priority_read(l->settled->value[CS_OPTION_PRIORITY], &priority) && priority.kind == CS_PRIORITY_CLAMP;
    for (int i = 0; file && i < file->rule_count; i++) {
        const struct cs_change *set = &file->rules[i].set;
        if (clamps && set->priority != CS_ANY && set->priority < priority.value)
            return rule_contradicts(l, i, "priority", CS_OPTION_PRIORITY, "it lies outside of that range");
        if (set->default_stream == CS_DEFAULT_UNDECIDED) continue;
        if (audit) return rule_contradicts(l, i, "default_stream", CS_OPTION_DEFAULT_STREAM, "an audit changes nothing");
        if (serial && set->default_stream == CS_DEFAULT_PER_THREAD)
            return rule_contradicts(l, i, "default_stream", CS_OPTION_STREAMS, "everything runs on one stream");
    }
    return false;
}

static bool some_rule_changes_default(const struct cs_policy_file *file)
{
    for (int i = 0; file && i < file->rule_count; i++)
        if (file->rules[i].set.default_stream > CS_DEFAULT_KEEP) return true;
    return false;
}

bool cs_settled_contradicts(const struct cs_settled *settled, struct cs_contradiction *found, char *error, size_t room)
{
    struct looking l = {settled, found, {.name = settled->file ? settled->file->name : "", .error = error, .room = room}};
    bool changes = !is(&l, CS_OPTION_DEFAULT_STREAM, "keep") && !is(&l, CS_OPTION_DEFAULT_STREAM, "audit");
    if (is(&l, CS_OPTION_STREAMS, "serial") && is(&l, CS_OPTION_DEFAULT_STREAM, "per-thread"))
        return options_contradict(&l, CS_OPTION_DEFAULT_STREAM, CS_OPTION_STREAMS, "everything runs on one stream");
    if (is(&l, CS_OPTION_DEFAULT_HANDLES, "all") && !changes && !some_rule_changes_default(settled->file))
        return options_contradict(&l, CS_OPTION_DEFAULT_HANDLES, CS_OPTION_DEFAULT_STREAM, "no default stream is changed");
    return rules_contradict(&l);
}
