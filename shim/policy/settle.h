/*
 * The options in force, from the environment, a policy file and the defaults, and whether they and the rules can be true at the same time.
 */
#ifndef CS_POLICY_SETTLE_H
#define CS_POLICY_SETTLE_H

#include "shim/policy/file.h"

struct cs_settled {
    const char *value[CS_OPTION_COUNT]; /* borrowed from the file and from `environment` */
    enum cs_source { CS_FROM_DEFAULT, CS_FROM_FILE, CS_FROM_ENVIRONMENT } source[CS_OPTION_COUNT];
    const struct cs_policy_file *file; /* NULL: there is none */
};

/* `environment` gives an option's valid value in the environment, which beats the file's, or NULL. */
void cs_settle(struct cs_settled *settled, const struct cs_policy_file *file, const char *(*environment)(enum cs_option));

/* Two that contradict each other: both are options of the environment (or one of them at its default), or something of the file is among them. */
struct cs_contradiction {
    bool of_file;
    enum cs_option option[2]; /* where it is not of the file */
};

/* True, with a line about the first contradiction: "NAME: ..." where it is of the file. Any thread. */
bool cs_settled_contradicts(const struct cs_settled *settled, struct cs_contradiction *contradiction, char *error, size_t room);

#endif
