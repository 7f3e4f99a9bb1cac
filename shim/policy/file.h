/*
 * A policy file, read: what it says, or the first thing that is wrong with it in one line. docs/policy.md has its form.
 */
#ifndef CS_POLICY_FILE_H
#define CS_POLICY_FILE_H

#include "shim/base/options.h"
#include "shim/policy/policy.h"

struct cs_policy_file {
    const char *name;              /* what error lines call it: its path as given, or the variable that holds it; the caller's */
    char *option[CS_OPTION_COUNT]; /* NULL: not in it */
    struct cs_rule *rules;
    int rule_count;
};

enum { CS_POLICY_LINE = 768 }; /* room for any error, together with what a log line begins and ends with */

/* `given` is a path, or the JSON itself: then its first character, blanks apart, is '{'. It must live as long as `file`. False: there is nothing to finish, and
 * `error` says why, "NAME: ...", in one line. The heap and cJSON are used; any thread. */
bool cs_policy_file_read(struct cs_policy_file *file, const char *given, char *error, size_t room);

/* The same for a text. `live`: an option that can't change in a running process is an error. */
bool cs_policy_file_parse(struct cs_policy_file *file, const char *name, const char *text, size_t length, bool live, char *error, size_t room);

/* Gives back what it holds; a policy that keeps the rules takes them out before. */
void cs_policy_file_finish(struct cs_policy_file *file);

#endif
