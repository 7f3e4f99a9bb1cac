#include "shim/policy/keys.h"

#include <stdio.h>

#define ROW(group, key, type, least, most, words, help, example) {#key, CS_KEY_##type, least, most, words, help, example, offsetof(struct cs_rule, group.key)},
#define LIVE(option, example)

#define MATCH(...) ROW(match, __VA_ARGS__)
#define SET(...)
const struct cs_policy_key cs_match_keys[] = {
#include "shim/policy/keys.def"
    {0}};
#undef MATCH
#undef SET

#define MATCH(...)
#define SET(...) ROW(set, __VA_ARGS__)
const struct cs_policy_key cs_set_keys[] = {
#include "shim/policy/keys.def"
    {0}};
#undef SET
#undef LIVE

#define SET(...)
#define LIVE(option, example) [CS_OPTION_##option] = example,
const char *const cs_live_example[CS_OPTION_COUNT] = {
#include "shim/policy/keys.def"
};
#undef MATCH
#undef SET
#undef LIVE

const char *cs_key_allowed(const struct cs_policy_key *key, char text[CS_ALLOWED_ROOM])
{
    switch (key->type) {
    case CS_KEY_GLOB: snprintf(text, CS_ALLOWED_ROOM, "a glob of 1 to %d bytes", CS_TEXT_MOST); break;
    case CS_KEY_TEXT: snprintf(text, CS_ALLOWED_ROOM, "a text of 1 to %d bytes", CS_TEXT_MOST); break;
    case CS_KEY_NUMBER: snprintf(text, CS_ALLOWED_ROOM, "a whole number from %d to %d", key->least, key->most); break;
    case CS_KEY_TRUTH: snprintf(text, CS_ALLOWED_ROOM, "true or false"); break;
    case CS_KEY_CHOICE: snprintf(text, CS_ALLOWED_ROOM, "%s", key->words); break;
    }
    return text;
}

const char *cs_option_key(enum cs_option id, char key[CS_KEY_ROOM])
{
    size_t i = 0;
    for (const char *p = cs_option_info[id].id; *p && i < CS_KEY_ROOM - 1; p++) key[i++] = (char)(*p >= 'A' && *p <= 'Z' ? *p | 32 : *p);
    key[i] = 0;
    return key;
}
