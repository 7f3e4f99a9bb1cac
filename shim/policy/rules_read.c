#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/policy/keys.h"
#include "shim/policy/reading.h"

const struct cs_rule cs_rule_any = {
    .match = {.device = CS_ANY, .nonblocking = CS_ANY, .priority = CS_ANY, .nth = CS_ANY, .context = CS_ANY},
    .set = {.priority = CS_ANY, .nonblocking = CS_ANY, .record = CS_ANY},
};

/* The place of a word in a list with '|' between them, from 0; -1 if it is not there. */
static int place_of(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (int i = 0; words; i++) {
        size_t length = strcspn(words, "|");
        if (length == n && !memcmp(words, word, n)) return i;
        words = words[length] ? words + length + 1 : NULL;
    }
    return -1;
}

static bool is_text(const char *text)
{
    size_t n = strnlen(text, CS_TEXT_MOST + 1);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) return false;
    return n && n <= CS_TEXT_MOST;
}

static bool take_key(struct cs_reading *r, const cJSON *value, const char *path, const struct cs_policy_key *key, struct cs_rule *rule)
{
    void *out = (char *)rule + key->offset;
    int type = value->type & 0xff, n = -1;
    bool ok = false;
    switch (key->type) {
    case CS_KEY_GLOB: case CS_KEY_TEXT: ok = type == cJSON_String && is_text(value->valuestring); break;
    case CS_KEY_NUMBER: ok = cs_reading_number(value, key->least, key->most, &n); break;
    case CS_KEY_TRUTH: n = type == cJSON_True, ok = n || type == cJSON_False; break;
    case CS_KEY_CHOICE:
        if (type == cJSON_String) n = place_of(key->words, value->valuestring);
        ok = n >= 0;
        n += key->least;
        break;
    }
    if (!ok) return cs_reading_refuse(r, path, value, cs_key_allowed(key, (char[CS_ALLOWED_ROOM]){0}));
    if (key->type > CS_KEY_TEXT) return memcpy(out, &n, sizeof n), true;
    char *copy = strdup(value->valuestring);
    memcpy(out, &copy, sizeof copy);
    return copy ? true : cs_reading_fail(r, path, "no memory");
}

static bool take_match(struct cs_reading *r, const cJSON *value, const char *path, int key, void *rule)
{
    return take_key(r, value, path, &cs_match_keys[key], rule);
}

static bool take_set(struct cs_reading *r, const cJSON *value, const char *path, int key, void *rule)
{
    return take_key(r, value, path, &cs_set_keys[key], rule);
}

static bool take_group(struct cs_reading *r, const cJSON *value, const char *path, int key, void *rule)
{
    const struct cs_policy_key *rows = key ? cs_set_keys : cs_match_keys;
    const char *keys[64] = {NULL};
    for (int i = 0; rows[i].name; i++) keys[i] = rows[i].name;
    return cs_reading_object(r, value, path, keys, key ? take_set : take_match, rule);
}

bool cs_reading_rules(struct cs_reading *r, const cJSON *list)
{
    static const char *const groups[] = {"match", "set", NULL};
    struct cs_policy_file *file = r->file;
    int count = 0;
    if ((list->type & 0xff) != cJSON_Array) return cs_reading_refuse(r, "rules", list, "a list of rules, {\"match\": {...}, \"set\": {...}}");
    for (const cJSON *rule = list->child; rule; rule = rule->next) count++;
    if (count > CS_RULES) return cs_reading_fail(r, "rules", "%d rules; at most %d are allowed", count, CS_RULES);
    file->rules = calloc((size_t)count + 1, sizeof *file->rules);
    if (!file->rules) return cs_reading_fail(r, "rules", "no memory");
    for (const cJSON *rule = list->child; rule; rule = rule->next) {
        char path[32];
        int index = file->rule_count++;
        snprintf(path, sizeof path, "rules[%d]", index);
        memcpy(&file->rules[index], &cs_rule_any, sizeof cs_rule_any);
        if (!cs_reading_object(r, rule, path, groups, take_group, &file->rules[index]) || !cs_reading_check_rule(r, index)) return false;
    }
    return true;
}
