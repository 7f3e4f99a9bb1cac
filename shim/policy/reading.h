/*
 * What the readers of a policy file's parts share: where they are, and how they say what is wrong.
 */
#ifndef CS_POLICY_READING_H
#define CS_POLICY_READING_H

#include "shim/policy/cjson_api.h"
#include "shim/policy/file.h"

struct cs_reading {
    const char *name; /* what error lines begin with */
    char *error;
    size_t room;
    struct cs_policy_file *file;
    bool live; /* only what may change in a running process */
};

enum { CS_PATH_ROOM = 160, CS_SHOWN_ROOM = 96 };

/* Always false: the error is "NAME: path: text", or "NAME: text" where the path is "". One line, whatever the values hold. */
bool cs_reading_fail(struct cs_reading *reading, const char *path, const char *format, ...) CS_PRINTF(3, 4);

/* The same for a value that is not what is allowed. */
bool cs_reading_refuse(struct cs_reading *reading, const char *path, const cJSON *value, const char *allowed);

/* Whether the value is a whole number between two bounds. */
bool cs_reading_number(const cJSON *value, int least, int most, int *out);

/* Reads an object: each member through `take`, with its path and the index of its key in `keys` (at most 64, then NULL). A key that is not there, or twice in
 * the object, is an error. */
typedef bool cs_take_fn(struct cs_reading *reading, const cJSON *value, const char *path, int key, void *out);
bool cs_reading_object(struct cs_reading *reading, const cJSON *object, const char *path, const char *const *keys, cs_take_fn *take, void *out);

/* A rule that asks for nothing and sets nothing. */
extern const struct cs_rule cs_rule_any;

/* "rules" (rules_read.c), and whether a rule that has been read can ever do what it says (rules_check.c). */
bool cs_reading_rules(struct cs_reading *reading, const cJSON *list);
bool cs_reading_check_rule(struct cs_reading *reading, int index);

#endif
