/*
 * The keys of a policy file as data, from keys.def. A row's key is the name of the member that it is read into.
 */
#ifndef CS_POLICY_KEYS_H
#define CS_POLICY_KEYS_H

#include "shim/base/options.h"
#include "shim/policy/policy.h"

enum { CS_TEXT_MOST = 255 };

struct cs_policy_key {
    const char *name;
    enum cs_key_type { CS_KEY_GLOB, CS_KEY_TEXT, CS_KEY_NUMBER, CS_KEY_TRUTH, CS_KEY_CHOICE } type;
    int least, most;
    const char *words, *help, *example;
    size_t offset; /* in struct cs_rule; of an int, or of a text for GLOB and TEXT */
};

/* In the table's order; end with a name of NULL. */
extern const struct cs_policy_key cs_match_keys[], cs_set_keys[];

/* Of an option that policies are made of: an example of its use. NULL for the others. */
extern const char *const cs_live_example[CS_OPTION_COUNT];

/* What is allowed, in words. */
enum { CS_ALLOWED_ROOM = 80 };
const char *cs_key_allowed(const struct cs_policy_key *key, char text[CS_ALLOWED_ROOM]);

/* An option's key: its id in lower case. */
enum { CS_KEY_ROOM = 32 };
const char *cs_option_key(enum cs_option id, char key[CS_KEY_ROOM]);

#endif
